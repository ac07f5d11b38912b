"""The independent reader's part for codec 6, squeezed FP8: section 5.4 of native/FORMAT.md, and that page alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from reference_buckets import QUANTIZED, read_codes

Array = NDArray[Any]

TOP = 30
LOGARITHMS = [float.fromhex(text) for text in ("0x1.6e09bp+0", "-0x1.3bfccep-1", "0x1.8eb6eep-3")]
POWERS = [float.fromhex(t) for t in ("0x1p0", "0x1.62e12cp-1", "0x1.ec0378p-3", "0x1.c9fc46p-5", "0x1.3a02ccp-7")]


def bucket_size_of(configuration: Mapping[str, Any]) -> int | None:
    """Values in a bucket, None for all; raises ValueError where section 7 speaks of corruption."""
    parameters = {key: value for key, value in configuration.items() if key != "codec"}
    size, rounding = parameters.pop("bucket_size", None), parameters.pop("rounding", "nearest")
    allowed = size is None or (type(size) is int and 16 <= size <= 1 << 40)
    if parameters or not allowed or rounding not in ("nearest", "stochastic"):
        raise ValueError(f"configuration {configuration}")
    return size


def polynomial(x: Array, coefficients: list[float]) -> Array:
    """The sum of coefficients[i] x^i in the type of x, in pairs."""
    terms = [np.full_like(x, coefficient) for coefficient in coefficients]
    while len(terms) > 1:
        pairs = [low + x * high for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms, x = pairs + terms[len(pairs) * 2 :], x * x
    return terms[0]


def power(t: Array) -> Array:
    """The function `power` of section 5.4."""
    n = np.rint(t)
    return np.ldexp(polynomial(t - n, POWERS), n.astype(np.int64)).astype(t.dtype)


def logarithms(codes: Array, real: Any) -> Array:
    """The numbers l of section 5.4; anything for codes 0."""
    code = np.minimum(codes & 127, 123).astype(np.int64)
    exponent, mantissa = code >> 2, code & 3
    for subnormal, (e, k) in {1: (-1, 0), 2: (0, 0), 3: (0, 2)}.items():
        exponent[code == subnormal], mantissa[code == subnormal] = e, k
    f = (mantissa / 4).astype(real)
    found: Array = (exponent - TOP).astype(real) + f * polynomial(f, LOGARITHMS)
    return found


def values_of(codes: Array, alpha: Array, largest: Array) -> Array:
    """What each code stands for, not yet rounded to the elements' dtype, with its bucket's numbers."""
    real = alpha.dtype.type
    with np.errstate(all="ignore"):
        u = logarithms(codes, real) * (real(0.5) / alpha)
        least = real(-1000 if real is np.float64 else -125)
        u = np.minimum(np.where(u >= least, u, least), real(0))
        r = np.where(codes & 127, power(u), real(0))
        y = largest * r * r
        found: Array = np.where(codes >= 128, -np.abs(y), y)
    return found


def read_squeezed(payload: bytes, n: int, dtype: np.dtype[Any], configuration: Mapping[str, Any]) -> Array:
    """The elements of a payload.

    Args:
        payload: all of it.
        n: how many elements it codes.
        dtype: their type.
        configuration: the stream's.

    Raises:
        ValueError: it is corrupt (section 7).
    """
    if dtype.name not in QUANTIZED:
        raise ValueError(f"codec 6 with {dtype}")
    size = bucket_size_of(configuration) or max(n, 1)
    numbers_nbytes = -(-n // size) * 2 * (8 if dtype.itemsize == 8 else 4)
    codes_at = numbers_nbytes + -numbers_nbytes % 8
    rows = -(-n // 32)
    if len(payload) != codes_at + 64 * -(-rows // 2):
        raise ValueError(f"a payload of {len(payload)} bytes")
    numbers = np.frombuffer(payload[:numbers_nbytes], "<f8" if dtype.itemsize == 8 else "<f4").reshape(-1, 2)
    each = numbers[np.arange(n) // size]
    y = values_of(read_codes(payload[codes_at:], n, 8), each[:, 0], each[:, 1])
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    with np.errstate(all="ignore"):
        largest = y.dtype.type(limits.max)
        elements: Array = np.clip(y, -largest, largest).astype(dtype)
    elements[np.isnan(y)] = np.nan
    return elements
