"""Parts of an array in a file: what a basic index needs is decoded, and nothing else."""

import math
import operator
from collections.abc import Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any

import numpy as np

from .._api.compressed import Compressed
from .._arrays.driver import decode_range
from .content import naming

Index = int | slice
_ALLOWED = "integers, slices and one Ellipsis are allowed"


class Slice:
    """An array in a file, of which parts are decompressed; made by `CompressedFile.slice`.

    ``part[10:20, ..., 3]`` is what NumPy makes of the whole array with the same index: an array, or a scalar. Read and
    decoded are the values from the first to the last that leading integers and the first slice take. A payload in a
    Zstandard frame is taken out of it whole for the first part, and kept for the others; decoded are parts of it.

    Attributes:
        spec: codec, dtype and shape of the array.
    """

    def __init__(self, path: Path, name: str, compressed: Compressed, threads: int) -> None:
        """Made by `CompressedFile.slice`."""
        self.spec = compressed.spec
        self._path, self._name = path, name
        self._payload = compressed.payload
        self._threads = threads

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the array."""
        return self.spec.dtype.numpy

    def __getitem__(self, index: Any) -> Any:
        first, shape, rest = part_of(self.spec.shape, index)
        with naming(self._path, self._name):
            return decode_range(self._payload, self.spec, first, shape, self._threads)[rest]


def part_of(shape: Sequence[int], index: Any) -> tuple[int, tuple[int, ...], tuple[Index, ...]]:
    """What of a flat array an index needs.

    Args:
        shape: of the array.
        index: as NumPy's basic indices, without new axes.

    Returns:
        Place of the first value, shape of the contiguous piece from there, and the index to take of this piece.

    Raises:
        TypeError: the index is of another kind.
        IndexError: it has too many parts, or an integer is out of range.
    """
    indices = _expanded(index, len(shape))
    first = 0
    for axis, (part, size) in enumerate(zip(indices, shape, strict=True)):
        if isinstance(part, slice):
            break
        first = first * size + _checked(part, size, axis)
    else:
        return first, (), ()
    inner, others = tuple(shape[axis + 1 :]), indices[axis + 1 :]
    chosen = range(size)[part]
    if not chosen:
        return 0, (0, *inner), (slice(None), *others)
    low, high = min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1])
    taken = slice(chosen[0] - low, None, chosen.step)
    return (first * size + low) * math.prod(inner), (high - low + 1, *inner), (taken, *others)


def _checked(index: int, size: int, axis: int) -> int:
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range for axis {axis} with size {size}")
    return index % size


def _expanded(index: Any, dimensions: int) -> list[Index]:
    """An integer or a slice for each dimension."""
    given = list(index) if isinstance(index, tuple) else [index]
    dots = [place for place, part in enumerate(given) if isinstance(part, EllipsisType)]
    if len(dots) > 1:
        raise IndexError(f"index {index!r}: {_ALLOWED}")
    place = dots[0] if dots else len(given)
    missing = dimensions - (len(given) - len(dots))
    if missing < 0:
        raise IndexError(f"index {index!r} is for {len(given) - len(dots)} dimensions; the array has {dimensions}")
    parts = [*given[:place], *[slice(None)] * missing, *given[place + 1 :]]
    return [part if isinstance(part, slice) else _integer(part, index) for part in parts]


def _integer(part: Any, index: Any) -> int:
    if isinstance(part, (bool, np.bool_)):
        raise TypeError(f"index {index!r}: {_ALLOWED}")
    try:
        return operator.index(part)
    except TypeError:
        raise TypeError(f"index {index!r}: {_ALLOWED}") from None
