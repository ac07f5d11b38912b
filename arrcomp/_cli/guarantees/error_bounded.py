"""The guarantee of `ErrorBounded`."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...codecs import ErrorBounded
from .comparison import Comparison, bits_differ, blocks, distance, finite_range, largest_of


def compare_error_bounded(x: NDArray[Any], y: NDArray[Any], codec: ErrorBounded) -> Comparison:
    """Finite values are within their bound, others have equal bits."""
    if codec.pointwise is not None:
        bound = math.nan
    else:
        bound = codec.abs if codec.abs is not None else float(codec.rel or 0) * finite_range(x)
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
        largest = max(largest, math.inf if lost else 0.0, largest_of(error))
    return Comparison(violations, largest, bound)
