"""Section 3.3: rows of 32 lanes, packed with a width for each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .source import U64, Source

LANES = 32


def low_bits(width: int | U64) -> U64:
    """Words with the `width` lowest bits set, 0 to 64."""
    width = np.asarray(width, np.uint64)
    ones = ~np.uint64(0) >> (np.uint64(64) - np.maximum(width, np.uint64(1)))
    return np.asarray(np.where(width == 0, np.uint64(0), ones))


def unpack(source: Source, widths: Sequence[int] | U64, *, codes: bool = False) -> U64:
    """Take rows of 32 numbers, of widths[r] bits (0 to 64) in row r; returns them, shape (rows, 32).

    `codes`: the last bits are in words of each lane (section 5).
    """
    width = np.asarray(widths, np.uint64)
    starts = np.concatenate([np.zeros(1, np.uint64), np.cumsum(width, dtype=np.uint64)])
    full, rest = divmod(int(starts[-1]), 32)
    words = source.words(4, LANES * full)
    if codes and rest:
        words = np.concatenate([words, source.words(2 if rest <= 16 else 4, LANES)])
    elif rest:
        places = np.arange(rest, dtype=np.uint64)[:, None]
        words = np.concatenate(
            [words, (lane_bits(source.words(4, rest)).astype(np.uint64) << places).sum(0, np.uint64)]
        )
    words = np.concatenate([words, np.zeros(3 * LANES, np.uint64)]).reshape(-1, LANES)
    first = (starts[:-1] >> np.uint64(5)).astype(np.intp)
    offset = (starts[:-1] & np.uint64(31))[:, None]
    below = words[first] | words[first + 1] << np.uint64(32)
    above = words[first + 2] << (np.uint64(63) - offset) << np.uint64(1)
    return np.asarray((below >> offset | above) & low_bits(width)[:, None])


def lane_bits(words: U64) -> np.ndarray:
    """The 32 bits of each word, lowest first, shape (words, 32), bool."""
    return (words[:, None] >> np.arange(LANES, dtype=np.uint64) & np.uint64(1)).astype(bool)
