"""The communication hook for DistributedDataParallel: gradients cross the wire compressed."""

import json
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ...._arguments import type_name
from ...._methods import planner
from ...._methods.seeds import derived
from ...._methods.shards import split_each
from ....codecs import Lossless
from ... import _ops
from ..._adapter import seed_arguments
from ..._tensors import capacity, coding_of
from .._arguments import Processes, checked_tensor
from .._pending import Pending
from .._rank_checks import check_ranks_match
from .._reduction import Reduction
from .._wire import Steps
from .state import Gradient, QuantizedState
from .statistics import ring_nbytes


def quantized_allreduce_hook(
    state: QuantizedState,
    bucket: dist.GradBucket,  # type: ignore[name-defined] # DDP insists on this very annotation, which has no stub
) -> torch.futures.Future[Tensor]:
    """Average a bucket of gradients over all processes, with compressed data on the wire.

    For `model.register_comm_hook(QuantizedState(...), quantized_allreduce_hook)`, and inside PyTorch's
    `fp16_compress_wrapper` and `bf16_compress_wrapper`. All processes get the same bits. A NaN or an infinity of one
    process reaches all: what a gradient scaler looks for.

    On CUDA all is enqueued on a stream of its own, beside the backward pass. On the CPU a bucket's first exchange goes
    on while the next gradients are calculated: the hook of the next bucket completes it, and that of the last bucket
    all that are left. So each process starts and ends its exchanges in the order of the buckets, and does so inside the
    hook alone: other operations of the program find the group as they would with DDP's own all-reduce.

    Args:
        state: settings and memory, of this model alone.
        bucket: of gradients, as DDP hands it over.

    Returns:
        A future of the bucket's buffer with the averages.

    Raises:
        TypeError: `state` is no QuantizedState, or gradients are sparse.
        ValueError: the processes' settings differ; or as `QuantizedState.gradients` and `QuantizedState.residual`.
        RuntimeError: as `arrcomp.torch.distributed.all_reduce`.
    """
    if not isinstance(state, QuantizedState):
        raise TypeError(f"state is a {type_name(state)}; a QuantizedState is allowed")
    if bucket.index() == 0:
        state.clear_step()  # that an exception may have ended, on all processes
    buffer = checked_tensor("the bucket's buffer", bucket.buffer())
    processes = Processes.of(state.process_group)
    gradients = state.gradients(bucket.parameters(), bucket.gradients())
    _compare(state, gradients, processes)
    average = _BucketAverage(state, buffer, gradients, processes)
    work = Pending(average.steps(), [buffer, *average.kept], buffer)
    state.pending.append(work)
    if bucket.is_last():
        _finish_step(state, buffer.device, processes)
    elif buffer.device.type == "cpu":
        _finish(state.pending[:-1])
        del state.pending[:-1]
    future: torch.futures.Future[Tensor] = work.get_future()
    return future


def _finish(pending: Sequence[Pending]) -> None:
    for work in pending:
        work.wait()


def _finish_step(state: QuantizedState, device: torch.device, processes: Processes) -> None:
    if device.type == "cpu" or state.is_planning:
        _finish(state.pending)
    if state.errors:
        _choose_bits(state, device, processes)
    state.end_step()


def _compare(state: QuantizedState, gradients: Sequence[Gradient], processes: Processes) -> None:
    """Raise on all processes where they differ, the first time."""
    if state.checked:
        return
    operation = f"quantized_allreduce_hook at step {state.step} with {json.dumps(state.settings.config())}"
    codecs = [gradient.codec or Lossless() for gradient in gradients]
    check_ranks_match(operation, [gradient.values for gradient in gradients], codecs, processes)
    state.checked = True


