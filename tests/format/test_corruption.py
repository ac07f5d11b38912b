"""Truncated, altered and hostile streams: an error or an array of the promised shape, never a crash."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import FormatVersionError, SmaQ, UnknownCodecError
from small_streams import SHAPE_OFFSET, SMALL, assert_reader_agrees, assert_refused, outcome, resized, weights

pytestmark = [pytest.mark.asan, pytest.mark.wheel]

Record = Callable[[str, object], None]


@pytest.fixture(params=SMALL)
def small(request: pytest.FixtureRequest) -> bytes:
    """A small stream."""
    return SMALL[request.param]()


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


def test_altered_payloads_are_read_as_the_format_says(small: bytes, record_property: Record) -> None:
    start, end = checks.payload_span(small)
    rng = np.random.default_rng(5)
    count = 60 if start < end else 0
    record_property("forged", count)
    for _ in range(count):
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
    small = checks.stream_of(weights(4 * 4096), SmaQ(block_size=None, min_size=0))
    _, end = checks.payload_span(small)
    body = bytearray(small[:end])
    struct.pack_into("<4Q", body, _directory_at(small), *ends)
    return checks.seal(body)


def _directory_at(stream: bytes) -> int:
    start, _ = checks.payload_span(stream)
    return start + 16 + 4 * 4096 * 6 // 8  # one block's three numbers, with their padding, and the codes


def test_other_directories_of_extra_words_are_noticed() -> None:
    small = checks.stream_of(weights(4 * 4096), SmaQ(block_size=None, min_size=0))
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
