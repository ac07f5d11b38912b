"""Tables and layout of a payload of codec 8, for its tests: section 5.5 of native/FORMAT.md."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from reference_buckets import Array

NF4 = (
    *(-1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.091050036, 0),
    *(0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1),
)


def dynamic8() -> list[float]:
    """The levels of "dynamic8"."""
    sizes = [
        Fraction(2 ** (i + 1) + 9 * (2 * k + 1), 2 ** (i + 1) * 10 ** (7 - i)) for i in range(7) for k in range(2**i)
    ]
    return sorted(float(level) for level in [Fraction(0), Fraction(1), *sizes, *(-size for size in sizes)])


def dynamic8_unsigned() -> list[float]:
    """The levels of "dynamic8-unsigned"."""
    sizes = [
        Fraction(2 ** (i + 2) + 9 * (2 * k + 1), 2 ** (i + 2) * 10 ** (7 - i))
        for i in range(7)
        for k in range(2 ** (i + 1))
    ]
    return sorted(float(level) for level in [Fraction(0), Fraction(1), *sizes])


NAMED = {"nf4": lambda: NF4, "dynamic8": dynamic8, "dynamic8-unsigned": dynamic8_unsigned}


class Settings(NamedTuple):
    """The codec's parameters, with their defaults."""

    borders: Any = None
    levels: Any = None
    scaling: str | None = None
    bucket_size: int = 64
    table: str | None = None


class Tables(NamedTuple):
    """What a reader, or a writer, needs of the parameters."""

    borders: Array
    levels: Array
    scaling: str | None
    bucket_size: int

    @property
    def bits(self) -> int:
        """Of a code."""
        return max(b for b in range(1, 9) if b == 1 or 2 ** (b - 1) < self.levels.size)


def tables_of(configuration: Mapping[str, Any]) -> Tables:
    """The parameters in a configuration; raises ValueError where section 7 speaks of corruption."""
    parameters = {key: value for key, value in configuration.items() if key != "codec"}
    if not set(parameters) <= set(Settings._fields):
        raise ValueError(f"parameters {sorted(parameters)}")
    found = Settings(**parameters)
    if "table" in parameters:
        if found.table not in NAMED or {"borders", "levels"} & set(parameters):
            raise ValueError(f"parameters {sorted(parameters)}, table {found.table}")
        levels = np.array(NAMED[found.table]()).astype(np.float32)
        middles = (levels[1:].astype(np.float64) + levels[:-1]) / 2
        borders = middles.astype(np.float32)
        borders[borders > middles] = np.nextafter(borders, np.float32(-np.inf))[borders > middles]
        if found.table == "dynamic8-unsigned":
            borders[0] = 0
    else:
        borders, levels = _floats(found.borders), _floats(found.levels)
    allowed = (
        2 <= levels.size <= 256
        and borders.size == levels.size - 1
        and np.all(borders[:-1] < borders[1:])
        and found.scaling in (None, "absmax", "tensor")
        and type(found.bucket_size) is int
        and 16 <= found.bucket_size <= 1 << 40
    )
    if not allowed:
        raise ValueError(f"parameters {found}")
    return Tables(borders, levels, found.scaling, found.bucket_size)


def _floats(numbers: Any) -> Array:
    if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
        raise ValueError(f"parameters {numbers}")
    with np.errstate(all="ignore"):
        found = np.array(numbers, np.float64).astype(np.float32)
    if not np.isfinite(found).all():
        raise ValueError(f"parameters {numbers}")
    return found


class Layout(NamedTuple):
    """How a payload is laid out, in bytes."""

    bucket_size: int
    buckets: int
    number: str  # what is stored for a bucket
    codes_at: int
    nbytes: int


def layout_of(tables: Tables, n: int, itemsize: int) -> Layout:
    """The layout of a payload of n elements."""
    size = max(n, 1) if tables.scaling == "tensor" else tables.bucket_size
    number = "u1" if tables.scaling is None else "<f8" if itemsize == 8 else "<f4"
    buckets = -(-n // size)
    numbers_end = buckets * np.dtype(number).itemsize
    codes_at = numbers_end + -numbers_end % 8
    rows = -(-n // 32)
    return Layout(size, buckets, number, codes_at, codes_at + 64 * -(-rows * tables.bits // 16))
