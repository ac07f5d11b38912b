"""The core's PyTorch operators, `torch.ops.arrcomp.*`.

`codec` and `parameters` are a codec's id and its `core_parameters()`. `threads` is 0 for all CPU cores. `seed` is
read as an unsigned 64-bit integer. `seed_at`, int64[] on the tensors' device, replaces `seed` and is read when the
device runs the operator. `references` are the tensors' references, if the codec has the predictor "reference". All
tensors of a call have the same dtype and device. Except for `encode_trimmed`, the shapes of the results follow from the
arguments.
"""

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _kernels
from ._kernels import Floats, Tensors
from ._library import define, not_batched, register_autograd, register_vmap
from ._tensors import capacities

_CODEC = "int codec, float[] parameters"
_RANDOM = "SymInt seed=0, Tensor? seed_at=None"
_TRUST = "bool trusted=False, int threads=0"
_CODING = f"{_CODEC}, {_RANDOM}, int threads=0"
_REFERENCES = "Tensor[]? references=None"
_PAYLOADS = "Tensor[] payloads, Tensor?[] lengths"
_SUM = f"SymInt elements, ScalarType dtype, int terms_codec, float[] terms_parameters, {_CODEC}, {_RANDOM}, {_TRUST}"

# PyTorch has no types for these.
_library: Any = torch.library
_unpack_dual: Any = forward_ad.unpack_dual


def _bytes(size: Any, x: Tensor) -> Tensor:
    return x.new_empty((size,), dtype=torch.uint8)


def _lengths(xs: Tensors) -> Tensor:
    return xs[0].new_empty((len(xs),), dtype=torch.int64)


@define(f"encode(Tensor[] xs, {_CODING}, {_REFERENCES}) -> (Tensor, Tensor)", _kernels.encode)
def encode(xs: Tensors, codec: int, parameters: Floats, *rest: Any, **options: Any) -> Any:
    """The payloads in one buffer, with the offsets that `capacities` gives, and their lengths, int64[len(xs)]."""
    return _bytes(sum(capacities(xs, codec, parameters)), xs[0]), _lengths(xs)


@define(f"encode_trimmed(Tensor[] xs, {_CODING}, {_REFERENCES}) -> Tensor[]", _kernels.encode_trimmed, ("CPU",))
def encode_trimmed(xs: Tensors, *rest: Any, **options: Any) -> Any:
    """The payloads, each in its own memory, without spare bytes. CUDA, which would be synchronized, has no kernel."""
    context = _library.get_ctx()
    return [_bytes(context.new_dynamic_size(), x) for x in xs]


@define(f"encode_out(Tensor[] xs, Tensor(a!)[] out, {_CODING}, {_REFERENCES}) -> Tensor", _kernels.encode_out)
def encode_out(xs: Tensors, *rest: Any, **options: Any) -> Any:
    """Write each payload to the start of its `out`, and return the lengths."""
    return _lengths(xs)


@define(
    f"decode({_PAYLOADS}, SymInt[] sizes, int[] dimensions, {_CODEC}, ScalarType dtype, {_TRUST}, {_REFERENCES})"
    " -> Tensor[]",
    _kernels.decode,
)
def decode(
    payloads: Tensors, lengths: Any, sizes: Any, dimensions: Any, codec: int, parameters: Floats, dtype: Any, *rest: Any
) -> Any:
    """The arrays.

    A payload's length is int64[1], or None for a payload that fills its tensor. `sizes` are all shapes, concatenated;
    `dimensions` is the number of dimensions of each. Payloads that are not `trusted` synchronize CUDA.
    """
    return [payloads[0].new_empty(shape, dtype=dtype) for shape in _kernels.shapes(sizes, dimensions)]


@define(
    f"decode_out({_PAYLOADS}, Tensor(a!)[] out, {_CODEC}, {_TRUST}, {_REFERENCES}) -> ()",
    _kernels.decode_out,
)
def decode_out(*arguments: Any) -> None:
    """Fill `out` with the arrays. References may be `out`."""


@define(f"accumulate(Tensor(a!) into, {_PAYLOADS}, float[] weights, {_CODEC}, {_TRUST}) -> ()", _kernels.accumulate)
def accumulate(*arguments: Any, **options: Any) -> None:
    """Add the decoded payloads, times their weights, to `into`."""


