"""Collective operations of torch.distributed whose data crosses the wire compressed."""

from collections.abc import Sequence
from typing import Any, Literal

import torch.distributed as dist
from torch import Tensor

from ..._arguments import check_choice
from ..._methods.seeds import derived
from ..._methods.shards import Range
from ...codecs import Codec
from ._arguments import (
    Processes,
    checked_codecs,
    checked_operation,
    checked_tensor,
    checked_tensors,
    seed_of,
    thread_number,
)
from ._messages import Coder, PayloadSpec
from ._pending import Pending, run
from ._rank_checks import check_ranks_match
from ._reduction import Reduction
from ._ring import RingReduction
from ._wire import Steps, broadcast_message, then_copy_back, gather

ALGORITHMS = {"scatter": Reduction, "ring": RingReduction}
_SUM = dist.ReduceOp.SUM


def all_reduce(
    tensor: Tensor,
    codec: Codec | None = None,
    op: Any = _SUM,
    group: Any = None,
    async_op: bool = False,
    *,
    seed: int | None = None,
    threads: int | None = None,
    check_finite: bool = False,
    algorithm: Literal["scatter", "ring"] = "scatter",
) -> Pending | None:
    """Reduce a tensor over all processes of a group, in place, with compressed data on the wire.

    As `torch.distributed.all_reduce`. Each process gets all pieces of its shard by an all-to-all, adds them (in one
    pass from payloads to payload where the codec has sums), and an all-gather brings the compressed sums to all. Each
    value is coded twice, whatever the number of processes; all end with bit-identical results. On the wire each process
    sends 2 (W - 1) / W of the compressed size. A group of one process changes nothing.

    The sum is calculated in rank order, of 16-bit floats in float32. "AVG" weighs each summand with 1 / W before it
    adds, so that 16-bit floats do not overflow.

    Where one process has a NaN or an infinity, all get what the codec makes of it: a quantizer, a bucket of NaN.

    Args:
        tensor: dense, of any shape and strides, on the CPU or on CUDA, of the same shape and dtype on all processes;
            float16, bfloat16, float32, float64, or with Lossless also an integer.
        codec: what to keep; None for `Lossless()`. Those of fixed rate never wait for the device.
        op: `torch.distributed.ReduceOp.SUM`, `AVG`, or `MAX` and `MIN`, which codecs that round at random do not allow.
        group: the processes; None for all.
        async_op: return at once. On the CPU the exchange goes on, but the caller's `wait` does the rest.
        seed: of codecs that round at random; each process derives its own from it. Another one for each call.
        threads: for the codec, on the CPU; None for PyTorch's number (torch.get_num_threads()).
        check_finite: raise on all processes where one has a value that is NaN or infinite. Waits for the device.
        algorithm: "scatter", as above; or "ring", where each process sends to its neighbour alone, which suits networks
            without the bandwidth for all-to-all: as many bytes, but each value is coded W times.

    Returns:
        With `async_op`, a `Work`, whose `wait` must be called before the tensor is looked at; else None.

    Raises:
        TypeError, ValueError: an argument is not allowed, or the processes' tensors, codecs or operations differ (on
            CUDA this is looked at when a group does something new); or a value is not finite, with `check_finite`.
        RuntimeError: torch.distributed is not initialized, or a process is gone, as PyTorch reports it.
    """
    checked_tensor("tensor", tensor)
    options = {"seed": seed, "threads": threads, "check_finite": check_finite, "algorithm": algorithm}
    return all_reduce_coalesced([tensor], codec, op, group, async_op, **options)  # type: ignore[arg-type]


