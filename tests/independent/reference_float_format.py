"""Formats, numbers and scales of codec 5, for its tests: section 5.3 of native/FORMAT.md."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def format_of(name: Any) -> Format:
    """The format of this name; raises ValueError."""
    if name in FORMATS or name in TWINS:
        return FORMATS[TWINS.get(name, name)]
    found = re.fullmatch(r"e([2-8])m([1-9]\d?)", name) if isinstance(name, str) else None
    if found is None or int(found[1]) + int(found[2]) > 15:
        raise ValueError(f"configuration: format {name!r}")
    return Format(int(found[1]), int(found[2]), 2 ** (int(found[1]) - 1) - 1, "IEEE")


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
