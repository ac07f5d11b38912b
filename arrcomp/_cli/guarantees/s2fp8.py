"""The promise of `S2FP8`."""

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ...codecs import S2FP8
from .comparison import BLOCK, Comparison

Array = NDArray[np.float64]

_TOP, _LEAST, _LEAST_NORMAL = 15.0, -16, -14  # log2 of what the largest becomes, and of numbers of e5m2


class _Numbers(NamedTuple):
    """Of each bucket, in a column: alpha, log2 of the largest, and whether all values are finite."""

    alpha: Array
    top: Array
    finite: NDArray[np.bool_]


def compare_squeezed(x: NDArray[Any], y: NDArray[Any], codec: S2FP8) -> Comparison:
    """Squeezed values are within half a step of e5m2 (a whole one with random rounding); broken buckets are NaN."""
    size = codec.bucket_size or max(x.size, 1)
    violations, largest, allowed = 0, 0.0, 0.0
    for start in range(0, x.size, max(BLOCK // size, 1) * size):
        part = slice(start, start + max(BLOCK // size, 1) * size)
        found = _compare_part(x[part], y[part], min(size, x.size), codec)
        violations += found.violations
        largest, allowed = max(largest, found.largest_error), max(allowed, found.allowed_error)
    return Comparison(violations, largest, allowed)


def _compare_part(x: NDArray[Any], y: NDArray[Any], size: int, codec: S2FP8) -> Comparison:
    """Of whole buckets: in rows, or of a large one block by block."""
    if size <= BLOCK:
        padding = -x.size % size  # with zeros, which count for nothing
        rows, back = (np.pad(part.astype(np.float64), (0, padding)).reshape(-1, size) for part in (x, y))
        return _compare_rows(rows, back, _numbers([rows]), x.dtype, codec)
    blocks = range(0, x.size, BLOCK)
    numbers = _numbers([x[at : at + BLOCK].astype(np.float64)[None] for at in blocks])
    pairs = ((v[at : at + BLOCK].astype(np.float64)[None] for v in (x, y)) for at in blocks)
    found = [_compare_rows(rows, back, numbers, x.dtype, codec) for rows, back in pairs]
    errors, limits = [f.largest_error for f in found], [f.allowed_error for f in found]
    return Comparison(sum(f.violations for f in found), max(errors), max(limits))


def _logarithms(magnitudes: Array) -> Array:
    return np.log2(magnitudes, out=np.full_like(magnitudes, -np.inf), where=magnitudes > 0)


def _numbers(parts: list[Array]) -> _Numbers:
    """Of the buckets in the rows, of which `parts` are columns."""
    total, count, top = np.zeros(len(parts[0])), np.zeros(len(parts[0])), np.full(len(parts[0]), -np.inf)
    finite = np.ones(len(parts[0]), np.bool_)
    for part in parts:
        logarithms = _logarithms(np.abs(np.nan_to_num(part, nan=0, posinf=0, neginf=0)))
        known = logarithms > -np.inf
        total += np.where(known, logarithms, 0).sum(axis=1)
        count += known.sum(axis=1)
        top = np.maximum(top, logarithms.max(axis=1))
        finite &= np.isfinite(part).all(axis=1)
    top = np.where(count > 0, top, 0)
    spread = top - total / np.maximum(count, 1)
    return _Numbers(_TOP / np.maximum(spread, 2.0**-20)[:, None], top[:, None], finite[:, None])


def _compare_rows(x: Array, y: Array, numbers: _Numbers, dtype: Any, codec: S2FP8) -> Comparison:
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    with np.errstate(all="ignore"):
        least, most = _neighbours(np.abs(x), numbers, 0.5 if codec.rounding == "nearest" else 1.0)
        # What is smaller by more than the arithmetic's powers of two comes back as if it were not.
        most = np.maximum(most, np.exp2(numbers.top - (2000 if dtype.itemsize == 8 else 250)))
        rounding = 2 * float(limits.eps) * np.abs(y) + 2 * float(limits.smallest_subnormal)
        rounding += 1e-5 * np.abs(x) + 1e-5 * np.abs(y)  # of the logarithms and powers
        inside = (np.abs(y) >= least - rounding) & (np.abs(y) <= most + rounding) & (np.signbit(x) == np.signbit(y))
        kept = np.where(x == 0, (y == 0) & (np.signbit(x) == np.signbit(y)), inside)
        right = np.where(numbers.finite, kept, np.isnan(y))
        error = np.where(numbers.finite, np.abs(x - y), np.where(np.isnan(y), 0, np.inf))
        allowed = np.where(numbers.finite, np.maximum(most - np.abs(x), np.abs(x) - least) + rounding, 0)
    largest = float(np.nan_to_num(error, nan=np.inf).max(initial=0.0))
    return Comparison(int((~right).sum()), largest, float(allowed.max(initial=0.0)))


def _neighbours(magnitudes: Array, numbers: _Numbers, share: float) -> tuple[Array, Array]:
    """Between which magnitudes each may come back: this share of a step of e5m2 away, when squeezed."""
    place = _TOP + numbers.alpha * (_logarithms(magnitudes) - numbers.top)
    squeezed = np.exp2(np.maximum(place, -1000))
    step = np.exp2(np.floor(np.clip(place, _LEAST_NORMAL, _TOP)) - 2) * share * (1 + 1e-3)

    def widened(value: Array) -> Array:
        found: Array = np.exp2((_logarithms(np.maximum(value, 0)) - _TOP) / numbers.alpha + numbers.top)
        return found

    # Below the least number it is that or 0.
    least = np.where(place < _LEAST, 0, squeezed - step)
    most = np.where(place < _LEAST, np.maximum(squeezed + step, 2.0**_LEAST), squeezed + step)
    return widened(least), np.minimum(widened(most), np.exp2(numbers.top))
