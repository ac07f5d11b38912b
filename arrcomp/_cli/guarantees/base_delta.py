"""The guarantee of `BaseDelta`."""

import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ...codecs import BaseDelta
from .comparison import Comparison, blocks, compare_bits, components, distance, largest_of


def compare_base_delta(x: NDArray[Any], y: NDArray[Any], codec: BaseDelta) -> Comparison:
    """Every bit is equal, except the lowest `drop_bits` of mantissas, which are rounded off."""
    if codec.drop_bits == 0:
        return compare_bits(x, y)
    x, y = components(x), components(y)
    violations, largest = 0, 0.0
    for a, b in blocks(x, y):
        with np.errstate(invalid="ignore"):
            wide, back = a.astype(np.float64), b.astype(np.float64)
        lost = ~np.isfinite(wide) & ~((wide == back) | (np.isnan(wide) & np.isnan(back)))
        lost |= np.signbit(wide) != np.signbit(back)
        finite = np.isfinite(wide)
        error, _ = distance(wide[finite], back[finite])  # exact for neighbours
        kept = _within_kept_bits(wide[finite], back[finite], error, codec, a.dtype)
        violations += int(lost.sum()) + int((~kept).sum())
        largest = max(largest, math.inf if lost.any() else 0.0, largest_of(error))
    return Comparison(violations, largest, math.nan)


def _within_kept_bits(
    x: NDArray[np.float64], y: NDArray[np.float64], error: NDArray[np.float64], codec: BaseDelta, dtype: np.dtype[Any]
) -> NDArray[np.bool_]:
    """Whether each finite value is within the value of its lowest kept bit, or half of it with rounding to nearest."""
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    kept = int(limits.nmant) - codec.drop_bits
    exponent = np.maximum(np.frexp(x)[1] - 1, int(limits.minexp))
    unit = np.ldexp(1.0, exponent - kept)
    within: NDArray[np.bool_] = error < unit
    if codec.rounding == "nearest":
        largest = math.ldexp(2.0 - math.ldexp(1.0, -kept), int(limits.maxexp) - 1)
        within &= (error <= unit / 2) | (np.abs(x) > largest)
    elif codec.rounding == "truncate":
        within &= np.abs(y) <= np.abs(x)
    return within
