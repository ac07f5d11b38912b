"""The promise of `BaseDelta`."""

import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ...codecs import BaseDelta
from .comparison import Comparison, blocks, compare_bits, distance


def compare_places(x: NDArray[Any], y: NDArray[Any], codec: BaseDelta) -> Comparison:
    """Every bit is the same, but for the `drop_bits` lowest of mantissas, which are rounded off."""
    if codec.drop_bits == 0:
        return compare_bits(x, y)
    x, y = _parts(x), _parts(y)
    violations, largest = 0, 0.0
    for a, b in blocks(x, y):
        with np.errstate(invalid="ignore"):
            wide, back = a.astype(np.float64), b.astype(np.float64)
        lost = ~np.isfinite(wide) & ~((wide == back) | (np.isnan(wide) & np.isnan(back)))
        lost |= np.signbit(wide) != np.signbit(back)
        finite = np.isfinite(wide)
        error, _ = distance(wide[finite], back[finite])  # exact, as the two are near each other
        violations += int(lost.sum()) + int((~_within_places(wide[finite], back[finite], error, codec, a.dtype)).sum())
        largest = max(
            largest, math.inf if lost.any() else 0.0, float(np.nan_to_num(error, nan=np.inf).max(initial=0.0))
        )
    return Comparison(violations, largest, math.nan)


def _within_places(
    x: NDArray[np.float64], y: NDArray[np.float64], error: NDArray[np.float64], codec: BaseDelta, dtype: np.dtype[Any]
) -> NDArray[np.bool_]:
    """Whether each finite value came back within its last kept place, or half of it where it is rounded to nearest."""
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    kept = int(limits.nmant) - codec.drop_bits
    exponent = np.maximum(np.frexp(x)[1] - 1, int(limits.minexp))
    place = np.ldexp(1.0, exponent - kept)
    within: NDArray[np.bool_] = error < place
    if codec.rounding == "nearest":
        largest = math.ldexp(2.0 - math.ldexp(1.0, -kept), int(limits.maxexp) - 1)
        within &= (error <= place / 2) | (np.abs(x) > largest)
    elif codec.rounding == "truncate":
        within &= np.abs(y) <= np.abs(x)
    return within


def _parts(x: NDArray[Any]) -> NDArray[Any]:
    """Real and imaginary parts one after the other, of a contiguous array."""
    return np.ascontiguousarray(x).view(x.real.dtype) if x.dtype.kind == "c" else x
