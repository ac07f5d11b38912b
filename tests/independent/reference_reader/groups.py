"""Section 3: a payload of groups of chunks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from .chunks import Chunk, read_chunk
from .dtypes import Dtype
from .elements import elements_of
from .missing import spread
from .rans import Decoder
from .rows import LANES
from .source import U64, Source, need

CHUNK = 4096
STATES = 4 * LANES
T = TypeVar("T")
Group = Callable[[Source, Dtype, list[int], float], list[tuple[T, U64]]]


def sizes_of_chunks(n: int) -> list[int]:
    """How many elements each chunk has."""
    return [min(CHUNK, n - i) for i in range(0, n, CHUNK)]


def check_length(n: int, length: int) -> None:
    """Refuse a payload of n elements that is too short for its chunks, before any memory is taken for them."""
    chunks = -(-n // CHUNK)
    need(length >= 16 + 4 * -(-chunks // 16) + 4 * chunks, "length of the payload")


def read_payload(payload: bytes, dtype: Dtype, n: int) -> U64:
    """The bits of the n elements of a payload."""
    return joined(read_chunks(payload, dtype, n, read_group))


def joined(chunks: list[tuple[T, U64]]) -> U64:
    """The elements' bits of all chunks."""
    return np.concatenate([np.zeros(0, np.uint64), *(bits for _, bits in chunks)])


def read_chunks(
    payload: bytes, dtype: Dtype, n: int, group: Group[T], bounded: bool = True, per_group: int = 0
) -> list[tuple[T, U64]]:
    """The chunks of a payload of n elements, each with its elements' bits.

    `group` reads those of one group, which has `per_group` chunks; the bound is 0 unless `bounded`.
    """
    check_length(n, len(payload))
    source = Source(payload)
    bound = float(source.array("f8", 1)[0])
    check_bound(bound, dtype, bounded)
    weight = 2 if dtype.bits == 8 else 1
    per_group = per_group or (1 if n * weight < 2**18 else 2 if n * weight < 2**20 else 4)
    entry = 8 if n * dtype.bits // 8 >= 2**33 else 4
    need(source.number(4) == per_group, "chunks per group")
    need(source.number(4) == entry, "bytes per entry of the directory")
    sizes = sizes_of_chunks(n)
    ends = source.words(entry, -(-len(sizes) // per_group)).tolist()
    source.align(8)
    chunks: list[tuple[T, U64]] = []
    start = 0
    for g, end in enumerate(ends):
        need(end >= start, "the directory decreases")
        data = Source(source.take(4 * (end - start)))
        chunks += group(data, dtype, sizes[g * per_group : (g + 1) * per_group], bound)
        need(data.left == 0, "bytes left over in a group")
        start = end
    need(source.left == 0, "bytes left over in the payload")
    return chunks


def check_bound(bound: float, dtype: Dtype, bounded: bool) -> None:
    """Refuse a bound that section 3 does not allow."""
    least = float(np.finfo(dtype.arithmetic).smallest_normal) if dtype.quantizable and bounded else math.inf
    need(bound == 0 or least <= bound < math.inf, "bound")


def read_group(source: Source, dtype: Dtype, sizes: list[int], bound: float) -> list[tuple[Chunk, U64]]:
    """The group's chunks, of `sizes` elements, with their elements' bits (section 3.1)."""
    chunks: list[Chunk] = []
    coded = False
    entries = np.zeros(0, np.uint64)
    frequencies: tuple[int, ...] = ()
    for m in reversed(sizes):
        chunks.insert(0, read_chunk(source, dtype, m, bound, not coded, entries, frequencies))
        coded |= chunks[0].coder == "entropy"
        entries = chunks[0].entries if chunks[0].own_entries else entries
        frequencies = chunks[0].frequencies if chunks[0].own_frequencies else frequencies
    none = np.zeros((0, LANES), np.uint64)
    if not coded:
        return [(chunk, spread(chunk.missing, elements_of(chunk, none, bound))) for chunk in chunks]
    words = source.words(2, max(source.left - STATES, 0) // 2)
    decoder = Decoder(words, source.words(4, LANES), wide=dtype.bits == 64)
    symbols = [read_symbols(decoder, chunk) if chunk.coder == "entropy" else none for chunk in chunks]
    carrying = [chunk for chunk in chunks if chunk.carrying]
    carried = decoder.end(bool(carrying), any(chunk.dry_rows for chunk in chunks))
    for chunk in carrying:
        chunk.bits[-8:] |= carried
    found = zip(chunks, symbols, strict=True)
    return [(chunk, spread(chunk.missing, elements_of(chunk, own, bound))) for chunk, own in found]


def read_symbols(decoder: Decoder, chunk: Chunk) -> U64:
    """The symbols of a chunk's coded rows, shape (C, 32)."""
    escapes, long_escapes = decoder.escapes, decoder.long_escapes
    if chunk.has_contexts:
        symbols = decoder.rows_by_contexts(chunk.tables, chunk.coded_rows, chunk.dry_rows)
    elif chunk.has_classes:
        symbols = decoder.rows_by_classes(chunk.frequencies, chunk.told, chunk.coded_rows, chunk.dry_rows)
    else:
        symbols = decoder.rows(chunk.table_of, chunk.coded_rows, chunk.dry_rows)
    chunk.escapes, chunk.long_escapes = decoder.escapes - escapes, decoder.long_escapes - long_escapes
    return symbols
