"""Small streams of every codec, and what may become of them when they are altered."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
import reference_reader
from arrcomp import (
    QSGD,
    S2FP8,
    BaseDelta,
    Codebook,
    Codec,
    CorruptStreamError,
    ErrorBounded,
    FloatFormat,
    FormatVersionError,
    Lossless,
    SmaQ,
    UnknownCodecError,
    WrongReferenceError,
)
from checks import Array
from instances import and_unlisted
from predicted_fields import table

FIXED_NBYTES = 24  # of a stream's header, before its shape
SHAPE_OFFSET = FIXED_NBYTES
REFUSALS = (CorruptStreamError, FormatVersionError, UnknownCodecError, WrongReferenceError)
LARGEST_REFERENCE = 1 << 24  # bytes


def weights(count: int) -> Array:
    return np.random.default_rng(0).normal(0, 0.02, count).astype(np.float32)


def _specials() -> Array:
    array = weights(700)
    array[::97] = np.nan
    return array


def _gaps(count: int, run: int, share: float = 0.1) -> Array:
    array = weights(count)
    array[np.repeat(np.random.default_rng(4).random(count // run + 1) < share, run)[:count]] = np.nan
    return array


def _sparse(dtype: Any) -> Array:
    rng = np.random.default_rng(1)
    return (100 * rng.normal(0, 1, 2000) * (rng.random(2000) < 0.1)).astype(dtype)


def _uneven() -> Array:
    """Tiles of other deviations."""
    return weights(1100) * np.float32(2) ** (np.arange(1100) // 256 % 3 * 2)


def _any_length(count: int, bits: int) -> Array:
    """Integers of which all lengths up to `bits` are as frequent."""
    return np.floor(2 ** np.random.default_rng(14).uniform(0, bits, count))


def _bursts(count: int = 2000) -> Array:
    """Numbers that rise from almost nothing, fall, and are zero for a while."""
    place = np.arange(count) % 300
    rise = np.where(place < 140, np.minimum(place, 140 - place), 0)
    return np.asarray(np.random.default_rng(12).normal(0, 1, count) * rise / 10)


def _long_escapes() -> Array:
    array = np.random.default_rng(2).integers(0, 50, 1500)
    array[::301] = 1 << 44
    return array


def _few(dtype: Any, count: int, share: float = 0) -> Array:
    """Few different elements, of any bits."""
    rng = np.random.default_rng(5)
    kinds = np.frombuffer(rng.bytes(count * np.dtype(dtype).itemsize), dtype)
    array = kinds[rng.integers(0, count, 1500)]
    if share > 0:
        array[np.repeat(rng.random(50) < share, 30)] = np.nan
    return array


def _smooth() -> Array:
    return np.cumsum(np.random.default_rng(3).normal(0, 1, 1200))


def _field(dtype: Any, *shape: int) -> Array:
    places = np.meshgrid(*(np.arange(size) for size in shape), indexing="ij")
    waves = np.stack([np.sin(place / (5 + 3 * axis)) for axis, place in enumerate(places)])
    return np.asarray(waves.sum(axis=0).astype(dtype))


def _short_waves(dtype: Any, *shape: int) -> Array:
    """Waves of about four elements each, and noise."""
    places = np.meshgrid(*(np.arange(size) for size in shape), indexing="ij")
    noise = np.random.default_rng(12).normal(0, 2, shape)
    return np.asarray((100 * np.sin(sum(1.4 * place for place in places)) + noise).astype(dtype))


def _decimals(dtype: Any, *shape: int, one_in: int = 0) -> Array:
    """A field with two decimal places; one in so many elements has more."""
    values = np.round(_field("f8", *shape) * 20, 2)
    if one_in:
        values.ravel()[7::one_in] += np.pi
    return values.astype(dtype)


def _packed(dtype: Any, *shape: int) -> Array:
    """A field as it is unpacked from integers."""
    k = np.round(_field("f8", *shape) * 2000).astype(dtype)
    return np.asarray(k * k.dtype.type(0.0017) + k.dtype.type(251.3))


def _field_with_gaps(dtype: Any, *shape: int) -> Array:
    array = _field(dtype, *shape)
    array[2:5, :4] = np.nan
    array[-1] = -np.inf
    return array


def _field_with_a_map(dtype: Any, *shape: int) -> Array:
    """A series of maps with the same gaps in all of them."""
    array = _field(dtype, *shape)
    array[:, _field("f8", *shape[1:]) > 1] = np.nan
    return array


def _buckets_and_tail() -> Array:
    return weights(600).astype(checks.numpy_dtype("bfloat16"))


def _clusters() -> Array:
    rng = np.random.default_rng(8)
    centres = np.array([0, 10**6, -(10**9), 7])[rng.integers(0, 4, 800) * (np.arange(800) > 200)]
    return (centres + rng.integers(-5, 5, 800) * (np.arange(800) < 600)).astype(np.int32)


def _bytes_and_zeros() -> Array:
    array = np.zeros(4096 + 600, np.uint8)
    array[4096:] = np.random.default_rng(9).integers(0, 256, 600)
    return array


# What all small streams with a reference are coded against: the first of these bytes.
REFERENCE = weights(4096).tobytes()


def reference_for(dtype: Any, shape: tuple[int, ...], data: bytes = REFERENCE) -> Array | None:
    """The reference of these bytes for an array, cut or repeated; None if it would be too large."""
    count = math.prod(shape) * np.dtype(dtype).itemsize
    if count > LARGEST_REFERENCE:
        return None
    return np.resize(np.frombuffer(data, np.uint8), count).view(dtype).reshape(shape)


def _referenced(dtype: Any, count: int, change: Callable[[Array, Array], None], codec: Codec) -> bytes:
    """The stream of the reference with changes: `change` gets the array, and places of it in random order."""
    reference = reference_for(checks.numpy_dtype(dtype), (count,))
    assert reference is not None
    array = reference.copy()
    with np.errstate(all="ignore"):
        change(array, np.random.default_rng(10).permutation(count))
    return checks.stream_of(array, codec, reference=reference)


def _step(array: Array, places: Array, step: int = 3) -> None:
    """Change the bits of elements by a few units."""
    checks.bits_of(array)[places] += np.asarray(np.random.default_rng(11).integers(1, step + 1, len(places))).astype(
        checks.bits_of(array).dtype
    )


def _flip(array: Array, places: Array) -> None:
    """Invert one of the high bits of elements."""
    words = checks.bits_of(array)
    words[places] ^= words.dtype.type(1 << (8 * words.itemsize - 5))


def _train(array: Array, places: Array, by: float = 1e-3) -> None:
    """Change numbers by a small amount, and make some of them NaN."""
    array[places] += np.random.default_rng(11).normal(0, by, len(places)).astype(array.dtype)
    array[places[:5]] = np.nan


SMALL: dict[str, Callable[[], bytes]] = {
    "entropy, shift, exceptions": lambda: checks.stream_of(_specials(), ErrorBounded(abs=1e-5)),
    "packed": lambda: checks.stream_of(weights(700), ErrorBounded(abs=1e-3, speed="fast")),
    "missing, edges": lambda: checks.stream_of(_gaps(900, 90), ErrorBounded(abs=1e-3)),
    "missing, positions": lambda: checks.stream_of(_gaps(900, 1), ErrorBounded(abs=1e-3, speed="fast")),
    "missing, bits": lambda: checks.stream_of(_gaps(300, 1, 0.5), ErrorBounded(abs=1e-3)),
    "missing integers": lambda: checks.stream_of(np.arange(1000) // 300 % 2 * np.int16(-999), Lossless()),
    "value mask": lambda: checks.stream_of(_sparse(np.float32), ErrorBounded(abs=1e-2)),
    "marked mask": lambda: checks.stream_of(_sparse(np.float32), Lossless()),
    "predictor, float64": lambda: checks.stream_of(_smooth(), ErrorBounded(abs=1e-3)),
    "predicted": lambda: checks.stream_of(_field("f4", 23, 30), ErrorBounded(abs=1e-2, predictor="interpolation")),
    "predicted, weights": lambda: checks.stream_of(
        _short_waves("f4", 23, 30), ErrorBounded(abs=1e-1, predictor="interpolation")
    ),
    "predicted, weights, integers": lambda: checks.stream_of(
        _short_waves("i2", 19, 37), Lossless(predictor="interpolation")
    ),
    "predicted, differences": lambda: checks.stream_of(
        _field("f8", 9, 8, 10), ErrorBounded(rel=1e-3, predictor="lorenzo", speed="fast")
    ),
    "predicted, exact": lambda: checks.stream_of(
        _field_with_gaps("f4", 24, 29), ErrorBounded(abs=2e-2, predictor="interpolation")
    ),
    "predicted, exact, float64": lambda: checks.stream_of(
        _field_with_gaps("f8", 20, 30), ErrorBounded(abs=2e-2, predictor="interpolation")
    ),
    "predicted, mask": lambda: checks.stream_of(
        _field_with_a_map("f4", 7, 8, 33), ErrorBounded(abs=2e-2, predictor="lorenzo")
    ),
    "predicted, mask of short lines": lambda: checks.stream_of(
        _field_with_a_map("f2", 6, 20, 5), Lossless(predictor="interpolation")
    ),
    "predicted, lossless": lambda: checks.stream_of(_field("f2", 5, 9, 14), Lossless(predictor="interpolation")),
    "predicted, multiples": lambda: checks.stream_of(_decimals("f4", 19, 37), Lossless(predictor="interpolation")),
    "predicted, multiples, exact, float64": lambda: checks.stream_of(
        _decimals("f8", 21, 33, one_in=50), Lossless(predictor="lorenzo")
    ),
    "predicted, offset": lambda: checks.stream_of(_packed("f4", 19, 37), Lossless(predictor="lorenzo")),
    "predicted, offset, float64": lambda: checks.stream_of(_packed("f8", 21, 33), Lossless(predictor="interpolation")),
    "predicted, pixels": lambda: checks.stream_of(
        (20 * _field("f4", 12, 17, 3)).astype(np.uint8), Lossless(predictor="lorenzo")
    ),
    "predicted, integers": lambda: checks.stream_of(
        (2000 * _field("f4", 23, 30)).astype(np.int32), Lossless(predictor="interpolation")
    ),
    "predicted, lossless differences": lambda: checks.stream_of(
        _field_with_gaps(checks.numpy_dtype("bfloat16"), 20, 30), Lossless(predictor="lorenzo")
    ),
    "by columns": lambda: checks.stream_of(table("f4", 70, 9), ErrorBounded(abs=1e-2, predictor="columns")),
    "by columns, lossless": lambda: checks.stream_of(table("u2", 40, 5, 3), Lossless(predictor="columns")),
    "by columns, float64": lambda: checks.stream_of(table("f8", 70, 8), ErrorBounded(rel=1e-3, predictor="columns")),
    "pointwise": lambda: checks.stream_of(weights(700), ErrorBounded(pointwise=1e-2)),
    "exponents": lambda: checks.stream_of(weights(500).astype(checks.numpy_dtype("bfloat16")), Lossless()),
    "multiples": lambda: checks.stream_of(_decimals("f4", 19, 37, one_in=50), Lossless()),
    "multiples, missing, float64": lambda: checks.stream_of(
        np.where(np.arange(900) % 70 < 20, np.nan, np.arange(900) % 401 / 100), Lossless(speed="fast")
    ),
    "dictionary": lambda: checks.stream_of(_few(np.float32, 9), Lossless()),
    "dictionary, float16, missing": lambda: checks.stream_of(_few(np.float16, 33, share=0.3), Lossless()),
    "dictionary, int64": lambda: checks.stream_of(_few(np.int64, 4), Lossless(speed="fast")),
    "dictionary, bytes": lambda: checks.stream_of(_few(np.uint8, 30), Lossless()),
    "steps": lambda: checks.stream_of(np.arange(900) * 1000 + np.arange(900) ** 2 % 7, Lossless()),
    "ascending": lambda: checks.stream_of(np.cumsum(np.arange(900) ** 2 % 23).astype(np.int32), Lossless(speed="fast")),
    "sparse integers": lambda: checks.stream_of(_sparse(np.int16), Lossless()),
    "long escapes": lambda: checks.stream_of(_long_escapes(), Lossless()),
    "tables of tiles": lambda: checks.stream_of(_uneven(), ErrorBounded(abs=1e-3)),
    "contexts": lambda: checks.stream_of(_bursts().astype(np.float32), ErrorBounded(abs=0.5)),
    "contexts, float16": lambda: checks.stream_of(_bursts().astype(np.float16), ErrorBounded(abs=0.5)),
    "contexts, int8": lambda: checks.stream_of(_bursts().astype(np.int8), Lossless()),
    "contexts, missing, float64": lambda: checks.stream_of(
        np.where(np.arange(2000) // 50 % 8 == 3, np.nan, _bursts()), ErrorBounded(abs=0.5)
    ),
    "classes": lambda: checks.stream_of(_any_length(1500, 20).astype(np.int32), Lossless()),
    "classes, float64": lambda: checks.stream_of(_any_length(1500, 30).astype(np.float64), ErrorBounded(abs=0.25)),
    "classes, low bits": lambda: checks.stream_of(_any_length(1500, 36).astype(np.uint64), Lossless()),
    "constant": lambda: checks.stream_of(np.full((3, 50), 7, np.int32), Lossless()),
    "many chunks": lambda: checks.stream_of(np.zeros(20 * 4096, np.uint8), Lossless()),
    "empty": lambda: checks.stream_of(np.zeros((2, 0), np.float16), Lossless()),
    "bool": lambda: checks.stream_of(np.arange(600) % 5 == 0, Lossless()),
    "buckets": lambda: checks.stream_of(weights(700), QSGD()),
    "buckets, norm, tail": lambda: checks.stream_of(_buckets_and_tail(), QSGD(bits=3, norm="l2", skip_incomplete=True)),
    "buckets, float16": lambda: checks.stream_of(weights(300).astype(np.float16), QSGD(bits=8, bucket_size=16)),
    "lines": lambda: checks.stream_of(weights(500), BaseDelta(bases=2)),
    "lines, masks, float64": lambda: checks.stream_of(_sparse(np.float64)[:1000], BaseDelta()),
    "lines, masks, int16": lambda: checks.stream_of(_sparse(np.int16)[:777], BaseDelta(bases=2)),
    "lines, all modes": lambda: checks.stream_of(_clusters(), BaseDelta(bases=2)),
    "lines, raw and zero": lambda: checks.stream_of(_bytes_and_zeros(), BaseDelta()),
    "lines, dropped bits": lambda: checks.stream_of(weights(300), BaseDelta(drop_bits=9)),
    "lines, empty": lambda: checks.stream_of(np.zeros((2, 0), np.float32), BaseDelta()),
    "codebook": lambda: checks.stream_of(weights(700), Codebook([-0.01, 0.01], [-0.02, 0.0, 0.02], bucket_size=100)),
    "codebook, scaled": lambda: checks.stream_of(weights(300).astype(np.float16), Codebook.nf4()),
    "buckets, entropy": lambda: checks.stream_of(_buckets_and_tail(), QSGD(skip_incomplete=True, coding="entropy")),
    "buckets, empty": lambda: checks.stream_of(np.zeros((2, 0), np.float32), QSGD()),
    "squeezed": lambda: checks.stream_of(_specials(), S2FP8(bucket_size=100)),
    "squeezed, one bucket": lambda: checks.stream_of(weights(300).astype(np.float16), S2FP8()),
    "small floats": lambda: checks.stream_of(weights(100), FloatFormat("fp8_e4m3")),
    "small floats, scaled": lambda: checks.stream_of(weights(100), FloatFormat("fp8_e5m2", scaling="bucket")),
    "small floats, blocks": lambda: checks.stream_of(weights(300).astype(np.float16), FloatFormat("mxfp4")),
    "small floats, two levels": lambda: checks.stream_of(weights(100), FloatFormat("nvfp4")),
    "small floats, empty": lambda: checks.stream_of(np.zeros((2, 0), np.float32), FloatFormat("nvfp4")),
    "extra words": lambda: checks.stream_of(weights(700), SmaQ()),
    "extra words, float16": lambda: checks.stream_of(weights(300).astype(np.float16), SmaQ(3, 12, block_size=32)),
    "extra words, none": lambda: checks.stream_of(weights(7), SmaQ()),
    "extra words, empty": lambda: checks.stream_of(np.zeros((2, 0), np.float64), SmaQ()),
    "referenced, list": lambda: _referenced("int16", 900, lambda x, at: _step(x, at[:40]), Lossless()),
    "referenced, list of bits": lambda: _referenced("float32", 900, lambda x, at: _flip(x, at[:60]), Lossless()),
    "referenced, bits": lambda: _referenced("uint16", 700, lambda x, at: _flip(x, at[:400]), Lossless()),
    "referenced, all": lambda: _referenced("bfloat16", 500, _step, Lossless()),
    "referenced, equal": lambda: _referenced("int8", 700, lambda x, at: None, Lossless()),
    "referenced, bounded": lambda: _referenced("float32", 700, _train, ErrorBounded(abs=1e-4)),
    "referenced, bounded list": lambda: _referenced(
        "float32", 900, lambda x, at: _train(x, at[:50]), ErrorBounded(abs=1e-4, speed="fast")
    ),
    "referenced, float64": lambda: _referenced(
        "float64", 400, lambda x, at: _train(x, at, 1e-20), ErrorBounded(abs=1e-21)
    ),
    "referenced, pointwise": lambda: _referenced(
        "float32", 500, lambda x, at: _train(x, at, 3e-4), ErrorBounded(pointwise=1e-2)
    ),
    "referenced, plain": lambda: _referenced("float32", 300, lambda x, at: x.fill(1.5), Lossless()),
    "referenced, empty": lambda: checks.stream_of(
        np.zeros((2, 0), np.float16), Lossless(), reference=np.zeros((2, 0), np.float16)
    ),
}
_CODECS = [arrcomp.from_bytes(make()).codec for make in SMALL.values()]
SMALL |= {
    repr(codec): partial(checks.stream_of, weights(700), codec) for codec in and_unlisted(_CODECS)[len(_CODECS) :]
}


def decoded(stream: bytes, threads: int = 1, reference: bytes = REFERENCE, device: checks.Host = checks.HOST) -> Array:
    """The array of a stream, decoded on a device; where it needs a reference, it gets one of these bytes."""
    compressed = arrcomp.from_bytes(stream)
    options: dict[str, Any] = {"threads": threads} if device is checks.HOST else {}
    if compressed.needs_reference:
        options["reference"] = reference_for(compressed.dtype, compressed.shape, reference)
    return checks.array_of(stream, device, **options)


def assert_refused(stream: bytes) -> None:
    """Reading raises CorruptStreamError, or for a newer major version its own error."""
    with pytest.raises((CorruptStreamError, FormatVersionError)):
        decoded(stream)


def outcome(stream: bytes, threads: int = 1, reference: bytes = REFERENCE) -> Array | None:
    """The array of a stream, or None if it is refused; nothing else may happen."""
    try:
        found = decoded(stream, threads, reference)
    except REFUSALS:
        return None
    spec = arrcomp.from_bytes(stream)
    assert found.shape == spec.shape
    assert found.dtype == spec.dtype
    return found


def assert_reader_agrees(stream: bytes, reference: bytes = REFERENCE) -> bool:
    """An altered stream is refused where the independent reader refuses it, else both read the same: then True.

    Of a codec that the reader does not know, the stream is refused or read. Nothing is asked of a stream with a
    reference that would be too large.
    """
    if _is_too_large(stream):
        return False
    found = outcome(stream, reference=reference)
    if not checks.has_reader(stream):
        return found is not None
    try:
        expected = read_independently(stream, reference)
    except reference_reader.ERRORS:
        assert found is None, "accepted, though the independent reader finds it corrupt"
        return False
    assert found is not None, "refused, though the independent reader finds nothing wrong"
    if reference_reader.is_specified(stream):
        checks.check_same_bits(found, expected)
    return True


def read_independently(stream: bytes, reference: bytes = REFERENCE) -> Array:
    """The array of a stream as the independent reader reads it; where it needs a reference, one of these bytes."""
    own = reference_for(np.uint8, (reference_reader.reference_nbytes(stream),), reference)
    return reference_reader.read_stream(stream, own)


def _is_too_large(stream: bytes) -> bool:
    """Whether the stream needs a reference that `reference_for` does not make."""
    try:
        compressed = arrcomp.from_bytes(stream)
    except REFUSALS:
        return False
    return compressed.needs_reference and compressed.spec.nbytes > LARGEST_REFERENCE


def resized(stream: bytes, payload: bytes) -> bytes:
    """The stream with another payload, and its header and checksum to match."""
    start, _ = checks.payload_span(stream)
    head = bytearray(stream[:start])
    struct.pack_into("<Q", head, 16, len(payload))
    return checks.seal(bytes(head) + payload)


def forged(
    stream: bytes,
    *,
    shape: tuple[int, ...] | None = None,
    configuration: bytes | None = None,
    payload: bytes | None = None,
    padding: bytes | None = None,
    **fields: int | bytes,
) -> bytes:
    """The stream with other contents, all lengths and the checksum right unless `fields` says otherwise."""
    start, end = checks.payload_span(stream)
    sizes_end = FIXED_NBYTES + 8 * stream[8]
    if shape is None:
        shape = struct.unpack_from(f"<{stream[8]}Q", stream, FIXED_NBYTES)
    if configuration is None:
        configuration = stream[sizes_end:][: struct.unpack_from("<H", stream, 10)[0]]
    if payload is None:
        payload = stream[start:end]
    values: dict[str, Any] = {
        "magic": b"ARRC",
        "major": 0,
        "minor": 1,
        "codec": stream[6],
        "dtype": stream[7],
        "dimensions": len(shape),
        "frame": 0,
        "configuration_nbytes": len(configuration),
        "zeros": 0,
        "payload_nbytes": len(payload),
    } | fields
    body = struct.pack("<4s6BHIQ", *values.values()) + struct.pack(f"<{len(shape)}Q", *shape) + configuration
    body += bytes(-len(body) % 8) if padding is None else padding
    return checks.seal(body + payload)
