"""The guarantees of `ErrorBounded` and `BaseDelta`: each value by itself."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...codecs import BaseDelta, ErrorBounded
from .comparison import (
    Array,
    Comparison,
    Floats,
    bits_differ,
    blocks,
    compare_bits,
    compare_flat,
    components,
    distance,
    finfo,
    finite_range,
    judged,
    total,
)


@compare_flat.register
def compare_error_bounded(codec: ErrorBounded, x: Array, y: Array) -> Comparison:
    """Finite values are within their bound, others have equal bits."""
    bound = math.nan
    if codec.pointwise is None:
        bound = codec.abs if codec.abs is not None else float(codec.rel or 0) * finite_range(x)

    def compared(a: Array, b: Array) -> Comparison:
        with np.errstate(all="ignore"):
            wide, back, finite = a.astype(np.float64), b.astype(np.float64), np.isfinite(a)
            error, residue = distance(wide, back)
            allowed = bound if codec.pointwise is None else codec.pointwise * np.abs(wide)
        within = (error < allowed) | ((error == allowed) & (residue <= 0))
        lost = ~finite & bits_differ(a, b)
        right: NDArray[np.bool_] = np.where(finite, within, ~lost)
        return judged(right, np.where(finite, error, np.where(lost, np.inf, 0.0)))

    return total(compared(a, b) for a, b in blocks(x, y))


@compare_flat.register
def compare_base_delta(codec: BaseDelta, x: Array, y: Array) -> Comparison:
    """Every bit is equal, except the lowest `drop_bits` of mantissas, which are rounded off."""
    if codec.drop_bits == 0:
        return compare_bits(x, y)

    def compared(a: Array, b: Array) -> Comparison:
        with np.errstate(invalid="ignore"):
            wide, back = a.astype(np.float64), b.astype(np.float64)
            finite = np.isfinite(wide)
            same = (wide == back) | (np.isnan(wide) & np.isnan(back))
            error, _ = distance(wide, back)  # exact for neighbours
            lost = (~finite & ~same) | (np.signbit(wide) != np.signbit(back))
            right = ~lost & (~finite | _within_kept_bits(wide, back, error, codec, finfo(a.dtype)))
        return judged(right, np.where(lost, np.inf, np.where(finite, error, 0.0)))

    return total(compared(a, b) for a, b in blocks(components(x), components(y)))


def _within_kept_bits(x: Floats, y: Floats, error: Floats, codec: BaseDelta, limits: Any) -> NDArray[np.bool_]:
    """Whether each finite value is within the value of its lowest kept bit, or half of it with rounding to nearest."""
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
