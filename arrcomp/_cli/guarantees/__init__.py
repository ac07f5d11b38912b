"""Does what came back keep the codec's promise? Checked with NumPy alone, independently of the core."""

import math
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from ...codecs import QSGD, S2FP8, BaseDelta, Codebook, Codec, ErrorBounded, FloatFormat, SmaQ
from .base_delta import compare_places
from .bounded import compare_bounded
from .buckets import compare_buckets
from .codebook import compare_codebook
from .comparison import Comparison, compare_bits
from .float_format import compare_formats
from .s2fp8 import compare_squeezed
from .smaq import compare_smaq

__all__ = ["Comparison", "compare"]

# What compares flat arrays of the same dtype and size; of other codecs every bit must be the same.
_COMPARISONS: dict[type[Codec], Callable[[NDArray[Any], NDArray[Any], Any], Comparison]] = {
    ErrorBounded: compare_bounded,
    QSGD: compare_buckets,
    BaseDelta: compare_places,
    Codebook: compare_codebook,
    S2FP8: compare_squeezed,
    FloatFormat: compare_formats,
    SmaQ: compare_smaq,
}


def compare(original: NDArray[Any], restored: NDArray[Any], codec: Codec) -> Comparison:
    """Compare an array with what came back of it.

    Args:
        original: what was compressed.
        restored: what `decompress` made of it.
        codec: how it was compressed. What a codec promises is said in the module that compares it; every other codec
            promises the same bits.
    """
    native = original.dtype if original.dtype.isnative else original.dtype.newbyteorder("=")
    if original.shape != restored.shape or native != restored.dtype:
        return Comparison(max(original.size, 1), math.inf, 0.0)
    x, y = original.reshape(-1), restored.reshape(-1)
    comparison = _COMPARISONS.get(type(codec))
    return compare_bits(x, y) if comparison is None else comparison(x, y, codec)
