"""What a tensor is to the format: its data type, and how large its payload can get."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import _core, dtypes

ALIGNMENT = 256  # of payloads that share an allocation
_SUB_BYTE = ("int4", "uint4")  # PyTorch names them, but has no tensors with one value to a byte

_ROWS = {
    kind: row
    for row in map(dtypes.by_id, range(256))
    if row is not None and row.name not in _SUB_BYTE and isinstance(kind := getattr(torch, row.name, None), torch.dtype)
}
_TYPES = {row.name: kind for kind, row in _ROWS.items()}
_CAPACITY_TERMS = {kind: tuple(_core.capacity_terms(row.id)) for kind, row in _ROWS.items()}


def dtype_of(x: Tensor) -> dtypes.DType:
    """The data type of a tensor.

    Raises:
        TypeError: the format, or this package, has no such type.
    """
    row = _ROWS.get(x.dtype)
    if row is None:
        row = dtypes.by_name(str(x.dtype).removeprefix("torch."))
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


def places(xs: Sequence[Tensor]) -> list[int]:
    """Bytes set apart for the payload of each tensor where they stand one after the other.

    Sizes of tensors may be symbols, which go through to the result.
    """
    if len(xs) == 1:
        return [capacity(xs[0])]
    return [-(-capacity(x) // ALIGNMENT) * ALIGNMENT for x in xs]


def capacity(x: Tensor) -> int:
    """Bytes of the longest payload of a tensor, whose sizes may be symbols."""
    elements = x.numel() * dtype_of(x).parts
    terms = _CAPACITY_TERMS[x.dtype]
    return sum(nbytes * -(-elements // divisor) if divisor else nbytes for divisor, nbytes in terms)


def _no_tensors(name: str) -> str:
    return f"dtype {name}: PyTorch has no such tensors; like=numpy.empty(0) works"