class _BucketAverage:
    """The average of one bucket's gradients over all processes, in place."""

    def __init__(
        self, state: QuantizedState, buffer: Tensor, gradients: Sequence[Gradient], processes: Processes
    ) -> None:
        self.state, self.buffer, self.processes = state, buffer, processes
        self.coded = [gradient for gradient in gradients if gradient.codec is not None]
        self.plain = [gradient for gradient in gradients if gradient.codec is None]
        self.codecs = [gradient.codec for gradient in gradients if gradient.codec is not None]
        self.numbers = [gradient.layer.number for gradient in self.coded]
        # Nothing of a layer depends on the other layers of the bucket: DDP makes other buckets in time.
        sizes, multiples = [x.values.numel() for x in self.coded], [codec.granularity for codec in self.codecs]
        self.shards = split_each(sizes, multiples, self.numbers, processes.world)
        self.residuals: list[Tensor] | None = None
        self.sum_residuals: list[Tensor] | None = None
        if state.settings.error_feedback:
            own = self.shards[processes.rank]
            self.residuals = [state.residual(gradient) for gradient in self.coded]
            self.sum_residuals = [state.sum_residual(self.coded[piece.array], piece.elements) for piece in own]

    @property
    def kept(self) -> list[Tensor]:
        """Tensors that it changes beside the buffer."""
        return [*(self.residuals or []), *(self.sum_residuals or [])]

    def steps(self) -> Steps[None]:
        """The operation."""
        if not self.coded:
            yield self._all_reduce(self.buffer)
        elif not self.plain:
            yield from self._coded_steps()
        else:
            packed = torch.cat([gradient.values.view(-1) for gradient in self.plain])
            work = self._all_reduce(packed)
            yield from self._coded_steps()
            yield work
            parts = packed.split_with_sizes([gradient.values.numel() for gradient in self.plain])
            for gradient, part in zip(self.plain, parts, strict=True):
                gradient.values.view(-1).copy_(part)
        for gradient in self.plain:
            self._count(gradient, ring_nbytes(gradient.values.nbytes, self.processes.world))

    def _all_reduce(self, x: Tensor) -> Any:
        # Divided first, as DDP does it: sums of 16-bit floats may overflow.
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
        reduction = self._reduction(values, lost)
        yield from reduction.steps()
        for x in [*(lost or []), *(self.sum_residuals or [])]:
            x.nan_to_num_(0, 0, 0)  # else it would stay so
        for gradient, nbytes in zip(self.coded, reduction.sent_nbytes_each, strict=True):
            self._count(gradient, nbytes)
        if tracks:
            self._note_errors(norms, lost or [])

    def _reduction(self, values: Sequence[Tensor], lost: Sequence[Tensor] | None) -> Reduction:
        lost_and_places = {
            "lost": lost,
            "lost_sums": self.sum_residuals,
            "shards": self.shards,
            "numbers": self.numbers,
        }
        place = self.processes, self.state.seed_of_step(), self.state.threads
        return Reduction(values, self.codecs, "AVG", *place, **lost_and_places)  # type: ignore[arg-type]

    def _count(self, gradient: Gradient, nbytes: int) -> None:
        found = self.state.statistics_of(gradient)
        found.sent_nbytes += nbytes
        found.plain_nbytes += ring_nbytes(gradient.values.nbytes, self.processes.world)

    def _note_errors(self, norms: Sequence[Tensor], lost: Sequence[Tensor]) -> None:
        for gradient, norm, x in zip(self.coded, norms, lost, strict=True):
            found = self.state.statistics_of(gradient)
            found.squared_norm = found.squared_norm + norm
            found.squared_error = found.squared_error + _squared_norm(x)

    def _note_candidates(self) -> None:
        """What each number of bits would cost."""
        if not self.state.is_planning:
            return
        codecs = list(self.state.settings.planned.values())
        seed = derived(self.state.seed_of_step(), 2, self.processes.rank)  # the reduction has 0 and 1
        for gradient in self.coded:
            if gradient.planned:
                x = gradient.values.view(-1)
                own_seed, _ = seed_arguments(derived(seed, gradient.layer.number), x)
                sizes = [capacity(x, *coding_of(codec)) for codec in codecs]
                back = (_ops.roundtrip(x, *coding_of(codec), own_seed, None, self.state.threads) for codec in codecs)
                self.state.errors[gradient.layer] = sizes, torch.stack([_squared_norm(y.sub_(x)) for y in back])


def _squared_norm(x: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(x, dtype=torch.float64)
    return norm.square()


def _choose_bits(state: QuantizedState, device: torch.device, processes: Processes) -> None:
    """Set the bits of each layer, as the first process of the group finds them. On CUDA this waits."""
    layers = sorted(state.errors, key=lambda layer: layer.number)
    errors = torch.stack([state.errors[layer][1] for layer in layers])
    sizes = [state.errors[layer][0] for layer in layers]
    dist.all_reduce(errors, group=processes.group)
    chosen = torch.zeros(len(layers), dtype=torch.int64, device=device)
    if processes.rank == 0 and bool(errors.isfinite().all()):
        chosen.copy_(torch.tensor(_planned_bits(state, sizes, errors)))
    dist.broadcast(chosen, dist.get_global_rank(processes.group, 0), group=processes.group)
    bits = chosen.tolist()
    if all(bits):  # else a gradient was not finite: the bits stay as they are
        state.plan = {layer.name: number for layer, number in zip(layers, bits, strict=True)}


def _planned_bits(state: QuantizedState, sizes: Sequence[Sequence[int]], errors: Tensor) -> list[int]:
    planning = state.settings.planning
    assert planning is not None
    candidates = list(state.settings.planned)
    options = planner.plan_bits(sizes, errors.cpu().numpy(), candidates.index(planning.uniform), planning.alpha)
    return [candidates[option] for option in options.tolist()]
