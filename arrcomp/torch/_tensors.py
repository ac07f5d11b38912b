"""What a tensor is to the format: its data type, and how large its payload can get."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from .. import _core, _dtypes
from ..codecs import Codec

_P = ParamSpec("_P")
_R = TypeVar("_R")

ALIGNMENT = 256  # of payloads that share an allocation
_SUB_BYTE = ("int4", "uint4")  # PyTorch names them, but has no tensors with one value to a byte

_ROWS = {
    kind: row
    for row in map(_dtypes.by_id, range(256))
    if row is not None and row.name not in _SUB_BYTE and isinstance(kind := getattr(torch, row.name, None), torch.dtype)
}
_TYPES = {row.name: kind for kind, row in _ROWS.items()}


def coding_of(codec: Codec) -> tuple[int, tuple[float, ...]]:
    """A codec's id and parameters as the operators take them: numbers, also where a compiler has symbols for them."""
    parameters = codec.core_parameters()
    if not torch.compiler.is_compiling():
        return codec.id, parameters
    return _number(codec.id), tuple([_number(parameter) for parameter in parameters])


def constants(numbers: Sequence[float]) -> list[float]:
    """Numbers as the operators take them: also where a compiler has symbols for them."""
    return [_number(number) for number in numbers] if torch.compiler.is_compiling() else list(numbers)


def dtype_of(x: Tensor) -> _dtypes.DType:
    """The data type of a tensor.

    Raises:
        TypeError: the format, or this package, has no such type.
    """
    return row_of(x.dtype)


def row_of(dtype: torch.dtype) -> _dtypes.DType:
    """The data type of tensors of a dtype.

    Raises:
        TypeError: the format, or this package, has no such type.
    """
    row = _ROWS.get(dtype)
    if row is None:
        row = _dtypes.by_name(str(dtype).removeprefix("torch."))
        raise TypeError(_no_tensors(row.name))
    return row


def type_named(name: str) -> torch.dtype:
    """PyTorch's type for a data type of the format.

    Raises:
        TypeError: it has none.
    """
    kind = _TYPES.get(name)
    if kind is None:
        raise TypeError(_no_tensors(name))
    return kind


def places(xs: Sequence[Tensor], codec: int, parameters: Sequence[float]) -> list[int]:
    """Bytes set apart for the payload of each tensor where they stand one after the other.

    Sizes of tensors may be symbols, which go through to the result.
    """
    if len(xs) == 1:
        return [capacity(xs[0], codec, parameters)]
    return [_ceil_div(capacity(x, codec, parameters), ALIGNMENT) * ALIGNMENT for x in xs]


def capacity(x: Tensor, codec: int, parameters: Sequence[float]) -> int:
    """Bytes of the longest payload of a tensor, whose sizes may be symbols.

    Symbols become numbers where the codec's capacity is not a sum of terms.
    """
    row = dtype_of(x)
    return capacity_of(x.numel() * row.parts, row, codec, parameters)


def capacity_of(elements: int, row: _dtypes.DType, codec: int, parameters: Sequence[float]) -> int:
    """As `capacity`, of so many elements."""
    if not torch.compiler.is_compiling() and type(elements) is int:
        return _core.capacity(codec, parameters, row.id, elements)
    terms = _capacity_terms(codec, tuple(parameters), row.name)
    if not terms:
        return _capacity(codec, tuple(parameters), row.name, _number(elements))
    return sum(_term(elements, *term) for term in terms)


def _term(elements: int, inner: int, multiplier: int, outer: int, nbytes: int) -> int:
    return nbytes * _ceil_div(_ceil_div(elements, inner) * multiplier, outer) if inner else nbytes


def _ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _number(symbol: Any) -> Any:
    """The number behind a compiler's symbol, which it will not take for another one."""
    from torch.fx.experimental.symbolic_shapes import guard_scalar

    return guard_scalar(symbol)


def constant_result(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that compilers do not follow: they call it while they trace, and take its result for a constant.

    As `torch.compiler.assume_constant_result` does it, which would import the compiler here: as long as PyTorch takes.
    """
    vars(function)["_dynamo_marked_constant"] = True
    return function


# Compilers cannot follow the core: these two get numbers.


@constant_result
def _capacity_terms(codec: int, parameters: tuple[float, ...], dtype: str) -> tuple[tuple[int, int, int, int], ...]:
    return tuple(_core.capacity_terms(codec, parameters, _dtypes.by_name(dtype).id))


@constant_result
def _capacity(codec: int, parameters: tuple[float, ...], dtype: str, elements: int) -> int:
    return _core.capacity(codec, parameters, _dtypes.by_name(dtype).id, elements)


def _no_tensors(name: str) -> str:
    return f"dtype {name}: PyTorch has no such tensors; like=numpy.empty(0) works"
