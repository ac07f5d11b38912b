"""The guarantee of `Codebook`."""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ...codecs import Codebook
from .comparison import Comparison, rounding_error, whole_buckets


def compare_codebook(x: NDArray[Any], y: NDArray[Any], codec: Codebook) -> Comparison:
    """Values are the level of their interval, or NaN in broken buckets.

    Next to a border both levels are correct, as the scaled value may have been rounded across it.
    """
    size = max(x.size, 1) if codec.scaling == "tensor" else codec.bucket_size
    violations, largest = 0, 0.0
    step = whole_buckets(size)
    for start in range(0, x.size, step):
        a, b = x[start : start + step], y[start : start + step]
        right, error = _looked_up(a, b, size, codec)
        violations += int((~right).sum())
        largest = max(largest, float(error.max(initial=0.0)))
    return Comparison(violations, largest, largest)


def _looked_up(
    a: NDArray[Any], b: NDArray[Any], size: int, codec: Codebook
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which values are correct, and their errors (0 where a bucket became NaN as it must)."""
    wide, back = a.astype(np.float64), b.astype(np.float64)
    starts = np.arange(0, a.size, size)
    broken = _of_each(np.logical_or.reduceat(~np.isfinite(wide), starts), starts, a.size)
    wide = np.where(broken, 0.0, wide)
    scale = np.ones(a.size)
    if codec.scaling is not None:
        scale = _of_each(np.maximum.reduceat(np.abs(wide), starts), starts, a.size)
    borders, levels = (np.array(table, np.float32).astype(np.float64) for table in (codec.borders, codec.levels))
    limits: Any = ml_dtypes.finfo(a.dtype)  # type: ignore[no-untyped-call]
    v = wide / np.where(scale > 0, scale, 1.0)
    slack = np.abs(v) * (1e-15 if a.dtype == np.float64 else 5e-7)
    right = broken & np.isnan(back)
    for shift in (-slack, slack):
        expected = levels[np.searchsorted(borders, v + shift)] * scale
        expected = np.clip(expected, -float(limits.max), float(limits.max))
        right |= ~broken & (np.abs(back - expected) <= rounding_error(np.abs(expected), a.dtype))
    return right, np.where(broken, 0.0, np.nan_to_num(np.abs(wide - back), nan=np.inf))


def _of_each(of_bucket: NDArray[Any], starts: NDArray[np.intp], count: int) -> NDArray[Any]:
    return np.repeat(of_bucket, np.diff([*starts, count]))
