"""Section 10: arrays coded against a reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .chunks import Chunk
from .dtypes import DTYPES, Dtype
from .groups import joined, read_chunks, read_group
from .predicted import FULL_SCALE, LARGEST_CODE, elements, numbers, read_bound, signed
from .rows import LANES, low_bits
from .source import U64, Source, WrongReferenceError, need

WAYS = ("plain", "difference", "exclusive or")
PARTS = 4
LISTED_OF, EXACT_OF = 4, 8  # at most one element in so many has a code in the list, or is exact
CHUNKS_OF_LISTS = 4  # in a group
SIGNED = {8: DTYPES[2], 16: DTYPES[4], 32: DTYPES[6], 64: DTYPES[8]}
UNSIGNED = {8: DTYPES[3], 16: DTYPES[5], 32: DTYPES[7], 64: DTYPES[9]}

BLOCK = 1 << 16  # bytes
ROW = 4 * LANES

Chunks = list[tuple[Chunk, U64]]


class Comparison(NamedTuple):
    """What the payload of an array with a reference says in front of its parts.

    `hash` is the reference's; `codes` and `exact` are numbers of elements; `lengths` are in bytes: of the codes, their
    gaps, the exact elements and their gaps.
    """

    bound: float
    hash: int
    way: str
    is_list: bool
    codes: int
    exact: int
    lengths: tuple[int, ...]


class Parts(NamedTuple):
    """A payload taken apart: the chunks of each part, with their elements' bits; none where a part is not there."""

    comparison: Comparison
    codes: Chunks
    code_gaps: Chunks
    exact: Chunks
    exact_gaps: Chunks


