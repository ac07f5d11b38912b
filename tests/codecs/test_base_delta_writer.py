"""BaseDelta's choices: every byte of a chunk is predicted by a writer made from FORMAT.md, section 6.4, alone."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import arrcomp
import checks
import reference_reader
from arrcomp import BaseDelta
from checks import DTYPES, Array, bits_of, numpy_dtype

from ..arrays.test_conformance import mixture

pytestmark = pytest.mark.arithmetic

LANES = 32
BASES = {0: 0, 1: 1, 2: 1, 3: 2, 4: 2}
SELECTOR_BITS = {0: 0, 1: 0, 2: 1, 3: 1, 4: 2}
RAW = 7
CODECS = [
    BaseDelta(),
    BaseDelta(bases=2),
    BaseDelta(bases=2, delta_bits=(3, 5, 8, 16, 24, 33)),
    BaseDelta(delta_bits=(6, 63)),
]


class Words(NamedTuple):
    """What a chunk's words have in common: their bits, those of an element, and their order."""

    bits: int
    width: int
    signed: bool

    def ordered(self, x: int) -> int:
        """A word as the number that it stands for."""
        return x - (1 << self.bits) if self.signed and x >> (self.bits - 1) else x


class Line(NamedTuple):
    """How a line is coded."""

    cost: int
    mode: int
    width: int
    bases: list[int]


def half(width: int) -> int:
    return (1 << width) >> 1


def in_reach(x: int, candidate: int, width: int, words: Words) -> bool:
    return (x - candidate + half(width)) % (1 << words.bits) < 1 << width


def bases_of(line: Sequence[int], mode: int, width: int, words: Words) -> list[int] | None:
    """The bases with which a line can be coded so, or None."""
    if mode == 0 and not words.signed:
        return [] if all(x < max(half(width), 1) for x in line) else None
    left = [x for x in line if mode % 2 or not in_reach(x, 0, width, words)]
    bases = list[int]()
    for _ in range(BASES[mode]):
        least = min(map(words.ordered, left), default=0)
        bases.append((least + half(width)) % (1 << words.bits))
        left = [x for x in left if words.ordered(x) - least >= 1 << width]
    return None if left else bases


