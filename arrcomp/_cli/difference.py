"""The difference between any two arrays, for `arrcomp diff`."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._dtypes import by_numpy, native
from .guarantees.comparison import bits_differ, blocks, components, finite_range, mismatch_of

Array = NDArray[Any]


class Tolerance(NamedTuple):
    """The largest difference of two values that count as equal. Without a limit all bits must be equal."""

    absolute: float | None = None
    relative: float | None = None  # a difference divided by the range of the first array

    @property
    def is_exact(self) -> bool:
        """Whether all bits and dtypes must be equal."""
        return self.absolute is None and self.relative is None


class Difference(NamedTuple):
    """The difference between two arrays, or the total of several pairs. Complex values count twice."""

    values: int
    differing: int  # by more than the tolerance
    largest_error: float = 0.0  # |a - b|, where both are finite, as in the sums below; infinite for other shapes
    relative_to_range: float = 0.0  # `largest_error` divided by the range of a's finite values; the largest of pairs
    squared_error: float = 0.0  # sum of |a - b|^2
    squared_norm: float = 0.0  # sum of |a|^2
    extent: float = math.nan  # range of a's finite values; NaN for several pairs
    obstacle: str = ""  # why values cannot be compared, or which dtypes differ; empty otherwise

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.differing == 0

    @property
    def relative_error(self) -> float:
        """The relative L2 error: the root of the sum of squared errors divided by the sum of squares of a."""
        return math.sqrt(_quotient(self.squared_error, self.squared_norm))

    @property
    def psnr(self) -> float:
        """Peak signal-to-noise ratio in dB: the range by the root mean square error; infinite without errors."""
        if not self.extent > 0:
            return math.nan
        if self.squared_error == 0:
            return math.inf
        return 20 * math.log10(self.extent) - 10 * math.log10(self.squared_error / self.values)


def difference(a: Array, b: Array, tolerance: Tolerance) -> Difference:
    """Compare two arrays, in float64 (integers exactly).

    With a tolerance NaNs are equal, and so are infinities of the same sign. Without one all bits must be equal, in
    native byte order. A dtype that the format does not have, for instance strings, raises TypeError.
    """
    for array in (a, b):
        by_numpy(array.dtype)
    mismatch = mismatch_of(a, b)
    obstacle = "" if mismatch is None else mismatch.text
    if a.shape != b.shape:
        size, unknown = max(a.size, b.size), (math.inf,) * 3
        return Difference(size, max(size, 1), *unknown, obstacle=obstacle)
    found = _of_values(*_flat_parts(a, b), tolerance)
    if mismatch is None:
        return found
    return found._replace(obstacle=obstacle, differing=max(found.values, 1) if tolerance.is_exact else found.differing)


def together(pairs: Iterable[Difference]) -> Difference:
    """The total of several pairs of arrays."""
    values, differing, largest, share, squared_error, squared_norm, *_ = zip(Difference(0, 0), *pairs, strict=True)
    sums = sum(squared_error), sum(squared_norm)
    return Difference(sum(values), sum(differing), max(largest), max(share), *sums)


def _flat_parts(a: Array, b: Array) -> tuple[Array, Array]:
    """The values of two arrays of one shape, flat; parts of complex values if one of them has such values."""
    flat = a.reshape(-1), b.reshape(-1)
    if "c" in (a.dtype.kind, b.dtype.kind):
        flat = tuple(x if x.dtype.kind == "c" else x.astype(np.complex128) for x in flat)  # type: ignore[assignment]
    x, y = flat
    return components(x), components(y)


def _of_values(a: Array, b: Array, tolerance: Tolerance) -> Difference:
    extent = finite_range(a)
    allowed = None if tolerance.is_exact else max(tolerance.absolute or 0.0, (tolerance.relative or 0.0) * extent)
    found = together(_of_block(x, y, allowed) for x, y in blocks(a, b))
    return found._replace(relative_to_range=_quotient(found.largest_error, extent), extent=extent)


def _of_block(x: Array, y: Array, allowed: float | None) -> Difference:
    """The difference of values, of which those within `allowed` are equal; None if all bits must be."""
    x, y = (part.astype(native(part.dtype), copy=False) for part in (x, y))
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    finite = np.isfinite(wide_x) & np.isfinite(wide_y)
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(wide_x - wide_y)
        if x.dtype == y.dtype and x.dtype.kind in "iu":  # exact before it is rounded to float64
            error = (np.maximum(x, y).astype(np.uint64) - np.minimum(x, y).astype(np.uint64)).astype(np.float64)
        error = error[finite]
        sums = float(np.square(error).sum()), float(np.square(wide_x[finite]).sum())
    if allowed is None and x.dtype == y.dtype:
        differing = int(bits_differ(x, y).sum())
    else:
        odd = ~np.isclose(wide_x[~finite], wide_y[~finite], equal_nan=True)
        differing = int((error > (allowed or 0.0)).sum()) + int(odd.sum())
    return Difference(x.size, differing, float(error.max(initial=0.0)), 0.0, *sums)


def _quotient(numerator: float, denominator: float) -> float:
    if numerator == 0:
        return 0.0
    return numerator / denominator if denominator > 0 else math.inf
