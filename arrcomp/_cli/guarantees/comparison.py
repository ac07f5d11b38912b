"""The result of a comparison, and what all comparisons share."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import singledispatch
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..._arguments import shortened
from ..._arrays.numpy import numpy_bytes
from ..._dtypes import native
from ...codecs import Codec

BLOCK = 1 << 18  # values compared at a time

Array = NDArray[Any]
Floats = NDArray[np.float64]


class Mismatch(NamedTuple):
    """The shapes, or the dtypes, of two arrays, which differ."""

    what: str  # "shape" or "dtype"
    first: Any
    second: Any

    @property
    def text(self) -> str:
        """It in words."""
        return f"{self.what} {shortened(str(self.first))} and {shortened(str(self.second))}"


def mismatch_of(a: Array, b: Array) -> Mismatch | None:
    """What differs between two arrays besides their values; None if nothing does. Byte order is no difference."""
    if a.shape != b.shape:
        return Mismatch("shape", a.shape, b.shape)
    first, second = native(a.dtype), native(b.dtype)
    return None if first == second else Mismatch("dtype", first, second)


class Comparison(NamedTuple):
    """The difference between an array and its decompressed array.

    Attributes:
        violations: number of values that break the guarantee.
        largest_error: the largest |x - y| over finite x; infinite if bits differ that must be equal.
        mismatch: whether the arrays have another shape or dtype, so that no values were compared; None if not.
    """

    violations: int
    largest_error: float
    mismatch: Mismatch | None = None

    @property
    def holds(self) -> bool:
        """Whether every value keeps the guarantee."""
        return self.violations == 0


@singledispatch
def compare_flat(codec: Codec, x: Array, y: Array) -> Comparison:
    """Compare flat arrays of the same dtype and size, by the codec's `max_errors` if it has no function of its own."""
    if type(codec).max_errors is Codec.max_errors:
        return compare_bits(x, y)
    return compare_buckets(x, y, codec.granularity, lambda a, b: np.broadcast_to(codec.max_errors(a), a.shape))


def compare_bits(x: Array, y: Array) -> Comparison:
    """Every bit must be equal."""
    violations = sum(int(bits_differ(a, b).sum()) for a, b in blocks(x, y))
    return Comparison(violations, math.inf if violations else 0.0)


def compare_buckets(x: Array, y: Array, size: int, limits: Callable[[Floats, Floats], Floats]) -> Comparison:
    """Values are within the `limits` of buckets, which are rows of x and of y; buckets with NaN or infinity are NaN."""

    def compared(a: Floats, b: Floats) -> Comparison:
        with np.errstate(all="ignore"):
            broken = ~np.isfinite(a).all(axis=1, keepdims=True)
            error = np.where(broken, np.where(np.isnan(b), 0.0, np.inf), np.abs(a - b))
            limit = np.where(broken, 0.0, limits(a, b))
        return judged(error <= limit, error)

    return total(compared(a, b) for a, b in bucket_rows(x, y, size))


def judged(right: NDArray[np.bool_], errors: Floats) -> Comparison:
    """The comparison of values, from which are right and their errors. An error of NaN counts as infinite."""
    return Comparison(int((~right).sum()), float(np.nan_to_num(errors, nan=np.inf, posinf=np.inf).max(initial=0.0)))


def total(parts: Iterable[Comparison]) -> Comparison:
    """The comparison of an array from those of its parts."""
    violations, largest, _ = zip(Comparison(0, 0.0), *parts, strict=True)
    return Comparison(sum(violations), max(largest))


def blocks(x: Array, y: Array, step: int = BLOCK) -> Iterator[tuple[Array, Array]]:
    """Both arrays, `step` values at a time."""
    for start in range(0, x.size, step):
        yield x[start : start + step], y[start : start + step]


def bucket_rows(x: Array, y: Array, size: int) -> Iterator[tuple[Floats, Floats]]:
    """Both arrays' buckets of this size as rows, about `BLOCK` values at a time; a shorter last bucket alone."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        whole = x.size - x.size % size
        for a, b in blocks(x[:whole], y[:whole], max(BLOCK // size, 1) * size):
            yield a.astype(np.float64).reshape(-1, size), b.astype(np.float64).reshape(-1, size)
        if whole < x.size:
            yield x[None, whole:].astype(np.float64), y[None, whole:].astype(np.float64)


def bits_differ(a: Array, b: Array) -> NDArray[np.bool_]:
    """Which elements have different bits."""
    differ: NDArray[np.bool_] = (numpy_bytes(a) != numpy_bytes(b)).reshape(a.size, a.itemsize).any(axis=1)
    return differ


def distance(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """|a - b| exactly, as a float64 and its rounding error (D. Knuth, TAOCP 2, section 4.2.2, TwoSum)."""
    with np.errstate(all="ignore"):
        total = a - b
        minus_b = total - a
        residue = (a - (total - minus_b)) + (-b - minus_b)
        return np.abs(total), np.where(total < 0, -residue, residue)


def finfo(dtype: np.dtype[Any]) -> Any:
    """`numpy.finfo` for the dtypes of `ml_dtypes` too."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def rounding_error(magnitude: Floats, dtype: np.dtype[Any], ulps: float = 2.0) -> Floats:
    """The error of some roundings of values of this magnitude to a dtype."""
    limits = finfo(dtype)
    error: Floats = ulps * float(limits.eps) * magnitude + ulps * float(limits.smallest_subnormal)
    return error


def finite_ends(x: Array, fill: float | None = None) -> tuple[float, float]:
    """The least and the largest finite value that is not `fill`; infinity and its negative if there are none."""
    low, high = math.inf, -math.inf
    for block, _ in blocks(x, x):
        with np.errstate(invalid="ignore"):  # signalling NaN
            wide = block.astype(np.float64)
        finite = wide[np.isfinite(wide) & ~is_fill(block, fill)]
        low, high = float(finite.min(initial=low)), float(finite.max(initial=high))
    return low, high


def is_fill(x: Array, fill: float | None) -> NDArray[np.bool_]:
    """Which elements have the bits of a fill value, rounded to their dtype; none if there is no such value."""
    if fill is None:
        return np.zeros(x.shape, bool)
    with np.errstate(over="ignore"):
        return ~bits_differ(x, np.full_like(x, fill))


def finite_range(x: Array, fill: float | None = None) -> float:
    """The difference of the largest and the least finite value that is not `fill`; 0 if there are none."""
    low, high = finite_ends(x, fill)
    return high - low if high >= low else 0.0


def components(x: Array) -> Array:
    """The values of a flat array; of a complex array real and imaginary parts one after the other."""
    return np.ascontiguousarray(x).view(x.real.dtype) if x.dtype.kind == "c" else x
