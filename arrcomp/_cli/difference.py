"""How far two arrays are from each other, whatever they are: what `arrcomp diff` says of two files."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._dtypes import by_numpy
from .guarantees.comparison import bits_differ, blocks

Array = NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """What two values may differ by and still count as the same: nothing, not even a bit, if neither is given.

    Attributes:
        absolute: a distance.
        relative: a share of the range of the first array.
    """

    absolute: float | None = None
    relative: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether every bit counts, and the dtype."""
        return self.absolute is None and self.relative is None

    def distance(self, extent: float) -> float:
        """The largest distance that is tolerated, in an array of this range; the larger one if both are given."""
        return max(self.absolute or 0.0, (self.relative or 0.0) * extent)


@dataclass(frozen=True)
class Difference:
    """Two arrays beside each other, or several pairs of them together. Complex values are two each.

    Attributes:
        values: how many there are.
        differing: how many are not the same, by the tolerance.
        largest_error: the largest |a - b|, where both are finite.
        relative_to_range: that by the range of the finite values of a; the largest of several pairs.
        squared_error: sum of |a - b|^2, where both are finite.
        squared_norm: sum of |a|^2 there.
        extent: range of the finite values of a; NaN of several pairs.
        obstacle: why they cannot be compared value by value, or are not of one dtype; empty otherwise.
    """

    values: int
    differing: int
    largest_error: float = 0.0
    relative_to_range: float = 0.0
    squared_error: float = 0.0
    squared_norm: float = 0.0
    extent: float = math.nan
    obstacle: str = ""

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.differing == 0

    @property
    def relative_error(self) -> float:
        """The root of the sum of squared errors by that of the squares of a: the relative L2 error."""
        return math.sqrt(_quotient(self.squared_error, self.squared_norm))

    @property
    def psnr(self) -> float:
        """Peak signal to noise in dB: the range by the root mean square error; infinite without an error."""
        if not self.extent > 0:
            return math.nan
        if self.squared_error == 0:
            return math.inf
        return 20 * math.log10(self.extent) - 10 * math.log10(self.squared_error / self.values)


def difference(a: Array, b: Array, tolerance: Tolerance) -> Difference:
    """Compare two arrays, in float64 (of integers exactly).

    Values that are not finite are the same if both are NaN or the same infinity; without a tolerance, as all others, if
    they have the same bits.

    Raises:
        TypeError: an array is of a dtype that the format has not, as one of texts.
    """
    for array in (a, b):
        by_numpy(array.dtype)
    if a.shape != b.shape:
        return Difference(max(a.size, b.size), max(a.size, b.size, 1), obstacle=f"shape {a.shape} and {b.shape}")
    found = _of_values(_flat(a), _flat(b), tolerance)
    if a.dtype == b.dtype:
        return found
    obstacle = f"dtype {a.dtype} and {b.dtype}"
    return replace(found, obstacle=obstacle, differing=max(found.values, 1) if tolerance.is_exact else found.differing)


def together(pairs: Iterable[Difference]) -> Difference:
    """Several pairs of arrays as one."""
    found = list(pairs)
    return Difference(
        sum(pair.values for pair in found),
        sum(pair.differing for pair in found),
        max((pair.largest_error for pair in found), default=0.0),
        max((pair.relative_to_range for pair in found), default=0.0),
        sum(pair.squared_error for pair in found),
        sum(pair.squared_norm for pair in found),
    )


def _of_values(a: Array, b: Array, tolerance: Tolerance) -> Difference:
    extent = _range(a)
    allowed = tolerance.distance(extent)
    differing, largest, squared_error, squared_norm = 0, 0.0, 0.0, 0.0
    for x, y in blocks(a, b):
        wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
        finite = np.isfinite(wide_x) & np.isfinite(wide_y)
        with np.errstate(over="ignore"):
            error = _distances(x, y, wide_x, wide_y)[finite]
            squared_error += float(np.square(error).sum())
            squared_norm += float(np.square(wide_x[finite]).sum())
        largest = max(largest, float(error.max(initial=0.0)))
        if tolerance.is_exact and x.dtype == y.dtype:
            differing += int(bits_differ(x, y).sum())
        else:
            odd = ~np.isclose(wide_x[~finite], wide_y[~finite], equal_nan=True)
            differing += int((error > allowed).sum()) + int(odd.sum())
    share = _quotient(largest, extent)
    return Difference(a.size, differing, largest, share, squared_error, squared_norm, extent)


def _distances(x: Array, y: Array, wide_x: Array, wide_y: Array) -> Array:
    """|x - y| in float64. Of integers, 64 bits of which float64 does not hold, the difference is exact before."""
    if x.dtype == y.dtype and x.dtype.kind in "iu":
        apart: Array = np.maximum(x, y).astype(np.uint64) - np.minimum(x, y).astype(np.uint64)
        return apart.astype(np.float64)
    with np.errstate(invalid="ignore"):
        distances: Array = np.abs(wide_x - wide_y)
    return distances


def _range(a: Array) -> float:
    low, high = math.inf, -math.inf
    for block, _ in blocks(a, a):
        wide = block.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        low, high = float(finite.min(initial=low)), float(finite.max(initial=high))
    return high - low if high >= low else 0.0


def _flat(x: Array) -> Array:
    """The values of an array, those of complex ones as pairs."""
    flat = x.reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _quotient(part: float, whole: float) -> float:
    if part == 0:
        return 0.0
    return part / whole if whole > 0 else math.inf
