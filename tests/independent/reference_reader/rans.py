"""Section 4: the entropy coder, interleaved rANS with 32 states."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .rows import LANES
from .source import U64, need

SYMBOLS = 64
BUCKET = 32
SLOTS = SYMBOLS * BUCKET
CONTEXT_OF_SUM = np.array([0, 1, 2, 2, *[3] * 9])
TABLES = Path(__file__).parents[3] / "native" / "codecs" / "grouped" / "rans_tables.inc"


@cache
def frequencies() -> NDArray[np.int64]:
    """The frequencies of all tables, shape (192, 64)."""
    text = TABLES.read_text(encoding="utf-8")
    body = text[text.index("rans_frequencies") :]
    rows = re.findall(r"\{([\d,\s]+)\}", body[body.index("=") : body.index("};")])
    return np.array([[int(f) for f in row.split(",")] for row in rows])


def alias(f: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Section 4.1: split, alias and offset of each bucket."""
    left, split, other = list(f), [BUCKET] * SYMBOLS, list(range(SYMBOLS))
    small = [b for b in range(SYMBOLS) if f[b] < BUCKET]
    large = [b for b in range(SYMBOLS) if f[b] >= BUCKET]
    while small:
        b = small.pop()
        split[b] = left[b]
        top = large[-1]
        other[b] = top
        left[top] -= BUCKET - split[b]
        if left[top] < BUCKET:
            small.append(large.pop())
    following, offset = list(split), [0] * SYMBOLS
    for b in range(SYMBOLS):
        if split[b] < BUCKET:
            offset[b] = following[other[b]] - split[b]
            following[other[b]] += BUCKET - split[b]
    return split, other, offset


class Table:
    """One static table: frequencies (64,), symbol and rank of each slot (2048,), and the escape."""

    def __init__(self, index: int) -> None:
        f = frequencies()[index]
        self.frequency = f.astype(np.uint64)
        self.escape = int(np.flatnonzero(f)[-1])
        split, other, offset = (np.repeat(column, BUCKET) for column in alias(f.tolist()))
        r = np.tile(np.arange(BUCKET), SYMBOLS)
        own = r < split
        self.symbol = np.where(own, np.repeat(np.arange(SYMBOLS), BUCKET), other)
        self.rank = np.where(own, r, r + offset).astype(np.uint64)


table = cache(Table)


