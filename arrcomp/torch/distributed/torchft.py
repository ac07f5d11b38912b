"""Outer gradients of torchft's DiLoCo, compressed: a process group for its Manager.

Importing this module does not import torchft. It is written for, and tested with, torchft 0.2.0.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch.distributed as dist
from torch import Tensor

from ..._api.compress import checked_codec
from ..._arguments import checked_integer, wrong_type
from ..._methods.error_feedback import check_error_feedback
from ..._methods.seeds import derived
from ...codecs import QSGD, Codec
from .._tensors import FLOATS, dtype_of
from ._arguments import Operation, Processes, seed_of, thread_number
from ._pending import Pending
from ._rank_checks import check_ranks_match
from ._repeated import RepeatedReduction
from ._wire import then_copy_back

__all__ = ["compressing_process_group"]

_MAX = 1 << 62


class _Settings(NamedTuple):
    """The checked arguments of `compressing_process_group`."""

    codec: Codec
    minimal_size: int
    error_feedback_calls: int | None
    seed: int
    threads: int


def compressing_process_group(
    pg: Any,
    codec: Codec | None = None,
    *,
    minimal_size: int = 1024,
    error_feedback_calls: int | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Any:
    """A process group for torchft's `Manager` that compresses all-reduces, such as DiLoCo's of outer gradients.

    Sums and averages of floating-point tensors are reduced as in `all_reduce`. `pg` does everything else, and is
    reconfigured when replicas come or go. Use it without ``should_quantize=True``, which would quantize in torchft
    instead::

        group = compressing_process_group(torchft.ProcessGroupGloo(), QSGD(bits=4))
        manager = torchft.Manager(pg=group, use_async_quorum=False, ...)

    With error feedback, each all-reduce adds what the one in its place lost in the last cycle, as in `LocalUpdates`.
    torchft makes new tensors for each, so they are told apart by their place in a cycle, which must be the same in all
    cycles: DiLoCo all-reduces each parameter in turn, those of all fragments one after the other. The residuals are set
    to 0 when torchft reconfigures the group: another number of replicas divides the sums otherwise, and a replica that
    joins has none.

    On CUDA `pg` is torchft's for NCCL, and its timeout does not watch compressed all-reduces. This has not run on a GPU
    yet.

    Args:
        pg: a process group of torchft, such as `torchft.ProcessGroupGloo()`.
        codec: for these tensors; None for `Lossless()`.
        minimal_size: tensors with fewer elements are not compressed.
        error_feedback_calls: number of all-reduces of a cycle: the model's number of parameters, or with
            ``use_bucketization=True`` of buckets. None for no error feedback.
        seed: for stochastic rounding; all-reduces and replicas derive their own from it.
        threads: CPU threads for the codec; None for PyTorch's number.

    Returns:
        A `torchft.process_group.ProcessGroupWrapper` of `pg`. Its all-reduces raise ValueError if the tensors or codecs
        of the replicas do not match, or if a tensor has another shape than the one in its place in the last cycle.

    Raises:
        ImportError: torchft is not installed.
        TypeError, ValueError: an argument is invalid; or error feedback with QSGD of 1 bit.
    """
    from torchft.process_group import ProcessGroupWrapper

    if not isinstance(pg, ProcessGroupWrapper):
        raise wrong_type("pg", "a process group of torchft, such as ProcessGroupGloo()", pg)
    checked, calls = checked_codec(codec), error_feedback_calls
    checked_integer("minimal_size", minimal_size, 0, _MAX)
    if calls is not None:
        checked_integer("error_feedback_calls", calls, 1, _MAX)
        check_error_feedback([checked], "error_feedback_calls")
    number = seed_of([QSGD(rounding="stochastic")], seed)
    settings = _Settings(checked, minimal_size, calls, number, thread_number(threads))
    return _group_class(ProcessGroupWrapper)(pg, settings)


@cache
def _group_class(wrapper: Any) -> Any:
    """The class of these groups, which needs torchft's `ProcessGroupWrapper` as its base."""

    class CompressingProcessGroup(wrapper):  # type: ignore[misc]
        """A process group of torchft whose all-reduces are compressed."""

        def __init__(self, pg: Any, settings: _Settings) -> None:
            super().__init__(pg=pg)
            self._reduces = _Reduces(settings, 0)

        def configure(self, *args: Any, **options: Any) -> None:
            """Use other replicas."""
            super().configure(*args, **options)
            self._reduces = _Reduces(self._reduces.settings, self._quorum_id or 0)

        def allreduce(self, tensors: Sequence[Tensor], opts: Any) -> Any:
            """Reduce tensors over all replicas, in place."""
            group = self.parent.parent
            processes = Processes(group, group.rank(), group.size())
            work = self._reduces.work(list(tensors), getattr(opts, "reduceOp", opts), processes)
            return super().allreduce(tensors, opts) if work is None else work

    return CompressingProcessGroup


class _Reduces:
    """The all-reduces of one configuration of a group."""

    def __init__(self, settings: _Settings, quorum: int) -> None:
        self.settings, self._seed = settings, derived(settings.seed, quorum)
        self._calls = 0
        self._places: dict[int, RepeatedReduction] = {}

    def work(self, tensors: list[Tensor], op: Any, processes: Processes) -> Pending | None:
        """The work of the next all-reduce; None if it is not to be compressed."""
        number, settings = self._calls, self.settings
        self._calls += 1
        name = next((name for name in ("SUM", "AVG") if op == getattr(dist.ReduceOp, name)), None)
        if name is None or processes.world == 1 or not all(map(self._is_compressed, tensors)):
            return None
        xs = [x.detach() for x in tensors]
        dense, codecs = [x.contiguous() for x in xs], [settings.codec] * len(xs)
        reduction = self._in_place(number, dense)
        check_ranks_match(f"all_reduce {name} of torchft", dense, codecs, processes)
        operation = Operation(dense, codecs, name, processes, derived(self._seed, number), settings.threads)
        steps = then_copy_back(reduction.steps(operation), dense, xs)
        return Pending(steps, [*xs, *dense], tensors)

    def _is_compressed(self, x: Tensor) -> bool:
        settings = self.settings
        return x.dtype in FLOATS and x.numel() >= settings.minimal_size and settings.codec.takes(dtype_of(x))

    def _in_place(self, number: int, tensors: Sequence[Tensor]) -> RepeatedReduction:
        """The reduction in the place of a call in its cycle."""
        calls = self.settings.error_feedback_calls
        if calls is None:
            return RepeatedReduction(error_feedback=False)
        found = self._places.setdefault(number % calls, RepeatedReduction(error_feedback=True))
        expected, got = [list(x.shape) for x in found.residuals], [list(x.shape) for x in tensors]
        if expected and expected != got:
            raise ValueError(
                f"error_feedback_calls: expected the number of all-reduces of a cycle, got {calls}: all-reduce "
                f"{number % calls} of a cycle had shapes {expected}, and has {got}"
            )
        return found
