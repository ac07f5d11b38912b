"""Does what came back keep the codec's promise? Checked with NumPy alone, independently of the core."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .codecs import QSGD, BaseDelta, Codec, ErrorBounded
from .host import numpy_bytes

_BLOCK = 1 << 18  # values compared at a time


@dataclass(frozen=True)
class Comparison:
    """How an array came back.

    Attributes:
        violations: number of values that break the promise.
        largest_error: the largest |x - y| over finite x; infinite if a value that must come back bit for bit did not.
        allowed_error: the bound in the same terms; 0 for lossless codecs, NaN for a bound that depends on each
            value.
    """

    violations: int
    largest_error: float
    allowed_error: float

    @property
    def holds(self) -> bool:
        """Whether every value keeps the promise."""
        return self.violations == 0


def compare(original: NDArray[Any], restored: NDArray[Any], codec: Codec) -> Comparison:
    """Compare an array with what came back of it.

    Args:
        original: what was compressed.
        restored: what `decompress` made of it.
        codec: how it was compressed: `ErrorBounded` promises its bound for finite values and the same bits for others,
            `QSGD` half the distance of two levels (all of it with stochastic rounding) or NaN for buckets that are not
            finite, `BaseDelta` that no more than its `drop_bits` are lost, every other codec the same bits.
    """
    native = original.dtype if original.dtype.isnative else original.dtype.newbyteorder("=")
    if original.shape != restored.shape or native != restored.dtype:
        return Comparison(max(original.size, 1), math.inf, 0.0)
    x, y = original.reshape(-1), restored.reshape(-1)
    if isinstance(codec, ErrorBounded):
        return _compare_bounded(x, y, codec)
    if isinstance(codec, QSGD):
        return _compare_buckets(x, y, codec)
    if isinstance(codec, BaseDelta) and codec.drop_bits > 0:
        return _compare_places(_parts(x), _parts(y), codec)
    violations = sum(int(_bits_differ(a, b).sum()) for a, b in _blocks(x, y))
    return Comparison(violations, math.inf if violations else 0.0, 0.0)


def _compare_bounded(x: NDArray[Any], y: NDArray[Any], codec: ErrorBounded) -> Comparison:
    if codec.pointwise is not None:
        bound = math.nan
    else:
        bound = codec.abs if codec.abs is not None else float(codec.rel or 0) * _finite_range(x)
    violations, largest = 0, 0.0
    for a, b in _blocks(x, y):
        finite = np.isfinite(a)
        lost = int((_bits_differ(a, b) & ~finite).sum())
        wide = a[finite].astype(np.float64)
        error, residue = _distance(wide, b[finite].astype(np.float64))
        with np.errstate(all="ignore"):
            allowed = bound if codec.pointwise is None else codec.pointwise * np.abs(wide)
        within = (error < allowed) | ((error == allowed) & (residue <= 0))
        violations += lost + int((~within).sum())
        largest = max(largest, math.inf if lost else 0.0, float(np.nan_to_num(error, nan=np.inf).max(initial=0.0)))
    return Comparison(violations, largest, bound)


def _compare_buckets(x: NDArray[Any], y: NDArray[Any], codec: QSGD) -> Comparison:
    size = codec.bucket_size
    kept = x.size - x.size % size if codec.skip_incomplete else x.size
    violations = int(_bits_differ(x[kept:], y[kept:]).sum())
    largest = allowed = 0.0
    step = max(_BLOCK // size, 1) * size
    for start in range(0, kept, step):
        a, b = x[start : min(start + step, kept)], y[start : min(start + step, kept)]
        error, limit = _bucket_errors(a, b, codec)
        violations += int((~(error <= limit)).sum())
        largest = max(largest, float(np.nan_to_num(error, nan=np.inf).max(initial=0.0)))
        allowed = max(allowed, float(limit.max(initial=0.0)))
    return Comparison(violations, largest, allowed)


def _bucket_errors(a: NDArray[Any], b: NDArray[Any], codec: QSGD) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each value's error (0 where a bucket with NaN or infinity came back NaN) and what is allowed in its bucket."""
    rows = -(-a.size // codec.bucket_size)
    padding = rows * codec.bucket_size - a.size  # by repeating the last value, which changes no limit but the l2 norm
    with np.errstate(all="ignore"):
        wide = np.pad(a.astype(np.float64), (0, padding), mode="edge").reshape(rows, -1)
        back = np.pad(b.astype(np.float64), (0, padding), mode="edge").reshape(rows, -1)
        broken = ~np.isfinite(wide).all(axis=1, keepdims=True)
        error = np.where(broken, np.where(np.isnan(back), 0.0, np.inf), np.abs(wide - back))
        magnitude = np.abs(wide).max(axis=1, keepdims=True)
        if codec.norm == "minmax":
            unit = np.ptp(wide, axis=1, keepdims=True) / (2**codec.bits - 1)
        else:
            squares = np.sqrt(np.square(wide / np.where(magnitude > 0, magnitude, 1)).sum(axis=1, keepdims=True))
            norm = magnitude * squares if codec.norm == "l2" else magnitude
            unit = norm / (2 ** (codec.bits - 1) - 1) if codec.bits > 1 else 2 * norm
        share = 0.5 if codec.rounding == "nearest" else 1.0
        spacing: Any = ml_dtypes.finfo(a.dtype)  # type: ignore[no-untyped-call]
        rounding = 2.0 * float(spacing.eps) * magnitude + 1e-5 * unit + 2.0**-148
        limit = np.broadcast_to(np.where(broken, 0.0, share * unit + rounding), error.shape)
    return error.reshape(-1)[: a.size], limit.reshape(-1)[: a.size]


def _compare_places(x: NDArray[Any], y: NDArray[Any], codec: BaseDelta) -> Comparison:
    violations, largest = 0, 0.0
    for a, b in _blocks(x, y):
        with np.errstate(invalid="ignore"):
            wide, back = a.astype(np.float64), b.astype(np.float64)
        lost = ~np.isfinite(wide) & ~((wide == back) | (np.isnan(wide) & np.isnan(back)))
        lost |= np.signbit(wide) != np.signbit(back)
        finite = np.isfinite(wide)
        error, _ = _distance(wide[finite], back[finite])  # exact, as the two are near each other
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


def _blocks(x: NDArray[Any], y: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    for start in range(0, x.size, _BLOCK):
        yield x[start : start + _BLOCK], y[start : start + _BLOCK]


def _bits_differ(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    differ: NDArray[np.bool_] = (numpy_bytes(a) != numpy_bytes(b)).reshape(a.size, a.itemsize).any(axis=1)
    return differ


def _finite_range(x: NDArray[Any]) -> float:
    low, high = math.inf, -math.inf
    for block, _ in _blocks(x, x):
        finite = block[np.isfinite(block)].astype(np.float64)
        low, high = float(finite.min(initial=low)), float(finite.max(initial=high))
    return high - low if high >= low else 0.0


def _distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """|a - b| exactly, as a float64 and what rounding took from it (D. Knuth, TAOCP 2, section 4.2.2, TwoSum)."""
    with np.errstate(all="ignore"):
        total = a - b
        part = total - a
        residue = (a - (total - part)) + (-b - part)
        return np.abs(total), np.where(total < 0, -residue, residue)
