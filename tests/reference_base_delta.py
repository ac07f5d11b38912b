"""The independent reader's part for base-delta lines: section 6 of native/FORMAT.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference_stream import Cursor, Element

Array = NDArray[Any]
ReadBits = Callable[[Cursor, Sequence[int]], Array]

LANES = 32
KINDS = ("raw", "lines", "zero")
RAW_LINE = 7


class Line(NamedTuple):
    """A line's tag taken apart (6.3)."""

    mode: int
    width: int
    rows: int

    @property
    def bases(self) -> int:
        """How many base words it has."""
        return (0, 1, 1, 2, 2)[self.mode] if self.mode != RAW_LINE else 0

    @property
    def selector_bits(self) -> int:
        """Bits at each place that say which candidate is meant."""
        return (0, 0, 1, 1, 2)[self.mode] if self.mode != RAW_LINE else 0


class LineChunk(NamedTuple):
    """What the writer chose for one chunk (6.1)."""

    kind: str
    sign_last: bool
    shift: int
    live: int
    masked: int
    lines: tuple[Line, ...]


def read_line(tag: int, rows: int, element: Element, bits: int) -> Line:
    """A line from its tag (6.3)."""
    mode, width = tag >> 5, (tag & 31) * (2 if element.bits == 64 else 1)
    if mode == RAW_LINE and width == 0:
        return Line(mode, bits, rows)
    if mode > 4:
        raise ValueError(f"tag {tag:#04x}: mode {mode}, width {width}")
    line = Line(mode, width, rows)
    if width + line.selector_bits > element.word_bits:
        raise ValueError(f"tag {tag:#04x}: rows of {width + line.selector_bits} bits")
    return line


def read_masks(cursor: Cursor, rows: int) -> tuple[int, int, Array]:
    """The live and the masked lines, and which of the chunk's places are coded (6.1)."""
    live, masked = (int(word) for word in cursor.numbers("<u8", 2))
    lines = -(-rows // 2)
    if live >> lines or masked & ~live:
        raise ValueError(f"lines {live:#x} are live, {masked:#x} masked, of {lines}")
    coded = np.zeros((2 * lines, LANES), bool)
    for line in range(lines):
        places = coded[2 * line : 2 * line + 2]
        if masked >> line & 1:
            places[:] = np.unpackbits(cursor.numbers("u1", 8), bitorder="little").reshape(2, LANES)
        else:
            places[: rows - 2 * line] = live >> line & 1
    if coded[rows:].any():
        raise ValueError("a mask bit beyond the chunk")
    return live, masked, np.flatnonzero(coded)


def decode_line(packed: Array, line: Line, bases: Array) -> Array:
    """The words of a line (6.3), modulo 2^64."""
    if line.mode == RAW_LINE:
        return packed
    zero = np.zeros(1 if line.mode in (0, 2, 4) else 0, np.uint64)
    candidates = np.concatenate([zero, bases])
    selector = (
        (packed >> np.uint64(line.width)).astype(np.intp) if line.selector_bits else np.zeros(packed.shape, np.intp)
    )
    delta = packed & np.uint64((1 << line.width) - 1)
    if line.width:
        delta -= (delta >> np.uint64(line.width - 1)) << np.uint64(line.width)
    found: Array = candidates[np.minimum(selector, candidates.size - 1)] + delta
    return found


def from_words(x: Array, shift: int, sign_last: bool, element: Element) -> Array:
    """Words to the elements' bits (6.2)."""
    bits = element.bits - shift
    x = x & np.uint64((1 << bits) - 1)
    if sign_last:
        x = x >> np.uint64(1) | (x & np.uint64(1)) << np.uint64(bits - 1)
    return (x << np.uint64(shift)).astype(element.unsigned)


def read_lines(
    cursor: Cursor, rows: int, words: int, element: Element, bits: int, read_bits: ReadBits
) -> tuple[list[Line], Array]:
    """The lines of a chunk with so many rows of coded words, and the words (6.3)."""
    sizes = [min(2, rows - row) for row in range(0, rows, 2)]
    tags = cursor.numbers("u1", len(sizes), align=4)
    lines = [read_line(int(tag), size, element, bits) for tag, size in zip(tags, sizes, strict=True)]
    bases = cursor.numbers(element.unsigned.str, sum(line.bases for line in lines), align=4).astype(np.uint64)
    packed = read_bits(cursor, [line.width + line.selector_bits for line in lines for _ in range(line.rows)])
    found, row, base = [np.zeros((0, LANES), np.uint64)], 0, 0
    for line in lines:
        found.append(decode_line(packed[row : row + line.rows], line, bases[base : base + line.bases]))
        row, base = row + line.rows, base + line.bases
    return lines, np.vstack(found).ravel()[:words]


def read_chunk(cursor: Cursor, elements: int, element: Element, read_bits: ReadBits) -> tuple[LineChunk, Array]:
    """A chunk and its elements' bits (6.1)."""
    flags, shift, *reserved = cursor.take(4)
    rows = -(-elements // LANES)
    if (
        flags & 3 == 3
        or flags >> 4
        or any(reserved)
        or shift >= element.bits
        or (flags & 3 != 1 and (flags >> 2 or shift))
    ):
        raise ValueError(f"flags {flags:#04x}, shift {shift}, reserved bytes {reserved}")
    kind, sign_last = KINDS[flags & 3], bool(flags & 4)
    live = masked = 0
    lines = list[Line]()
    places = np.arange(LANES * rows)
    x = np.zeros(LANES * rows, np.uint64)
    if kind == "raw":
        x = read_bits(cursor, [element.bits] * rows).ravel()
    elif kind == "lines":
        if flags & 8:
            live, masked, places = read_masks(cursor, rows)
        coded = -(-places.size // LANES)
        lines, x[places] = read_lines(cursor, coded, places.size, element, element.bits - shift, read_bits)
    chunk = LineChunk(kind, sign_last, shift, live, masked, tuple(lines))
    return chunk, from_words(x, shift, sign_last, element)[:elements]


def read_line_group(
    data: bytes, sizes: list[int], element: Element, read_bits: ReadBits
) -> list[tuple[LineChunk, Array]]:
    """The chunks of a group and their elements' bits (10)."""
    cursor = Cursor(data)
    found = [read_chunk(cursor, size, element, read_bits) for size in sizes]
    cursor.finish()
    return found
