"""The values of bench/proofs/exhaustive.py: every bit pattern once, in orders that bring out what the format has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CHUNK = 4096
CLASS_BITS = 4  # of a float32's pattern, just below the mantissa's upper twelve bits: they say which order it is in
CLASS_AT = 7
INDEX_BITS = 32 - CLASS_BITS


@dataclass(frozen=True)
class Order:
    """A permutation of the numbers below a power of two, which are bit patterns or the upper and lower bits of them.

    Attributes:
        name: what it looks like.
        shuffled: that many low bits change places as if at random; 0 for none, 32 for all.
        signs: the sign bit becomes the lowest of the position, so that both signs stand together.
        far: positions whose bits are `at` where `far` has ones change exponents with others, far away.
        at: see `far`.
    """

    name: str
    shuffled: int = 0
    signs: bool = False
    far: int = 0
    at: int = 0

    def indices(self, start: int, count: int, bits: int) -> NDArray[np.uint32]:
        """The numbers of `bits` bits at positions `start` to `start + count - 1`, as uint32."""
        position = np.arange(start, start + count, dtype=np.uint32)
        # What changes places far away does so with the same position elsewhere: nothing above that bit is shuffled.
        index = _shuffle(position, min(self.shuffled, bits - 3 if self.far else bits))
        if self.far:
            index = np.where(position & self.far == self.at, index ^ np.uint32(1 << (bits - 3)), index)
        return index >> 1 | (index & 1) << (bits - 1) if self.signs else index


_OUTLIERS, _BLOCK = 1023, 7 << 6  # one value in 1024; one block of 64 in eight

ORDERS = (
    Order("ascending"),
    Order("ascending, signs in turn", 0, True),
    Order("scattered", 32),
    Order("eight neighbours mixed", 3),
    Order("sixteen neighbours mixed, both signs", 4, True),
    Order("chunks mixed", 12),
    Order("chunks mixed, both signs", 12, True),
    Order("an octave mixed", 19),
    Order("two octaves mixed, both signs", 21, True),
    Order("eight octaves mixed, both signs", 23, True),
    Order("chunks mixed, an outlier in 1024", 12, True, _OUTLIERS, 5),
    Order("an octave mixed, an outlier in 1024", 19, False, _OUTLIERS, 77),
    Order("ascending, an outlier in 32", 0, True, 31, 5),
    Order("two octaves mixed, an outlier in 32", 21, True, 31, 5),
    Order("two octaves mixed, a block of 64 in eight is far", 21, True, _BLOCK, _BLOCK),
    Order("an octave mixed, a block of 64 in eight is far", 19, False, _BLOCK, _BLOCK),
)
assert len(ORDERS) == 1 << CLASS_BITS


def _shuffle(index: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    """The `bits` low bits permuted: odd factors and shifted exclusive ors can be undone, so no two become equal."""
    if bits == 0:
        return index
    mask = np.uint32((1 << bits) - 1)
    low = index & mask
    for factor in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D):
        low = low * np.uint32(factor) & mask
        low ^= low >> np.uint32(bits // 2 + 1)
    return index & ~mask | low


def float32_patterns(number: int, count: int) -> NDArray[np.uint32]:
    """Piece `number` of all 2^32 patterns.

    Args:
        number: below 2^32 / count.
        count: values in a piece, a power of two, at most 2^28.
    """
    part, order = divmod(number, len(ORDERS))
    index = ORDERS[order].indices(part * count, count, INDEX_BITS)
    low = np.uint32((1 << CLASS_AT) - 1)
    return (index & ~low) << np.uint32(CLASS_BITS) | np.uint32(order << CLASS_AT) | index & low


def patterns16(number: int) -> NDArray[np.uint16]:
    """All 2^16 patterns in one of the orders."""
    return ORDERS[number % len(ORDERS)].indices(0, 1 << 16, 16).astype(np.uint16)


REPEATED = 8


def repeated(number: int, count: int) -> NDArray[np.uint32]:
    """Patterns of float32 that are equal, for what a writer does with these alone; `number` < REPEATED."""
    rng = np.random.default_rng([1, number])
    position, bits = np.arange(count, dtype=np.uint32), rng.integers(0, 1 << 32, count, dtype=np.uint32)
    zeros = np.zeros(count, np.uint32)
    constants = np.repeat(bits[: -(-count // CHUNK)], CHUNK)[:count]
    small = rng.integers(1, 16, count).astype(np.float32).view(np.uint32)
    kinds = (
        constants,
        np.where(position % 32 == 5, bits, zeros),
        np.where(position // 64 % 8 == 5, bits, zeros),
        np.where(position % 32 == 5, small, zeros),
        np.where(position // 64 % 8 == 5, small, zeros),
        bits & np.uint32(0xFFFF0000),
        np.where(position % 4 == 1, np.uint32(0x7FC00001), constants),
        np.where(position // CHUNK % 2 == 1, position, zeros),
    )
    return kinds[number]


PHASES = 8  # of scales in an octave
_DRAWN = {
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "Laplace": lambda rng, n: rng.laplace(0, 1, n),
    "Student's t": lambda rng, n: rng.standard_t(3, n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "squares": lambda rng, n: rng.normal(0, 1, n) ** 2,
    "lognormal": lambda rng, n: rng.lognormal(0, 2, n),
    "a quarter Laplace": lambda rng, n: rng.laplace(0, 1, n) * (rng.random(n) < 0.25),
    "a tenth normal": lambda rng, n: rng.normal(0, 1, n) * (rng.random(n) < 0.1),
}
DRAWN = PHASES * len(_DRAWN)


def drawn(number: int, count: int) -> NDArray[np.float32]:
    """Values as models have them, for the coder's tables: one of eight distributions and scales; `number` < DRAWN."""
    phase, kind = divmod(number, len(_DRAWN))
    draw = list(_DRAWN.values())[kind]
    values: Array = draw(np.random.default_rng([2, number]), count) * 2.0 ** (phase / PHASES)
    return values.astype(np.float32)


