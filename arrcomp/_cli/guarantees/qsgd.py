"""The guarantee of `QSGD`."""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ...codecs import QSGD
from .comparison import Comparison, bits_differ, largest_of, whole_buckets


def compare_qsgd(x: NDArray[Any], y: NDArray[Any], codec: QSGD) -> Comparison:
    """Values are within the distance of two levels (half of it with rounding to nearest), or NaN in broken buckets."""
    size = codec.bucket_size
    kept = x.size - x.size % size if codec.skip_incomplete else x.size
    violations = int(bits_differ(x[kept:], y[kept:]).sum())
    largest = allowed = 0.0
    step = whole_buckets(size)
    for start in range(0, kept, step):
        a, b = x[start : min(start + step, kept)], y[start : min(start + step, kept)]
        error, limit = _bucket_errors(a, b, codec)
        violations += int((~(error <= limit)).sum())
        largest = max(largest, largest_of(error))
        allowed = max(allowed, float(limit.max(initial=0.0)))
    return Comparison(violations, largest, allowed)


def _bucket_errors(a: NDArray[Any], b: NDArray[Any], codec: QSGD) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each value's error (0 where a bucket with NaN or infinity became NaN) and its bucket's limit."""
    rows = -(-a.size // codec.bucket_size)
    padding = (
        rows * codec.bucket_size - a.size
    )  # repeats the last value, which changes the limit with the l2 norm alone
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
