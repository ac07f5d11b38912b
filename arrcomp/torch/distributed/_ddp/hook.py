"""The communication hook for DistributedDataParallel: compressed communication of gradients."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ...._arguments import wrong_type
from ...._methods import planner
from ...._methods.seeds import derived
from ...._methods.shards import split_each
from ....codecs import Lossless
from ... import _ops
from ..._adapter import seed_arguments
from ..._tensors import capacity, coding_of
from .._arguments import Operation, Processes, checked_tensor
from .._pending import Pending
from .._rank_checks import check_ranks_match
from .._reduction import Reduction
from .._wire import Steps
from .state import Gradient, QuantizedState
from .statistics import ring_nbytes


def quantized_allreduce_hook(
    state: QuantizedState,
    bucket: dist.GradBucket,  # type: ignore[name-defined] # DDP requires exactly this annotation, which has no stub
) -> torch.futures.Future[Tensor]:
    """Average a bucket of gradients over all ranks, with compressed communication.

    For `model.register_comm_hook(QuantizedState.for_model(model), quantized_allreduce_hook)`, also inside PyTorch's
    `fp16_compress_wrapper` and `bf16_compress_wrapper`. All ranks get the same bits. A NaN or an infinity of one rank
    reaches all ranks, where a gradient scaler finds it.

    On CUDA the work is enqueued on a side stream, concurrent with the backward pass. On the CPU a bucket's first
    exchange overlaps with the computation of the next gradients. The hook of the next bucket completes it, and the hook
    of the last bucket completes all. Exchanges start and end inside the hook, in the order of the buckets, so other
    operations can use the group as with DDP's own all-reduce.

    Returns:
        A future of the bucket's buffer with the averages.

    Raises:
        TypeError: `state` is not a QuantizedState, or gradients are sparse.
        ValueError: the ranks' settings do not match; or same as `QuantizedState.gradients` and
            `QuantizedState.residual`.
        RuntimeError: same as in `arrcomp.torch.distributed.all_reduce`.
    """
    if not isinstance(state, QuantizedState):
        error = wrong_type("state", "a QuantizedState, the first argument of register_comm_hook", state)
        raise TypeError(f"{error}; pass QuantizedState.for_model(model, bits=4)")
    if bucket.index() == 0:
        state.clear_step()  # an exception may have ended the last step, on all ranks
    buffer = checked_tensor("the bucket's buffer", bucket.buffer())
    processes = Processes.of(state.process_group)
    gradients = state.gradients(bucket.parameters(), bucket.gradients())
    if not state.checked:
        codecs = [gradient.codec or Lossless() for gradient in gradients]
        values = [gradient.values for gradient in gradients]
        names = [repr(gradient.layer.name) for gradient in gradients]
        settings = {"step": state.step, **state.settings.config()}
        check_ranks_match("quantized_allreduce_hook", values, codecs, processes, names=names, settings=settings)
        state.checked = True
    average = _BucketAverage(state, buffer, gradients, processes)
    work = Pending(average.steps(), [buffer, *average.kept], buffer)
    state.pending.append(work)
    if bucket.is_last():
        _finish_step(state, buffer.device, processes)
    elif buffer.device.type == "cpu":
        for earlier in state.pending[:-1]:
            earlier.wait()
        del state.pending[:-1]
    future: torch.futures.Future[Tensor] = work.get_future()
    return future


def _finish_step(state: QuantizedState, device: torch.device, processes: Processes) -> None:
    if device.type == "cpu" or state.is_planning:
        for work in state.pending:
            work.wait()
    if state.errors:
        _choose_bits(state, device, processes)
    state.end_step()


class _BucketAverage:
    """The average of one bucket's gradients over all ranks, in place."""

    def __init__(
        self, state: QuantizedState, buffer: Tensor, gradients: Sequence[Gradient], processes: Processes
    ) -> None:
        self.state, self.buffer, self.processes = state, buffer, processes
        self.coded = [gradient for gradient in gradients if gradient.codec is not None]
        self.plain = [gradient for gradient in gradients if gradient.codec is None]
        self.codecs = [gradient.codec for gradient in gradients if gradient.codec is not None]
        self.numbers = [gradient.layer.number for gradient in self.coded]
        # A layer's result must not depend on the other layers of its bucket, since DDP rebuilds the buckets.
        sizes, multiples = [x.values.numel() for x in self.coded], [codec.granularity for codec in self.codecs]
        self.shards = split_each(sizes, multiples, self.numbers, processes.world)
        self.residuals: list[Tensor] | None = None
        self.sum_residuals: list[Tensor] | None = None
        if state.settings.error_feedback:
            own = self.shards[processes.rank]
            self.residuals = [state.residual(gradient) for gradient in self.coded]
            self.sum_residuals = [state.sum_residual(self.coded[part.array], part.elements) for part in own]

    @property
    def kept(self) -> list[Tensor]:
        """Tensors that are changed besides the buffer."""
        return [*(self.residuals or []), *(self.sum_residuals or [])]

    def steps(self) -> Steps[None]:
        """Run the operation, which leaves the averages in the bucket."""
        if not self.coded:
            yield self._all_reduce(self.buffer)
        elif not self.plain:
            yield from self._coded_steps()
        else:
            packed = torch.cat([gradient.values.view(-1) for gradient in self.plain])
            work = self._all_reduce(packed)
            yield from self._coded_steps()
            yield work
            averages = packed.split_with_sizes([gradient.values.numel() for gradient in self.plain])
            for gradient, average in zip(self.plain, averages, strict=True):
                gradient.values.view(-1).copy_(average)
        for gradient in self.plain:
            self._count(gradient, ring_nbytes(gradient.values.nbytes, self.processes.world))

    def _all_reduce(self, x: Tensor) -> Any:
        # Divided first, as in DDP: sums of 16-bit floats may overflow.
        return dist.all_reduce(x.div_(self.processes.world), group=self.processes.group, async_op=True)

    def _coded_steps(self) -> Steps[None]:
        values = [gradient.values for gradient in self.coded]
        if self.residuals is not None:
            for x, residual in zip(values, self.residuals, strict=True):
                x.add_(residual)
        self._note_candidates()
        tracks = self.state.settings.track_error
        norms = [_squared_norm(x.nan_to_num(0, 0, 0)) for x in values] if tracks else []
        lost = [torch.empty_like(x) for x in values] if tracks and self.residuals is None else self.residuals
        seed, threads = self.state.seed_of_step(), self.state.threads
        operation = Operation(values, self.codecs, "AVG", self.processes, seed, threads)
        sums, numbers = self.sum_residuals, self.numbers
        reduction = Reduction(operation, lost=lost, lost_sums=sums, shards=self.shards, numbers=numbers)
        yield from reduction.steps()
        for x in [*(lost or []), *(self.sum_residuals or [])]:
            x.nan_to_num_(0, 0, 0)  # otherwise NaNs would never go away
        for gradient, nbytes in zip(self.coded, reduction.sent_nbytes_each, strict=True):
            self._count(gradient, nbytes)
        if tracks and lost is not None:
            for gradient, norm, x in zip(self.coded, norms, lost, strict=True):
                found = self.state.statistics_of(gradient)
                found.squared_norm = found.squared_norm + norm
                found.squared_error = found.squared_error + _squared_norm(x)

    def _count(self, gradient: Gradient, nbytes: int) -> None:
        found = self.state.statistics_of(gradient)
        found.sent_nbytes += nbytes
        found.plain_nbytes += ring_nbytes(gradient.values.nbytes, self.processes.world)

    def _note_candidates(self) -> None:
        """Measure bytes and errors of each candidate number of bits."""
        if not self.state.is_planning:
            return
        codecs = list(self.state.settings.planned.values())
        seed = derived(self.state.seed_of_step(), 2, self.processes.rank)  # the reduction uses 0 and 1
        for gradient in self.coded:
            if gradient.planned:
                x = gradient.values.view(-1)
                own_seed, _ = seed_arguments(derived(seed, gradient.layer.number), x)
                sizes = [capacity(x, *coding_of(codec)) for codec in codecs]
                results = (_ops.roundtrip(x, *coding_of(codec), own_seed, None, self.state.threads) for codec in codecs)
                self.state.errors[gradient.layer] = sizes, torch.stack([_squared_norm(y.sub_(x)) for y in results])


def _squared_norm(x: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(x, dtype=torch.float64)
    return norm.square()


def _choose_bits(state: QuantizedState, device: torch.device, processes: Processes) -> None:
    """Set the bits of each layer, which rank 0 chooses. Synchronizes."""
    layers = sorted(state.errors, key=lambda layer: layer.number)
    errors = torch.stack([state.errors[layer][1] for layer in layers])
    sizes = [state.errors[layer][0] for layer in layers]
    dist.all_reduce(errors, group=processes.group)
    chosen = torch.zeros(len(layers), dtype=torch.int64, device=device)
    if processes.rank == 0 and bool(errors.isfinite().all()):
        candidates, planning = list(state.settings.planned), state.settings.planning
        assert planning is not None
        uniform = candidates.index(planning.uniform)
        options = planner.plan_bits(sizes, errors.cpu().numpy(), uniform, planning.alpha)
        chosen.copy_(torch.tensor([candidates[option] for option in options.tolist()]))
    dist.broadcast(chosen, dist.get_global_rank(processes.group, 0), group=processes.group)
    bits = chosen.tolist()
    if all(bits):  # otherwise a gradient was not finite, and the bits do not change
        state.plan = {layer.name: number for layer, number in zip(layers, bits, strict=True)}