def allowed_widths(codec: BaseDelta, words: Words) -> list[int]:
    widths: Any = range(64) if codec.delta_bits is None else (0, *codec.delta_bits)
    step = 2 if words.width == 64 else 1
    return sorted({-(-width // step) * step for width in widths if -(-width // step) < 32})


def code_line(line: Sequence[int], rows: int, codec: BaseDelta, words: Words) -> Line:
    best = Line(words.bits * rows * LANES, RAW, 0, [])
    for mode in range(5):
        if BASES[mode] > codec.bases:
            continue
        for width in allowed_widths(codec, words):
            cost = (width + SELECTOR_BITS[mode]) * rows * LANES + BASES[mode] * words.width
            if cost >= best.cost:
                break
            bases = bases_of(line, mode, width, words)
            if bases is not None:
                best = Line(cost, mode, width, bases)
                break
    return best


def places(line: Sequence[int], code: Line, words: Words) -> tuple[list[int], int]:
    """What each place of a line holds, and how many bits."""
    if code.mode == RAW:
        return list(line), words.bits
    candidates = ([] if code.mode % 2 else [0]) + code.bases
    held = []
    for x in line:
        selector = next(i for i, c in enumerate(candidates) if in_reach(x, c, code.width, words))
        held.append((x - candidates[selector]) % (1 << code.width) | selector << code.width)
    return held, code.width + SELECTOR_BITS[code.mode]


def pack(rows: list[tuple[list[int], int]]) -> bytes:
    """Rows of 32 numbers of so many bits (FORMAT.md, section 3.3)."""
    lanes, total = [0] * LANES, 0
    for row, bits in rows:
        lanes = [lane | x << total for lane, x in zip(lanes, row, strict=True)]
        total += bits
    words, rest = divmod(total, 32)
    parts = [np.array([lane >> 32 * j & 0xFFFFFFFF for lane in lanes], "<u4").tobytes() for j in range(words)]
    last = [sum((lane >> 32 * words + bit & 1) << place for place, lane in enumerate(lanes)) for bit in range(rest)]
    return b"".join([*parts, np.array(last, "<u4").tobytes()])


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def in_rows(numbers: list[int]) -> list[list[int]]:
    full = numbers + numbers[-1:] * (-len(numbers) % LANES)
    return [full[i : i + LANES] for i in range(0, len(full), LANES)]


def word_of(bits: int, shift: int, sign_last: bool, width: int) -> int:
    x, b = bits >> shift, width - shift
    return x << 1 & (1 << b) - 1 | x >> (b - 1) if sign_last else x


def choose_masks(rows: list[list[int]], words: Words) -> tuple[int, int, bytes, list[int]] | None:
    """The live and the masked lines, the latters' words, and the coded words; None where masks do not pay."""
    live = masked = 0
    gain, row_masks, coded = 0, b"", list[int]()
    for j in range(0, len(rows), 2):
        line = [x for row in rows[j : j + 2] for x in row]
        zeros = line.count(0)
        if zeros == len(line):
            gain += 8
            continue
        live |= 1 << j // 2
        magnitudes = [x if words.ordered(x) >= 0 else ~words.ordered(x) for x in line]
        saved = zeros * functools.reduce(operator.or_, magnitudes).bit_length() - 64
        if zeros and saved > 0:
            gain += saved
            masked |= 1 << j // 2
            bits = sum(1 << i for i, x in enumerate(line) if x)
            row_masks += bits.to_bytes(8, "little")
            line = [x for x in line if x]
        coded += line
    return (live, masked, row_masks, coded) if gain > 128 else None


def write_chunk(array: Array, codec: BaseDelta) -> bytes:
    """A chunk's bytes (FORMAT.md, section 6)."""
    name = "bfloat16" if array.dtype == ml_dtypes.bfloat16 else array.dtype.name
    element = reference_reader.DTYPES[DTYPES.index(name) + 1]
    width = element.bits
    rows = in_rows([int(x) for x in bits_of(array)])
    every = [x for row in rows for x in row]
    some = functools.reduce(operator.or_, every)
    if some == 0:
        return bytes([2, 0, 0, 0])
    shift = (some & -some).bit_length() - 1
    signs = {x >> (width - 1) for x in every}
    sign_last = element.exponent > 0 and len(signs) == 2
    words = Words(width - shift, width, array.dtype.kind == "i" or name == "int4")
    rows = [[word_of(x, shift, sign_last, width) for x in row] for row in rows]
    masks = choose_masks(rows, words)
    head, coded = b"", [x for row in rows for x in row]
    if masks is not None:
        live, masked, row_masks, coded = masks
        head = live.to_bytes(8, "little") + masked.to_bytes(8, "little") + row_masks
    coded_rows, tags, bases, packed = in_rows(coded), b"", b"", list[tuple[list[int], int]]()
    for j in range(0, len(coded_rows), 2):
        lines = coded_rows[j : j + 2]
        code = code_line([x for row in lines for x in row], len(lines), codec, words)
        tags += bytes([code.mode << 5 | code.width // (2 if width == 64 else 1)])
        bases += b"".join(base.to_bytes(width // 8, "little") for base in code.bases)
        packed += [places(row, code, words) for row in lines]
    flags = bytes([1 | sign_last << 2 | (masks is not None) << 3, shift, 0, 0])
    found = flags + head + padded(tags) + padded(bases) + pack(packed)
    raw = bytes(4) + pack([(row, width) for row in in_rows([int(x) for x in bits_of(array)])])
    return found if len(found) < len(raw) else raw


def inputs(name: str) -> list[Array]:
    """Pieces of at most a chunk: of mixed data, of zeros among clusters, of two clusters."""
    mixed, rng = mixture(name), np.random.default_rng(12)
    centres = np.array([0, 3, 100, -101])[rng.integers(0, 4, 700)] + rng.integers(-3, 3, 700)
    if np.dtype(numpy_dtype(name)).kind == "u" or name == "bool":
        centres = np.abs(centres)
    with np.errstate(all="ignore"):
        clusters: Array = (centres * (rng.random(700) < 0.6)).astype(numpy_dtype(name))
    return [mixed[:500], mixed[8900:9700], mixed[13_900:14_100], mixed[-600:], mixed[:1], clusters, clusters[200:233]]


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("name", DTYPES)
def test_every_byte_is_predicted(name: str, codec: BaseDelta) -> None:
    for array in inputs(name):
        stream = checks.stream_of(array, codec)
        start, end = checks.payload_span(stream)
        assert stream[start + 24 : end] == write_chunk(array, codec)


def test_the_writer_reaches_what_the_format_has() -> None:
    codec, kinds, modes, flags = BaseDelta(bases=2), set[int](), set[int](), 0
    for name in DTYPES:
        for array in [*inputs(name), np.zeros(9, numpy_dtype(name))]:
            for chunk in reference_reader.describe_lines(arrcomp.compress(array, codec).to_bytes()):
                kinds.add(("raw", "lines", "zero").index(chunk.kind))
                modes.update(line.mode for line in chunk.lines)
                flags |= chunk.sign_last | (chunk.masked > 0) << 1
    assert (kinds, modes, flags) == ({0, 1, 2}, {0, 1, 2, 3, 4, 7}, 3)