def all_reduce_coalesced(
    tensors: Sequence[Tensor],
    codecs: Codec | Sequence[Codec | None] | None = None,
    op: Any = _SUM,
    group: Any = None,
    async_op: bool = False,
    *,
    seed: int | None = None,
    threads: int | None = None,
    check_finite: bool = False,
    algorithm: Literal["scatter", "ring"] = "scatter",
) -> Pending | None:
    """Reduce several tensors over all processes of a group, in place, in one exchange.

    As `all_reduce`, which says more: many small tensors cost two collectives together, and each may have its own codec.

    Args:
        tensors: on one device, of dtypes of their own; one at least.
        codecs: for all, or a list of one for each.
        op: as of `all_reduce`.
        group: the processes; None for all.
        async_op: as of `all_reduce`.
        seed: as of `all_reduce`.
        threads: as of `all_reduce`.
        check_finite: as of `all_reduce`.
        algorithm: as of `all_reduce`.

    Raises:
        TypeError, ValueError, RuntimeError: as `all_reduce`.
    """
    check_choice("algorithm", algorithm, list(ALGORITHMS))
    xs = checked_tensors(tensors)
    each = checked_codecs(codecs, xs)
    name = checked_operation(op, xs, each)
    number, threads = seed_of(each, seed), thread_number(threads)
    processes = Processes.of(group)
    check_ranks_match(f"all_reduce {name} {algorithm}", xs, each, processes, check_finite=check_finite)
    dense = [x.contiguous() for x in xs]
    reduction = ALGORITHMS[algorithm](dense, each, name, processes, number, threads)
    return run(then_copy_back(reduction.steps(), dense, xs), [*xs, *dense], list(tensors), async_op)


def reduce_scatter(
    output: Tensor,
    input: Tensor,  # noqa: A002 - PyTorch's name
    codec: Codec | None = None,
    op: Any = _SUM,
    group: Any = None,
    async_op: bool = False,
    *,
    seed: int | None = None,
    threads: int | None = None,
    check_finite: bool = False,
) -> Pending | None:
    """Reduce a tensor over all processes, each of which gets an equal part of the result.

    As `torch.distributed.reduce_scatter_tensor`, with compressed data on the wire. Each value is coded once; the sum is
    not. Its own part goes through the codec as well, so that the result does not depend on which process has it.

    Args:
        output: contiguous; the part of this process.
        input: W times as many elements, of the same dtype: the parts of all processes in rank order.
        codec: as of `all_reduce`.
        op: as of `all_reduce`.
        group: the processes; None for all.
        async_op: as of `all_reduce`.
        seed: as of `all_reduce`.
        threads: as of `all_reduce`.
        check_finite: as of `all_reduce`.

    Raises:
        TypeError, ValueError, RuntimeError: as `all_reduce`; or the sizes do not go together.
    """
    out, x = checked_tensor("output", output), checked_tensor("input", input)
    processes = Processes.of(group)
    _check_sizes("output", out, "input", x, processes.world)
    (checked,) = checked_codecs([codec], [x])
    name = checked_operation(op, [x], [checked])
    number, threads = seed_of([checked], seed), thread_number(threads)
    check_ranks_match(f"reduce_scatter {name}", [x], [checked], processes, check_finite=check_finite)
    dense = x.contiguous()
    reduction = Reduction([dense], [checked], name, processes, number, threads, shards=_equal(out, processes))
    return run(reduction.scatter_steps([out.view(-1)]), [x, dense, out], output, async_op)


def all_gather(
    output: Tensor,
    input: Tensor,  # noqa: A002 - PyTorch's name
    codec: Codec | None = None,
    group: Any = None,
    async_op: bool = False,
    *,
    seed: int | None = None,
    threads: int | None = None,
    check_finite: bool = False,
) -> Pending | None:
    """Gather the tensors of all processes on all of them.

    As `torch.distributed.all_gather_into_tensor`, with compressed data on the wire. All processes end with
    bit-identical results: a process's own part, too, is what the codec makes of it.

    Args:
        output: contiguous, of W times as many elements.
        input: of this process; of the same shape and dtype on all.
        codec: as of `all_reduce`.
        group: the processes; None for all.
        async_op: as of `all_reduce`.
        seed: as of `all_reduce`.
        threads: as of `all_reduce`.
        check_finite: as of `all_reduce`.

    Raises:
        TypeError, ValueError, RuntimeError: as `all_reduce`; or the sizes do not go together.
    """
    out, x = checked_tensor("output", output), checked_tensor("input", input)
    processes = Processes.of(group)
    _check_sizes("input", x, "output", out, processes.world)
    (checked,) = checked_codecs([codec], [x])
    number, threads = seed_of([checked], seed), thread_number(threads)
    check_ranks_match("all_gather", [x], [checked], processes, check_finite=check_finite)
    coder = Coder(checked.fixed_rate, x.device, threads)
    dense, parts = x.contiguous(), out.view(processes.world, -1)
    steps = _all_gather_steps(dense.view(-1), checked, coder, number, list(parts), processes)
    return run(steps, [x, dense, out], output, async_op)


