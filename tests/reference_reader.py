"""An independent reader of streams, written from native/FORMAT.md alone; clear rather than fast.

`read_stream` gives the array, `describe` what the writer chose for each chunk of a payload in groups. Both raise
`ValueError` where section 7 of the format speaks of corruption. Section numbers here and in the parts that this reader
imports are those of FORMAT.md.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference_base_delta import LineChunk, read_line_group
from reference_buckets import read_buckets
from reference_codebook import read_codebook
from reference_float_format import read_float_format
from reference_rans import LANES, TABLES, WordStack, decode_row, finish_states, table
from reference_s2fp8 import read_squeezed
from reference_smaq import read_smaq
from reference_stream import LINES, Cursor, Element, element_of, read_header

UINT8 = 3  # its id

Array = NDArray[Any]

CHUNK = 4096
CARRYING_ROWS = 8

TRANSFORMS = ("quantized", "integer", "exponent")
CODERS = ("none", "packed", "entropy")
MASKS = ("none", "blocks", "values")


@dataclass(frozen=True)
class Chunk:
    """What the writer chose for one chunk, and what its words say."""

    transform: str
    coder: str
    mask: str
    predictor: bool
    plain: bool
    shift: int
    base: int | None
    table: int
    drop: int
    exceptions: int
    elements: int
    coded_rows: int
    widths: tuple[int, ...]
    carrying: bool
    escapes: int = 0
    long_escapes: int = 0


@dataclass(eq=False)
class Side:
    """The side data of a chunk (3.2): `coded` are the places of its coded values, `low` the bits of 3.3."""

    chunk: Chunk
    coded: Array
    low: Array
    positions: Array
    values: Array


def read_bits(cursor: Cursor, widths: Sequence[int]) -> Array:
    """The bits of 3.3: row r of the result holds each lane's next `widths[r]` bits."""
    whole, rest = divmod(sum(widths), 32)
    words = cursor.numbers("<u4", LANES * whole).reshape(whole, LANES)
    if rest:
        words = np.vstack([words, cursor.numbers("<u2" if rest <= 16 else "<u4", LANES).astype("<u4")])
    bits = np.unpackbits(np.ascontiguousarray(words.T).view(np.uint8), axis=1, bitorder="little").astype(np.uint64)
    powers = np.uint64(1) << np.arange(64, dtype=np.uint64)
    rows, position = np.zeros((len(widths), LANES), np.uint64), 0
    for row, width in zip(rows, widths, strict=True):
        row[:] = bits[:, position : position + width] @ powers[:width]
        position += width
    return rows


def read_mask(cursor: Cursor, mask: str, rows: int) -> Array:
    """The places of a chunk's coded values, ascending: place 32 r + l is lane l of row r (3.2)."""
    if mask == "none":
        return np.arange(LANES * rows)
    live = np.flatnonzero(np.unpackbits(cursor.numbers("u1", 8), bitorder="little"))
    if live.size and 2 * live[-1] >= rows:
        raise ValueError("a mask bit beyond the chunk")
    if mask == "blocks":
        places = (64 * live[:, None] + np.arange(64)).ravel()
        return places[places < LANES * rows]
    values = np.unpackbits(cursor.numbers("u1", 8 * live.size), bitorder="little").reshape(-1, 64)
    block, place = np.nonzero(values)
    places = 64 * live[block] + place
    if places.size and places[-1] >= LANES * rows:
        raise ValueError("a mask bit beyond the chunk")
    return places


def read_exceptions(cursor: Cursor, count: int, elements: int, bits: int) -> tuple[Array, Array]:
    """Positions and bits of the exceptions (3.2)."""
    positions = cursor.numbers("<u2", count, align=4).astype(np.intp)
    if count and (np.any(np.diff(positions) <= 0) or positions[-1] >= elements):
        raise ValueError("positions of exceptions are not ascending or outside the chunk")
    return positions, cursor.numbers(f"<u{bits // 8}", count, align=4)


