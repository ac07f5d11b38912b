"""Truncated, altered and hostile streams: an error or an array of the promised shape, never a crash."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
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
    CorruptStreamError,
    ErrorBounded,
    FloatFormat,
    FormatVersionError,
    Lossless,
    SmaQ,
    UnknownCodecError,
)
from checks import Array

SHAPE_OFFSET = 24


def _weights(count: int) -> Array:
    return np.random.default_rng(0).normal(0, 0.02, count).astype(np.float32)


def _specials() -> Array:
    array = _weights(700)
    array[::97] = np.nan
    return array


def _sparse(dtype: Any) -> Array:
    rng = np.random.default_rng(1)
    return (100 * rng.normal(0, 1, 2000) * (rng.random(2000) < 0.1)).astype(dtype)


def _long_escapes() -> Array:
    array = np.random.default_rng(2).integers(0, 50, 1500)
    array[::301] = 1 << 44
    return array


def _smooth() -> Array:
    return np.cumsum(np.random.default_rng(3).normal(0, 1, 1200))


def _buckets_and_tail() -> Array:
    return _weights(600).astype(checks.numpy_dtype("bfloat16"))


def _clusters() -> Array:
    rng = np.random.default_rng(8)
    centres = np.array([0, 10**6, -(10**9), 7])[rng.integers(0, 4, 800) * (np.arange(800) > 200)]
    return (centres + rng.integers(-5, 5, 800) * (np.arange(800) < 600)).astype(np.int32)


def _bytes_and_zeros() -> Array:
    array = np.zeros(4096 + 600, np.uint8)
    array[4096:] = np.random.default_rng(9).integers(0, 256, 600)
    return array


SMALL: dict[str, Callable[[], bytes]] = {
    "entropy, shift, exceptions": lambda: checks.stream_of(_specials(), ErrorBounded(abs=1e-5)),
    "packed": lambda: checks.stream_of(_weights(700), ErrorBounded(abs=1e-3, speed="fast")),
    "value mask": lambda: checks.stream_of(_sparse(np.float32), ErrorBounded(abs=1e-2)),
    "predictor, float64": lambda: checks.stream_of(_smooth(), ErrorBounded(abs=1e-3)),
    "pointwise": lambda: checks.stream_of(_weights(700), ErrorBounded(pointwise=1e-2)),
    "exponents": lambda: checks.stream_of(_weights(500).astype(checks.numpy_dtype("bfloat16")), Lossless()),
    "sparse integers": lambda: checks.stream_of(_sparse(np.int16), Lossless()),
    "long escapes": lambda: checks.stream_of(_long_escapes(), Lossless()),
    "constant": lambda: checks.stream_of(np.full((3, 50), 7, np.int32), Lossless()),
    "many chunks": lambda: checks.stream_of(np.zeros(20 * 4096, np.uint8), Lossless()),
    "empty": lambda: checks.stream_of(np.zeros((2, 0), np.float16), Lossless()),
    "bool": lambda: checks.stream_of(np.arange(600) % 5 == 0, Lossless()),
    "buckets": lambda: checks.stream_of(_weights(700), QSGD()),
    "buckets, norm, tail": lambda: checks.stream_of(_buckets_and_tail(), QSGD(bits=3, norm="l2", skip_incomplete=True)),
    "buckets, float16": lambda: checks.stream_of(_weights(300).astype(np.float16), QSGD(bits=8, bucket_size=16)),
    "lines": lambda: checks.stream_of(_weights(500), BaseDelta(bases=2)),
    "lines, masks, float64": lambda: checks.stream_of(_sparse(np.float64)[:1000], BaseDelta()),
    "lines, masks, int16": lambda: checks.stream_of(_sparse(np.int16)[:777], BaseDelta(bases=2)),
    "lines, all modes": lambda: checks.stream_of(_clusters(), BaseDelta(bases=2)),
    "lines, raw and zero": lambda: checks.stream_of(_bytes_and_zeros(), BaseDelta()),
    "lines, dropped bits": lambda: checks.stream_of(_weights(300), BaseDelta(drop_bits=9)),
    "lines, empty": lambda: checks.stream_of(np.zeros((2, 0), np.float32), BaseDelta()),
    "codebook": lambda: checks.stream_of(_weights(700), Codebook([-0.01, 0.01], [-0.02, 0.0, 0.02], bucket_size=100)),
    "codebook, scaled": lambda: checks.stream_of(_weights(300).astype(np.float16), Codebook.nf4()),
    "buckets, entropy": lambda: checks.stream_of(_buckets_and_tail(), QSGD(skip_incomplete=True, coding="entropy")),
    "buckets, empty": lambda: checks.stream_of(np.zeros((2, 0), np.float32), QSGD()),
    "squeezed": lambda: checks.stream_of(_specials(), S2FP8(bucket_size=100)),
    "squeezed, one bucket": lambda: checks.stream_of(_weights(300).astype(np.float16), S2FP8()),
    "small floats": lambda: checks.stream_of(_weights(100), FloatFormat("fp8_e4m3")),
    "small floats, scaled": lambda: checks.stream_of(_weights(100), FloatFormat("fp8_e5m2", scaling="bucket")),
    "small floats, blocks": lambda: checks.stream_of(_weights(300).astype(np.float16), FloatFormat("mxfp4")),
    "small floats, two levels": lambda: checks.stream_of(_weights(100), FloatFormat("nvfp4")),
    "small floats, empty": lambda: checks.stream_of(np.zeros((2, 0), np.float32), FloatFormat("nvfp4")),
    "extra words": lambda: checks.stream_of(_weights(700), SmaQ()),
    "extra words, float16": lambda: checks.stream_of(_weights(300).astype(np.float16), SmaQ(3, 12, block_size=32)),
    "extra words, none": lambda: checks.stream_of(_weights(7), SmaQ()),
    "extra words, empty": lambda: checks.stream_of(np.zeros((2, 0), np.float64), SmaQ()),
}


@pytest.fixture(params=SMALL)
def small(request: pytest.FixtureRequest) -> bytes:
    """A small stream."""
    return SMALL[request.param]()


def assert_refused(stream: bytes) -> None:
    """Reading raises CorruptStreamError, or for a newer major version its own error."""
    with pytest.raises((CorruptStreamError, FormatVersionError)):
        checks.array_of(stream, threads=1)


def outcome(stream: bytes, threads: int = 1) -> Array | None:
    """The array of a stream, or None if it is refused; nothing else may happen."""
    try:
        compressed = arrcomp.from_bytes(stream)
    except CorruptStreamError:
        return None
    try:
        decoded = np.asarray(arrcomp.decompress(compressed, threads=threads))
    except CorruptStreamError:
        return None
    assert decoded.shape == compressed.shape
    assert decoded.dtype == compressed.dtype
    return decoded


def assert_reader_agrees(stream: bytes) -> None:
    """An altered stream is refused where the independent reader refuses it, else both read the same from it."""
    decoded = outcome(stream)
    try:
        expected = reference_reader.read_stream(stream)
    except ValueError:
        assert decoded is None, "accepted, though the independent reader finds it corrupt"
        return
    assert decoded is not None, "refused, though the independent reader finds nothing wrong"
    if decoded.dtype != np.float64:  # where the format leaves open what levels above 2^50 mean
        checks.check_same_bits(decoded, expected)


def test_every_altered_byte_is_noticed(small: bytes) -> None:
    for position in range(len(small)):
        altered = bytearray(small)
        altered[position] ^= 1 << position % 8
        assert_refused(bytes(altered))


def test_every_cut_is_noticed(small: bytes) -> None:
    for length in range(len(small)):
        assert_refused(small[:length])


def test_bytes_after_the_checksum_are_noticed(small: bytes) -> None:
    for more in (b"\0", bytes(8), small):
        assert_refused(small + more)


def test_altered_payloads_never_crash(small: bytes) -> None:
    start, end = checks.payload_span(small)
    for position in range(start, end):
        for flip in (0x01, 0x80, 0xFF, small[position]):
            body = bytearray(small[:end])
            body[position] ^= flip
            outcome(checks.seal(body))


def test_altered_payloads_are_read_as_the_format_says(small: bytes) -> None:
    start, end = checks.payload_span(small)
    rng = np.random.default_rng(5)
    for _ in range(60 if start < end else 0):
        body = bytearray(small[:end])
        for position in rng.integers(start, end, rng.integers(1, 3)):
            body[position] ^= int(rng.integers(1, 256))
        assert_reader_agrees(checks.seal(body))


def test_random_payloads_never_crash() -> None:
    rng = np.random.default_rng(6)
    body = bytearray(SMALL["entropy, shift, exceptions"]())
    start, end = checks.payload_span(bytes(body))
    for _ in range(3000):
        garbage = body[:end]
        first = start + int(rng.integers(16, 48))
        garbage[first:end] = rng.integers(0, 256, end - first, dtype=np.uint8).tobytes()
        outcome(checks.seal(garbage))


def resized(stream: bytes, payload: bytes) -> bytes:
    """The stream with another payload, and its header and checksum to match."""
    start, _ = checks.payload_span(stream)
    head = bytearray(stream[:start])
    struct.pack_into("<Q", head, 16, len(payload))
    return checks.seal(bytes(head) + payload)


def test_truncated_payloads_with_a_matching_header_are_noticed(small: bytes) -> None:
    start, end = checks.payload_span(small)
    for length in range(end - start):
        assert_refused(resized(small, small[start : start + length]))


def test_longer_payloads_with_a_matching_header_are_noticed(small: bytes) -> None:
    start, end = checks.payload_span(small)
    for more in (b"\0", bytes(4), bytes(8), bytes(4096)):
        assert_refused(resized(small, small[start:end] + more))


@pytest.mark.parametrize("name", ["entropy, shift, exceptions", "packed", "long escapes", "exponents"])
def test_truncated_groups_with_a_matching_directory_never_crash(name: str) -> None:
    small = SMALL[name]()
    start, end = checks.payload_span(small)
    first = 24  # one group: bound, S, o and one entry of the directory, with its padding
    for length in range(0, end - start - first, 4):
        payload = bytearray(small[start : start + first + length])
        struct.pack_into("<I", payload, 16, length // 4)
        outcome(resized(small, bytes(payload)))


def test_other_directories_are_noticed() -> None:
    small = SMALL["many chunks"]()
    start, end = checks.payload_span(small)
    groups = 20
    ends = list(struct.unpack_from(f"<{groups}I", small, start + 16))
    others = [ends[::-1], [0] * groups, [2**32 - 1] * groups, ends[1:] + ends[:1], [*ends[:-1], ends[-1] + 1]]
    others += [[ends[1], ends[0], *ends[2:]], [*ends[:-2], ends[-1] + 4, ends[-1]], [*ends[:-1], 2**31]]
    for other in others:
        body = bytearray(small[:end])
        struct.pack_into(f"<{groups}I", body, start + 16, *other)
        assert_refused(checks.seal(body))


def _with_directory(ends: list[int]) -> bytes:
    small = checks.stream_of(_weights(4 * 4096), SmaQ(block_size=None, min_size=0))
    _, end = checks.payload_span(small)
    body = bytearray(small[:end])
    struct.pack_into("<4Q", body, _directory_at(small), *ends)
    return checks.seal(body)


def _directory_at(stream: bytes) -> int:
    start, _ = checks.payload_span(stream)
    return start + 16 + 4 * 4096 * 6 // 8  # one block's three numbers, with their padding, and the codes


def test_other_directories_of_extra_words_are_noticed() -> None:
    small = checks.stream_of(_weights(4 * 4096), SmaQ(block_size=None, min_size=0))
    ends = list(struct.unpack_from("<4Q", small, _directory_at(small)))
    _, end = checks.payload_span(small)
    assert _directory_at(small) + 32 + 4 * ends[-1] == end
    checks.check_same_bits(checks.array_of(_with_directory(ends)), checks.array_of(small))
    others = [ends[::-1], [0] * 4, [2**64 - 1] * 4, [0, 0, 0, ends[3]], [ends[3]] * 4, [*ends[:3], ends[3] + 1]]
    others += [[*ends[:3], ends[3] - 1], [ends[0] - 2, *ends[1:]], [ends[0] + 1, *ends[1:]], [2**62, *ends[1:]]]
    others += [[ends[0], 2**63, *ends[2:]], [ends[1], ends[0], *ends[2:]]]
    for other in others:
        altered = _with_directory(other)
        assert_refused(altered)
        assert outcome(altered, threads=3) is None


@pytest.mark.parametrize(
    ("offset", "layout", "values"),
    [
        pytest.param(0, "<4s", [b"\0\0\0\0", b"CRRA", b"ARRD"], id="magic"),
        pytest.param(7, "<B", [0, 29, 255], id="dtype"),
        pytest.param(8, "<B", [0, 2, 64, 65, 255], id="dimensions"),
        pytest.param(9, "<B", [1, 255], id="frame"),
        pytest.param(10, "<H", [0, 1, 8, 0xFFFF], id="configuration length"),
        pytest.param(12, "<I", [1, 2**32 - 1], id="reserved word"),
        pytest.param(16, "<Q", [0, 1, 4, 2**31, 2**32, 2**62, 2**63, 2**64 - 1, 2**64 - 8], id="payload length"),
    ],
)
def test_hostile_header_fields_are_refused(offset: int, layout: str, values: list[Any]) -> None:
    small = SMALL["packed"]()
    for value in values:
        body = bytearray(small[: -checks.CHECKSUM_NBYTES])
        struct.pack_into(layout, body, offset, value)
        assert_refused(checks.seal(body))


@pytest.mark.parametrize(
    "shape",
    [
        (2**32, 2**32),
        (2**63, 2),
        (2**64 - 1,),
        (2**60,),
        (2**59,),
        (2**40,),
        (2**31 + 700,),
        (2**32 + 700,),
        (2**62, 0),
        (2**64 - 1, 2**64 - 1, 0),
        (700, 4097),
        (0,),
        (),
        (1,),
        *((2,) * dimensions for dimensions in (31, 40, 59, 60, 64)),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["packed", "buckets", "extra words"])
def test_hostile_shapes_are_refused(name: str, shape: tuple[int, ...]) -> None:
    small = SMALL[name]()
    start, end = checks.payload_span(small)
    head = bytearray(small[:SHAPE_OFFSET])
    head[8] = len(shape)
    rest = small[SHAPE_OFFSET + 8 : start]
    body = bytes(head) + struct.pack(f"<{len(shape)}Q", *shape) + rest + small[start:end]
    assert_refused(checks.seal(body))


@pytest.mark.parametrize("count", [699, 673, 672, 701, 704, 705, 1, 4096, 4097])
def test_other_sizes_of_the_array_never_crash(count: int) -> None:
    small = SMALL["packed"]()
    _, end = checks.payload_span(small)
    body = bytearray(small[:end])
    struct.pack_into("<Q", body, SHAPE_OFFSET, count)
    outcome(checks.seal(body))


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), float("-inf")])
def test_impossible_bounds_are_refused(value: float) -> None:
    small = SMALL["packed"]()
    start, end = checks.payload_span(small)
    body = bytearray(small[:end])
    struct.pack_into("<d", body, start, value)
    assert_refused(checks.seal(body))


@pytest.mark.parametrize(("offset", "values"), [(8, [0, 3, 5, 8, 2**31, 2**32 - 1]), (12, [0, 1, 3, 8, 2**32 - 1])])
def test_impossible_group_and_entry_sizes_are_refused(offset: int, values: list[int]) -> None:
    small = SMALL["packed"]()
    start, end = checks.payload_span(small)
    for value in values:
        body = bytearray(small[:end])
        struct.pack_into("<I", body, start + offset, value)
        assert_refused(checks.seal(body))


def test_unknown_codecs_have_their_own_error() -> None:
    small = SMALL["packed"]()
    for codec in (0, 250, 255):
        body = bytearray(small[: -checks.CHECKSUM_NBYTES])
        body[6] = codec
        with pytest.raises(UnknownCodecError):
            arrcomp.from_bytes(checks.seal(body))


def test_newer_major_versions_have_their_own_error() -> None:
    body = bytearray(SMALL["packed"]()[: -checks.CHECKSUM_NBYTES])
    body[4] = 1
    with pytest.raises(FormatVersionError):
        arrcomp.from_bytes(checks.seal(body))


def test_newer_minor_versions_are_tried() -> None:
    small = SMALL["packed"]()
    body = bytearray(small[: -checks.CHECKSUM_NBYTES])
    body[5] += 1
    checks.check_same_bits(checks.array_of(checks.seal(body)), checks.array_of(small))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"codec":"lossless"}',
        b'{"codec":"error-bounded","abs":-1}',
        b"\xff\xfe",
        b"[" * 9000,
    ],
)
def test_other_configurations_are_refused(text: bytes) -> None:
    assert_refused(reconfigured(SMALL["packed"](), text))


def reconfigured(stream: bytes, text: bytes) -> bytes:
    """The stream of one dimension with another configuration."""
    start, end = checks.payload_span(stream)
    head = bytearray(stream[: SHAPE_OFFSET + 8])
    struct.pack_into("<H", head, 10, len(text))
    return checks.seal(bytes(head) + text + bytes(-(len(head) + len(text)) % 8) + stream[start:end])


@pytest.mark.parametrize(
    "parameters",
    [
        {"codec": "lossless"},
        {"bits": 0},
        {"bits": 3},
        {"bits": 9},
        {"bits": 4.0},
        {"bits": True},
        {"bits": "4"},
        {"bits": None},
        {"bucket_size": 15},
        {"bucket_size": 100},
        {"bucket_size": 512.5},
        {"bucket_size": 2**40 + 1},
        {"bucket_size": 2**64},
        {"bucket_size": -(2**70)},
        {"norm": "l2"},
        {"norm": "L3"},
        {"norm": 0},
        {"rounding": "up"},
        {"skip_incomplete": True},
        {"skip_incomplete": 0},
        {"seed": 7},
    ],
    ids=str,
)
def test_other_settings_of_buckets_are_refused(parameters: dict[str, Any]) -> None:
    stream = reconfigured(SMALL["buckets"](), json.dumps({"codec": "qsgd"} | parameters).encode())
    assert_refused(stream)
    with pytest.raises(ValueError, match=r"payload|parameters|configuration"):
        reference_reader.read_stream(stream)


@pytest.mark.parametrize(
    "parameters",
    [
        {"codec": "qsgd"},
        {},
        {"format": None},
        {"format": 8},
        {"format": "fp7"},
        {"format": "e5m3"},
        {"format": "mxfp8"},
        {"format": "fp4_e2m1"},
        {"format": "fp8_e5m2", "scaling": "tensor"},
        {"format": "fp8_e5m2", "scaling": "bucket", "bucket_size": 99},
        {"format": "fp8_e5m2", "scaling": "bucket", "bucket_size": 15},
        {"format": "fp8_e5m2", "scaling": "bucket", "bucket_size": 2**64},
        {"format": "fp8_e5m2", "scaling": "bucket", "bucket_size": "512"},
        {"format": "fp8_e5m2", "scaling": "bucket", "overflow": "infinity"},
        {"format": "fp8_e5m2", "scaling": "bucket", "scale_rule": "floor"},
        {"format": "fp8_e5m2", "scaling": "bucket", "rounding": 1},
        {"format": "fp8_e5m2", "scaling": "bucket", "seed": 1},
        {"format": "fp8_e5m2"},
    ],
    ids=str,
)
def test_other_settings_of_small_floats_are_refused(parameters: dict[str, Any]) -> None:
    small = checks.stream_of(_weights(1100), FloatFormat("fp8_e5m2", scaling="bucket"))
    stream = reconfigured(small, json.dumps({"codec": "float-format"} | parameters).encode())
    assert_refused(stream)
    with pytest.raises(ValueError, match=r"payload|parameters|configuration"):
        reference_reader.read_stream(stream)


def test_settings_of_buckets_that_are_missing_have_their_defaults() -> None:
    small = SMALL["buckets"]()
    stream = reconfigured(small, b'{"codec":"qsgd"}')
    checks.check_same_bits(checks.array_of(stream), checks.array_of(small))
    checks.check_reference(stream, checks.array_of(small))


def test_buckets_of_other_dtypes_are_refused() -> None:
    small = SMALL["buckets"]()
    for dtype in (1, 6, 7, 14, 16, 28):
        body = bytearray(small[: -checks.CHECKSUM_NBYTES])
        body[7] = dtype
        assert_refused(checks.seal(body))


@pytest.mark.parametrize(
    "parameters",
    [
        {"codec": "qsgd"},
        {"levels": [0, 1]},
        {"levels": [0, 1, 2, 3, 4]},
        {"levels": [0, 1, "2"]},
        {"levels": [0, 1, True]},
        {"levels": [0, 1, None]},
        {"levels": [0, 1, 1e39]},
        {"levels": 3},
        {"levels": None},
        {"borders": [0.01, -0.01]},
        {"borders": [0.01, 0.01]},
        {"borders": {}},
        {"table": "nf4"},
        {"table": 4},
        {"scaling": "absmax"},
        {"scaling": "linf"},
        {"scaling": 0},
        {"bucket_size": 15},
        {"bucket_size": 64},
        {"bucket_size": 100.0},
        {"bits": 2},
    ],
    ids=str,
)
def test_other_settings_of_codebooks_are_refused(parameters: dict[str, Any]) -> None:
    small = SMALL["codebook"]()
    config = arrcomp.from_bytes(small).codec.config()
    stream = reconfigured(small, json.dumps(config | parameters).encode())
    assert_refused(stream)
    with pytest.raises(ValueError, match=r"payload|parameters|configuration"):
        reference_reader.read_stream(stream)


def test_settings_of_codebooks_that_are_missing_have_their_defaults() -> None:
    small = checks.stream_of(_weights(700), Codebook([0.0], [-0.02, 0.02]))
    stream = reconfigured(small, b'{"codec":"codebook","borders":[0],"levels":[-0.02,0.02],"scaling":null}')
    checks.check_same_bits(checks.array_of(stream), checks.array_of(small))
    checks.check_reference(stream, checks.array_of(small))