def broadcast(
    tensor: Tensor,
    codec: Codec | None = None,
    src: int = 0,
    group: Any = None,
    async_op: bool = False,
    *,
    seed: int | None = None,
    threads: int | None = None,
    check_finite: bool = False,
) -> Pending | None:
    """Give all processes of a group the tensor of one of them.

    As `torch.distributed.broadcast`, with compressed data on the wire. The source, too, gets what the codec makes of
    its tensor, so that all have the same bits.

    Args:
        tensor: of the same shape and dtype on all processes.
        src: the source's rank in the whole program, as in PyTorch.
        codec: as of `all_reduce`.
        group: the processes; None for all.
        async_op: as of `all_reduce`.
        seed: as of `all_reduce`.
        threads: as of `all_reduce`.
        check_finite: as of `all_reduce`.

    Raises:
        TypeError, ValueError, RuntimeError: as `all_reduce`; or the source is not in the group.
    """
    x = checked_tensor("tensor", tensor)
    processes = Processes.of(group)
    source = processes.rank_of(src)
    (checked,) = checked_codecs([codec], [x])
    number, threads = seed_of([checked], seed), thread_number(threads)
    check_ranks_match(f"broadcast from {source}", [x], [checked], processes, check_finite=check_finite)
    dense = x.contiguous()
    coder = Coder(checked.fixed_rate, x.device, threads)
    steps = _broadcast_steps(dense.view(-1), checked, coder, number, src, processes)
    return run(then_copy_back(steps, [dense], [x]), [x, dense], tensor, async_op)


def _all_gather_steps(
    x: Tensor, codec: Codec, coder: Coder, seed: int, parts: list[Tensor], processes: Processes
) -> Steps[None]:
    spec = PayloadSpec(codec, x.dtype, x.numel())
    sent = coder.encode([[x]], [[spec]], derived(seed, 0, processes.rank))
    sizes = sent.sizes * processes.world if coder.fixed else None
    gathered = yield from gather(sent.buffer, sizes, processes)
    for message, part in zip(gathered, parts, strict=True):
        coder.decode(coder.payloads(message, [spec]), [spec], [part])


def _broadcast_steps(x: Tensor, codec: Codec, coder: Coder, seed: int, src: int, processes: Processes) -> Steps[None]:
    spec = PayloadSpec(codec, x.dtype, x.numel())
    is_source = dist.get_rank() == src
    sent = coder.encode([[x]], [[spec]], seed).buffer if is_source else None
    message = yield from broadcast_message(sent, coder.size([spec]), src, processes, x.device)
    coder.decode(coder.payloads(message, [spec]), [spec], [x])


def _equal(part: Tensor, processes: Processes) -> list[list[Range]]:
    size = part.numel()
    return [[Range(0, rank * size, (rank + 1) * size)] for rank in range(processes.world)]


def _check_sizes(small: str, part: Tensor, large: str, whole: Tensor, world: int) -> None:
    for name, x in (("output", part if small == "output" else whole),):
        if not x.is_contiguous():
            raise ValueError(f"{name} is not C-contiguous; a tensor in C order is allowed")
    if whole.numel() != world * part.numel():
        raise ValueError(
            f"{large} has {whole.numel()} elements; {world * part.numel()}, {world} times those of {small}, are allowed"
        )
    if (part.dtype, part.device) != (whole.dtype, whole.device):
        raise ValueError(
            f"{large} is {whole.dtype} on {whole.device}; {part.dtype} on {part.device}, as {small} is, is allowed"
        )
