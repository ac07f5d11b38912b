"""What `FloatFormat` should write: codes in exact integers, scales in float64; and the values it is tested with."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import checks
import reference_buckets
import reference_float_format as reference
from arrcomp import FloatFormat
from checks import FLOATS, Array, numpy_dtype
from reference_philox import random_words

# What ml_dtypes has of the formats.
TWINS = {
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    "fp8_e4m3fnuz": "float8_e4m3fnuz",
    "fp8_e5m2fnuz": "float8_e5m2fnuz",
    "fp8_e4m3b11fnuz": "float8_e4m3b11fnuz",
    "e3m4": "float8_e3m4",
    "e4m3": "float8_e4m3",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
}
WITHOUT_NAN = ("fp6_e3m2", "fp6_e2m3", "fp4_e2m1")
OTHERS = ("e2m1", "e2m13", "e3m2", "e4m6", "e5m1", "e6m9", "e7m8", "e8m1", "e8m5")
BLOCKS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "mxint8", "nvfp4")
ROUNDINGS: tuple[Any, ...] = ("nearest", "stochastic")
OVERFLOWS: tuple[Any, ...] = ("saturate", "infinity")
COUNT = 3 * 4096 + 5


def small(codec: FloatFormat) -> reference.Format:
    return reference.format_of(codec.format)


def real_of(dtype: np.dtype[Any]) -> Any:
    """The arithmetic type."""
    return np.float64 if dtype.itemsize == 8 else np.float32


def normal(name: str, count: int = COUNT, scale: float = 1.0) -> Array:
    """Normal values, the same whatever their type."""
    with np.errstate(all="ignore"):
        found: Array = np.random.default_rng(11).normal(0, scale, count).astype(numpy_dtype(name))
    return found


def bucket_size(codec: FloatFormat, count: int) -> int:
    """Elements that share a scale; 0 where none do."""
    return small(codec).block or {"tensor": count, "bucket": codec.bucket_size or 0}.get(codec.scaling or "", 0)


def codes_of(stream: bytes, codec: FloatFormat, count: int, itemsize: int) -> Array:
    """The codes in a stream, from its end."""
    payload = stream[slice(*checks.payload_span(stream))]
    bits = small(codec).bits
    nbytes = 64 * -(-(-(-count // 32) * bits) // 16)
    return reference_buckets.read_codes(payload[len(payload) - nbytes :], count, bits)


def scales_of(stream: bytes, codec: FloatFormat, count: int, real: Any) -> Array:
    """Each element's scale."""
    size = bucket_size(codec, count)
    payload = stream[slice(*checks.payload_span(stream))]
    with np.errstate(all="ignore"):
        scales, _ = reference.scales_of(payload, -(-count // size), small(codec), real)
    return scales[np.arange(count) // size]


def largest_of(found: reference.Format) -> float:
    """L."""
    top = (1 << found.x) - (2 if found.specials == "IEEE" else 1)
    steps = (2 << found.y) - (2 if found.specials == "one NaN" else 1)
    return float(steps * 2.0 ** (top - found.bias - found.y))


def nan_code(found: reference.Format) -> int:
    """The one that writers take."""
    ones = (1 << found.x + found.y) - 1
    ieee = ones - (1 << found.y) + 1 | 1 << found.y - 1
    return {"IEEE": ieee, "one NaN": ones, "unsigned zero": ones + 1}[found.specials]


def rounded(z: Array, found: reference.Format, next_is_special: bool, words: Array | None, mantissa: int) -> Array:
    """The magnitudes m that z becomes, in integers alone; z is not negative, and exact in float64."""
    largest = largest_of(found)
    lowest = 1 - found.bias
    if next_is_special:
        largest += np.ldexp(1.0, int(np.frexp(largest)[1]) - 1 - found.y)
    z = np.minimum(z, largest)
    exponent = np.where(z > 0, np.maximum(np.frexp(z)[1] - 1, lowest), lowest)
    dropped = mantissa - found.y
    # In units of the arithmetic type's mantissa: a whole number but for subnormal numbers, which "stochastic" rounds.
    units = np.ldexp(z, (dropped + found.y - exponent).astype(np.int32))
    if words is None:
        steps = np.rint(np.ldexp(units, -dropped)).astype(np.int64)
    else:
        fraction = words >> np.uint64(32 - dropped) if dropped <= 32 else (words * 2 + 1) << np.uint64(dropped - 33)
        steps = (np.rint(units).astype(np.int64) + fraction.astype(np.int64)) >> dropped
    found_codes: Array = steps + (exponent - lowest).astype(np.int64) * (1 << found.y)
    return found_codes


def expected_codes(array: Array, codec: FloatFormat, scales: Array | None = None, seed: int = checks.SEED) -> Array:
    """Every code by FORMAT.md, from the scales that were written."""
    found, real = small(codec), real_of(array.dtype)
    x = array.astype(real)
    with np.errstate(all="ignore"):
        if scales is None:
            z = np.abs(x)
        else:
            tiny = (scales > 0) & (scales < np.finfo(real).tiny / 2)
            p = np.where(tiny, real(2.0**64), real(1))
            z = np.abs((x * p) * np.where(scales == 0, real(0), real(1) / (scales * p)))
        broken = np.isnan(z)
        words = random_words(array.size, seed) if codec.rounding == "stochastic" else None
        special = codec.overflow == "infinity" and found.specials not in ("none", "integer")
        wide = np.where(broken, np.inf, z).astype(np.float64)
        m = rounded(wide, found, special, words, 52 if real == np.float64 else 23)
    negative = np.signbit(x)
    if found.specials == "integer":
        return np.where(negative, (256 - m) % 256, m)
    sign = np.where(negative, 1 << found.x + found.y, 0)
    if found.specials == "unsigned zero":
        sign = np.where(m == 0, 0, sign)
    codes = m | sign
    if scales is None:
        infinite = (((1 << found.x) - 1) << found.y) | sign
        codes = np.where(np.isinf(x), infinite if found.specials == "IEEE" else nan_code(found), codes)
        codes = np.where(np.isnan(x), nan_code(found), codes)
    return codes


def sweep(name: str) -> Array:
    """Every exponent with mantissas at edges, both signs, and random bits; all bits there are of 16."""
    dtype = numpy_dtype(name)
    if dtype.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    limits: Any = np.finfo(dtype)
    mantissa, unsigned = limits.nmant, np.dtype(f"u{dtype.itemsize}")
    places = [1 << k for k in range(mantissa)]
    edges = {0, *places, *((1 << mantissa) - p for p in places)}
    edges |= {(p + d) % (1 << mantissa) for p in places for d in (-1, 1)} | {3 * p % (1 << mantissa) for p in places}
    edges |= {(3 * p + d) % (1 << mantissa) for p in places for d in (-1, 1)}
    exponents = np.arange(1 << (8 * dtype.itemsize - 1 - mantissa), dtype=unsigned)
    if dtype.itemsize == 8:  # and not those that are far out of every format's range
        exponents = np.concatenate([exponents[:2], exponents[1023 - 180 : 1023 + 180], exponents[-3:]])
    exponents <<= unsigned.type(mantissa)
    every = (exponents[:, None] | np.array(sorted(edges), unsigned)).reshape(-1)
    sign = unsigned.type(1 << (8 * dtype.itemsize - 1))
    random = np.random.default_rng(5).integers(0, np.iinfo(unsigned).max, 1 << 22, unsigned, endpoint=True)
    if dtype.itemsize == 8:  # or nearly all would be out of every format's range
        random = (random & ~(exponents[-1])) | (np.uint64(1023 - 160) + random % np.uint64(320)) << np.uint64(52)
    return np.concatenate([every, every | sign, random]).view(dtype)


SWEEPS = {name: sweep(name) for name in FLOATS}
FEWER = {name: array[: 1 << 19] for name, array in SWEEPS.items()}


def check_codes(array: Array, codec: FloatFormat, expected: Array) -> None:
    found = codes_of(checks.stream_of(array, codec), codec, array.size, array.dtype.itemsize)
    different = np.flatnonzero(found != expected)
    assert different.size == 0, (codec, different.size, array[different[:3]], found[different[:3]])


def expected_scales(array: Array, codec: FloatFormat) -> Array:
    """Each element's scale by the definition, where float64 suffices to tell."""
    found, size = small(codec), bucket_size(codec, array.size)
    x = np.abs(array.astype(np.float64))
    amax = np.array([part.max() for part in np.split(x, range(size, array.size, size))])
    most = largest_of(found)
    if found.block == 32:
        power = np.floor(np.log2(amax)) - np.floor(np.log2(most))
        if codec.scale_rule == "ceil":
            power = np.ceil(np.log2(amax / most))
        scales = 2.0 ** np.clip(power, -127, 127)
    elif found.block == 16:
        of_array = x.max() / (448 * 6)
        scales = (amax / of_array / 6).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * of_array
    else:
        scales = amax / most
    return scales[np.arange(array.size) // size]