def check_choices(chunk: Chunk, element: Element, bound: float, word_bits: int) -> None:
    """Section 6, as far as the first four bytes of a chunk tell."""
    if chunk.transform == "quantized" and not (element.quantizable and bound):
        raise ValueError(f"a quantized chunk of {element.dtype} with bound {bound}")
    if chunk.transform == "exponent" and (element.exponent == 0 or chunk.base is None):
        raise ValueError(f"an exponent chunk of {element.dtype}, base {chunk.base}")
    if chunk.shift > word_bits or chunk.table >= TABLES:
        raise ValueError(f"shift {chunk.shift} or table {chunk.table} is too large")
    if chunk.drop > (element.mantissa if chunk.transform == "exponent" else 0):
        raise ValueError(f"drop {chunk.drop} in a chunk of {element.dtype}, {chunk.transform}")


def read_side(cursor: Cursor, elements: int, element: Element, bound: float, last_coded: bool) -> Side:
    """The side data of a chunk (3.2); `last_coded`: no later chunk of the group is entropy coded."""
    mode, shift, index, drop = cursor.take(4)
    transform, coder, mask = mode & 3, mode >> 2 & 3, mode >> 4 & 3
    if 3 in (transform, coder, mask) or drop & 128:
        raise ValueError(f"mode {mode:#04x}, drop {drop:#04x} use reserved bits")
    word_bits = element.word_bits
    base = int(cursor.numbers(f"<u{word_bits // 8}", 1)[0]) if shift & 128 else None
    count = int(cursor.numbers("<u4", 1)[0]) if drop & 64 else 0
    if drop & 64 and not 1 <= count <= 256:
        raise ValueError(f"{count} exceptions")
    coded = read_mask(cursor, MASKS[mask], -(-elements // LANES))
    rows = -(-coded.size // LANES)
    entropy = CODERS[coder] == "entropy"
    carrying = entropy and last_coded and rows > 0 and rows % CARRYING_ROWS == 0 and shift & 127 >= 2
    widths = cursor.numbers("u1", -(-rows // 8), align=4).tolist() if CODERS[coder] == "packed" else []
    chunk = Chunk(
        TRANSFORMS[transform], CODERS[coder], MASKS[mask], bool(mode & 64), bool(mode & 128), shift & 127, base, index,
        drop & 63, count, elements, rows, tuple(widths), carrying,
    )  # fmt: skip
    check_choices(chunk, element, bound, word_bits)
    if max(widths, default=0) > word_bits:
        raise ValueError(f"widths {widths}: at most {word_bits}")
    row_widths = [shift & 127] * rows if entropy else np.repeat(widths, 8)[:rows].tolist()
    if carrying:
        row_widths[-CARRYING_ROWS:] = [chunk.shift - 2] * CARRYING_ROWS
    low = read_bits(cursor, row_widths) if widths or entropy else np.zeros((rows, LANES), np.uint64)
    if carrying:
        low[-CARRYING_ROWS:] <<= 2
    return Side(chunk, coded, low, *read_exceptions(cursor, count, elements, element.bits))


def decode_symbols(side: Side, states: Array, stack: WordStack, word_bits: int) -> Array:
    """The words of an entropy-coded chunk (4.2); `states` move on, escapes are counted in its description."""
    rows, escapes, long_escapes = np.zeros_like(side.low), 0, 0
    for row in rows:
        row[:], escaped, long = decode_row(table(side.chunk.table), states, stack, word_bits)
        escapes += int(escaped.sum())
        long_escapes += int(long.sum())
    side.chunk = replace(side.chunk, escapes=escapes, long_escapes=long_escapes)
    return rows << np.uint64(side.chunk.shift) | side.low


def decode_words(sides: list[Side], cursor: Cursor, word_bits: int) -> list[Array]:
    """The words of the coded rows of a group's chunks; `cursor` stands behind the side data (3.1, 4.3)."""
    entropy = [side for side in sides if side.chunk.coder == "entropy"]
    if not entropy:
        cursor.finish()
        return [side.low for side in sides]
    stack = WordStack(cursor.take(max(len(cursor.data) - cursor.position - 4 * LANES, 0)))
    states = cursor.numbers("<u4", LANES).astype(np.uint64)
    found = [decode_symbols(side, states, stack, word_bits) if side in entropy else side.low for side in sides]
    carried = finish_states(states, stack)
    if entropy[-1].chunk.carrying:
        for j, row in enumerate(found[sides.index(entropy[-1])][-CARRYING_ROWS:]):
            row |= carried >> (2 * j) & 3
    elif carried.any():
        raise ValueError("a final state carries bits that belong to no chunk")
    return found


def from_integers(d: Array, chunk: Chunk, element: Element) -> Array:
    """Transform 1: signed differences to the elements' bits (3.4)."""
    q = undo_prediction(d, chunk).astype(element.unsigned)
    if element.exponent and chunk.predictor:
        q = np.where(q >> (element.bits - 1), q ^ element.unsigned.type((1 << element.bits - 1) - 1), q)
    return q


def from_levels(d: Array, chunk: Chunk, element: Element, bound: float) -> Array:
    """Transform 0: signed differences to the elements' bits (3.4)."""
    q = undo_prediction(d, chunk)
    signed = q.view(np.int64) if element.bits == 64 else q.astype(np.uint32).view(np.int32)
    real = element.real
    with np.errstate(all="ignore"):
        half = real(bound)
        if float(half) > bound:
            half = np.nextafter(half, real(0))
        half = real(min(float(half), float(np.finfo(real).max) / 2))
        step = half * real({"float16": 1.875, "bfloat16": 1.75}.get(element.dtype.name, 2))
        value: Array = signed.astype(real) * step
        return (value.astype(element.dtype) if element.parts == 1 else value).view(element.unsigned)


def undo_prediction(d: Array, chunk: Chunk) -> Array:
    """The integers q of 3.4, modulo 2^64."""
    base = np.uint64(chunk.base or 0)
    return np.cumsum(d, dtype=np.uint64) + base if chunk.predictor else d + base


def from_exponents(u: Array, chunk: Chunk, element: Element) -> Array:
    """Transform 2: difference of exponents, sign, mantissa to the elements' bits (3.4)."""
    t, mantissa = u << np.uint64(chunk.drop), element.mantissa
    exponent = (np.uint64(chunk.base or 0) - (t >> (mantissa + 1))) & ((1 << element.exponent) - 1)
    sign = t >> mantissa & 1
    bits = sign << (element.bits - 1) | exponent << mantissa | t & ((1 << mantissa) - 1)
    return bits.astype(element.unsigned)


def decode_elements(side: Side, words: Array, element: Element, bound: float) -> Array:
    """The bits of a chunk's elements from the words of its coded rows (3.4)."""
    chunk, modulus = side.chunk, (1 << element.word_bits) - 1
    coded = words.ravel()[: side.coded.size] & modulus
    if chunk.mask == "values" and chunk.transform != "exponent":
        coded = (coded + 1) & modulus
    u = np.zeros(-(-chunk.elements // LANES) * LANES, np.uint64)
    u[side.coded] = coded
    d = u if chunk.plain else u >> 1 ^ (np.uint64(0) - (u & 1))
    if chunk.transform == "quantized":
        bits = from_levels(d, chunk, element, bound)
    elif chunk.transform == "integer":
        bits = from_integers(d, chunk, element)
    else:
        bits = np.zeros(u.size, element.unsigned)
        bits[side.coded] = from_exponents(u[side.coded], chunk, element)
    bits = bits[: chunk.elements]
    bits[side.positions] = side.values
    return bits


def read_group(data: bytes, sizes: list[int], element: Element, bound: float) -> list[tuple[Chunk, Array]]:
    """The chunks of a group and their elements' bits (3.1)."""
    cursor, sides = Cursor(data), list[Side]()
    for size in reversed(sizes):
        last_coded = all(side.chunk.coder != "entropy" for side in sides)
        sides.insert(0, read_side(cursor, size, element, bound, last_coded))
    words = decode_words(sides, cursor, element.word_bits)
    bits = [decode_elements(side, found, element, bound) for side, found in zip(sides, words, strict=True)]
    return [(side.chunk, found) for side, found in zip(sides, bits, strict=True)]


def group_size(n: int) -> int:
    """Chunks per group, S (3)."""
    return 1 if n < 1 << 20 else 2 if n < 1 << 24 else 4


def read_groups(data: bytes, n: int, element: Element) -> Iterator[tuple[bytes, list[int], float]]:
    """The bytes of each group, the sizes of its chunks, and the payload's bound (3)."""
    cursor = Cursor(data)
    bound, chunks_per_group, entry = struct.unpack("<dII", cursor.take(16))
    if bound and not (element.quantizable and float(np.finfo(element.real).tiny) <= bound < math.inf):
        raise ValueError(f"bound {bound} of {element.dtype}")
    if chunks_per_group != group_size(n) or entry != (8 if n * element.bits // 8 >= 1 << 33 else 4):
        raise ValueError(f"{chunks_per_group} chunks per group, {entry} bytes per entry of the directory")
    ends = cursor.numbers(f"<u{entry}", -(-n // (CHUNK * chunks_per_group)), align=8).tolist()
    sizes = [min(CHUNK, n - start) for start in range(0, n, CHUNK)]
    groups = [sizes[start : start + chunks_per_group] for start in range(0, len(sizes), chunks_per_group)]
    for group, start, end in zip(groups, [0, *ends], ends, strict=False):
        yield cursor.take(4 * (end - start)), group, bound
    cursor.finish()


def read_payload(data: bytes, n: int, element: Element) -> list[tuple[Chunk, Array]]:
    """All chunks of a payload of codec 1 or 2 and their elements' bits (3)."""
    found = list[tuple[Chunk, Array]]()
    for group, sizes, bound in read_groups(data, n, element):
        found += read_group(group, sizes, element, bound)
    return found


def read_line_payload(data: bytes, n: int, element: Element) -> list[tuple[LineChunk, Array]]:
    """All chunks of a payload of codec 7 and their elements' bits (10)."""
    if Cursor(data).numbers("<f8", 1)[0] != 0:
        raise ValueError("lines have no bound")
    found = list[tuple[LineChunk, Array]]()
    for group, sizes, _ in read_groups(data, n, element):
        found += read_line_group(group, sizes, element, read_bits)
    return found


def read_bytes(data: bytes, n: int) -> Array:
    """The n elements of dtype uint8 of a payload (5: codes that are entropy coded)."""
    chunks = read_payload(data, n, element_of(UINT8))
    return np.concatenate([np.zeros(0, np.uint8), *(bits for _, bits in chunks)])


# What reads the payloads of section 5, by the codec's id.
OF_BUCKETS = {
    3: partial(read_buckets, read_bytes=read_bytes),
    4: read_smaq,
    5: read_float_format,
    6: read_squeezed,
    8: read_codebook,
}


def read_stream(data: bytes) -> Array:
    """The array of a stream.

    Raises:
        ValueError: the stream is corrupt, or newer than this reader.
    """
    stream = read_header(data)
    element = stream.element
    if stream.codec in OF_BUCKETS:
        read = OF_BUCKETS[stream.codec]
        return read(stream.payload, stream.elements, element.dtype, stream.configuration).reshape(stream.shape)
    read_groups = read_line_payload if stream.codec == LINES else read_payload
    chunks = read_groups(stream.payload, stream.elements, element)
    bits = np.concatenate([np.zeros(0, element.unsigned), *(bits for _, bits in chunks)])
    return bits.view(element.dtype).reshape(stream.shape)


def describe(data: bytes) -> list[Chunk]:
    """What the writer chose for each chunk of a stream of codec 1 or 2; raises as `read_stream`."""
    stream = read_header(data)
    return [chunk for chunk, _ in read_payload(stream.payload, stream.elements, stream.element)]


def describe_lines(data: bytes) -> list[LineChunk]:
    """What the writer chose for each chunk of a stream of codec 7; raises as `read_stream`."""
    stream = read_header(data)
    return [chunk for chunk, _ in read_line_payload(stream.payload, stream.elements, stream.element)]
