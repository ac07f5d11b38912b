"""All-to-all of rows with compressed communication, and a differentiable one for mixtures of experts."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..._api.compress import checked_codec
from ..._arguments import check_flag, checked_integer, thread_count, wrong_type
from ..._methods.seeds import MAX_SEED, derived
from ...codecs import Codec, codec_from_config
from .._adapter import seed_arguments
from .._library import define, register_autograd
from .._tensors import coding_of, constant_result
from ._arguments import Operation, Processes, check_output, checked_codecs, checked_tensor, seed_of, thread_number
from ._messages import PayloadSpec
from ._pending import Pending, run
from ._rank_checks import check_ranks_match, check_splits_match
from ._wire import Steps, exchange, run_steps

_MAX = 1 << 62
_FORWARD, _BACKWARD = 0, 1  # the two directions draw different random numbers
_Splits = Sequence[int] | None
_c10d: Any = torch.distributed.distributed_c10d  # untyped: it finds groups by the names that operators take


class RowExchange(NamedTuple):
    """An all-to-all whose arguments are checked; `out` and `x` are contiguous and have rows of equal shape."""

    out: Tensor
    x: Tensor
    incoming: list[int]  # rows from each rank
    outgoing: list[int]  # rows to each rank

    def row_shape(self) -> tuple[int, ...]:
        """The shape of a row, the same on all ranks."""
        return tuple(self.x.shape[1:])


def all_to_all(
    output: Tensor,
    input: Tensor,  # noqa: A002 - PyTorch's name
    codec: Codec | None = None,
    output_split_sizes: _Splits = None,
    input_split_sizes: _Splits = None,
    group: Any = None,
    async_op: bool = False,
    *,
    seed: int | None = None,
    threads: int | None = None,
    check_finite: bool = False,
) -> Pending | None:
    """Send rows of a tensor to each rank, and receive rows from each.

    Same as `torch.distributed.all_to_all_single`, with compressed communication. (`arrcomp.jax.all_to_all_quantized`
    does the same for JAX.) The rows for each rank are compressed as one array, and once. A rank's own rows are coded
    too, so that results do not depend on where a row is.

    With a bucket for each row, such as ``QSGD(bits=8, bucket_size=row)`` or ``FloatFormat("fp8", scaling="bucket",
    bucket_size=row)``, where `row` is the number of elements of a row, a row has its own scale: what a token becomes
    does not depend on other tokens. (Random numbers of stochastic rounding depend on a row's position.)

    `all_to_all_autograd` is differentiable.

    Args:
        output: contiguous, [sum(output_split_sizes), ...]: the rows from all ranks, in rank order.
        input: [sum(input_split_sizes), ...]: the rows for all ranks, in rank order; of the dtype and device of
            `output`. Rows have the same shape and dtype on all ranks.
        codec: what to keep; None for `Lossless()`. With a fixed rate, both sides know the size of each message; else
            sizes are exchanged first, which synchronizes CUDA.
        output_split_sizes: number of rows from each rank, 0 too; None for equally many.
        input_split_sizes: number of rows for each rank, 0 too; None for equally many.
        group: the process group; None for the default group.
        async_op: return at once, same as in `all_reduce`.
        seed: for stochastic rounding, same as in `all_reduce`.
        threads: CPU threads for the codec; None for PyTorch's number.
        check_finite: raise on all ranks if a value of any rank is NaN or infinite. Synchronizes.

    Returns:
        With `async_op`, a `Work`; call its `wait` before using the output. Else None.

    Raises:
        TypeError, ValueError: an argument is invalid; or dtypes, shapes of rows, codecs or numbers of rows of the ranks
            do not match (on CUDA they are compared when a group does something new); or a value is not finite, with
            `check_finite`.
        RuntimeError: torch.distributed is not initialized, or a rank has failed.
    """
    out, x = checked_tensor("output", output), checked_tensor("input", input)
    processes = Processes.of(group)
    rows = checked_rows(out, x, output_split_sizes, input_split_sizes, processes.world)
    steps = all_to_all_steps(rows, codec, processes, seed, threads, check_finite)
    return run(steps, [rows.x, out], output, async_op)


def all_to_all_autograd(
    input: Tensor,  # noqa: A002 - PyTorch's name
    codec: Codec | None = None,
    output_split_sizes: _Splits = None,
    input_split_sizes: _Splits = None,
    group: Any = None,
    *,
    backward_codec: Codec | None = None,
    seed: int | None = None,
    threads: int | None = None,
    check_finite: bool = False,
) -> Tensor:
    """Send rows of a tensor to each rank, and return the rows from each: differentiable, for mixtures of experts.

    Same as `all_to_all`, and as `all_to_all_single_autograd` of PyTorch's functional collectives: it sends tokens to
    their experts, and results back. The backward pass sends the gradient the other way, compressed too; the codecs
    count as identity (straight-through). All ranks must run the backward pass. Usable inside
    `torch.compile(fullgraph=True)`.

    Args:
        input: [sum(input_split_sizes), ...], same as in `all_to_all`.
        codec: for the rows; None for `Lossless()`.
        output_split_sizes: number of rows from each rank, 0 too; None for an equal part of the input's rows.
        input_split_sizes: number of rows for each rank, 0 too; None for an equal part of the input's rows.
        group: same as in `all_to_all`.
        backward_codec: for the gradient; None for `codec`.
        seed: for stochastic rounding, same as in `all_reduce`; the backward pass derives its own.
        threads: CPU threads for the codec; None for PyTorch's number.
        check_finite: same as in `all_to_all`, for the input alone.

    Returns:
        [sum(output_split_sizes), ...], of the dtype and device of `input`.

    Raises:
        TypeError, ValueError, RuntimeError: same as in `all_to_all`.
    """
    checked_tensor("input", input)
    check_flag("check_finite", check_finite)
    codecs = [checked_codec(codec), checked_codec(codec if backward_codec is None else backward_codec)]
    for each in codecs:
        checked_codecs([each], [input])
    processes = Processes.of(group)
    incoming = _splits_or_even("output_split_sizes", output_split_sizes, "input", input, processes.world)
    outgoing = _splits_or_even("input_split_sizes", input_split_sizes, "input", input, processes.world)
    texts = [_text(each) for each in codecs]
    number, _ = seed_arguments(_traced_seed(codecs, seed), input)
    coding = *texts, number, thread_count(threads)
    result: Tensor = _all_to_all(input, incoming, outgoing, processes.group.group_name, *coding, check_finite, _FORWARD)
    return result


def all_to_all_steps(
    rows: RowExchange,
    codec: Codec | None,
    processes: Processes,
    seed: Any,
    threads: int | None,
    check_finite: bool = False,
) -> Steps[None]:
    """Run an all-to-all, after a check that its ranks match."""
    _, x, incoming, outgoing = rows
    codecs = checked_codecs([codec], [x])
    operation = Operation([x], codecs, "", processes, seed_of(codecs, seed), thread_number(threads))
    names, shapes = ["rows of input"], [rows.row_shape()]
    if check_ranks_match("all_to_all", [x], codecs, processes, names=names, shapes=shapes, check_finite=check_finite):
        check_splits_match(outgoing, incoming, processes, x.device)
    yield from _exchange_steps(operation, rows)


def _exchange_steps(operation: Operation, rows: RowExchange) -> Steps[None]:
    coder, processes = operation.coder(), operation.processes
    sent = [part.reshape(-1) for part in rows.x.split_with_sizes(rows.outgoing)]
    targets = [part.view(-1) for part in rows.out.split_with_sizes(rows.incoming)]
    sent_specs, specs = ([_spec(operation, part) for part in parts] for parts in (sent, targets))
    seed = derived(operation.seed, 0, processes.rank)
    messages = coder.encode([[part] for part in sent], [[spec] for spec in sent_specs], seed)
    sizes = [coder.size([spec]) for spec in specs]
    received = yield from exchange(messages, [size for size in sizes if size is not None] or None, processes)
    payloads = [coder.payloads(message, [spec])[0] for message, spec in zip(received, specs, strict=True)]
    coder.decode(payloads, specs, targets)


def _spec(operation: Operation, part: Tensor) -> PayloadSpec:
    return PayloadSpec(operation.codecs[0], part.dtype, part.numel())


def checked_rows(out: Tensor, x: Tensor, incoming: _Splits, outgoing: _Splits, world: int) -> RowExchange:
    """The rows of checked tensors, with the numbers of rows from and to each rank."""
    check_output(out)
    if (out.dtype, out.device) != (x.dtype, x.device):
        raise ValueError(f"output: expected {x.dtype} on {x.device}, as input, got {out.dtype} on {out.device}")
    sizes = [
        _with_sum("output", out, _splits_or_even("output_split_sizes", incoming, "output", out, world)),
        _with_sum("input", x, _splits_or_even("input_split_sizes", outgoing, "input", x, world)),
    ]
    if out.shape[1:] != x.shape[1:]:
        raise ValueError(f"output: expected rows of shape {_shape(x)}, as input, got {_shape(out)}")
    return RowExchange(out, x.contiguous(), *sizes)


def _splits_or_even(name: str, splits: Any, tensor: str, x: Tensor, world: int) -> list[int]:
    """The argument `name`, a number of rows for each rank; if it is None, an equal part of the rows of a tensor."""
    if x.dim() == 0:
        raise ValueError(f"{tensor}: expected a tensor with rows, got a scalar")
    if splits is None:
        if x.shape[0] % world:
            expected = f"a multiple of {world} (the number of ranks) rows without {name}"
            raise ValueError(f"{tensor}: expected {expected}, got {x.shape[0]}")
        return [x.shape[0] // world] * world
    if not isinstance(splits, (list, tuple)):
        raise wrong_type(name, "a list or tuple of integers, or None", splits)
    if len(splits) != world:
        raise ValueError(f"{name}: expected {world} sizes, one for each rank, got {len(splits)}")
    if torch.compiler.is_compiling():  # a check would make constants of them
        return list(splits)
    return [checked_integer(f"{name}[{i}]", size, 0, _MAX) for i, size in enumerate(splits)]


def _with_sum(tensor: str, x: Tensor, splits: list[int]) -> list[int]:
    """The same splits, after a check that they are all rows of a tensor."""
    if sum(splits) != x.shape[0]:
        name = f"{tensor}_split_sizes"
        raise ValueError(f"{name}: expected a sum of {x.shape[0]}, the rows of {tensor}, got {sum(splits)}")
    return splits


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape[1:]))


# The differentiable operator


def _text(codec: Codec) -> str:
    """A codec as an operator's argument."""
    coding_of(codec)  # which compiled code depends on
    return _config_text(codec)


@constant_result
def _config_text(codec: Codec) -> str:
    return json.dumps(codec.config())


def _traced_seed(codecs: Sequence[Codec], seed: Any) -> int:
    """Same as `seed_of`, but changing the seed does not trigger recompilation."""
    is_plain = type(seed) is int and 0 <= seed <= MAX_SEED
    number: int = seed if is_plain and any(codec.needs_seed for codec in codecs) else seed_of(codecs, seed)
    return number


def _kernel(
    x: Tensor,
    incoming: list[int],
    outgoing: list[int],
    group: str,
    codec: str,
    backward_codec: str,
    seed: int,
    threads: int,
    check_finite: bool,
    direction: int,
) -> Tensor:
    processes = Processes.of(_c10d._resolve_process_group(group))
    out = _fake(x, incoming)
    rows = checked_rows(out, x, incoming, outgoing, processes.world)
    own, first = codec_from_config(json.loads(codec)), seed & MAX_SEED
    number = first if direction == _FORWARD else derived(first, _BACKWARD)
    run_steps(all_to_all_steps(rows, own, processes, number, threads or None, check_finite))
    return out


def _fake(x: Tensor, incoming: list[int], *rest: Any) -> Tensor:
    return x.new_empty((sum(incoming), *x.shape[1:]))


_SPLITS = "SymInt[] incoming, SymInt[] outgoing"
_CODING = "str codec, str backward_codec, SymInt seed, int threads, bool check_finite, int direction"
_all_to_all = define(f"all_to_all(Tensor x, {_SPLITS}, str group, {_CODING}) -> Tensor", _kernel)(_fake)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, *ctx.settings = inputs


def _backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    incoming, outgoing, group, codec, backward_codec, seed, threads, _, direction = context.settings
    other = _BACKWARD if direction == _FORWARD else _FORWARD
    coding = backward_codec, codec, seed, threads, False, other
    return _all_to_all(gradient, outgoing, incoming, group, *coding), *[None] * len(context.settings)


register_autograd("all_to_all", _backward, _setup_context)
