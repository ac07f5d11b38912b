"""Section 3.5: elements of a chunk that are left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .dtypes import Dtype
from .rows import lane_bits, low_bits
from .source import U64, Source, need

BITS = 15
Bits = NDArray[np.bool_]


@dataclass
class Missing:
    """Which of the m elements of a chunk are missing: `places`, m booleans; with `count` marks of `shift` low bits."""

    m: int
    present: int
    inverted: bool
    edges: bool
    count: int
    shift: int
    fill: int
    places: Bits


def read_missing(source: Source, dtype: Dtype, m: int) -> Missing:
    """Take the side data of a chunk of m elements that has missing ones."""
    missing, usual = read_head(source, m)
    if usual:
        need(dtype.exponent > 0, "NaN of what is no float")
        missing.fill = ((2 << dtype.exponent) - 1) << (dtype.mantissa - 1)
    else:
        missing.fill = source.number(8 if dtype.bits == 64 else 4) & int(low_bits(dtype.bits))
    read_places(source, missing)
    return missing


def read_masked(source: Source, places: int) -> Bits:
    """Take a mask of marks (section 3.2); returns which of the words at so many places are not coded."""
    missing, usual = read_head(source, places)
    need(not usual, "NaN in a mask")
    read_places(source, missing)
    return missing.places


def read_head(source: Source, m: int) -> tuple[Missing, bool]:
    """Take the first 4 bytes; returns also whether the fill is the usual NaN."""
    fields = source.number(4)
    present, count, shift = fields & 4095, fields >> 16 & 4095, fields >> 28
    usual, inverted, edges, reserved = (bool(fields >> bit & 1) for bit in (12, 13, 14, 15))
    need(present < m, "number of present elements")
    need(count <= m, "number of marks")
    need(shift <= 11 or shift == BITS, "low bits of the marks")
    need(not reserved, "reserved bit")
    return Missing(m, present, inverted, edges, count, shift, 0, np.zeros(m, bool)), usual


def read_places(source: Source, missing: Missing) -> None:
    """Take the marks."""
    m = missing.m
    if missing.shift == BITS:
        missing.places = read_bits(source, m)
    else:
        marked = read_marks(source, m, missing.count, missing.shift) if missing.count else missing.places
        missing.places = (np.cumsum(marked) % 2 == 1 if missing.edges else marked) ^ missing.inverted
    need(m - int(missing.places.sum()) == missing.present, "number of present elements")


def read_bits(source: Source, count: int) -> Bits:
    """Take `count` bits, padded to words of 32."""
    return np.asarray(lane_bits(source.words(4, -(-count // 32))).ravel()[:count])


def read_marks(source: Source, m: int, count: int, shift: int) -> Bits:
    """Take the marks; returns m booleans."""
    low = shift * count
    bits = read_bits(source, low + count + ((m - 1) >> shift) + 1)
    places = np.flatnonzero(bits[low:])
    need(len(places) == count, "number of marks")
    marks = places - np.arange(count) << shift
    for b, plane in enumerate(bits[:low].reshape(shift, count)):
        marks |= plane.astype(np.int64) << b
    need(bool((marks < m).all()), "a mark beyond the chunk")
    marked = np.zeros(m, bool)
    marked[marks] = True
    return marked


def spread(missing: Missing | None, present: U64) -> U64:
    """All elements of a chunk, from those that are present."""
    if missing is None:
        return present
    out = np.full(missing.m, missing.fill, np.uint64)
    out[~missing.places] = present
    return out
