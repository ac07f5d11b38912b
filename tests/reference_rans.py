"""The entropy coder's reading side, written from section 4 of native/FORMAT.md alone; clear rather than fast."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LANES = 32
SLOTS = 2048
SYMBOLS = 64
TABLES = 160
TABLES_FILE = Path(__file__).resolve().parents[1] / "native" / "codecs" / "rans_tables.inc"


class Table(NamedTuple):
    """One static table: frequency of each symbol, symbol and rank of each slot, the escape symbol (4.1)."""

    frequency: Array
    symbol: Array
    rank: Array
    escape: int


@lru_cache
def frequencies() -> Array:
    """The frequencies of all tables, as native/codecs/rans_tables.inc lists them."""
    body = TABLES_FILE.read_text(encoding="utf-8").split("rans_frequencies", 1)[1].split("=", 1)[1].split(";", 1)[0]
    body = re.sub(r"//[^\n]*|/\*.*?\*/", "", body, flags=re.DOTALL)
    return np.array(re.findall(r"\d+", body), np.int64).reshape(TABLES, SYMBOLS)


@lru_cache
def table(index: int) -> Table:
    """The slots of a table, laid out by the alias method (4.1)."""
    frequency = frequencies()[index]
    left, split, alias = frequency.tolist(), [32] * SYMBOLS, list(range(SYMBOLS))
    small = [b for b in range(SYMBOLS) if left[b] < 32]
    large = [b for b in range(SYMBOLS) if left[b] >= 32]
    while small:
        b = small.pop()
        split[b], alias[b] = left[b], large[-1]
        left[large[-1]] -= 32 - split[b]
        if left[large[-1]] < 32:
            small.append(large.pop())
    symbol, rank, following = np.zeros(SLOTS, np.intp), np.zeros(SLOTS, np.uint64), list(split)
    for b in range(SYMBOLS):
        own, other = slice(32 * b, 32 * b + split[b]), slice(32 * b + split[b], 32 * b + 32)
        symbol[own], rank[own] = b, np.arange(split[b])
        symbol[other], rank[other] = alias[b], following[alias[b]] + np.arange(32 - split[b])
        following[alias[b]] += 32 - split[b]
    return Table(frequency.astype(np.uint64), symbol, rank, int(np.flatnonzero(frequency)[-1]))


class WordStack:
    """16-bit words, taken from the end backwards (4.2)."""

    def __init__(self, data: bytes) -> None:
        self.words = np.frombuffer(data, "<u2").astype(np.uint64)
        self.position = len(self.words)

    def take(self, lanes: Array) -> Array:
        """A word for each lane that is set in `lanes`, in ascending order."""
        count = int(np.count_nonzero(lanes))
        if count > self.position:
            raise ValueError("words run out")
        self.position -= count
        return self.words[self.position : self.position + count]

    def finish(self) -> None:
        """Nothing may be left but the padding word (3.1)."""
        if self.position > 1 or self.words[: self.position].any():
            raise ValueError("words left over")


def decode_row(table: Table, states: Array, stack: WordStack, word_bits: int) -> tuple[Array, Array, Array]:
    """The symbols of one row, and which lanes escape and escape at length; `states` move on (4.2)."""
    slot = (states & np.uint64(SLOTS - 1)).astype(np.intp)
    symbols = table.symbol[slot].astype(np.uint64)
    states[:] = table.frequency[table.symbol[slot]] * (states >> 11) + table.rank[slot]
    low = states < 1 << 16
    states[low] = states[low] << 16 | stack.take(low)
    escaped = symbols == table.escape
    rest = np.zeros(LANES, np.uint64)
    rest[escaped] = stack.take(escaped)
    long = rest == 65535
    if long.any():
        rest[long] = 0
        for _ in range(word_bits // 16):
            rest[long] = rest[long] << 16 | stack.take(long)
    return symbols + rest, escaped, long


def finish_states(states: Array, stack: WordStack) -> Array:
    """The 16 bits that the final states carry (4.3)."""
    stack.finish()
    carried = states - (1 << 16)
    if np.any(carried >= 1 << 16):
        raise ValueError("a final state is out of range")
    return carried
