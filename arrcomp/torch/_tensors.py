"""Data types of tensors, and capacities of their payloads."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from .. import _core, _dtypes
from .._arguments import wrong_type
from ..codecs import Codec

_P = ParamSpec("_P")
_R = TypeVar("_R")

ALIGNMENT = 256  # of payloads that share an allocation
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SUB_BYTE = ("int4", "uint4")  # PyTorch has the names, but no tensors with one value in a byte

ROWS = {  # the format's data types that PyTorch has
    kind: row
    for row in map(_dtypes.by_id, range(256))
    if row is not None and row.name not in _SUB_BYTE and isinstance(kind := getattr(torch, row.name, None), torch.dtype)
}
_TYPES = {row.name: kind for kind, row in ROWS.items()}


def coding_of(codec: Codec) -> tuple[int, tuple[float, ...]]:
    """A codec's id and parameters as operator arguments. A compiler's symbols become numbers."""
    parameters = codec.core_parameters()
    if not torch.compiler.is_compiling():
        return codec.id, parameters
    return _number(codec.id), tuple([_number(parameter) for parameter in parameters])


def constants(numbers: Sequence[float]) -> list[float]:
    """Numbers as operator arguments. A compiler's symbols become numbers."""
    return [_number(number) for number in numbers] if torch.compiler.is_compiling() else list(numbers)


def dtype_of(x: Tensor) -> _dtypes.DType:
    """The format's data type of a tensor; TypeError if the format, or this package, does not support it."""
    return row_of(x.dtype)


def row_of(dtype: torch.dtype) -> _dtypes.DType:
    """Same as `dtype_of`, for a `torch.dtype`."""
    row = ROWS.get(dtype)
    if row is None:
        row = _dtypes.by_name(name_of(dtype))
        raise TypeError(_no_tensors(row.name))
    return row


def type_named(name: str) -> torch.dtype:
    """The `torch.dtype` of a data type of the format; TypeError if PyTorch does not have it."""
    kind = _TYPES.get(name)
    if kind is None:
        raise TypeError(_no_tensors(name))
    return kind


def name_of(dtype: torch.dtype) -> str:
    """A dtype's name without its module: "float32"."""
    return str(dtype).removeprefix("torch.")


def check_tensor(name: str, x: Any) -> None:
    """Raise TypeError unless an argument is a tensor."""
    if not isinstance(x, Tensor):
        raise wrong_type(name, "a torch.Tensor", x)


def check_floating(name: str, x: Tensor) -> None:
    """Raise TypeError unless a tensor's dtype is one of `FLOATS`."""
    if x.dtype not in FLOATS:
        raise TypeError(f"{name}: expected float16, bfloat16, float32 or float64, got {name_of(x.dtype)}")


def capacities(xs: Sequence[Tensor], codec: int, parameters: Sequence[float]) -> list[int]:
    """Bytes that each tensor's payload gets in a shared buffer. Symbolic sizes give symbolic results."""
    if len(xs) == 1:
        return [capacity(xs[0], codec, parameters)]
    return [_ceil_div(capacity(x, codec, parameters), ALIGNMENT) * ALIGNMENT for x in xs]


def capacity(x: Tensor, codec: int, parameters: Sequence[float]) -> int:
    """Bytes of the longest payload of a tensor.

    Symbolic sizes give a symbolic result if the codec's capacity is a sum of terms. Otherwise they become numbers.
    """
    row = dtype_of(x)
    return capacity_of(x.numel() * row.parts, row, codec, parameters)


def capacity_of(elements: int, row: _dtypes.DType, codec: int, parameters: Sequence[float]) -> int:
    """Same as `capacity`, for a number of elements of a data type."""
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
    """The value of a compiler's symbol; the compiler specializes on it."""
    from torch.fx.experimental.symbolic_shapes import guard_scalar

    return guard_scalar(symbol)


def constant_result(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Same as `torch.compiler.assume_constant_result`, which would import the compiler: that takes seconds."""
    vars(function)["_dynamo_marked_constant"] = True
    return function


# Compilers cannot trace the core, so these two functions take numbers.


@constant_result
def _capacity_terms(codec: int, parameters: tuple[float, ...], dtype: str) -> tuple[tuple[int, int, int, int], ...]:
    return tuple(_core.capacity_terms(codec, parameters, _dtypes.by_name(dtype).id))


@constant_result
def _capacity(codec: int, parameters: tuple[float, ...], dtype: str, elements: int) -> int:
    return _core.capacity(codec, parameters, _dtypes.by_name(dtype).id, elements)


def _no_tensors(name: str) -> str:
    return f"dtype: expected one that PyTorch has, got {name}; decompress with like=numpy.empty(0)"
