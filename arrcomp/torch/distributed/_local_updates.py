"""Outer steps of local-update training (DiLoCo), with compressed communication."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import xxhash
from torch import Tensor

from ..._arguments import check_flag, checked_integer, shortened, type_name, wrong_type
from ..._methods.error_feedback import check_error_feedback, warn_of_one_bit
from ..._methods.seeds import derived
from ...codecs import QSGD, Codec
from ._arguments import Operation, Processes, checked_codecs, checked_tensors, seed_of, thread_number
from ._rank_checks import check_ranks_match
from ._repeated import RepeatedReduction, summed_here
from ._wire import run_steps

_STATE_KEYS = ("steps", "parameters", "residuals", "sum_residuals", "outer_optimizer")


class LocalUpdates:
    """The outer steps of local-update training: each rank trains alone, and all ranks average what they learnt.

    This is DiLoCo (A. Douillard et al., arXiv:2311.08105, algorithm 1). Each rank makes some hundred steps of an inner
    optimizer without communication. Then `step` computes the outer gradient (pseudo-gradient) of each parameter, its
    value after the last outer step minus its value now, and averages it over the ranks with compressed communication,
    as in `all_reduce`. It restores the parameters of the last outer step, and lets the outer optimizer step with the
    average as the gradient. All ranks end with the same bits. (Streaming DiLoCo, arXiv:2501.18512, sends outer
    gradients in 4 bits too; for its fragments, make one object for the parameters of each.)

    With error feedback, each rank adds what compression lost of an outer gradient to the next one, and what it lost of
    an average that it codes to the next average (H. Tang et al., "DoubleSqueeze", arXiv:1905.05957, algorithm 1).

    It keeps a copy of the parameters, and 1 + 1 / W times their memory for error feedback. Buffers, such as a batch
    norm's statistics, are not averaged. The inner optimizer keeps its state, and gradients stay as they are.

    Args:
        outer_optimizer: of the parameters, dense floating-point tensors on one device, such as
            ``torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)``.
        codec: for outer gradients and averages, such as ``QSGD(bits=4)``; None for `Lossless()`.
        group: the process group; None for the default group.
        error_feedback: whether to add the compression error of an outer gradient to the next one.
        seed: for stochastic rounding; steps and ranks derive their own from it.
        threads: CPU threads for the codec; None for PyTorch's number.
        check_finite: whether `step` raises on all ranks, and changes nothing, if an outer gradient of any rank is NaN
            or infinite. Synchronizes. Else all ranks get what the codec makes of it.

    Attributes:
        steps: number of outer steps.
        sent_nbytes: bytes that this rank has sent to other ranks in all outer steps.

    Raises:
        TypeError, ValueError: an argument is invalid; or `error_feedback` with QSGD of 1 bit.
        RuntimeError: torch.distributed is not initialized.
    """

    def __init__(
        self,
        outer_optimizer: torch.optim.Optimizer,
        codec: Codec | None = None,
        group: Any = None,
        *,
        error_feedback: bool = True,
        seed: int = 0,
        threads: int | None = None,
        check_finite: bool = False,
    ) -> None:
        if not isinstance(outer_optimizer, torch.optim.Optimizer):
            raise wrong_type("outer_optimizer", "a torch.optim.Optimizer", outer_optimizer)
        for name, value in (("error_feedback", error_feedback), ("check_finite", check_finite)):
            check_flag(name, value)
        self._outer_optimizer, self._parameters = outer_optimizer, _parameters_of(outer_optimizer)
        values = checked_tensors(self._parameters, "parameters")
        self._codecs = checked_codecs([codec] * len(values), values)
        if error_feedback:
            check_error_feedback(self._codecs, "error_feedback=True")
        warn_of_one_bit(self._codecs, "or a codec with levels nearer to 0")
        self._processes, self._check_finite = Processes.of(group), check_finite
        self._seed, self._threads = seed_of([QSGD(rounding="stochastic")], seed), thread_number(threads)
        self._backups = [x.clone(memory_format=torch.contiguous_format) for x in values]
        self._reduction = RepeatedReduction(error_feedback)
        self._is_checked = False  # whether the ranks have compared their parameters
        self.steps = 0

    @property
    def sent_nbytes(self) -> int:
        """Bytes that this rank has sent to other ranks in all outer steps."""
        return self._reduction.sent_nbytes

    @torch.no_grad()
    def step(self) -> None:
        """Make an outer step, after any number of inner steps. All ranks must call it.

        Raises:
            ValueError: the ranks' parameters, codecs or settings do not match; at the first step, and at the first
                after `load_state_dict`, also if they did not start from the same values; or an outer gradient is not
                finite, with `check_finite`.
            RuntimeError: same as in `all_reduce`.
        """
        if list(map(id, _parameters_of(self._outer_optimizer))) != list(map(id, self._parameters)):
            expected = f"the {len(self._parameters)} parameters that it had at first"
            raise ValueError(f"outer_optimizer: expected {expected}, got others")
        averages = [(old - x).contiguous() for old, x in zip(self._backups, self._parameters, strict=True)]
        self._check(averages)
        run_steps(self._reduction.steps(self._operation(averages)))
        gradients = [x.grad for x in self._parameters]
        for x, old, average in zip(self._parameters, self._backups, averages, strict=True):
            x.copy_(old)
            x.grad = average
        self._outer_optimizer.step()
        for x, old, gradient in zip(self._parameters, self._backups, gradients, strict=True):
            old.copy_(x)
            x.grad = gradient
        self.steps += 1

    def state_dict(self) -> dict[str, Any]:
        """All that continues the outer steps of this rank, the outer optimizer's state too, for `torch.save`.

        Each rank must save its own, as residuals differ. The model and the inner optimizer are saved separately.
        """
        return {
            "steps": self.steps,
            "parameters": list(self._backups),
            "residuals": list(self._reduction.residuals),
            "sum_residuals": list(self._reduction.sum_residuals),
            "outer_optimizer": self._outer_optimizer.state_dict(),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict` of the same rank, parameters, settings and number of ranks.

        The model's parameters do not change: load them too, as they were when the state was saved.

        Raises:
            TypeError: it is none that `state_dict` returned.
            ValueError: its tensors have other shapes, or it has residuals and there is no error feedback.
        """
        if not isinstance(state_dict, Mapping) or set(state_dict) != set(_STATE_KEYS):
            got = list(state_dict) if isinstance(state_dict, Mapping) else type_name(state_dict)
            raise TypeError(f"state_dict: expected a mapping with {', '.join(_STATE_KEYS)}, got {shortened(str(got))}")
        steps = checked_integer("state_dict['steps']", state_dict["steps"], 0, 1 << 62)
        if state_dict["residuals"] and not self._reduction.error_feedback:
            raise ValueError("state_dict['residuals']: expected none without error_feedback=True, got some")
        own, sums = self._backups, summed_here(self._operation(self._backups))
        backups = _loaded(state_dict, "parameters", own)
        has_residuals = bool(state_dict["residuals"])
        residuals = _loaded(state_dict, "residuals", own if has_residuals else [])
        sum_residuals = _loaded(state_dict, "sum_residuals", sums if has_residuals else [])
        self._outer_optimizer.load_state_dict(state_dict["outer_optimizer"])
        self._backups, self._reduction.residuals, self._reduction.sum_residuals = backups, residuals, sum_residuals
        self.steps, self._is_checked = steps, False

    def __repr__(self) -> str:
        feedback = "with" if self._reduction.error_feedback else "without"
        return f"<LocalUpdates of {len(self._parameters)} parameters by {self._codecs[0]}, {feedback} error feedback>"

    def _operation(self, tensors: Sequence[Tensor]) -> Operation:
        return Operation(tensors, self._codecs, "AVG", self._processes, derived(self._seed, self.steps), self._threads)

    def _check(self, tensors: Sequence[Tensor]) -> None:
        """Check that the ranks match; once, that they began with the same parameters."""
        settings: dict[str, Any] = {"error_feedback": self._reduction.error_feedback, "outer steps": self.steps}
        if not self._is_checked:
            settings["hash of the parameters before the first inner step"] = _digest(self._backups)
        names = [f"parameters[{i}]" for i in range(len(tensors))]
        codecs, processes = self._codecs, self._processes
        options = {"names": names, "settings": settings, "check_finite": self._check_finite}
        check_ranks_match("LocalUpdates.step", tensors, codecs, processes, **options)  # type: ignore[arg-type]
        self._is_checked = True


def _parameters_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [x for group in optimizer.param_groups for x in group["params"]]


def _digest(tensors: Sequence[Tensor]) -> str:
    """A hash of the values of tensors. Synchronizes CUDA."""
    found = xxhash.xxh3_64()
    for x in tensors:
        found.update(x.view(-1).view(torch.uint8).cpu().numpy().data)
    return found.hexdigest()


def _loaded(state_dict: Mapping[str, Any], name: str, own: Sequence[Tensor]) -> list[Tensor]:
    """Copies of a list of tensors of a state, which have the shapes of one's own."""
    expected = [list(x.shape) for x in own]
    given = state_dict[name]
    if not isinstance(given, list) or not all(isinstance(x, Tensor) for x in given):
        raise TypeError(f"state_dict[{name!r}]: expected a list of tensors, got {type_name(given)}")
    if [list(x.shape) for x in given] != expected:
        got = [list(x.shape) for x in given]
        raise ValueError(f"state_dict[{name!r}]: expected shapes {shortened(str(expected))}, got {shortened(str(got))}")
    return [mine.new_empty(mine.shape).copy_(x) for x, mine in zip(given, own, strict=True)]
