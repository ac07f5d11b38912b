"""The independent reader's part for codec 5, small formats: sections 5 and 5.3 of native/FORMAT.md alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from reference_buckets import LANES, QUANTIZED, read_codes

Array = NDArray[Any]


class Format(NamedTuple):
    """A row of the table in 5.3."""

    x: int
    y: int
    bias: int
    specials: str
    block: int = 0

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return 1 + self.x + self.y


FORMATS = {
    "fp8_e4m3": Format(4, 3, 7, "one NaN"),
    "fp8_e5m2": Format(5, 2, 15, "IEEE"),
    "fp8_e4m3fnuz": Format(4, 3, 8, "unsigned zero"),
    "fp8_e5m2fnuz": Format(5, 2, 16, "unsigned zero"),
    "fp8_e4m3b11fnuz": Format(4, 3, 11, "unsigned zero"),
    "fp6_e3m2": Format(3, 2, 3, "none"),
    "fp6_e2m3": Format(2, 3, 1, "none"),
    "fp4_e2m1": Format(2, 1, 1, "none"),
    "fp16": Format(5, 10, 15, "IEEE"),
    "bf16": Format(8, 7, 127, "IEEE"),
    "fp32": Format(8, 23, 127, "IEEE"),
    "mxfp8_e4m3": Format(4, 3, 7, "one NaN", 32),
    "mxfp8_e5m2": Format(5, 2, 15, "IEEE", 32),
    "mxfp6_e3m2": Format(3, 2, 3, "none", 32),
    "mxfp6_e2m3": Format(2, 3, 1, "none", 32),
    "mxfp4": Format(2, 1, 1, "none", 32),
    "mxint8": Format(1, 6, 1, "integer", 32),
    "nvfp4": Format(2, 1, 1, "none", 16),
}
TWINS = {"mxfp8": "mxfp8_e4m3", "mxfp6": "mxfp6_e2m3"}
ALLOWED = {
    "scaling": (None, "tensor", "bucket"),
    "scale_rule": (None, "floor", "ceil"),
    "rounding": ("nearest", "stochastic"),
    "overflow": ("saturate", "infinity"),
}


class Settings(NamedTuple):
    """The codec's parameters."""

    format: str
    scaling: str | None = None
    bucket_size: int | None = None
    scale_rule: str | None = None
    rounding: str = "nearest"
    overflow: str = "saturate"


def format_of(name: Any) -> Format:
    """The format of this name; raises ValueError."""
    if name in FORMATS or name in TWINS:
        return FORMATS[TWINS.get(name, name)]
    found = re.fullmatch(r"e([2-8])m([1-9]\d?)", name) if isinstance(name, str) else None
    if found is None or int(found[1]) + int(found[2]) > 15:
        raise ValueError(f"configuration: format {name!r}")
    return Format(int(found[1]), int(found[2]), 2 ** (int(found[1]) - 1) - 1, "IEEE")


def settings_of(configuration: Mapping[str, Any], dtype: np.dtype[Any]) -> tuple[Settings, Format]:
    """The parameters in a configuration; raises ValueError where they are not allowed."""
    parameters = {key: value for key, value in configuration.items() if key != "codec"}
    if not set(parameters) <= set(Settings._fields) or "format" not in parameters:
        raise ValueError(f"parameters {sorted(parameters)}")
    found = Settings(**parameters)
    if not all(getattr(found, name) in allowed for name, allowed in ALLOWED.items()):
        raise ValueError(f"parameters {found}")
    small = format_of(found.format)
    scaled = small.block > 0 or found.scaling is not None
    size = found.bucket_size
    allowed = (
        (size is None or (found.scaling == "bucket" and type(size) is int and 16 <= size <= 1 << 40))
        and not (small.block and found.scaling)
        and (scaled or small.specials != "none")
        and (found.scale_rule is None or small.block == 32)
        and not (scaled and found.overflow == "infinity")
        and not (found.format == "fp32" and dtype.itemsize == 2)
    )
    if not allowed:
        raise ValueError(f"parameters {found}")
    return found, small


def numbers_of(codes: Array, small: Format) -> Array:
    """What the codes stand for, in float64."""
    codes = codes.astype(np.int64)
    if small.specials == "integer":
        return np.where(codes < 128, codes, codes - 256) / 64
    negative, m = codes >> (small.x + small.y), codes & ((1 << small.x + small.y) - 1)
    exponent, mantissa = m >> small.y, m & ((1 << small.y) - 1)
    significand = np.where(exponent > 0, mantissa + (1 << small.y), mantissa).astype(np.float64)
    v = np.ldexp(significand, (np.maximum(exponent, 1) - small.bias - small.y).astype(np.int32))
    if small.specials == "IEEE":
        v = np.where(exponent == (1 << small.x) - 1, np.where(mantissa > 0, np.nan, np.inf), v)
    if small.specials == "one NaN":
        v = np.where(m == (1 << small.x + small.y) - 1, np.nan, v)
    v = np.where(negative > 0, -v, v)
    return np.where((negative > 0) & (m == 0), np.nan, v) if small.specials == "unsigned zero" else v


def scales_of(payload: bytes, buckets: int, small: Format, real: Any) -> tuple[Array, int]:
    """The buckets' scales, and where they end in the payload."""
    if not small.block:
        return np.frombuffer(payload, real, buckets), buckets * np.dtype(real).itemsize
    begin = 8 if small.block == 16 else 0
    stored = np.frombuffer(payload, np.uint8, buckets, begin)
    if small.block == 32:
        powers = np.ldexp(1.0, stored.astype(np.int32) - 127)
        return np.where(stored == 255, np.nan, powers).astype(real), buckets
    of_array = np.frombuffer(payload, real, 1)[0]
    return numbers_of(stored & 127, FORMATS["fp8_e4m3"]).astype(real) * of_array, begin + buckets


def elements_of(v: Array, y: Array, dtype: np.dtype[Any], overflow: str) -> Array:
    """The elements that y becomes."""
    if overflow == "saturate":
        limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        largest = y.dtype.type(limits.max)
        y = np.where(np.isinf(v), y, np.clip(y, -largest, largest))
    elements: Array = y.astype(dtype)
    elements[np.isnan(y)] = np.nan
    return elements


def read_float_format(payload: bytes, n: int, dtype: np.dtype[Any], configuration: Mapping[str, Any]) -> Array:
    """The elements of a payload; arguments and errors as those of `reference_buckets.read_buckets`."""
    if dtype.name not in QUANTIZED:
        raise ValueError(f"codec 5 with {dtype}")
    settings, small = settings_of(configuration, dtype)
    real: Any = np.float64 if dtype.itemsize == 8 else np.float32
    size = small.block or {"tensor": n, "bucket": settings.bucket_size or 512}.get(settings.scaling or "", 0)
    buckets = -(-n // size) if size else 0
    stored = 1 if small.block else np.dtype(real).itemsize
    codes_at = (8 if small.block == 16 else 0) + buckets * stored
    codes_at += -codes_at % 8
    end = codes_at + 64 * -(-(-(-n // LANES) * small.bits) // 16)
    if len(payload) != end:
        raise ValueError(f"a payload of {len(payload)} bytes, {end} are right")
    with np.errstate(all="ignore"):
        v = numbers_of(read_codes(payload[codes_at:], n, small.bits), small).astype(real)
        y = v
        if size:
            scales, _ = scales_of(payload, buckets, small, real)
            y = v * scales[np.arange(n) // size]
        return elements_of(v, y, dtype, settings.overflow)