def frequencies_of(codes: U64, count: int) -> tuple[int, ...]:
    """Section 4.5: what `count` codes of a chunk's classes stand for."""
    found = [int(q) if q < 8 else (4 + int(q) % 4) << (int(q) // 4 - 1) for q in codes.ravel()[:count]]
    need(1 <= sum(found) <= SLOTS, "frequencies")
    found[found.index(max(found))] += SLOTS - sum(found)
    return tuple(found)


class Decoder:
    """Section 4.2: decodes a group's rows from its words and its 32 states; `wide` where W is 64."""

    def __init__(self, words: U64, states: U64, wide: bool) -> None:
        self.words = words
        self.position = len(words)
        self.x = states
        self.more = 4 if wide else 2
        self.escapes = 0
        self.long_escapes = 0

    def take(self, count: int) -> U64:
        """The next word of `count` lanes."""
        need(count <= self.position, "words run out")
        self.position -= count
        return self.words[self.position : self.position + count]

    def row(self, t: Table, dry: bool = False) -> U64:
        """The symbols of the next row, shape (32,); `dry`: its states take no words."""
        slot = self.slots()
        symbol = t.symbol[slot]
        return self.step(symbol, t.frequency[symbol], t.rank[slot], symbol == t.escape, dry)

    def slots(self) -> NDArray[np.intp]:
        """The slots of the states."""
        return (self.x & np.uint64(2047)).astype(np.intp)

    def step(self, symbol: NDArray[np.intp], frequency: U64, rank: U64, escapes: NDArray[np.bool_], dry: bool) -> U64:
        """The states take their symbols, which are returned, with what the `escapes` have beyond them."""
        self.x = frequency * (self.x >> np.uint64(11)) + rank
        self.feed(dry)
        value = symbol.astype(np.uint64)
        escaped = np.flatnonzero(escapes)
        if len(escaped):
            value[escaped] += self.rests(len(escaped))
        return value

    def rests(self, count: int) -> U64:
        """What `count` escaped lanes have above the escape."""
        rest = self.take(count).copy()
        long = np.flatnonzero(rest == 65535)
        self.escapes += count
        self.long_escapes += len(long)
        if len(long):
            rest[long] = 0
            for _ in range(self.more):
                rest[long] = rest[long] << np.uint64(16) | self.take(len(long))
        return rest

    def rows(self, table_of: Callable[[int], int], count: int, dry: int = 0) -> U64:
        """The next `count` rows, shape (count, 32), each with its own table's index; the last `dry` are dry."""
        out = np.zeros((count, LANES), np.uint64)
        for r in range(count):
            self.begin_row(r == count - dry)
            out[r] = self.row(table(table_of(r)), r >= count - dry)
        return out

    def begin_row(self, is_first_dry: bool) -> None:
        """Before the first dry row the states are made smaller."""
        if is_first_dry:
            self.x = self.x - np.uint64(1 << 16) & np.uint64(0xFFFFFFFF)

    def rows_by_contexts(self, indices: tuple[int, ...], count: int, dry: int) -> U64:
        """Section 4.4: the next `count` rows, shape (count, 32), with the tables of contexts."""
        tables = [table(index) for index in indices]
        symbols, ranks, frequencies = (
            np.stack(column) for column in zip(*((t.symbol, t.rank, t.frequency) for t in tables), strict=True)
        )
        escapes = np.array([t.escape for t in tables])
        out = np.zeros((count, LANES), np.uint64)
        sizes = np.zeros((3 + count, LANES), np.uint64)
        for r in range(count):
            self.begin_row(r == count - dry)
            context = CONTEXT_OF_SUM[sizes[r : r + 3].sum(axis=0).astype(np.intp)]
            slot = self.slots()
            symbol = symbols[context, slot]
            escaped = symbol == escapes[context]
            own = frequencies[context, symbol], ranks[context, slot]
            out[r] = self.step(symbol, *own, escaped, r >= count - dry)
            sizes[3 + r] = (np.minimum(out[r], np.uint64(7)) + np.uint64(1)) >> np.uint64(1)
        return out

    def rows_by_classes(self, frequencies: tuple[int, ...], told: int, count: int, dry: int) -> U64:
        """Section 4.5: the next `count` rows, shape (count, 32), by classes."""
        symbols = np.repeat(np.arange(len(frequencies)), frequencies)
        starts = np.cumsum(frequencies) - frequencies
        out = np.zeros((count, LANES), np.uint64)
        for r in range(count):
            self.begin_row(r == count - dry)
            slot = self.slots()
            symbol = symbols[slot]
            own = np.array(frequencies, np.uint64)[symbol], (slot - starts[symbol]).astype(np.uint64)
            self.step(symbol, *own, np.zeros(LANES, bool), r >= count - dry)
            below = np.maximum(symbol >> told, 1) - 1
            low = self.bits(np.minimum(below, 16), r >= count - dry)
            if (below > 16).any():
                low |= self.bits(np.maximum(below, 16) - 16, r >= count - dry) << np.uint64(16)
            out[r] = (symbol - (below << told)).astype(np.uint64) << below.astype(np.uint64) | low
        return out

    def bits(self, widths: NDArray[np.intp], dry: bool) -> U64:
        """The next bits of each lane's state."""
        n = widths.astype(np.uint64)
        low = self.x & (np.uint64(1) << n) - np.uint64(1)
        self.x >>= n
        self.feed(dry)
        return low

    def feed(self, dry: bool) -> None:
        """Small states take a word."""
        low = self.x < 1 << 16
        if low.any() and not dry:
            self.x[low] = self.x[low] << np.uint64(16) | self.take(int(low.sum()))

    def end(self, carrying: bool, dry: bool) -> U64:
        """Section 4.3: check the end; returns the two bits that each of the last 8 rows' words carry, shape (8, 32)."""
        if dry:
            need(bool((self.x == 1).all()), "final states")
            self.x = self.x + np.uint64(0xFFFF)
        need(bool(((self.x >> np.uint64(16)) == 1).all()), "final states")
        need(self.position <= 1 and not self.words[: self.position].any(), "words left over")
        need(carrying or not (self.x & np.uint64(0xFFFF)).any(), "low bits of the final states")
        return self.x >> np.arange(0, 16, 2, dtype=np.uint64)[:, None] & np.uint64(3)
