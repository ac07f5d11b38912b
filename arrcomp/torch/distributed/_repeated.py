"""A compressed all-reduce that is repeated in every step of a training, with error feedback."""

import torch
from torch import Tensor

from ._arguments import Operation
from ._reduction import Reduction, shard_views
from ._wire import Steps


class RepeatedReduction:
    """All-reduces of the same tensors in every step; with `error_feedback`, each adds what the last one lost.

    The method is that of H. Tang et al., "DoubleSqueeze", arXiv:1905.05957, algorithm 1. It takes 1 + 1 / W times the
    memory of the tensors.

    Attributes:
        residuals: lost of this rank's tensors, of their shapes; empty before the first step.
        sum_residuals: lost of the sums of this rank's shard, flat; empty before the first step.
        sent_nbytes: bytes that this rank has sent to other ranks in all steps.
    """

    def __init__(self, error_feedback: bool) -> None:
        self.error_feedback = error_feedback
        self.residuals: list[Tensor] = []
        self.sum_residuals: list[Tensor] = []
        self.sent_nbytes = 0

    def steps(self, operation: Operation) -> Steps[None]:
        """Reduce the tensors of an operation, in place."""
        reduction = self._with_feedback(operation) if self.error_feedback else Reduction(operation)
        yield from reduction.steps()
        for x in [*self.residuals, *self.sum_residuals]:
            x.nan_to_num_(0, 0, 0)  # otherwise NaNs would never go away
        self.sent_nbytes += reduction.sent_nbytes

    def _with_feedback(self, operation: Operation) -> Reduction:
        if not self.residuals:
            self.residuals = [torch.zeros_like(x) for x in operation.tensors]
            self.sum_residuals = [torch.zeros_like(x) for x in summed_here(operation)]
        for x, residual in zip(operation.tensors, self.residuals, strict=True):
            x.add_(residual)
        return Reduction(operation, lost=self.residuals, lost_sums=self.sum_residuals)


def summed_here(operation: Operation) -> list[Tensor]:
    """Views of the ranges of tensors whose sums this rank codes."""
    shard = Reduction(operation).shards[operation.processes.rank]
    return shard_views([x.view(-1) for x in operation.tensors], shard)
