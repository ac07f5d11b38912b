"""Checks of codecs' guarantees, in NumPy alone, independent of the core.

A codec without a function in `laws` guarantees its `max_errors`, by default equal bits.
"""

import math
from typing import Any

from numpy.typing import NDArray

from ...codecs import Codec
from . import laws  # noqa: F401 - it registers them
from .comparison import Comparison, compare_flat

__all__ = ["Comparison", "compare"]


def compare(original: NDArray[Any], restored: NDArray[Any], codec: Codec) -> Comparison:
    """Compare an array before compression with the result of `decompress`."""
    native = original.dtype if original.dtype.isnative else original.dtype.newbyteorder("=")
    if original.shape != restored.shape or native != restored.dtype:
        return Comparison(max(original.size, 1), math.inf)
    return compare_flat(codec, original.reshape(-1), restored.reshape(-1))
