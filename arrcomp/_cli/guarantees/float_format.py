"""The guarantee of `FloatFormat`."""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ...codecs import FloatFormat
from .comparison import BLOCK, Comparison, largest_of, rounding_error, whole_buckets

Floats = NDArray[np.float64]


def compare_float_format(x: NDArray[Any], y: NDArray[Any], codec: FloatFormat) -> Comparison:
    """Values are within the distance of two numbers at their scale, or half of it with rounding to nearest."""
    size = codec.numbers.block_size or codec.bucket_size or max(x.size, 1)
    scaled = codec.scaling is not None or codec.numbers.block_size > 0
    step = whole_buckets(size) if scaled else BLOCK
    largest = _largest_of(x)
    violations, worst, allowed = 0, 0.0, 0.0
    for start in range(0, x.size, step):
        with np.errstate(all="ignore"):
            a, b = x[start : start + step].astype(np.float64), y[start : start + step].astype(np.float64)
            scale = _scales(a, size, largest, codec) if scaled else np.ones(a.size)
            error, limit = _errors(a, b, scale, codec)
            limit += np.where(np.isfinite(a), rounding_error(np.abs(a), x.dtype, 4.0), 0.0)
            if codec.overflow == "infinity":
                most = min(codec.numbers.largest, float(ml_dtypes.finfo(x.dtype).max))  # type: ignore[no-untyped-call]
                error = np.where(np.isfinite(a) & ~np.isfinite(b) & (np.abs(a) + limit >= most), 0.0, error)
        violations += int((~(error <= limit)).sum())
        worst = max(worst, largest_of(error))
        allowed = max(allowed, float(np.nan_to_num(limit, posinf=0).max(initial=0.0)))
    return Comparison(violations, worst, allowed)


def _largest_of(x: NDArray[Any]) -> float:
    """The largest finite magnitude."""
    found = 0.0
    for start in range(0, x.size, BLOCK):
        with np.errstate(invalid="ignore"):  # signalling NaN
            magnitudes = np.abs(x[start : start + BLOCK].astype(np.float64))
        found = max(found, float(magnitudes[np.isfinite(magnitudes)].max(initial=0.0)))
    return found


def _scales(a: Floats, size: int, largest: float, codec: FloatFormat) -> Floats:
    """Each value's scale; NaN in buckets that are not finite."""
    rows = -(-a.size // size)
    amax = np.abs(np.pad(a, (0, rows * size - a.size))).reshape(rows, -1).max(axis=1)
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
    each: Floats = np.repeat(np.where(np.isfinite(amax), scale, np.nan), size)[: a.size]
    return each


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
    lost = np.isnan(b) if not numbers.has_infinity or codec.scaling or numbers.block_size else _same_special(a, b)
    error = np.where(special, np.where(lost, 0.0, np.inf), np.abs(a - b))
    return error, np.where(special, 0.0, limit)


def _same_special(a: Floats, b: Floats) -> NDArray[np.bool_]:
    """Which infinities and NaN were kept."""
    found: NDArray[np.bool_] = np.where(np.isnan(a), np.isnan(b), a == b)
    return found
