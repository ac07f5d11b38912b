"""Streams with other configurations than their payloads have: refused, or read as the format says."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

import arrcomp
import checks
import reference_reader
from arrcomp import Codebook, FloatFormat
from small_streams import SHAPE_OFFSET, SMALL, assert_refused, weights

pytestmark = pytest.mark.asan


def reconfigured(stream: bytes, text: bytes) -> bytes:
    """The stream of one dimension with another configuration."""
    start, end = checks.payload_span(stream)
    head = bytearray(stream[: SHAPE_OFFSET + 8])
    struct.pack_into("<H", head, 10, len(text))
    return checks.seal(bytes(head) + text + bytes(-(len(head) + len(text)) % 8) + stream[start:end])


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
    with pytest.raises(reference_reader.CorruptStreamError):
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
    small = checks.stream_of(weights(1100), FloatFormat("fp8_e5m2", scaling="bucket"))
    stream = reconfigured(small, json.dumps({"codec": "float-format"} | parameters).encode())
    assert_refused(stream)
    with pytest.raises(reference_reader.CorruptStreamError):
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
    with pytest.raises(reference_reader.CorruptStreamError):
        reference_reader.read_stream(stream)


def test_settings_of_codebooks_that_are_missing_have_their_defaults() -> None:
    small = checks.stream_of(weights(700), Codebook([0.0], [-0.02, 0.02]))
    stream = reconfigured(small, b'{"codec":"codebook","borders":[0],"levels":[-0.02,0.02],"scaling":null}')
    checks.check_same_bits(checks.array_of(stream), checks.array_of(small))
    checks.check_reference(stream, checks.array_of(small))
