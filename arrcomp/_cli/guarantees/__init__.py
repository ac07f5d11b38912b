"""Checks of codecs' guarantees, in NumPy alone, independent of the core.

A codec without a function in `laws` guarantees its `max_errors`, by default equal bits.
"""

import math
from typing import Any

from numpy.typing import NDArray

from ...codecs import Codec
from . import laws  # noqa: F401 - it registers them
from .comparison import Comparison, compare_flat, mismatch_of

__all__ = ["Comparison", "compare"]


def compare(original: NDArray[Any], restored: NDArray[Any], codec: Codec) -> Comparison:
    """Compare an array before compression with the result of `decompress`."""
    mismatch = mismatch_of(original, restored)
    if mismatch is not None:
        return Comparison(max(original.size, 1), math.inf, mismatch)
    return compare_flat(codec, original.reshape(-1), restored.reshape(-1))
