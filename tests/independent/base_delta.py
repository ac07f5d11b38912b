"""Section 6: the lines of codec 7."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .dtypes import Dtype
from .groups import read_payload
from .rows import LANES, lane_bits, low_bits, unpack
from .source import U64, Source, need

RAW, LINES, ZERO = range(3)
RAW_MODE = 7
BASES = {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, RAW_MODE: 0}
SELECTOR = {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, RAW_MODE: 0}
WITH_ZERO = (0, 2, 4)


def read_lines(payload: bytes, dtype: Dtype, n: int) -> U64:
    """The bits of the n elements of a payload of codec 7."""
    return read_payload(payload, dtype, n, read_group)


def read_group(source: Source, dtype: Dtype, sizes: list[int], bound: float) -> list[U64]:
    """The elements' bits of the group's chunks."""
    need(bound == 0, "bound")
    return [read_chunk(source, dtype, m) for m in sizes]


def read_chunk(source: Source, dtype: Dtype, m: int) -> U64:
    """The bits of the m elements of a chunk."""
    head, shift, reserved = source.number(1), source.number(1), source.number(2)
    kind, sign_last, masks = head & 3, head >> 2 & 1, head >> 3 & 1
    need(kind != 3 and head >> 4 == 0 and reserved == 0, "reserved bits")
    need(shift < dtype.bits, "shift")
    need(kind == LINES or (head == kind and shift == 0), "bits of a raw or zero chunk")
    rows = -(-m // LANES)
    if kind == ZERO:
        return np.zeros(m, np.uint64)
    if kind == RAW:
        bits = unpack(source, np.full(rows, dtype.bits, np.uint64))
        source.align(4)
        return bits.ravel()[:m]
    places = read_mask(source, rows) if masks else np.arange(rows * LANES)
    b = dtype.bits - shift
    words = np.zeros(rows * LANES, np.uint64)
    words[places] = coded_words(source, dtype, b, len(places))
    if sign_last:
        words = words >> np.uint64(1) | (words & np.uint64(1)) << np.uint64(b - 1)
    return words[:m] << np.uint64(shift)


def read_mask(source: Source, rows: int) -> NDArray[np.intp]:
    """Take the masks; returns the places of the coded words."""
    live, masked = lane_bits(source.words(4, 4)).reshape(2, 64)
    lines = -(-rows // 2)
    need(not live[lines:].any(), "a line beyond the chunk")
    need(not (masked & ~live).any(), "a masked line that is not live")
    coded = np.repeat(live[:, None], 64, axis=1)
    coded[masked] = lane_bits(source.words(4, 2 * int(masked.sum()))).reshape(-1, 64)
    inside = np.arange(64 * 64).reshape(64, 64) < rows * LANES
    need(not (coded & ~inside)[masked].any(), "a masked word beyond the chunk")
    return np.flatnonzero(coded & inside)


def coded_words(source: Source, dtype: Dtype, b: int, count: int) -> U64:
    """The `count` coded words, of b bits."""
    rows = -(-count // LANES)
    tags = source.take(-(-rows // 2))
    source.align(4)
    modes = [tag >> 5 for tag in tags]
    need(all(mode in BASES for mode in modes), "mode of a line")
    need(all(tag & 31 == 0 for tag in tags if tag >> 5 == RAW_MODE), "tag of a raw line")
    deltas = [(tag & 31) * (2 if dtype.bits == 64 else 1) for tag in tags]
    widths = [b if mode == RAW_MODE else d + SELECTOR[mode] for mode, d in zip(modes, deltas, strict=True)]
    need(max(widths, default=0) <= dtype.word, "width of a row")
    bases = source.words(dtype.bits // 8, sum(BASES[mode] for mode in modes)).tolist()
    source.align(4)
    packed = unpack(source, np.repeat(np.array(widths, np.uint64), 2)[:rows])
    out = np.empty_like(packed)
    for j, (mode, d) in enumerate(zip(modes, deltas, strict=True)):
        own, bases = bases[: BASES[mode]], bases[BASES[mode] :]
        line = packed[2 * j : 2 * j + 2]
        out[2 * j : 2 * j + 2] = line if mode == RAW_MODE else line_words(line, mode, d, own)
    return out.ravel()[:count] & low_bits(b)


def line_words(packed: U64, mode: int, d: int, bases: list[int]) -> U64:
    """The words of one line, modulo 2^64."""
    candidates = [0, *bases] if mode in WITH_ZERO else bases
    candidates += candidates[-1:] * (4 - len(candidates))
    selector = (packed >> np.uint64(d)).astype(np.intp)
    delta = packed & low_bits(d)
    negative = (delta >> np.uint64(d - 1) if d else delta) == 1
    signed = np.where(negative, delta | ~low_bits(d), delta)
    return np.array(candidates, np.uint64)[selector] + signed
