"""Section 5.5: codec 8."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .buckets import Codes, Layout
from .config import Parameters, is_number
from .dtypes import Dtype
from .elements import Floats
from .source import need

CODEC = 8, "codebook"

NF4 = """-1 -0.6961928 -0.52507305 -0.3949175 -0.28444138 -0.18477343 -0.091050036 0 0.0795803 0.1609302 0.2461123
0.33791524 0.44070983 0.562617 0.72295684 1"""


def nearest_float32(value: Fraction) -> np.float32:
    """The float32 nearest to a number, ties to even."""
    near = np.float32(float(value))
    around = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    around = [x for x in around if np.isfinite(x)]
    return min(around, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.uint32)) & 1))


def named(table: str) -> list[Fraction]:
    """The levels of a table."""
    if table == "nf4":
        return [Fraction(level) for level in NF4.split()]
    signed = table == "dynamic8"
    levels = {Fraction(0), Fraction(1)}
    for i in range(7):
        parts = 2 ** (i + 1 if signed else i + 2)
        for k in range(parts // 2):
            level = Fraction(parts + 9 * (2 * k + 1), parts * 10 ** (7 - i))
            levels |= {level, -level} if signed else {level}
    return sorted(levels)


def levels_of(config: Parameters) -> NDArray[np.float32]:
    """The levels, float32."""
    if config.has("table"):
        table = config.choice("table", ("nf4", "dynamic8", "dynamic8-unsigned"))
        return np.array([nearest_float32(level) for level in named(str(table))])
    levels, borders = numbers(config.get("levels")), numbers(config.get("borders"))
    need(2 <= len(levels) <= 256 and len(borders) == len(levels) - 1, "numbers of levels and borders")
    need(bool((borders[:-1] < borders[1:]).all()), "borders do not ascend")
    return levels


def numbers(found: Any) -> NDArray[np.float32]:
    """A list of numbers, rounded to float32."""
    need(isinstance(found, list) and all(is_number(x) for x in found), "levels or borders")
    with np.errstate(over="ignore"):
        rounded = np.array([float(x) for x in found], np.float64).astype(np.float32)
    need(bool(np.isfinite(rounded).all()), "levels or borders")
    return rounded + np.float32(0)  # there is one zero


def layout(config: Parameters, dtype: Dtype, _: int) -> Layout:
    """How a payload of this configuration is laid out."""
    levels = levels_of(config)
    size = config.integer("bucket_size", 16, 2**40, 64)
    scaling = config.choice("scaling", (None, "absmax", "tensor"), None)
    a = dtype.arithmetic
    table = levels.astype(a)

    def values(found: Codes) -> Floats:
        stored = found.bucket[0]
        s = stored if scaling else np.where(stored == 0, a(1), a(np.nan))
        return np.asarray(table[np.minimum(found.codes, len(levels) - 1).astype(np.intp)] * s)

    fields = (np.dtype(a).str,) if scaling else ("u1",)
    bits = (len(levels) - 1).bit_length()
    return Layout(bits, values, for_bucket=fields, size=0 if scaling == "tensor" else size)
