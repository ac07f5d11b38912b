"""Section 5: what codecs 3, 4, 5, 6 and 8 have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dtypes import UINT8, Dtype
from .elements import Floats, largest_of, round_to
from .groups import read_payload
from .rows import LANES, unpack
from .source import U64, Source, need

ROWS_PER_CHUNK = 128


@dataclass
class Layout:
    """What a codec's section says: fields of numpy types stored for an array and a bucket, and the bits of a code.

    `size` is B, 0 where the array is the bucket; `extra_bits` is codec 4's x, None with the others; `values` makes
    numbers of the codes, and `finish` elements of the numbers, both for all m elements.
    """

    bits: int
    values: Callable[[Codes], Floats]
    for_array: tuple[str, ...] = ()
    for_bucket: tuple[str, ...] = ()
    size: int = 0
    no_short_bucket: bool = False
    all_tail: bool = False
    entropy: bool = False
    extra_bits: int | None = None
    finish: Callable[[Floats, Dtype, Codes], U64] | None = None


@dataclass
class Codes:
    """Codes, shape (m,), with their extra bits (0 where one has none), and what is stored for array and buckets.

    Of `bucket`, each field has an entry for each element.
    """

    codes: U64
    array: list[Any]
    bucket: list[NDArray[Any]]
    extra: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))


def read_buckets(payload: bytes, dtype: Dtype, n: int, layout: Layout) -> U64:
    """The bits of the n elements of a payload."""
    size = layout.size or max(n, 1)
    tail = n if layout.all_tail else n % size if layout.no_short_bucket else 0
    m = n - tail
    source = Source(payload)
    array = [source.array(kind, 1)[0] for kind in layout.for_array]
    source.align(8)
    records = np.dtype([(str(i), np.dtype(kind).newbyteorder("<")) for i, kind in enumerate(layout.for_bucket)])
    stored = np.frombuffer(source.take(records.itemsize * -(-m // size)), np.uint8)
    source.align(8)
    if layout.entropy:
        rest = read_tail(source, dtype, tail)
        codes = read_payload(source.take(source.left), UINT8, m)
    else:
        rows = -(-m // LANES)
        need(64 * -(-rows * layout.bits // 16) <= source.left, "codes")
        codes = unpack(source, np.full(rows, layout.bits, np.uint64), codes=True).ravel()[:m]
        rest = read_tail(source, dtype, tail)
    found = Codes(codes, array, spread(stored, records, size, m))
    if layout.extra_bits is not None:
        found.extra = read_extra(source, codes, layout.extra_bits)
    need(source.left == 0, "bytes left over in the payload")
    with np.errstate(all="ignore"):
        y = layout.values(found)
        return np.concatenate([(layout.finish or finite)(y, dtype, found), rest])


def spread(stored: NDArray[np.uint8], records: np.dtype[Any], size: int, m: int) -> list[NDArray[Any]]:
    """What is stored for the bucket of each of the m elements, one array a field."""
    if not records.names or not m:
        return [np.zeros(m, records[name].newbyteorder("=")) for name in records.names or ()]
    table = stored.view(records)
    bucket = np.arange(m) // size
    return [table[name].astype(records[name].newbyteorder("="))[bucket] for name in records.names]


def read_tail(source: Source, dtype: Dtype, count: int) -> U64:
    """Take the tail's elements."""
    need(count * dtype.bits // 8 <= source.left, "tail")
    tail = source.words(dtype.bits // 8, count)
    source.align(8)
    return tail


def read_extra(source: Source, codes: U64, x: int) -> U64:
    """Take the directory and the extra words of codec 4; returns the extra bits of each code, shape (m,)."""
    size = ROWS_PER_CHUNK * LANES
    ends = source.words(8, -(-len(codes) // size)).tolist()
    out = np.zeros(len(codes), np.uint64)
    start = 0
    for c, end in enumerate(ends):
        outliers = c * size + np.flatnonzero(codes[c * size : (c + 1) * size] & np.uint64(1))
        rows = -(-len(outliers) // LANES)
        need(end - start == x * rows, "extra words of a chunk")
        words = source.words(4, x * rows).reshape(rows, x, 1)
        bits = words >> np.arange(LANES, dtype=np.uint64) & np.uint64(1)
        numbers = (bits << np.arange(x, dtype=np.uint64)[:, None]).sum(axis=1, dtype=np.uint64)
        out[outliers] = numbers.ravel()[: len(outliers)]
        start = end
    return out


def nan_of(dtype: Dtype) -> np.uint64:
    """The NaN element's bits."""
    return np.uint64((1 << dtype.exponent) - 1 << dtype.mantissa | 1 << (dtype.mantissa - 1))


def finite(y: Floats, dtype: Dtype, _: Codes) -> U64:
    """Elements of numbers: NaN the NaN element, the others limited to finite ones and rounded."""
    limit = largest_of(dtype)
    return np.where(np.isnan(y), nan_of(dtype), round_to(np.clip(y, -limit, limit), dtype))
