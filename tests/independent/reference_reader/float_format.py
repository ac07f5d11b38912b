"""Section 5.3: codec 5."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from .buckets import Codes, Layout, finite, nan_of
from .config import Parameters
from .dtypes import Dtype
from .elements import Floats, round_to
from .source import U64, CorruptStreamError, need

CODEC = 5, "float-format"

IEEE, ONE_NAN, UNSIGNED_ZERO, FINITE, INTEGER = "IEEE", "one NaN", "unsigned zero", "none", "none, integer"


@dataclass(frozen=True)
class Format:
    """One format of the table: X exponent bits, Y mantissa bits, bias, specials and the size of blocks (0: none)."""

    x: int
    y: int
    bias: int
    specials: str
    block: int = 0


FORMATS = {
    "fp8_e4m3": Format(4, 3, 7, ONE_NAN),
    "fp8_e5m2": Format(5, 2, 15, IEEE),
    "fp8_e4m3fnuz": Format(4, 3, 8, UNSIGNED_ZERO),
    "fp8_e5m2fnuz": Format(5, 2, 16, UNSIGNED_ZERO),
    "fp8_e4m3b11fnuz": Format(4, 3, 11, UNSIGNED_ZERO),
    "fp6_e3m2": Format(3, 2, 3, FINITE),
    "fp6_e2m3": Format(2, 3, 1, FINITE),
    "fp4_e2m1": Format(2, 1, 1, FINITE),
    "fp32": Format(8, 23, 127, IEEE),
    "mxfp8_e4m3": Format(4, 3, 7, ONE_NAN, 32),
    "mxfp8_e5m2": Format(5, 2, 15, IEEE, 32),
    "mxfp6_e3m2": Format(3, 2, 3, FINITE, 32),
    "mxfp6_e2m3": Format(2, 3, 1, FINITE, 32),
    "mxfp4": Format(2, 1, 1, FINITE, 32),
    "mxint8": Format(1, 6, 1, INTEGER, 32),
    "nvfp4": Format(2, 1, 1, FINITE, 16),
    "fp16": Format(5, 10, 15, IEEE),
    "bf16": Format(8, 7, 127, IEEE),
}
FORMATS["mxfp8"], FORMATS["mxfp6"] = FORMATS["mxfp8_e4m3"], FORMATS["mxfp6_e2m3"]


def format_of(name: str) -> Format:
    """The format of a name."""
    if name in FORMATS:
        return FORMATS[name]
    found = re.fullmatch(r"e([2-8])m([1-9]|1[0-3])", name)
    if not found or int(found[1]) + int(found[2]) > 15:
        raise CorruptStreamError(f"format {name}")
    x, y = int(found[1]), int(found[2])
    return Format(x, y, 2 ** (x - 1) - 1, IEEE)


def numbers(codes: U64, f: Format, a: type[np.floating]) -> Floats:
    """Values v of the codes, as numbers of the arithmetic type."""
    b = 1 + f.x + f.y
    if f.specials == INTEGER:
        return np.asarray((codes.astype(np.uint8).view(np.int8) / 64).astype(a))
    m = codes & np.uint64(2 ** (b - 1) - 1)
    sign = codes >> np.uint64(b - 1) & np.uint64(1)
    exponent = (m >> np.uint64(f.y)).astype(np.int64)
    fraction = (m & np.uint64(2**f.y - 1)).astype(np.int64)
    significand = np.where(exponent == 0, fraction, fraction + 2**f.y).astype(np.float64)
    v = np.ldexp(significand, (np.maximum(exponent, 1) - f.bias - f.y).astype(np.int32))
    if f.specials == IEEE:
        v = np.where(exponent == 2**f.x - 1, np.where(fraction == 0, np.inf, np.nan), v)
    elif f.specials == ONE_NAN:
        v = np.where(m == 2 ** (b - 1) - 1, np.nan, v)
    v = np.where(sign == 1, -v, v)
    if f.specials == UNSIGNED_ZERO:
        v = np.where((sign == 1) & (m == 0), np.nan, v)
    return np.asarray(v.astype(a))


def checked(config: Parameters, dtype: Dtype) -> tuple[Format, str | None, int]:
    """Check the configuration; returns the format, `scaling`, and the bucket's size, 0 where it is the array."""
    name = config.get("format")
    need(isinstance(name, str), "format")
    f = format_of(str(name))
    need(name != "fp32" or dtype.name in ("float32", "float64"), "fp32")
    scaling = config.choice("scaling", (None, "tensor", "bucket"), None)
    need(not (f.block and scaling), "scaling of a format with blocks")
    need(bool(f.block or scaling) or f.specials != FINITE, "a format that needs a scale")
    need(scaling == "bucket" or not config.has_value("bucket_size"), "bucket_size")
    need(f.block == 32 or not config.has_value("scale_rule"), "scale_rule")
    size = 512 if scaling == "bucket" else f.block
    if config.has_value("bucket_size"):
        size = config.integer("bucket_size", 16, 2**40)
    config.choice("scale_rule", ("floor", "ceil", None), None)
    config.choice("rounding", ("nearest", "stochastic"), "nearest")
    return f, scaling, size


def layout(config: Parameters, dtype: Dtype, _: int) -> Layout:
    """How a payload of this configuration is laid out."""
    f, scaling, size = checked(config, dtype)
    scaled = bool(scaling or f.block)
    saturate = config.choice("overflow", ("saturate", "infinity"), "saturate") == "saturate"
    need(saturate or not scaled, "overflow")
    a = dtype.arithmetic
    kind = np.dtype(a).str

    def values(found: Codes) -> Floats:
        v = numbers(found.codes, f, a)
        return np.asarray(v * scale_of(found, f, a)) if scaled else v

    def finish(y: Floats, dtype: Dtype, found: Codes) -> U64:
        rounded = np.where(np.isnan(y), nan_of(dtype), round_to(y, dtype))
        infinite = np.isinf(numbers(found.codes, f, a)) | (not saturate)
        return np.asarray(np.where(infinite, rounded, finite(y, dtype, found)))

    for_array = (kind,) if f.block == 16 else ()
    for_bucket = ("u1",) if f.block else (kind,) if scaling else ()
    return Layout(1 + f.x + f.y, values, for_array, for_bucket, size, finish=finish)


def scale_of(found: Codes, f: Format, a: type[np.floating]) -> Floats:
    """The scale of each element's bucket."""
    if not f.block:
        return found.bucket[0]
    k = found.bucket[0]
    if f.block == 16:
        return np.asarray(numbers(k.astype(np.uint64) & np.uint64(127), FORMATS["fp8_e4m3"], a) * a(found.array[0]))
    return np.asarray(np.where(k == 255, a(np.nan), np.ldexp(a(1), k.astype(np.int32) - 127)))
