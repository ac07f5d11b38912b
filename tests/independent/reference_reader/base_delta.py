"""Section 6: the lines of codec 7."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .dtypes import Dtype
from .rows import LANES, lane_bits, low_bits, unpack
from .source import U64, Source, need

KINDS = ("raw", "lines", "zero")
RAW_MODE = 7
BASES = {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, RAW_MODE: 0}
SELECTOR = {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, RAW_MODE: 0}
WITH_ZERO = (0, 2, 4)


class Line(NamedTuple):
    """What a tag says: the mode, the width of a raw line's words or of deltas, and how many rows follow."""

    mode: int
    width: int
    rows: int

    @property
    def place(self) -> int:
        """Bits at each place."""
        return self.width + SELECTOR[self.mode]


class LineChunk(NamedTuple):
    """What a chunk says of itself; `live` and `masked` are bits, line 0 the lowest."""

    kind: str
    sign_last: bool
    shift: int
    live: int = 0
    masked: int = 0
    lines: tuple[Line, ...] = ()


def read_line_group(source: Source, dtype: Dtype, sizes: list[int], _: float) -> list[tuple[LineChunk, U64]]:
    """The group's chunks, of `sizes` elements, with their elements' bits."""
    return [read_chunk(source, dtype, m) for m in sizes]


def read_chunk(source: Source, dtype: Dtype, m: int) -> tuple[LineChunk, U64]:
    """A chunk of m elements and their bits."""
    head, shift, reserved = source.number(1), source.number(1), source.number(2)
    kind, sign_last, masks = head & 3, head >> 2 & 1, head >> 3 & 1
    need(kind != 3 and head >> 4 == 0 and reserved == 0, "reserved bits")
    need(shift < dtype.bits, "shift")
    chunk = LineChunk(KINDS[kind], bool(sign_last), shift)
    need(chunk.kind == "lines" or (head == kind and shift == 0), "bits of a raw or zero chunk")
    rows = -(-m // LANES)
    if chunk.kind == "zero":
        return chunk, np.zeros(m, np.uint64)
    if chunk.kind == "raw":
        return chunk, unpack(source, np.full(rows, dtype.bits, np.uint64)).ravel()[:m]
    live, masked, places = read_mask(source, rows) if masks else (0, 0, np.arange(rows * LANES))
    b = dtype.bits - shift
    words = np.zeros(rows * LANES, np.uint64)
    lines, words[places] = coded_words(source, dtype, b, len(places))
    if sign_last:
        words = words >> np.uint64(1) | (words & np.uint64(1)) << np.uint64(b - 1)
    return chunk._replace(live=live, masked=masked, lines=lines), words[:m] << np.uint64(shift)


def read_mask(source: Source, rows: int) -> tuple[int, int, NDArray[np.intp]]:
    """Take the masks; returns `live`, `masked` and the places of the coded words."""
    fields = source.words(8, 2)
    live, masked = (fields[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(bool)
    lines = -(-rows // 2)
    need(not live[lines:].any(), "a line beyond the chunk")
    need(not (masked & ~live).any(), "a masked line that is not live")
    coded = np.repeat(live[:, None], 64, axis=1)
    coded[masked] = lane_bits(source.words(4, 2 * int(masked.sum()))).reshape(-1, 64)
    inside = np.arange(64 * 64).reshape(64, 64) < rows * LANES
    need(not (coded & ~inside)[masked].any(), "a masked word beyond the chunk")
    return int(fields[0]), int(fields[1]), np.flatnonzero(coded & inside)


def coded_words(source: Source, dtype: Dtype, b: int, count: int) -> tuple[tuple[Line, ...], U64]:
    """The lines of `count` coded words of b bits, and the words."""
    rows = -(-count // LANES)
    tags = source.take(-(-rows // 2))
    source.align(4)
    lines = tuple(line_of(tag, min(2, rows - 2 * j), dtype, b) for j, tag in enumerate(tags))
    bases = source.words(dtype.bits // 8, sum(BASES[line.mode] for line in lines)).tolist()
    source.align(4)
    packed = unpack(source, [line.place for line in lines for _ in range(line.rows)])
    out = packed.copy()
    for j, line in enumerate(lines):
        own, bases = bases[: BASES[line.mode]], bases[BASES[line.mode] :]
        if line.mode != RAW_MODE:
            out[2 * j : 2 * j + 2] = line_words(packed[2 * j : 2 * j + 2], line, own)
    return lines, out.ravel()[:count] & low_bits(b)


def line_of(tag: int, rows: int, dtype: Dtype, b: int) -> Line:
    """What the tag of a line of so many rows says."""
    mode, width = tag >> 5, tag & 31
    need(mode in BASES and (mode != RAW_MODE or width == 0), "tag of a line")
    line = Line(mode, b if mode == RAW_MODE else width * (2 if dtype.bits == 64 else 1), rows)
    need(line.place <= dtype.word, "width of a row")
    return line


def line_words(packed: U64, line: Line, bases: list[int]) -> U64:
    """The words of a line that is not raw, modulo 2^64."""
    candidates = [0, *bases] if line.mode in WITH_ZERO else bases
    candidates += candidates[-1:] * (4 - len(candidates))
    selector = (packed >> np.uint64(line.width)).astype(np.intp)
    delta = packed & low_bits(line.width)
    negative = delta > low_bits(max(line.width - 1, 0)) if line.width else delta != 0
    return np.array(candidates, np.uint64)[selector] + np.where(negative, delta | ~low_bits(line.width), delta)