FLOAT64_KINDS = (
    "an exponent for each value",
    "an exponent for each chunk",
    "near the bound, mantissas of 12 bits",
    "near the bound",
    "near the bound, sums in a chunk",
    "near the bound, one value in 32 large",
    "near the bound, one block of 64 in eight large",
    "near the bound, outliers",
)


def float64_values(number: int, count: int, bound: float) -> NDArray[np.float64]:
    """Random mantissas and exponents; `number` is the seed and chooses one of FLOAT64_KINDS; whole chunks."""
    rng = np.random.default_rng([64, number])
    bits = rng.integers(0, 1 << 64, count, dtype=np.uint64)
    kind = number % len(FLOAT64_KINDS)
    if kind == 0:
        return bits.view(np.float64)
    if kind == 1:
        exponents = np.repeat(rng.integers(0, 2048, count // CHUNK, dtype=np.uint64), CHUNK)
        return (bits & ~np.uint64(2047 << 52) | exponents << np.uint64(52)).view(np.float64)
    numbers = bits.view(np.int64)
    values = (numbers >> 52 if kind == 2 else numbers).reshape(-1, CHUNK).astype(np.float64)
    places = np.arange(CHUNK)
    # From chunks that are all zeros with this bound to such as it is too small for.
    exponents = int(np.frexp(bound)[1]) + rng.integers(-4, 58, (len(values), 1))
    scales = np.ldexp(1.0, np.clip(exponents - 63, -1074, 960) + (52 if kind == 2 else 0))
    small = np.ldexp(1.0, np.clip(int(np.frexp(bound)[1]) - 66, -1074, 960))
    if kind == 4:
        return (np.cumsum(values * 2.0**-12, axis=1) * scales).ravel()
    if kind == 5:
        return (values * np.where(places % 32 == 5, scales, small)).ravel()
    if kind == 6:
        return (values * np.where(places // 64 % 8 == 5, scales, small)).ravel()
    if kind == 7:
        return (values * np.where(places % 1024 == 5, np.minimum(scales * 2.0**40, 2.0**960), scales)).ravel()
    return (values * scales).ravel()
