"""Settings, layout and codes of a payload of codec 4, for its tests: section 5.2 of native/FORMAT.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference_buckets import LANES, read_codes

Array = NDArray[Any]

CHUNK = 4096
CHOICES = {
    "overflow": ("clamp", "extend"),
    "statistics": ("exact", "sampled", "range", "given"),
    "rounding": ("nearest", "stochastic", "truncate"),
}
INTEGERS = {"main_bits": (3, 8), "outlier_bits": (3, 12), "num_samples": (2, 4096), "min_size": (0, 1 << 40)}


class Settings(NamedTuple):
    """The codec's parameters, with their defaults."""

    main_bits: int = 6
    outlier_bits: int = 8
    main_threshold: float = 1.0
    outlier_threshold: float = 2.5
    overflow: str = "extend"
    block_size: int | None = 1024
    preserve_zeros: bool = True
    all_positive: bool = False
    min_size: int = 8
    statistics: str = "exact"
    mean: float | None = None
    std: float | None = None
    num_samples: int = 16
    rounding: str = "stochastic"


def settings_of(configuration: Mapping[str, Any]) -> Settings:
    """The parameters in a configuration; raises ValueError where section 7 speaks of corruption."""
    parameters = {key: value for key, value in configuration.items() if key != "codec"}
    if not set(parameters) <= set(Settings._fields):
        raise ValueError(f"parameters {sorted(parameters)}")
    found = Settings(**parameters)
    values = found._asdict()
    allowed = all(values[key] in choices for key, choices in CHOICES.items())
    allowed &= all(type(values[key]) is int and a <= values[key] <= b for key, (a, b) in INTEGERS.items())
    allowed &= found.block_size is None or (type(found.block_size) is int and 32 <= found.block_size <= 1 << 40)
    allowed &= type(found.preserve_zeros) is bool and type(found.all_positive) is bool
    if not allowed or found.outlier_bits < found.main_bits:
        raise ValueError(f"parameters {found}")
    if not 2.0**-10 <= found.main_threshold < found.outlier_threshold <= 2.0**10:
        raise ValueError(f"thresholds {found.main_threshold}, {found.outlier_threshold}")
    given = found.statistics == "given"
    if given != (found.mean is not None) or given != (found.std is not None):
        raise ValueError(f"mean {found.mean}, standard deviation {found.std}")
    if given and not (math.isfinite(found.mean or 0) and 0 < (found.std or 0) < math.inf):
        raise ValueError(f"mean {found.mean}, standard deviation {found.std}")
    return found


class Layout(NamedTuple):
    """How many of each thing a payload has, and where they begin, in bytes; `nbytes` without the extra words."""

    bucket_size: int
    buckets: int
    columns: int
    quantized: int
    chunks: int
    codes_at: int
    tail_at: int
    tail_end: int
    directory_at: int
    nbytes: int


def layout_of(settings: Settings, n: int, itemsize: int) -> Layout:
    """The layout of a payload of n elements."""
    quantized = 0 if n < settings.min_size else n
    size = max(n, 1) if settings.block_size is None else settings.block_size
    buckets, chunks = -(-quantized // size), -(-quantized // CHUNK)
    columns = 3 if settings.overflow == "extend" else 2
    codes_at = _up_to_8(buckets * columns * (8 if itemsize == 8 else 4))
    tail_at = codes_at + 64 * -(-(-(-quantized // LANES) * settings.main_bits) // 16)
    tail_end = tail_at + (n - quantized) * itemsize
    directory_at = _up_to_8(tail_end)
    nbytes = directory_at + 8 * chunks
    return Layout(size, buckets, columns, quantized, chunks, codes_at, tail_at, tail_end, directory_at, nbytes)


def _up_to_8(nbytes: int) -> int:
    return nbytes + -nbytes % 8


def read_extras(codes: Array, ends: Array, words: Array, bits: int) -> Array:
    """The extra bits of each element, 0 of those that have none."""
    extra = np.zeros(codes.size, np.uint32)
    for chunk, (start, end) in enumerate(zip([0, *ends.tolist()], ends.tolist(), strict=False)):
        places = chunk * CHUNK + np.flatnonzero(codes[chunk * CHUNK : (chunk + 1) * CHUNK] & 1)
        if start > end or end > words.size or end - start != bits * -(-places.size // LANES):
            raise ValueError(f"chunk {chunk} has the extra words {start} to {end}")
        if bits == 0:
            continue
        own = np.ascontiguousarray(words[start:end]).view(np.uint8)
        rows = np.unpackbits(own, bitorder="little").reshape(-1, bits, LANES)
        values = (rows.astype(np.uint32) << np.arange(bits, dtype=np.uint32)[:, None]).sum(axis=1, dtype=np.uint32)
        extra[places] = values.reshape(-1)[: places.size]
    if (ends[-1] if ends.size else 0) != words.size:
        raise ValueError("the directory does not end with the payload")
    return extra


class Parts(NamedTuple):
    """What a payload says: of each quantized element its bucket's mean, std and threshold, and its code."""

    each: Array
    codes: Array
    tail: Array


def read_parts(payload: bytes, n: int, dtype: np.dtype[Any], settings: Settings) -> Parts:
    """A payload taken apart; raises ValueError where it is corrupt."""
    layout = layout_of(settings, n, dtype.itemsize)
    if len(payload) < layout.nbytes or (len(payload) - layout.nbytes) % 4:
        raise ValueError(f"a payload of {len(payload)} bytes, {layout.nbytes} and whole words are right")
    numbers = np.frombuffer(payload, "<f8" if dtype.itemsize == 8 else "<f4", layout.buckets * layout.columns)
    numbers = numbers.reshape(layout.buckets, layout.columns)
    if layout.columns == 2:
        threshold = np.full((layout.buckets, 1), settings.outlier_threshold, numbers.dtype)
        numbers = np.hstack([numbers, threshold])
    codes = np.zeros(0, np.uint32)
    if layout.quantized:
        codes = read_codes(payload[layout.codes_at : layout.tail_at], layout.quantized, settings.main_bits)
    ends = np.frombuffer(payload, "<u8", layout.chunks, layout.directory_at)
    words = np.frombuffer(payload, "<u4", offset=layout.nbytes)
    extra = read_extras(codes, ends, words, settings.outlier_bits - settings.main_bits)
    whole = codes.astype(np.uint32) | extra << np.uint32(settings.main_bits)
    each = numbers[np.arange(layout.quantized) // layout.bucket_size]
    return Parts(each, whole, np.frombuffer(payload[layout.tail_at : layout.tail_end], dtype))
