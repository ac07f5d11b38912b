"""Section 3: a payload of groups of chunks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .chunks import ENTROPY, Chunk, read_chunk
from .dtypes import Dtype
from .elements import elements_of
from .rans import Decoder
from .rows import LANES
from .source import U64, Source, need

CHUNK = 4096
STATES = 4 * LANES
Group = Callable[[Source, Dtype, list[int], float], list[U64]]


def sizes_of_chunks(n: int) -> list[int]:
    """How many elements each chunk has."""
    return [min(CHUNK, n - i) for i in range(0, n, CHUNK)]


def check_length(n: int, length: int) -> None:
    """Refuse a payload of n elements that is too short for its chunks, before any memory is taken for them."""
    chunks = -(-n // CHUNK)
    need(length >= 16 + 4 * -(-chunks // 4) + 4 * chunks, "length of the payload")


def read_payload(payload: bytes, dtype: Dtype, n: int, group: Group | None = None) -> U64:
    """The bits of the n elements of a payload; `group` reads the chunks of one group, by default as in section 3.1."""
    check_length(n, len(payload))
    source = Source(payload)
    bound = float(source.array("f8", 1)[0])
    check_bound(bound, dtype)
    per_group = 1 if n < 2**20 else 2 if n < 2**24 else 4
    entry = 8 if n * dtype.bits // 8 >= 2**33 else 4
    need(source.number(4) == per_group, "chunks per group")
    need(source.number(4) == entry, "bytes per entry of the directory")
    sizes = sizes_of_chunks(n)
    ends = source.words(entry, -(-len(sizes) // per_group)).tolist()
    source.align(8)
    parts = [np.zeros(0, np.uint64)]
    start = 0
    for g, end in enumerate(ends):
        need(end >= start, "the directory decreases")
        data = Source(source.take(4 * (end - start)))
        parts += (group or read_group)(data, dtype, sizes[g * per_group : (g + 1) * per_group], bound)
        need(data.left == 0, "bytes left over in a group")
        start = end
    need(source.left == 0, "bytes left over in the payload")
    return np.concatenate(parts)


def check_bound(bound: float, dtype: Dtype) -> None:
    """Refuse a bound that section 3 does not allow."""
    least = float(np.finfo(dtype.arithmetic).smallest_normal) if dtype.quantizable else math.inf
    need(bound == 0 or least <= bound < math.inf, "bound")


def read_group(source: Source, dtype: Dtype, sizes: list[int], bound: float) -> list[U64]:
    """The elements' bits of the group's chunks, of `sizes` elements."""
    chunks: list[Chunk] = []
    coded = False
    for m in reversed(sizes):
        chunks.insert(0, read_chunk(source, dtype, m, bound, last_coded=not coded))
        coded |= chunks[0].coder == ENTROPY
    none = np.zeros((0, LANES), np.uint64)
    if not coded:
        return [elements_of(chunk, none, bound) for chunk in chunks]
    words = source.words(2, max(source.left - STATES, 0) // 2)
    decoder = Decoder(words, source.words(4, LANES), wide=dtype.bits == 64)
    symbols = [decoder.rows(c.table, c.coded_rows) if c.coder == ENTROPY else none for c in chunks]
    carrying = [chunk for chunk in chunks if chunk.carrying]
    carried = decoder.end(bool(carrying))
    for chunk in carrying:
        chunk.bits[-8:] |= carried
    return [elements_of(chunk, s, bound) for chunk, s in zip(chunks, symbols, strict=True)]
