"""The guarantee of `S2FP8`."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...codecs import S2FP8
from .comparison import BLOCK, Array, Comparison, Floats, bucket_rows, compare_flat, judged, rounding_error, total

_TOP, _LEAST, _LEAST_NORMAL = 15.0, -16, -14  # log2 of the largest squeezed value, and of the least numbers of e5m2


class _BucketParameters(NamedTuple):
    """Columns with each bucket's alpha, log2 of its largest magnitude, and whether all its values are finite."""

    alpha: Floats
    top: Floats
    finite: NDArray[np.bool_]


@compare_flat.register
def compare_s2fp8(codec: S2FP8, x: Array, y: Array) -> Comparison:
    """Squeezed values are within half a step of e5m2 (a step with stochastic rounding); broken buckets are NaN."""
    size = min(codec.bucket_size or max(x.size, 1), max(x.size, 1))
    if size <= BLOCK:
        rows = bucket_rows(x, y, size)
        return total(_compare_rows(a, b, _fit([a]), x.dtype, codec) for a, b in rows)
    parts = []
    for start in range(0, x.size, size):  # a large bucket block by block
        a, b = x[start : start + size], y[start : start + size]
        fitted = _fit([block for block, _ in bucket_rows(a, a, BLOCK)])
        parts += [_compare_rows(*pair, fitted, x.dtype, codec) for pair in bucket_rows(a, b, BLOCK)]
    return total(parts)


def _logarithms(magnitudes: Floats) -> Floats:
    return np.log2(magnitudes, out=np.full_like(magnitudes, -np.inf), where=magnitudes > 0)


def _fit(blocks: list[Floats]) -> _BucketParameters:
    """The parameters of buckets. Each bucket is a row, whose columns are in these blocks."""
    rows = len(blocks[0])
    total, count, top = np.zeros(rows), np.zeros(rows), np.full(rows, -np.inf)
    finite = np.ones(rows, np.bool_)
    for block in blocks:
        logarithms = _logarithms(np.abs(np.nan_to_num(block, nan=0, posinf=0, neginf=0)))
        known = logarithms > -np.inf
        total += np.where(known, logarithms, 0).sum(axis=1)
        count += known.sum(axis=1)
        top = np.maximum(top, logarithms.max(axis=1))
        finite &= np.isfinite(block).all(axis=1)
    top = np.where(count > 0, top, 0)
    spread = top - total / np.maximum(count, 1)
    return _BucketParameters(_TOP / np.maximum(spread, 2.0**-20)[:, None], top[:, None], finite[:, None])


def _compare_rows(x: Floats, y: Floats, fitted: _BucketParameters, dtype: Any, codec: S2FP8) -> Comparison:
    with np.errstate(all="ignore"):
        least, most = _neighbours(np.abs(x), fitted, 0.5 if codec.rounding == "nearest" else 1.0)
        # Smaller values are beyond the exponents of the arithmetic.
        most = np.maximum(most, np.exp2(fitted.top - (2000 if dtype.itemsize == 8 else 250)))
        rounding = rounding_error(np.abs(y), dtype)
        rounding += 1e-5 * np.abs(x) + 1e-5 * np.abs(y)  # of the logarithms and powers
        inside = (np.abs(y) >= least - rounding) & (np.abs(y) <= most + rounding) & (np.signbit(x) == np.signbit(y))
        kept = np.where(x == 0, (y == 0) & (np.signbit(x) == np.signbit(y)), inside)
        right = np.where(fitted.finite, kept, np.isnan(y))
        error = np.where(fitted.finite, np.abs(x - y), np.where(np.isnan(y), 0, np.inf))
    return judged(right, error)


def _neighbours(magnitudes: Floats, fitted: _BucketParameters, share: float) -> tuple[Floats, Floats]:
    """The least and the largest magnitude within the guarantee: squeezed, this share of a step of e5m2 away."""
    exponent = _TOP + fitted.alpha * (_logarithms(magnitudes) - fitted.top)
    squeezed = np.exp2(np.maximum(exponent, -1000))
    step = np.exp2(np.floor(np.clip(exponent, _LEAST_NORMAL, _TOP)) - 2) * share * (1 + 1e-3)

    def widened(value: Floats) -> Floats:
        found: Floats = np.exp2((_logarithms(np.maximum(value, 0)) - _TOP) / fitted.alpha + fitted.top)
        return found

    # Below the least number of e5m2 it is that or 0.
    least = np.where(exponent < _LEAST, 0, squeezed - step)
    most = np.where(exponent < _LEAST, np.maximum(squeezed + step, 2.0**_LEAST), squeezed + step)
    return widened(least), np.minimum(widened(most), np.exp2(fitted.top))
