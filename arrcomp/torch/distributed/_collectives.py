"""Collective operations of torch.distributed with compressed communication."""

from collections.abc import Sequence
from typing import Any, Literal

import torch.distributed as dist
from torch import Tensor

from ..._arguments import check_choice
from ..._methods.seeds import derived
from ..._methods.shards import Range
from ...codecs import Codec
from ._arguments import (
    Operation,
    Processes,
    check_output,
    checked_codecs,
    checked_operation,
    checked_tensor,
    checked_tensors,
    seed_of,
    thread_number,
)
from ._messages import PayloadSpec
from ._pending import Pending, run
from ._rank_checks import check_ranks_match
from ._reduction import ALGORITHMS, Reduction
from ._wire import Steps, broadcast_message, gather, then_copy_back

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
    """Reduce a tensor over all ranks of a group, in place, with compressed communication.

    Same as `torch.distributed.all_reduce`. (`arrcomp.jax.psum_quantized` does the same for JAX.) An all-to-all gives
    each rank all parts of its shard. It sums them, in one pass from payloads to a payload if the codec has sums, and an
    all-gather sends the compressed sums to all ranks. Each value is coded twice, for any number of ranks, and all ranks
    get bit-identical results. Each rank sends 2 (W - 1) / W of the compressed size, for a group of W ranks. A group of
    one rank changes nothing.

    The sum is computed in rank order; 16-bit floats are summed in float32. "AVG" multiplies each summand by 1 / W
    before the sum, so that 16-bit floats do not overflow.

    If a rank has a NaN or an infinity, all ranks get what the codec makes of it: for a quantizer, a bucket of NaN.

    Args:
        tensor: dense, of any shape and strides, on the CPU or on CUDA; with the same shape and dtype on all ranks:
            float16, bfloat16, float32, float64, or with Lossless also an integer.
        codec: what to keep; None for `Lossless()`. Fixed-rate codecs are asynchronous.
        op: `torch.distributed.ReduceOp.SUM` or `AVG`; or `MAX` or `MIN`, without stochastic rounding.
        group: the process group; None for the default group.
        async_op: return at once. On the CPU only the first exchange runs in the background; `wait` does the rest.
        seed: for stochastic rounding; each rank derives its own from it. It must change in every call.
        threads: CPU threads for the codec; None for PyTorch's number (torch.get_num_threads()).
        check_finite: raise on all ranks if a value of any rank is NaN or infinite. Synchronizes.
        algorithm: "scatter", as described; or "ring", where each rank sends only to its neighbour, for networks that
            are slow at all-to-all: as many bytes, but each value is coded W times.

    Returns:
        With `async_op`, a `Work`; call its `wait` before using the tensor. Else None.

    Raises:
        TypeError, ValueError: an argument is invalid, or the tensors, codecs or operations of the ranks do not match
            (on CUDA they are compared when a group does something new); or a value is not finite, with `check_finite`.
        RuntimeError: torch.distributed is not initialized, or a rank has failed.
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
    """Reduce several tensors over all ranks of a group, in place, in one exchange.

    Same as `all_reduce` for each, but with two collectives in total. `tensors` has at least one, all on one device;
    their dtypes may differ. `codecs` is one for all tensors, or a list with one for each. Other arguments and errors
    are those of `all_reduce`.
    """
    check_choice("algorithm", algorithm, list(ALGORITHMS))
    xs = checked_tensors(tensors)
    each = checked_codecs(codecs, xs)
    name = checked_operation(op, xs, each)
    title, processes = f"all_reduce {name} {algorithm}", Processes.of(group)
    operation = prepared(title, xs, each, name, processes, seed, threads, check_finite)
    steps = then_copy_back(ALGORITHMS[algorithm](operation).steps(), operation.tensors, xs)
    return run(steps, [*xs, *operation.tensors], list(tensors), async_op)


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
    """Reduce a tensor over all ranks; each gets an equal shard of the result.

    Same as `torch.distributed.reduce_scatter_tensor`, with compressed communication. Each value is coded once; the sum
    is not coded. A rank's own values are coded too, so that the result does not depend on which rank gets it.

    `output` is contiguous, and gets the shard of this rank. `input` has the shards of all ranks in rank order: W times
    as many elements, of the same dtype. Other arguments and errors are those of `all_reduce`; sizes that do not match
    are a ValueError too.
    """
    out, x = checked_tensor("output", output), checked_tensor("input", input)
    processes = Processes.of(group)
    _check_sizes("output", out, "input", x, processes.world)
    codecs = checked_codecs([codec], [x])
    name = checked_operation(op, [x], codecs)
    operation = prepared(f"reduce_scatter {name}", [x], codecs, name, processes, seed, threads, check_finite)
    size = out.numel()
    shards = [[Range(0, rank * size, (rank + 1) * size)] for rank in range(processes.world)]
    steps = Reduction(operation, shards=shards).scatter_steps([out.view(-1)])
    return run(steps, [x, *operation.tensors, out], output, async_op)


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
    """Gather the tensors of all ranks on every rank.

    Same as `torch.distributed.all_gather_into_tensor`, with compressed communication. All ranks get bit-identical
    results: a rank's own values are coded too.

    `output` is contiguous, with W times as many elements as `input`, which has the same shape and dtype on all ranks.
    Other arguments and errors are those of `all_reduce`; sizes that do not match are a ValueError too.
    """
    out, x = checked_tensor("output", output), checked_tensor("input", input)
    processes = Processes.of(group)
    _check_sizes("input", x, "output", out, processes.world)
    codecs = checked_codecs([codec], [x])
    operation = prepared("all_gather", [x], codecs, "", processes, seed, threads, check_finite)
    steps = _all_gather_steps(operation, list(out.view(processes.world, -1)))
    return run(steps, [x, *operation.tensors, out], output, async_op)


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
    """Send the tensor of one rank to all ranks of a group.

    Same as `torch.distributed.broadcast`, with compressed communication. The source gets the decompressed tensor too,
    so that all ranks have the same bits.

    `tensor` has the same shape and dtype on all ranks. `src` is the source's global rank, as in PyTorch; it is a
    ValueError if it is not in the group. Other arguments and errors are those of `all_reduce`.
    """
    x = checked_tensor("tensor", tensor)
    processes = Processes.of(group)
    source = processes.rank_of(src)
    codecs = checked_codecs([codec], [x])
    operation = prepared(f"broadcast from {source}", [x], codecs, "", processes, seed, threads, check_finite)
    steps = then_copy_back(_broadcast_steps(operation, src), operation.tensors, [x])
    return run(steps, [x, *operation.tensors], tensor, async_op)


def prepared(
    title: str,
    xs: Sequence[Tensor],
    codecs: Sequence[Codec],
    op: str,
    processes: Processes,
    seed: Any,
    threads: int | None,
    check_finite: bool,
) -> Operation:
    """An operation that all ranks call, on contiguous copies of tensors; `title` names it in errors."""
    number, threads = seed_of(codecs, seed), thread_number(threads)
    check_ranks_match(title, xs, codecs, processes, check_finite=check_finite)
    return Operation([x.contiguous() for x in xs], codecs, op, processes, number, threads)


def _all_gather_steps(operation: Operation, shards: Sequence[Tensor]) -> Steps[None]:
    x, spec, processes, coder = *_only(operation), operation.processes, operation.coder()
    sent = coder.encode([[x]], [[spec]], derived(operation.seed, 0, processes.rank))
    gathered = yield from gather(sent.buffer, sent.sizes * processes.world if coder.fixed else None, processes)
    for message, shard in zip(gathered, shards, strict=True):
        coder.decode(coder.payloads(message, [spec]), [spec], [shard])


def _broadcast_steps(operation: Operation, src: int) -> Steps[None]:
    x, spec, coder = *_only(operation), operation.coder()
    sent = coder.encode([[x]], [[spec]], operation.seed).buffer if dist.get_rank() == src else None
    message = yield from broadcast_message(sent, coder.size([spec]), src, operation.processes, x.device)
    coder.decode(coder.payloads(message, [spec]), [spec], [x])


def _only(operation: Operation) -> tuple[Tensor, PayloadSpec]:
    """The operation's only tensor, flat, and its payload."""
    x = operation.tensors[0].view(-1)
    return x, PayloadSpec(operation.codecs[0], x.dtype, x.numel())


def _check_sizes(small: str, shard: Tensor, large: str, whole: Tensor, world: int) -> None:
    check_output(shard if small == "output" else whole)
    if whole.numel() != world * shard.numel():
        expected = f"{world * shard.numel()} elements ({world} times those of {small})"
        raise ValueError(f"{large}: expected {expected}, got {whole.numel()}")
    if (shard.dtype, shard.device) != (whole.dtype, whole.device):
        expected = f"{shard.dtype} on {shard.device}, as {small}"
        raise ValueError(f"{large}: expected {expected}, got {whole.dtype} on {whole.device}")
