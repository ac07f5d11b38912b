"""Slices of an array in a file. Only the values that a basic index needs are decoded."""

import operator
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._api.compressed import Compressed
from .._arguments import shown
from .._arrays.driver import decode_selection
from .._arrays.parts import Axis, basic_selection
from .content import naming
from .locations import Location

Index = int | slice
_EXPECTED = "index: expected integers, slices and at most one Ellipsis"


class Slice:
    """An array in a file, whose slices are decompressed. `CompressedFile.slice` makes it.

    ``file.slice(name)[10:20, ..., 3]`` is the array, or scalar, that NumPy returns for the whole array and this index.
    Only the blocks that have its values are read and decoded, and what is between two of them where that is cheaper:
    all of it where values are predicted. `numpy.asarray` decompresses the whole array. A payload in a Zstandard frame
    is unpacked whole for the first slice, and kept for the others. So is an array that is coded against one of a base:
    it is decompressed whole, from the file, which must still be open for the first slice.

    Attributes:
        spec: codec, dtype and shape of the array.
    """

    def __init__(
        self,
        path: Location,
        name: str,
        compressed: Compressed,
        threads: int,
        load: Callable[[], NDArray[Any]] | None = None,
    ) -> None:
        """Made by `CompressedFile.slice`. `load` decompresses an array of which no part can be decoded alone."""
        self.spec, self._payload = compressed.spec, compressed.payload
        self._load = load
        self._whole: NDArray[Any] | None = None
        self._path, self._name, self._threads = path, name, threads

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the array."""
        return self.spec.dtype.numpy

    def __getitem__(self, index: Any) -> Any:
        indices = _expanded(index, len(self.shape))
        axes = _axes_of(self.shape, indices)
        if self._load is not None:
            self._whole = self._load() if self._whole is None else self._whole
            return self._whole[tuple(indices)].copy()
        with naming(self._path, self._name):
            selection = basic_selection(self.shape, axes, self.spec.codec.predicts)
            return decode_selection(self._payload, self.spec, selection, self._threads)[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        # Without it NumPy would make an array of one object.
        if copy is False:
            raise ValueError("copy: expected None or True, got False; decompressing makes a new array")
        return np.asarray(self[...], dtype)


def _axes_of(shape: Sequence[int], indices: Sequence[Index]) -> list[Axis]:
    """What an index takes of each axis: an integer from 0 on, or a range."""
    axes: list[Axis] = []
    for axis, (one, size) in enumerate(zip(indices, shape, strict=True)):
        if isinstance(one, slice):
            axes.append(range(size)[one])
            continue
        if not -size <= one < size:
            raise IndexError(f"index: expected {-size} to {size - 1} for axis {axis} of size {size}, got {shown(one)}")
        axes.append(one % size)
    return axes


def _expanded(index: Any, dimensions: int) -> list[Index]:
    """An integer or a slice for each dimension."""
    given = list(index) if isinstance(index, tuple) else [index]
    dots = [axis for axis, one in enumerate(given) if isinstance(one, EllipsisType)]
    if len(dots) > 1:
        raise IndexError(f"{_EXPECTED}, got {shown(index)}")
    at, count = dots[0] if dots else len(given), len(given) - len(dots)
    if count > dimensions:
        raise IndexError(f"index: expected at most {dimensions} dimensions, got {count} in {shown(index)}")
    indices = [*given[:at], *[slice(None)] * (dimensions - count), *given[at + 1 :]]
    return [one if isinstance(one, slice) else _integer(one, index) for one in indices]


def _integer(one: Any, index: Any) -> int:
    if isinstance(one, (bool, np.bool_)):
        raise TypeError(f"{_EXPECTED}, got {shown(index)}")
    try:
        return operator.index(one)
    except TypeError:
        raise TypeError(f"{_EXPECTED}, got {shown(index)}") from None
