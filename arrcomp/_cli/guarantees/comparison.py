"""The result of a comparison, and helpers of all comparisons."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..._arrays.numpy import numpy_bytes

BLOCK = 1 << 18  # values compared at a time


@dataclass(frozen=True)
class Comparison:
    """The difference between an array and its decompressed array.

    Attributes:
        violations: number of values that break the guarantee.
        largest_error: the largest |x - y| over finite x; infinite if bits differ that must be equal.
        allowed_error: the largest |x - y| within the guarantee; 0 for lossless codecs, NaN if it depends on each value.
    """

    violations: int
    largest_error: float
    allowed_error: float

    @property
    def holds(self) -> bool:
        """Whether every value keeps the guarantee."""
        return self.violations == 0


def blocks(x: NDArray[Any], y: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Both arrays, block by block."""
    for start in range(0, x.size, BLOCK):
        yield x[start : start + BLOCK], y[start : start + BLOCK]


def bits_differ(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Which elements have different bits."""
    differ: NDArray[np.bool_] = (numpy_bytes(a) != numpy_bytes(b)).reshape(a.size, a.itemsize).any(axis=1)
    return differ


def compare_bits(x: NDArray[Any], y: NDArray[Any]) -> Comparison:
    """Every bit must be equal."""
    violations = sum(int(bits_differ(a, b).sum()) for a, b in blocks(x, y))
    return Comparison(violations, math.inf if violations else 0.0, 0.0)


def distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """|a - b| exactly, as a float64 and its rounding error (D. Knuth, TAOCP 2, section 4.2.2, TwoSum)."""
    with np.errstate(all="ignore"):
        total = a - b
        minus_b = total - a
        residue = (a - (total - minus_b)) + (-b - minus_b)
        return np.abs(total), np.where(total < 0, -residue, residue)


def largest_of(errors: NDArray[np.float64]) -> float:
    """The largest error; infinite if one is NaN, 0 if there are none."""
    return float(np.nan_to_num(errors, nan=np.inf).max(initial=0.0))


def whole_buckets(size: int) -> int:
    """About `BLOCK` values that are whole buckets of this size; at least one bucket."""
    return max(BLOCK // size, 1) * size


def rounding_error(magnitude: NDArray[np.float64], dtype: np.dtype[Any], ulps: float = 2.0) -> NDArray[np.float64]:
    """The error of some roundings of values of this magnitude to a dtype."""
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    error: NDArray[np.float64] = ulps * float(limits.eps) * magnitude + ulps * float(limits.smallest_subnormal)
    return error


def finite_range(x: NDArray[Any]) -> float:
    """The difference of the largest and the least finite value; 0 if there are none."""
    low, high = math.inf, -math.inf
    for block, _ in blocks(x, x):
        with np.errstate(invalid="ignore"):  # signalling NaN
            wide = block.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        low, high = float(finite.min(initial=low)), float(finite.max(initial=high))
    return high - low if high >= low else 0.0


def components(x: NDArray[Any]) -> NDArray[Any]:
    """The values of a flat array; of a complex array real and imaginary parts one after the other."""
    return np.ascontiguousarray(x).view(x.real.dtype) if x.dtype.kind == "c" else x
