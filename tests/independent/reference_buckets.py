"""Settings, layout and codes of a payload of codec 3, for its tests: section 5 of native/FORMAT.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LANES = 32
NORMS = ("minmax", "l2", "linf")


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
