"""The promise of `ErrorBounded`."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...codecs import ErrorBounded
from .comparison import Comparison, bits_differ, blocks, distance


def compare_bounded(x: NDArray[Any], y: NDArray[Any], codec: ErrorBounded) -> Comparison:
    """Finite values are within their bound, others have the same bits."""
    if codec.pointwise is not None:
        bound = math.nan
    else:
        bound = codec.abs if codec.abs is not None else float(codec.rel or 0) * _finite_range(x)
    violations, largest = 0, 0.0
    for a, b in blocks(x, y):
        finite = np.isfinite(a)
        lost = int((bits_differ(a, b) & ~finite).sum())
        wide = a[finite].astype(np.float64)
        error, residue = distance(wide, b[finite].astype(np.float64))
        with np.errstate(all="ignore"):
            allowed = bound if codec.pointwise is None else codec.pointwise * np.abs(wide)
        within = (error < allowed) | ((error == allowed) & (residue <= 0))
        violations += lost + int((~within).sum())
        largest = max(largest, math.inf if lost else 0.0, float(np.nan_to_num(error, nan=np.inf).max(initial=0.0)))
    return Comparison(violations, largest, bound)


def _finite_range(x: NDArray[Any]) -> float:
    low, high = math.inf, -math.inf
    for block, _ in blocks(x, x):
        finite = block[np.isfinite(block)].astype(np.float64)
        low, high = float(finite.min(initial=low)), float(finite.max(initial=high))
    return high - low if high >= low else 0.0
