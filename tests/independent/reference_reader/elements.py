"""Section 3.4: words back into elements; and the rounding of numbers to elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chunks import INTEGER_MULTIPLES, Chunk
from .dtypes import Dtype
from .rows import low_bits
from .source import U64, need

Floats = NDArray[Any]


def round_to(y: Floats, dtype: Dtype) -> U64:
    """The bits of the numbers y, of the arithmetic type, rounded to nearest even to the float type."""
    if dtype.name == "float16":
        return y.astype(np.float16).view(np.uint16).astype(np.uint64)
    bits = y.view(f"u{y.itemsize}").astype(np.uint64)
    if dtype.name == "bfloat16":
        rounded = (bits + np.uint64(0x7FFF) + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
        return np.where(np.isnan(y), bits >> np.uint64(16) | np.uint64(0x40), rounded)
    return bits


def round_down(value: float, arithmetic: type[Any]) -> Any:
    """The largest number of the arithmetic type that is at most the float64 `value`, above 0."""
    near = arithmetic(value)
    return np.nextafter(near, arithmetic(0)) if float(near) > value else near


def largest_of(dtype: Dtype) -> Any:
    """The largest finite number of a float type, as one of its arithmetic type."""
    if dtype.name == "bfloat16":
        return np.uint32(0x7F7F0000).view(np.float32)
    return dtype.arithmetic(np.finfo(dtype.name).max)


def ordered(bits: U64, width: int) -> U64:
    """Floats of `width` bits as ordered integers, and back: below a sign bit that is set all bits are inverted."""
    below = low_bits(width - 1)
    return np.where(bits > below, bits ^ below, bits)


def step_of(bound: float, dtype: Dtype) -> Any:
    """The step of quantized chunks, of the arithmetic type."""
    a = dtype.arithmetic
    e = min(round_down(bound, a), np.finfo(a).max / a(2))
    return a({"float16": 1.875, "bfloat16": 1.75}.get(dtype.name, 2)) * e


def words_of(chunk: Chunk, symbols: U64) -> U64:
    """All words of the chunk's rows, from the coded rows' symbols (0 but with the entropy coder), shape (32 R,)."""
    coded = np.zeros((chunk.coded_rows, 32), np.uint64)
    if len(chunk.bits):
        coded = chunk.bits.copy()
    if chunk.has_contexts:
        coded = symbols.T & low_bits(chunk.dtype.bits)
    elif len(symbols) and chunk.shift < 64:
        coded |= symbols << np.uint64(chunk.shift)
    values = coded.ravel()[: len(chunk.places)]
    if chunk.mask in ("values", "marks") and chunk.transform != "exponent":
        values = values + np.uint64(1)
    words = np.zeros(chunk.rows * 32, np.uint64)
    words[chunk.places] = values & low_bits(chunk.dtype.word)
    return words


def elements_of(chunk: Chunk, symbols: U64, bound: float) -> U64:
    """The bits of the chunk's m elements."""
    words = words_of(chunk, symbols)[: chunk.m]
    if chunk.transform == "exponent":
        out = from_exponents(chunk, words)
    else:
        q = differences_undone(chunk, words)
        of_transform = {"integer": from_integers, "numbered": from_numbers}
        own = of_transform.get(chunk.transform)
        out = own(chunk, q) if own else from_quantized(chunk.dtype, q, bound)
    out[chunk.positions] = chunk.values
    return out


def differences_undone(chunk: Chunk, u: U64) -> U64:
    """Values q of transforms 0, 1 and 3, modulo 2^64."""
    d = u if chunk.plain else u >> np.uint64(1) ^ (np.uint64(0) - (u & np.uint64(1)))
    if chunk.predictor:
        d = np.cumsum(d + np.uint64((chunk.step or 0) % 2**64), dtype=np.uint64)
    return np.uint64(chunk.base or 0) + d


def from_integers(chunk: Chunk, q: U64) -> U64:
    """Transform 1."""
    dtype = chunk.dtype
    q = q & low_bits(dtype.bits)
    return ordered(q, dtype.bits) if dtype.exponent and chunk.predictor else q


def from_numbers(chunk: Chunk, q: U64) -> U64:
    """Transform 3."""
    numbers = q & low_bits(chunk.dtype.bits)
    if chunk.multiples == INTEGER_MULTIPLES:
        return numbers * np.uint64(chunk.unit) + np.uint64(chunk.offset) & low_bits(chunk.dtype.bits)
    if chunk.multiples:
        return from_multiples(chunk, numbers)
    need(bool((numbers < len(chunk.entries)).all()), "index")
    return chunk.entries[numbers.astype(np.intp)]


def from_multiples(chunk: Chunk, q: U64) -> U64:
    """Elements that are multiples of one number."""
    dtype, kind = chunk.dtype, chunk.multiples
    q = ordered(q, dtype.bits)
    sign = q & np.uint64(1 << dtype.bits - 1)
    multiplier, divisor = (dtype.arithmetic(number) for number in MULTIPLES[kind])
    numbers = (q ^ sign).view(np.int64).astype(dtype.arithmetic)
    with np.errstate(over="ignore"):
        return round_to(numbers * multiplier / divisor, dtype) | sign


MULTIPLES = dict(
    enumerate(
        [
            *((1.0, 2.0**k) for k in range(13)),
            *((1.0, 10.0**k) for k in range(1, 10)),
            *((1 / 10.0**k, 1.0) for k in range(1, 7)),
            *(pair for n in (255.0, 65535.0) for pair in ((1.0, n), (1 / n, 1.0))),
        ],
        start=1,
    )
)


def from_quantized(dtype: Dtype, q: U64, bound: float) -> U64:
    """Transform 0."""
    signed = q.view(np.int64) if dtype.bits == 64 else q.astype(np.uint32).view(np.int32)
    with np.errstate(over="ignore"):
        return round_to(signed.astype(dtype.arithmetic) * step_of(bound, dtype), dtype)


def from_exponents(chunk: Chunk, u: U64) -> U64:
    """Transform 2."""
    dtype = chunk.dtype
    drop, sign_bits = np.uint64(chunk.drop), np.uint64(0 if chunk.plain else 1)
    magnitude_bits = dtype.exponent + dtype.mantissa
    below_base = np.uint64(((chunk.base or 0) + 1 << dtype.mantissa) - 1 & (1 << 64) - 1) >> drop << drop
    with np.errstate(over="ignore"):
        magnitude = (below_base - (u >> sign_bits << drop)) & low_bits(magnitude_bits)
    out = (u & sign_bits) << np.uint64(magnitude_bits) | magnitude
    masked = np.ones(chunk.rows * 32, bool)
    masked[chunk.places] = False
    return np.where(masked[: chunk.m], np.uint64(0), out)
