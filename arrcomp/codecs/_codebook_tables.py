"""Published codebooks, by name, and checks of others. FORMAT.md, section 5.5, has the same definitions."""

import functools
from typing import Any

import numpy as np

from .._arguments import check_ascending, checked_numbers

MOST_LEVELS = 256
TABLE_NAMES = ("nf4", "dynamic8", "dynamic8-unsigned")

# T. Dettmers et al., "QLoRA", arXiv:2305.14314, appendix E: means of neighbouring quantiles of the normal distribution,
# on each side of 0, divided by the largest.
_NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)


def _decades(first: int) -> tuple[float, ...]:
    """T. Dettmers et al., "8-bit optimizers via block-wise quantization", arXiv:2110.02861, section 2.1.

    The decades from 10^-7 to 1, with `first` numbers in the lowest, and each with twice as many as the one below it:
    the midpoints of equal intervals.
    """
    counts = [first << i for i in range(7)]
    return tuple(
        (2 * n + 9 * (2 * k + 1)) / (2 * n * 10 ** (7 - i))  # (0.1 + 0.9 (k + 1/2) / n) 10^(i - 6)
        for i, n in enumerate(counts)
        for k in range(n)
    )


def shortest(number: Any) -> float:
    """The number with the fewest decimal digits that rounds to the same float32."""
    return float(str(np.float32(number)))


def midpoints(levels: tuple[float, ...]) -> tuple[float, ...]:
    """The borders between ascending levels with which each float32 value gets the nearest level.

    Midpoints are rounded down to float32. No float32 lies between a midpoint and its border, and different levels have
    different borders.
    """
    wide = np.array(levels, np.float32).astype(np.float64)
    middles = (wide[1:] + wide[:-1]) / 2
    rounded = middles.astype(np.float32)
    borders = np.where(rounded > middles, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    return tuple(map(shortest, borders))


def checked_table(borders: Any, levels: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Ascending borders, one fewer than levels, and 2 to 256 levels, as tuples of float32 numbers."""
    borders, levels = checked_numbers("borders", borders), checked_numbers("levels", levels)
    if not 2 <= len(levels) <= MOST_LEVELS:
        raise ValueError(f"levels: expected 2 to {MOST_LEVELS} numbers, got {len(levels)}")
    if len(borders) != len(levels) - 1:
        raise ValueError(f"borders: expected {len(levels) - 1} numbers, one fewer than levels, got {len(borders)}")
    check_ascending("borders", borders)
    return borders, levels


Table = tuple[tuple[float, ...], tuple[float, ...]]  # borders and levels


@functools.cache  # made when it is first used: importing the package takes less time
def table_named(name: str) -> Table:
    """The table of one of `TABLE_NAMES`."""
    if name == "nf4":
        return _table(_NF4)
    if name == "dynamic8":
        signed = _decades(1)
        return _table((*(-size for size in reversed(signed)), 0.0, *signed, 1.0))
    # For second moments, which are divisors: without signs, and nothing above 0 gets the level 0.
    borders, levels = _table((0.0, *_decades(2), 1.0))
    return (0.0, *borders[1:]), levels


def name_of_table(table: Table) -> str | None:
    """The name of a published table; None for others."""
    return next((name for name in TABLE_NAMES if table_named(name) == table), None)


def _table(levels: tuple[float, ...]) -> Table:
    short = tuple(map(shortest, levels))
    return midpoints(short), short
