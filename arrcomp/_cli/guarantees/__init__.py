"""Checks of codecs' guarantees, in NumPy alone, independent of the core."""

import math
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from ...codecs import QSGD, S2FP8, BaseDelta, Codebook, Codec, ErrorBounded, FloatFormat, SmaQ
from .base_delta import compare_base_delta
from .codebook import compare_codebook
from .comparison import Comparison, compare_bits
from .error_bounded import compare_error_bounded
from .float_format import compare_float_format
from .qsgd import compare_qsgd
from .s2fp8 import compare_s2fp8
from .smaq import compare_smaq

__all__ = ["Comparison", "compare"]

# Functions that compare flat arrays of the same dtype and size. For other codecs every bit must be equal.
_COMPARISONS: dict[type[Codec], Callable[[NDArray[Any], NDArray[Any], Any], Comparison]] = {
    ErrorBounded: compare_error_bounded,
    QSGD: compare_qsgd,
    BaseDelta: compare_base_delta,
    Codebook: compare_codebook,
    S2FP8: compare_s2fp8,
    FloatFormat: compare_float_format,
    SmaQ: compare_smaq,
}


def compare(original: NDArray[Any], restored: NDArray[Any], codec: Codec) -> Comparison:
    """Compare an array with its decompressed array.

    Args:
        original: the array before compression.
        restored: the result of `decompress`.
        codec: the codec. Its module here states its guarantee. Codecs without a module guarantee equal bits.
    """
    native = original.dtype if original.dtype.isnative else original.dtype.newbyteorder("=")
    if original.shape != restored.shape or native != restored.dtype:
        return Comparison(max(original.size, 1), math.inf, 0.0)
    x, y = original.reshape(-1), restored.reshape(-1)
    comparison = _COMPARISONS.get(type(codec))
    return compare_bits(x, y) if comparison is None else comparison(x, y, codec)