@define(f"encode_sum({_PAYLOADS}, float[] weights, {_SUM}) -> (Tensor, Tensor)", _kernels.encode_sum)
def encode_sum(payloads: Tensors, lengths: Any, weights: Any, *result: Any, **options: Any) -> Any:
    """The payload of a weighted sum of arrays of `elements` elements, in a buffer of its capacity, and its length."""
    return _bytes(_kernels.sum_capacity(*result), payloads[0]), _lengths(payloads[:1])


@define(f"encode_sum_out({_PAYLOADS}, float[] weights, Tensor(a!) out, {_SUM}) -> Tensor", _kernels.encode_sum_out)
def encode_sum_out(payloads: Tensors, *rest: Any, **options: Any) -> Any:
    """Same as `encode_sum`, with the payload at the start of `out`: its length, int64[1]."""
    return _lengths(payloads[:1])


@define(f"roundtrip(Tensor x, {_CODING}) -> Tensor", _kernels.roundtrip)
def roundtrip(x: Tensor, *rest: Any, **options: Any) -> Any:
    """Compress and decompress x."""
    return x.new_empty(x.shape)


def _roundtrip_batched(
    info: Any,
    dimensions: tuple[Any, ...],
    x: Tensor,
    codec: int,
    parameters: Floats,
    seed: int = 0,
    seed_at: Tensor | None = None,
    threads: int = 0,
) -> tuple[Tensor, int]:
    size = info.batch_size
    items = x.expand(size, *x.shape) if dimensions[0] is None else x.movedim(dimensions[0], 0)
    if size == 0:
        return items.clone(), 0
    dimension = dimensions[4] if len(dimensions) > 4 else None  # the batch dimension of seed_at
    seeds = [seed_at] * size if seed_at is None or dimension is None else seed_at.unbind(dimension)
    # One by one: the result may depend on all values of an item (rel of ErrorBounded), or on the item's seed.
    pairs = zip(items, seeds, strict=True)
    return torch.stack([roundtrip(item, codec, parameters, seed, own, threads) for item, own in pairs]), 0


def _refuse_batches(name: str, function: str, hint: str) -> None:
    """Let an operator say of what function of `arrcomp.torch` it is where `torch.vmap` has no rule for it."""

    def batched(*arguments: Any) -> NoReturn:
        raise not_batched(function, hint)

    register_vmap(name, batched)


_ITEMS = "call it for each item of x.unbind(), or use roundtrip, which torch.vmap takes"
for _name in ("encode", "encode_trimmed", "encode_out"):
    _refuse_batches(_name, "compress", _ITEMS)
for _name in ("decode", "decode_out"):
    _refuse_batches(_name, "decompress", "call it for each item, outside of torch.vmap")
_refuse_batches("accumulate", "accumulate", "call it for each item, outside of torch.vmap")
for _name in ("encode_sum", "encode_sum_out"):
    _refuse_batches(_name, "compress_sum", "call it for each item, outside of torch.vmap")

register_autograd("roundtrip", lambda context, gradient: (gradient, None, None, None, None, None))
register_vmap("roundtrip", _roundtrip_batched)


class _StraightThrough(torch.autograd.Function):
    """`roundtrip` with `torch.func` and forward-mode derivatives, which `torch.library` operators cannot have."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, codec: int, seed: int, seed_at: Tensor | None, threads: int, *parameters: float) -> Tensor:
        y: Tensor = roundtrip(x, codec, parameters, seed, seed_at, threads)
        return y

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        context.constants = len(inputs) - 1

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return gradient, *[None] * context.constants

    @staticmethod
    def jvp(context: Any, tangent: Tensor, *constants: None) -> Tensor:
        return tangent


_apply: Any = _StraightThrough.apply


def differentiable_roundtrip(
    x: Tensor, codec: int, parameters: Floats, seed: int, seed_at: Tensor | None, threads: int
) -> Any:
    """`roundtrip` with derivative 1 in all modes of differentiation."""
    if needs_function(x):
        return _apply(x, codec, seed, seed_at, threads, *parameters)
    return roundtrip(x, codec, parameters, seed, seed_at, threads)


# Without this PyTorch function, eager mode always uses the class, which is slower.
_in_transform: Callable[[], bool] = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)


def needs_function(x: Tensor) -> bool:
    """Whether x is in a `torch.func` transform or in forward mode, which need a `torch.autograd.Function`."""
    if torch.compiler.is_compiling():  # compilers cannot trace the class
        return False
    return _in_transform() or _unpack_dual(x).tangent is not None