def read_comparison(source: Source, dtype: Dtype, n: int) -> Comparison:
    """Take what stands in front of the parts (section 10.1)."""
    bound = read_bound(source, dtype)
    stored = source.number(8)
    way, is_list, reserved = source.number(1), source.number(1), source.number(6)
    need(way < len(WAYS) and is_list <= 1 and reserved == 0, "header of an array with a reference")
    codes, exact = source.number(8), source.number(8)
    lengths = tuple(source.words(8, PARTS).tolist())
    found = Comparison(bound, stored, WAYS[way], bool(is_list), codes, exact, lengths)
    need(bound == 0 or found.way == "difference", "bound of such a way")
    need(codes <= n // LISTED_OF and exact <= n // EXACT_OF, "number of codes or exact elements")
    need(found.is_list or codes == 0, "number of codes that are no list")
    need(bound > 0 or exact == 0, "exact elements without a bound")
    need(found.way != "plain" or not is_list, "a list in a plain array")
    there = (found.way == "plain" or not is_list or codes > 0, codes > 0, exact > 0, exact > 0)
    need(tuple(length > 0 for length in lengths) == there, "parts of an array with a reference")
    return found


def read_parts(payload: bytes, dtype: Dtype, n: int) -> Parts:
    """The parts of a payload."""
    source = Source(payload)
    found = read_comparison(source, dtype, n)
    parts = []
    for length in found.lengths:
        if length:
            source.align(8)
        parts.append(source.take(length))
    need(source.left == 0, "bytes left over behind the parts")
    if found.way == "plain":
        return Parts(found, read_chunks(parts[0], dtype, n, read_group), [], [], [])
    gap = UNSIGNED[64 if n > 2**32 else 32]
    if found.is_list:
        codes = read_list(parts[0], code_dtype(found, dtype), found.codes)
    else:
        codes = read_chunks(parts[0], code_dtype(found, dtype), n, read_group, bounded=False)
    return Parts(
        found,
        codes,
        read_list(parts[1], gap, found.codes),
        read_list(parts[2], dtype, found.exact),
        read_list(parts[3], gap, found.exact),
    )


def code_dtype(found: Comparison, dtype: Dtype) -> Dtype:
    """The type of the codes."""
    width = dtype.word if found.bound else dtype.bits
    return (SIGNED if found.way == "difference" else UNSIGNED)[width]


def read_list(payload: bytes, dtype: Dtype, count: int) -> Chunks:
    """The chunks of a part of `count` elements, none where it has no bytes."""
    if not payload:
        return []
    return read_chunks(payload, dtype, count, read_group, bounded=False, per_group=CHUNKS_OF_LISTS)


def places_of(gaps: U64, n: int) -> NDArray[np.intp]:
    """The places of a list's elements (section 10.2)."""
    need(bool((gaps < n).all()), "a gap beyond the array")
    places = np.cumsum(gaps + np.uint64(1), dtype=np.uint64) - np.uint64(1)  # the first that is too large is below 2^61
    need(bool((places < n).all()), "a place beyond the array")
    return places.astype(np.intp)


def codes_of(parts: Parts, dtype: Dtype, n: int) -> U64:
    """All n codes, as bits of the codes' type."""
    stored = joined(parts.codes)
    if not parts.comparison.is_list:
        return stored
    own = code_dtype(parts.comparison, dtype)
    negative = stored >> np.uint64(own.bits - 1) == 1
    keeps = negative & (parts.comparison.way == "difference")
    codes = np.zeros(n, np.uint64)
    codes[places_of(joined(parts.code_gaps), n)] = np.where(keeps, stored, stored + np.uint64(1)) & low_bits(own.bits)
    return codes


def read_referenced(payload: bytes, dtype: Dtype, n: int, reference: bytes) -> U64:
    """The bits of the n elements of an array with a reference, whose bytes are given."""
    parts = read_parts(payload, dtype, n)
    if parts.comparison.hash != content_hash(reference):
        raise WrongReferenceError("another reference than the writer's")
    if parts.comparison.way == "plain":
        return joined(parts.codes)
    r = Source(reference).words(dtype.bits // 8, n)
    with np.errstate(all="ignore"):
        found = decoded(parts.comparison, dtype, r, codes_of(parts, dtype, n))
    found[places_of(joined(parts.exact_gaps), n)] = joined(parts.exact)
    return found


def decoded(comparison: Comparison, dtype: Dtype, r: U64, codes: U64) -> U64:
    """The elements' bits of the reference's and of all codes (section 10.3)."""
    if comparison.way == "exclusive or":
        return r ^ codes
    if comparison.bound == 0:
        return r + codes & low_bits(dtype.bits)
    p = numbers(r, dtype)
    p = np.where(np.isfinite(p), p, dtype.arithmetic(0))
    return np.where(codes == 0, r, elements(p, codes, comparison.bound, FULL_SCALE, dtype))


def content_hash(data: bytes) -> int:
    """The hash of a reference's bytes (section 10.4)."""
    rows = -(-len(data) // ROW)
    blocks = -(-len(data) // BLOCK)
    padded = data + bytes(blocks * BLOCK - len(data))
    words = np.frombuffer(padded, "<u4").astype(np.uint32).reshape(blocks, BLOCK // ROW, LANES)
    a, b = np.full((blocks, LANES), 0x165667B1, np.uint32), np.full((blocks, LANES), 0x27D4EB2F, np.uint32)
    for j in range(min(rows, BLOCK // ROW)):
        having = slice(-(-(rows - j) // (BLOCK // ROW)))  # the blocks that have this row
        row = words[having, j]
        a[having] = rotated(a[having] ^ row, 13) * np.uint32(0x9E3779B1)
        b[having] = rotated((b[having] + row) * np.uint32(0x85EBCA77), 17)
    g = np.arange(blocks * LANES).astype(np.uint32).reshape(blocks, LANES)
    u = mixed(a + g * np.uint32(0x9E3779B1))
    v = mixed((b ^ u) + g * np.uint32(0x85EBCA77))
    return int((u.astype(np.uint64) + (v.astype(np.uint64) << np.uint64(32))).sum(dtype=np.uint64))


def rotated(z: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    """Words rotated to the left."""
    return z << np.uint32(bits) | z >> np.uint32(32 - bits)


def mixed(z: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The last step of MurmurHash3."""
    z = (z ^ z >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    z = (z ^ z >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return z ^ z >> np.uint32(16)


def has_unspecified_elements(parts: Parts, dtype: Dtype, n: int) -> bool:
    """Whether there are codes so large that the page leaves open what they mean."""
    if dtype.bits < 64:
        return False
    if parts.comparison.way == "plain":
        return any(chunk.transform == "quantized" for chunk, _ in parts.codes)
    if parts.comparison.bound == 0:
        return False
    codes = signed(codes_of(parts, dtype, n), dtype)
    return bool(((codes > LARGEST_CODE) | (codes < -LARGEST_CODE)).any())
