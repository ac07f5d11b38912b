"""What writers chose for chunks, from their side data (native/FORMAT.md, sections 3.1 and 3.2).

A group begins with the side data of its last chunk, which is found without decoding anything: that one is counted.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CHUNK, ROWS, TABLES = 4096, 128, 192
_BITS = {10: 16, 11: 16, 12: 32, 13: 64}  # of an element, by the dtype's id: floats
_TRANSFORMS = ("quantized", "integer", "exponent", "numbered")
_CODERS = ("none", "packed", "entropy")
_MASKS = ("none", "blocks", "values", "marks")

MODES = (
    *(f"{transform}, {coder}" for transform in _TRANSFORMS for coder in _CODERS),
    *(f"mask: {mask}" for mask in _MASKS),
    *("first differences", "no prediction", "plain map", "zigzag map"),
    *("exponents with signs", "exponents without signs"),
    *("base of integers", "exceptions", "missing elements", "dropped bits", "shift", "no shift"),
    *("carrying states", "dry rows", "states that carry nothing", "raw", "words above 32 bits"),
    *(f"groups of {chunks}" for chunks in (1, 2, 4)),
)


def modes_of(stream: bytes) -> Counter[str]:
    """How often each of MODES, and each "table T", was chosen for the last chunk of a group, where that is a full one.

    Args:
        stream: of `Lossless` or `ErrorBounded` and float16, bfloat16, float32 or float64; at least one value.
    """
    data, starts, bits, chunks_per_group = _groups(stream)
    head = data[starts[:, None] + np.arange(4)]
    found = Counter({name: int(np.count_nonzero(chosen)) for name, chosen in _named(data, starts, head, bits)})
    found[f"groups of {chunks_per_group}"] += len(starts)
    tables = np.bincount(head[head[:, 0] >> 2 & 3 == 2, 2], minlength=TABLES)
    found.update({f"table {number}": int(count) for number, count in enumerate(tables)})
    return +found


def _groups(stream: bytes) -> tuple[Array, Array, int, int]:
    """Bytes, where groups begin whose last chunk is full, bits of an element, chunks per group."""
    dimensions, configuration = stream[8], struct.unpack_from("<H", stream, 10)[0]
    n = int(np.prod(np.frombuffer(stream, "<u8", dimensions, 24)))
    payload = -(-(24 + 8 * dimensions + configuration) // 8) * 8
    chunks_per_group, entry = struct.unpack_from("<II", stream, payload + 8)
    groups = -(-n // (CHUNK * chunks_per_group))
    ends = np.frombuffer(stream, f"<u{entry}", groups, payload + 16).astype(np.int64)
    directory_end = payload + 16 + -(-entry * groups // 8) * 8
    starts = directory_end + 4 * np.concatenate([[0], ends[:-1]])
    return np.frombuffer(stream, np.uint8), starts[: groups - (n % CHUNK != 0)], _BITS[stream[7]], chunks_per_group


def _named(data: Array, starts: Array, head: Array, bits: int) -> Iterator[tuple[str, Array]]:
    """Each name, and of which chunks it is true."""
    mode, shift, drop = head[:, 0], head[:, 1], head[:, 3]
    transform, coder, mask = mode & 3, mode >> 2 & 3, mode >> 4 & 3
    for t, name in enumerate(_TRANSFORMS):
        yield from ((f"{name}, {_CODERS[c]}", (transform == t) & (coder == c)) for c in range(3))
    yield from ((f"mask: {name}", mask == m) for m, name in enumerate(_MASKS))
    yield "exponents with signs", (transform == 2) & (mode < 128)
    yield "exponents without signs", (transform == 2) & (mode >= 128)
    integers, entropy, based = (transform != 2) & (coder != 0), coder == 2, shift & 128 != 0
    for bit, name, other in ((64, "first differences", "no prediction"), (128, "plain map", "zigzag map")):
        yield name, integers & (mode & bit != 0)
        yield other, integers & (mode & bit == 0)
    yield "base of integers", integers & based
    yield "exceptions", drop & 64 != 0
    yield "dropped bits", (transform == 2) & (drop & 63 != 0)
    yield "shift", entropy & (shift & 127 != 0)
    yield "no shift", entropy & (shift & 127 == 0)
    misses = drop & 128 != 0
    yield "missing elements", misses
    after = starts + 4 + np.where(based, 8 if bits == 64 else 4, 0)
    present, missing_bytes = _missing(data, after, misses, bits)
    after = after + missing_bytes
    after = after + _dictionary_bytes(data, after, transform == 3, bits) + np.where(drop & 64 != 0, 4, 0)
    carrying = entropy & (shift & 127 >= 2) & (_coded_rows(data, after, mask, -(-present // 32)) % 8 == 0)
    yield "carrying states", carrying
    dry = (transform != 2) & (drop & 63 != 0)
    yield "dry rows", dry
    yield "states that carry nothing", entropy & ~carrying & ~dry
    plain = (coder == 1) & (mask == 0) & ~misses
    of_all = (shift & 127)[plain, None]
    widths = np.where(of_all > 0, of_all, _at(data, after, plain, ROWS // 8))
    yield "raw", (transform[plain] == 1) & (widths >= bits).all(axis=1)
    yield "words above 32 bits", (widths > 32).any(axis=1)


def _at(data: Array, places: Array, chosen: Array, count: int) -> Array:
    """That many bytes at the places chosen."""
    found: Array = data[places[chosen, None] + np.arange(count)]
    return found


def _missing(data: Array, after: Array, misses: Array, bits: int) -> tuple[Array, Array]:
    """Elements of each chunk that are present, and the bytes that tell which are missing (section 3.5)."""
    present, taken = np.full(len(misses), CHUNK), np.zeros(len(misses), np.int64)
    fields = _fields(data, after, misses)
    marks, shift = fields >> 16 & 4095, fields >> 28
    coded = np.where(marks > 0, marks * shift + marks + (CHUNK - 1 >> np.minimum(shift, 11)) + 1, 0)
    bits_of_marks = np.where(shift == 15, CHUNK, coded)
    fill = np.where(fields >> 12 & 1 == 1, 0, 8 if bits == 64 else 4)
    present[misses], taken[misses] = fields & 4095, 4 + fill + -(-bits_of_marks // 32) * 4
    return present, taken


def _dictionary_bytes(data: Array, after: Array, chosen: Array, bits: int) -> Array:
    """The bytes of each chunk's dictionary (section 3.6): multiples have no entries."""
    taken = np.zeros(len(chosen), np.int64)
    taken[chosen] = 4 + -(-(_fields(data, after, chosen) & 0xFFFF) * bits // 32) * 4
    return taken


def _fields(data: Array, after: Array, chosen: Array) -> Array:
    """The first four bytes of marks or of a dictionary, as a number."""
    return _at(data, after, chosen, 4).copy().view("<u4").ravel().astype(np.int64)


def _coded_rows(data: Array, after: Array, mask: Array, rows: Array) -> Array:
    """Coded rows of chunks of `rows`, whose masks are where `after` says; 1 for none, which carry nothing."""
    rows = rows.copy()
    blocks = (mask == 1) | (mask == 2)
    rows[blocks] = 2 * np.bitwise_count(_at(data, after, blocks, 8)).sum(axis=1)
    rows[mask == 3] = -(-(_fields(data, after, mask == 3) & 4095) // 32)
    values = np.flatnonzero(mask == 2)
    for i, live in zip(values, rows[values] // 2, strict=True):
        coded = int(np.bitwise_count(data[after[i] + 8 : after[i] + 8 + 8 * live]).sum())
        rows[i] = -(-coded // 32)
    return np.where(rows == 0, 1, rows)
