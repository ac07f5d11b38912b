"""The guarantee of `FloatFormat`."""

import ml_dtypes
import numpy as np

from ...codecs import FloatFormat
from .comparison import (
    BLOCK,
    Array,
    Comparison,
    Floats,
    bucket_rows,
    compare_flat,
    finfo,
    finite_ends,
    judged,
    rounding_error,
    total,
)


@compare_flat.register
def compare_float_format(codec: FloatFormat, x: Array, y: Array) -> Comparison:
    """Values are within the distance of two numbers at their scale, or half of it with rounding to nearest."""
    scaled = codec.scaling is not None or codec.numbers.block_size > 0
    size = codec.numbers.block_size or codec.bucket_size or max(x.size, 1)
    low, high = finite_ends(x)
    most = min(codec.numbers.largest, float(finfo(x.dtype).max))

    def compared(a: Floats, b: Floats) -> Comparison:
        with np.errstate(all="ignore"):
            scale = _scales(a, max(-low, high, 0.0), codec) if scaled else np.ones((1, 1))
            error, limit = _errors(a, b, scale, codec)
            limit += np.where(np.isfinite(a), rounding_error(np.abs(a), x.dtype, 4.0), 0.0)
            if codec.overflow == "infinity":
                error = np.where(np.isfinite(a) & ~np.isfinite(b) & (np.abs(a) + limit >= most), 0.0, error)
        return judged(error <= limit, error)

    return total(compared(a, b) for a, b in bucket_rows(x, y, size if scaled else BLOCK))


def _scales(a: Floats, largest: float, codec: FloatFormat) -> Floats:
    """Each bucket's scale; NaN in buckets that are not finite."""
    amax: Floats = np.abs(a).max(axis=1, keepdims=True)
    most = codec.numbers.largest
    if codec.scale_rule is not None:
        ratio, exponent = np.frexp(amax)
        ratio_of_most, exponent_of_most = np.frexp(most)
        power = exponent - exponent_of_most + ((codec.scale_rule == "ceil") & (ratio > ratio_of_most))
        scale = np.ldexp(1.0, np.clip(np.where(amax > 0, power, -127), -127, 127).astype(np.int32))
    elif codec.numbers.block_size:
        of_array = largest / (448 * most)
        ratio = np.minimum(amax / (of_array if of_array else 1.0) / most, 448.0)
        scale = ratio.astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * of_array
    else:
        scale = amax / most
    return np.where(np.isfinite(amax), scale, np.nan)


def _errors(a: Floats, b: Floats, scale: Floats, codec: FloatFormat) -> tuple[Floats, Floats]:
    """Each value's error (0 where it became NaN or infinite as it must) and its limit."""
    numbers = codec.numbers
    magnitude = np.abs(a)
    scaled = np.minimum(magnitude / np.where(scale > 0, scale, 1), numbers.largest)
    exponent = np.maximum(np.frexp(scaled)[1] - 1, 1 - numbers.bias)
    spacing = np.ldexp(scale, exponent - numbers.mantissa_bits)
    beyond = np.maximum(magnitude - numbers.largest * scale, 0.0)
    limit = (0.5 if codec.rounding == "nearest" else 1.0) * spacing + beyond
    if codec.format == "nvfp4":
        limit *= 1.125  # the block's scale is rounded too, up or down
    special = ~np.isfinite(a) | np.isnan(scale)
    lost = np.isnan(b)
    if numbers.has_infinity and not codec.scaling and not numbers.block_size:
        lost = np.where(np.isnan(a), lost, a == b)
    error = np.where(special, np.where(lost, 0.0, np.inf), np.abs(a - b))
    return error, np.where(special, 0.0, limit)
