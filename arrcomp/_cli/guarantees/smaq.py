"""The guarantee of `SmaQ`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...codecs import SmaQ
from .comparison import Comparison, compare_bits, largest_of, rounding_error, whole_buckets

Doubles = NDArray[np.float64]

_NEAR = 1e-3  # relative; values this near to a threshold may be on either side, as statistics are rounded


def compare_smaq(x: NDArray[Any], y: NDArray[Any], codec: SmaQ) -> Comparison:
    """Values are within a step (half of it with rounding to nearest), zeros exact, broken blocks NaN."""
    if x.size < codec.min_size:
        return compare_bits(x, y)
    violations, largest, allowed = 0, 0.0, 0.0
    for a, b in _blocks(x, y, x.size if codec.block_size is None else codec.block_size):
        with np.errstate(all="ignore"):
            error, limit = _block_errors(a, b, codec)
            rounding = rounding_error(np.fmax(np.abs(a), np.abs(b)), x.dtype)
        violations += int((~(error <= limit + np.where(limit > 0, rounding, 0))).sum())
        largest = max(largest, largest_of(error))
        allowed = max(allowed, float(limit.max(initial=0.0)))
    return Comparison(violations, largest, allowed)


def _blocks(x: NDArray[Any], y: NDArray[Any], size: int) -> Iterator[tuple[Doubles, Doubles]]:
    """Blocks as rows, several at a time; a shorter last one alone."""
    whole = x.size - x.size % max(size, 1)
    step = whole_buckets(max(size, 1))
    for start in range(0, whole, step):
        part = slice(start, min(start + step, whole))
        yield x[part].astype(np.float64).reshape(-1, size), y[part].astype(np.float64).reshape(-1, size)
    if whole < x.size:
        yield x[whole:].astype(np.float64).reshape(1, -1), y[whole:].astype(np.float64).reshape(1, -1)


def _block_errors(a: Doubles, b: Doubles, codec: SmaQ) -> tuple[Doubles, Doubles]:
    """Each value's error (0 where a block with NaN or infinity became NaN) and its limit."""
    broken = ~np.isfinite(a).all(axis=1, keepdims=True)
    error = np.where(broken, np.where(np.isnan(b), 0.0, np.inf), np.abs(a - b))
    extent = np.where(broken, 0.0, np.ptp(a, axis=1, keepdims=True))
    limit = np.where(extent > 0, _limits(a, extent, codec), 0.0)
    if codec.all_positive:
        limit = np.fmax(limit, -a)  # ignores NaN
    if codec.preserve_zeros:
        limit = np.where(a == 0, 0.0, limit)
    return error, limit


def _limits(a: Doubles, extent: Doubles, codec: SmaQ) -> Doubles:
    share = 0.5 if codec.rounding == "nearest" else 1.0
    main, outer = 2 ** (codec.main_bits - 2) - 1, 2 ** (codec.outlier_bits - 2) - 1
    if codec.statistics in ("sampled", "range"):  # for every estimate
        widest = max(codec.main_threshold / main, 2 / outer) if codec.overflow == "extend" else 1.0
        return np.broadcast_to(widest * extent, a.shape)
    mean, std = a.mean(axis=1, keepdims=True), a.std(axis=1, keepdims=True)
    if codec.mean is not None and codec.std is not None:
        mean, std = np.full_like(mean, codec.mean), np.full_like(std, codec.std)
    distance = np.abs(a - mean)
    farthest = distance.max(axis=1, keepdims=True)
    last = farthest if codec.overflow == "extend" else codec.outlier_threshold * std
    start = codec.main_threshold * std
    steps = start / main, np.maximum(last - start, 0) / outer
    near = np.where(distance < start * (1 + _NEAR), steps[0], 0)
    beyond = np.where(distance > start * (1 - _NEAR), steps[1], 0)
    rounding = 1e-5 * (std + farthest)
    limits: Doubles = share * (1 + _NEAR) * np.maximum(near, beyond) + np.maximum(distance - last, 0) + rounding
    return limits
