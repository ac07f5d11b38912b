"""The independent reader's part for codec 3, buckets: section 5 of native/FORMAT.md, and that page alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LANES = 32
NORMS = ("minmax", "l2", "linf")
QUANTIZED = ("float16", "bfloat16", "float32", "float64")


class Settings(NamedTuple):
    """The codec's parameters, with their defaults."""

    bits: int = 4
    bucket_size: int = 512
    norm: str = "minmax"
    skip_incomplete: bool = False
    rounding: str = "nearest"
    coding: str = "packed"


def settings_of(configuration: Mapping[str, Any]) -> Settings:
    """The parameters in a configuration; raises ValueError where section 7 speaks of corruption."""
    parameters = {key: value for key, value in configuration.items() if key != "codec"}
    if not set(parameters) <= set(Settings._fields):
        raise ValueError(f"parameters {sorted(parameters)}")
    found = Settings(**parameters)
    allowed = (
        type(found.bits) is int
        and 1 <= found.bits <= 8
        and type(found.bucket_size) is int
        and 16 <= found.bucket_size <= 1 << 40
        and found.norm in NORMS
        and type(found.skip_incomplete) is bool
        and found.rounding in ("nearest", "stochastic")
        and found.coding in ("packed", "entropy")
    )
    if not allowed:
        raise ValueError(f"parameters {found}")
    return found


class Layout(NamedTuple):
    """How many of each thing a payload has, and where they begin, in bytes."""

    buckets: int
    columns: int
    quantized: int
    codes_at: int
    tail_at: int
    tail_end: int
    nbytes: int


def layout_of(settings: Settings, n: int, itemsize: int) -> Layout:
    """The layout of a payload of n elements."""
    quantized = n - n % settings.bucket_size if settings.skip_incomplete else n
    buckets = -(-quantized // settings.bucket_size)
    columns = 2 if settings.norm == "minmax" else 1
    codes_at = _up_to_8(buckets * columns * (8 if itemsize == 8 else 4))
    if settings.coding == "entropy":  # the tail is in front of the codes, whose end is not known here
        tail_at = codes_at
        tail_end = tail_at + (n - quantized) * itemsize
        return Layout(buckets, columns, quantized, _up_to_8(tail_end), tail_at, tail_end, _up_to_8(tail_end))
    rows = -(-quantized // LANES)
    tail_at = codes_at + 64 * -(-rows * settings.bits // 16)
    tail_end = tail_at + (n - quantized) * itemsize
    return Layout(buckets, columns, quantized, codes_at, tail_at, tail_end, _up_to_8(tail_end))


def _up_to_8(nbytes: int) -> int:
    return nbytes + -nbytes % 8


def read_codes(data: bytes, count: int, bits: int) -> Array:
    """`count` codes. Full chunks fill whole 32-bit words, so that each lane has one sequence of bits."""
    rows = -(-count // LANES)
    whole, rest = divmod(rows * bits, 32)
    words = np.frombuffer(data, "<u4", LANES * whole).reshape(whole, LANES)
    if rest:
        last = np.frombuffer(data, "<u2" if rest <= 16 else "<u4", LANES, offset=words.nbytes)
        words = np.vstack([words, last.astype("<u4")])
    sequences = np.unpackbits(np.ascontiguousarray(words.T).view(np.uint8), axis=1, bitorder="little")
    digits = sequences[:, : rows * bits].reshape(LANES, rows, bits)
    parts = np.packbits(digits, axis=2, bitorder="little").astype(np.uint32)
    codes: Array = sum(parts[:, :, k] << np.uint32(8 * k) for k in range(parts.shape[2])).T.reshape(-1)  # type: ignore[union-attr]
    return codes[:count]


def values_of(codes: Array, numbers: Array, settings: Settings, dtype: np.dtype[Any]) -> Array:
    """The values y of section 5, not yet rounded to the elements' dtype; `numbers` has a row for each bucket."""
    each = numbers[np.arange(codes.size) // settings.bucket_size]
    real = numbers.dtype.type
    with np.errstate(all="ignore"):
        steps = 2**settings.bits - (1 if settings.norm == "minmax" or settings.bits == 1 else 2)
        half = np.where(each[:, :1] > np.finfo(real).max / real(2 * steps), real(0.5), real(1))
        each = each * half
        if settings.norm == "minmax":
            y = each[:, 0] * codes.astype(real) + each[:, 1]
        else:
            level = codes.astype(np.int64)
            level = 2 * level - 1 if settings.bits == 1 else level - (2 ** (settings.bits - 1) - 1)
            y = each[:, 0] * level.astype(real)
        y = y / half[:, 0]
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    largest = real(limits.max)
    found: Array = np.clip(y, -largest, largest)
    return found


def read_buckets(
    payload: bytes,
    n: int,
    dtype: np.dtype[Any],
    configuration: Mapping[str, Any],
    read_bytes: Callable[[bytes, int], Array],
) -> Array:
    """The elements of a payload.

    Args:
        payload: all of it.
        n: how many elements it codes.
        dtype: their type.
        configuration: the stream's.
        read_bytes: reads so many elements of dtype uint8 from a payload of section 3.

    Raises:
        ValueError: it is corrupt (section 7).
    """
    if dtype.name not in QUANTIZED:
        raise ValueError(f"codec 3 with {dtype}")
    settings = settings_of(configuration)
    layout = layout_of(settings, n, dtype.itemsize)
    is_coded = settings.coding == "entropy"
    if len(payload) < layout.nbytes if is_coded else len(payload) != layout.nbytes:
        raise ValueError(f"a payload of {len(payload)} bytes, {layout.nbytes} are right")
    numbers = np.frombuffer(payload, "<f8" if dtype.itemsize == 8 else "<f4", layout.buckets * layout.columns)
    if is_coded:
        codes = read_bytes(payload[layout.codes_at :], layout.quantized)
    else:
        codes = read_codes(payload[layout.codes_at : layout.tail_at], layout.quantized, settings.bits)
    y = values_of(codes, numbers.reshape(layout.buckets, layout.columns), settings, dtype)
    with np.errstate(all="ignore"):
        elements: Array = y.astype(dtype)
    elements[np.isnan(y)] = np.nan
    return np.concatenate([elements, np.frombuffer(payload[layout.tail_at : layout.tail_end], dtype)])
