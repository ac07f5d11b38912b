"""Truncated, altered and hostile streams: an error or an array of the promised shape, never a crash."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import FormatVersionError, SmaQ, UnknownCodecError
from predicted_fields import STEPS_OFFSET, WEIGHTED, behind_steps, payload_of, weighted, weights_at
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
    """Bytes behind the payload's header are altered in one way each."""
    start, _ = checks.payload_span(small)
    _alter(small, lambda flips, at: flips if at < start + 64 else [flips[(at + at // 4) % len(flips)]])


@pytest.mark.full
def test_payloads_that_are_altered_in_all_ways_never_crash(small: bytes) -> None:
    _alter(small, lambda flips, _: flips)


def _alter(small: bytes, chosen: Callable[[list[int], int], list[int]]) -> None:
    start, end = checks.payload_span(small)
    for position in range(start, end):
        for flip in chosen([0x01, 0x80, 0xFF, small[position]], position):
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


@pytest.mark.parametrize(
    "name", ["entropy, shift, exceptions", "packed", "long escapes", "tables of tiles", "contexts", "exponents"]
)
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


PREDICTED = [name for name in SMALL if name.startswith("predicted")]
AXES_OFFSET, LENGTHS_OFFSET = 16, 48  # in the payload of a predicted array
MASK_FLAG, MULTIPLES_FLAG = 16, 64  # of its byte 13
MASKED = [
    "predicted, exact",
    "predicted, exact, float64",
    "predicted, mask",
    "predicted, mask of short lines",
    "predicted, lossless differences",
]


@pytest.mark.parametrize(
    ("offset", "layout", "values"),
    [
        pytest.param(0, "<d", [-1.0, 2.0**-1001, 5e-324, float("inf"), float("nan")], id="bound"),
        pytest.param(8, "<I", [1, 4, 2**31], id="mark"),
        pytest.param(12, "<B", [65, 255], id="number of steps"),
        pytest.param(13, "<B", [32, 47, 48, 128, 192, 255], id="differences, mask, multiples"),
        pytest.param(14, "<H", [0, 4097, 65535], id="scale"),
        pytest.param(AXES_OFFSET, "<Q", [0, 2, 2**32, 2**63, 2**64 - 1], id="first axis"),
        pytest.param(AXES_OFFSET + 24, "<Q", [0, 1, 2**63, 2**64 - 1], id="last axis"),
        pytest.param(LENGTHS_OFFSET, "<Q", [0, 1, 16, 2**31, 2**63, 2**64 - 8, 2**64 - 1], id="length of codes"),
        pytest.param(
            LENGTHS_OFFSET + 8, "<Q", [1, 8, 2**32, 2**63, 2**64 - 8, 2**64 - 1], id="length of exact elements"
        ),
    ],
)
@pytest.mark.parametrize("name", PREDICTED)
def test_hostile_headers_of_predictions_are_refused(name: str, offset: int, layout: str, values: list[Any]) -> None:
    for value in values:
        assert_refused(_with(SMALL[name](), layout, offset, value))


def _with(small: bytes, layout: str, offset: int, *values: Any) -> bytes:
    """The stream with other values at a place of its payload."""
    start, end = checks.payload_span(small)
    body = bytearray(small[:end])
    struct.pack_into(layout, body, start + offset, *values)
    return checks.seal(body)


@pytest.mark.parametrize(
    "step", [(4, 1, 4095), (255, 0, 1), (3, 9, 4095), (3, 16, 1), (3, 255, 1), (3, 1, 0), (3, 0, 4097)], ids=str
)
@pytest.mark.parametrize("name", ["predicted", "predicted, exact", "predicted, lossless"])
def test_hostile_steps_are_refused(name: str, step: tuple[int, int, int]) -> None:
    assert_refused(_with(SMALL[name](), "<BBH", STEPS_OFFSET, *step))


MULTIPLES = ["predicted, multiples", "predicted, multiples, exact, float64"]


@pytest.mark.parametrize("number", [0.0, -1.0, 2.0**-501, 2.0**501, math.inf, math.nan])
@pytest.mark.parametrize("place", [0, 8])
@pytest.mark.parametrize("name", MULTIPLES)
def test_hostile_multiples_are_refused(name: str, place: int, number: float) -> None:
    small = SMALL[name]()
    start, _ = checks.payload_span(small)
    offset = behind_steps(payload_of(small))
    assert struct.unpack_from("<dddQ", small, start + offset) == (1.0, 100.0, 0.0, 0)
    assert_refused(_with(small, "<d", offset + place, number))
    assert assert_reader_agrees(_with(small, "<d", offset + place, 16.0))  # it is the number that was refused


def test_multiples_are_numbers_of_the_arithmetic() -> None:
    small = SMALL["predicted, multiples"]()
    assert_refused(_with(small, "<d", behind_steps(payload_of(small)), 0.1))


@pytest.mark.parametrize("name", MULTIPLES)
def test_hostile_offsets_are_refused(name: str) -> None:
    small = SMALL[name]()
    place = behind_steps(payload_of(small)) + 16
    for number in (2.0**501, -(2.0**501), math.inf, -math.inf, math.nan):
        assert_refused(_with(small, "<d", place, number))
    for number in (-3.5, 2.0**60, -(2.0**60), 2.0**-100):
        assert assert_reader_agrees(_with(small, "<d", place, number))


@pytest.mark.parametrize("name", MULTIPLES)
def test_hostile_corrections_are_refused(name: str) -> None:
    small = SMALL[name]()
    place = behind_steps(payload_of(small)) + 24
    for bits in (9, 64, 2**32, 2**63, 2**64 - 1):
        assert_refused(_with(small, "<Q", place, bits))
    for bits in (1, 2, 8):
        assert assert_reader_agrees(_with(small, "<Q", place, bits))


def test_an_array_with_a_bound_has_no_multiples() -> None:
    assert_refused(_with(SMALL["predicted, multiples"](), "<d", 0, 1e-3))


def _with_axes(small: bytes, axes: tuple[int, ...], differences: int = 15) -> bytes:
    """The stream with other axes, and differences along these."""
    return _with(_with(small, "<B", 13, differences), "<4Q", AXES_OFFSET, *axes)


@pytest.mark.parametrize("differences", [0, 1, 8, 15])
@pytest.mark.parametrize(
    "axes", [(1, 1, 1, 720), (720, 1, 1, 1), (1, 720, 1, 1), (2, 3, 4, 30), (10, 9, 8, 1)], ids=str
)
def test_other_axes_of_as_many_elements_are_read(axes: tuple[int, ...], differences: int) -> None:
    assert assert_reader_agrees(_with_axes(SMALL["predicted, differences"](), axes, differences))


@pytest.mark.parametrize("axes", [(1, 1, 1, 719), (1, 1, 2, 720), (2**32, 2**32, 1, 720), (2**61, 8, 1, 720)], ids=str)
def test_axes_of_another_number_of_elements_are_refused(axes: tuple[int, ...]) -> None:
    assert_refused(_with_axes(SMALL["predicted, differences"](), axes))


@pytest.mark.parametrize("name", PREDICTED)
def test_weights_without_room_are_refused(name: str) -> None:
    """A step that has weights, at the end of the payload."""
    small = SMALL[name]()
    start, _ = checks.payload_span(small)
    head = small[start : start + 12] + b"\1" + small[start + 13 : start + STEPS_OFFSET]
    for behind in (b"", b"\0\0\0", b"\0\0\0\0"):
        assert_refused(resized(small, head + struct.pack("<BBH", 3, WEIGHTED, 1) + behind))


@pytest.mark.parametrize("name", PREDICTED)
def test_steps_in_any_order_are_read(name: str) -> None:
    """Steps that no writer makes: along any axis that is long enough, of any kind and scale."""
    small = SMALL[name]()
    start, end = checks.payload_span(small)
    sizes = struct.unpack_from("<4Q", small, start + AXES_OFFSET)
    others = small[start + 13] & (MASK_FLAG | MULTIPLES_FLAG)
    codes_at = start + behind_steps(payload_of(small))
    rng = np.random.default_rng(9)
    for _ in range(40):
        left, steps, weights = list(sizes), [], []
        for _ in range(int(rng.integers(0, 20))):
            long = [axis for axis in range(4) if left[axis] >= 2]
            if long:
                axis = int(rng.choice(long))
                may_keep = left[axis] % 2 == 0 and left[axis] >= 8
                kind = int(rng.integers(4)) | int(rng.choice([0, 0, WEIGHTED])) | may_keep * int(rng.choice([0, 4]))
                kind &= ~1 if kind & WEIGHTED else ~0
                left[axis] = -(-left[axis] // 2) + (kind >> 2 & 1)
                steps.append(struct.pack("<BBH", axis, kind, int(rng.integers(1, 4097))))
                weights += [rng.integers(-(2**15), 2**15, 2).astype("<i2").tobytes()] * (kind >= WEIGHTED)
        packed = b"".join(reversed(steps)) + b"".join(weights)
        head = bytearray(small[start : start + STEPS_OFFSET])
        head[12:14] = len(steps), int(rng.integers(16)) + others
        altered = bytes(head) + packed + bytes(-len(packed) % 8) + small[codes_at:end]
        assert assert_reader_agrees(resized(small, altered))


@pytest.mark.parametrize("axes", [(1, 1, 6, 120), (1, 8, 9, 10)], ids=str)
def test_the_last_slice_of_many_may_be_kept(axes: tuple[int, ...]) -> None:
    """Of an even number of slices, 8 or more."""
    small = _with_axes(SMALL["predicted, differences"](), axes, 0)
    start, end = checks.payload_span(small)
    assert small[start + 12] == 0
    for axis, size in enumerate(axes):
        head = bytearray(small[start : start + STEPS_OFFSET])
        head[12] = 1
        step = struct.pack("<BBH", axis, 5, 4095) + bytes(4)
        altered = resized(small, bytes(head) + step + small[start + STEPS_OFFSET : end])
        if size >= 8 and size % 2 == 0:
            assert assert_reader_agrees(altered)
        else:
            assert_refused(altered)


@pytest.mark.parametrize("name", PREDICTED)
def test_a_step_along_an_axis_of_one_slice_is_refused(name: str) -> None:
    small = SMALL[name]()
    start, _ = checks.payload_span(small)
    payload = payload_of(small)
    count, own_weights, codes_at = payload[12], weights_at(payload), behind_steps(payload)
    assert struct.unpack_from("<Q", small, start + AXES_OFFSET) == (1,)
    weights = payload[own_weights : own_weights + 4 * weighted(payload)]
    steps = struct.pack("<BBH", 0, 0, 1) + payload[STEPS_OFFSET:own_weights] + weights
    head = payload[:12] + bytes([count + 1]) + payload[13:STEPS_OFFSET]
    assert_refused(resized(small, head + steps + bytes(-len(steps) % 8) + payload[codes_at:]))


class Parts(NamedTuple):
    """The payload of a predicted array that has all parts, cut up."""

    head: bytes
    codes: bytes
    mask_head: bytes
    mask: bytes
    exact: bytes

    def joined(self) -> bytes:
        """The payload, with the lengths that the parts have."""
        head = bytearray(self.head)
        struct.pack_into("<QQ", head, LENGTHS_OFFSET, len(self.codes), len(self.exact))
        mask_head = self.mask_head[:16] + struct.pack("<Q", len(self.mask))
        mask = _padded(self.mask) if self.exact else self.mask
        return bytes(head) + _padded(self.codes) + mask_head + mask + self.exact


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 8)


def _parts(small: bytes) -> Parts:
    start, end = checks.payload_span(small)
    payload = small[start:end]
    codes_nbytes, exact_nbytes = struct.unpack_from("<QQ", payload, LENGTHS_OFFSET)
    codes_at = behind_steps(payload)
    mask_at = codes_at + (codes_nbytes + 7) // 8 * 8 + 24
    (mask_nbytes,) = struct.unpack_from("<Q", payload, mask_at - 8)
    return Parts(
        payload[:codes_at],
        payload[codes_at : codes_at + codes_nbytes],
        payload[mask_at - 24 : mask_at],
        payload[mask_at : mask_at + mask_nbytes],
        payload[len(payload) - exact_nbytes :],
    )


def test_the_parts_of_a_predicted_array_make_it() -> None:
    small = SMALL["predicted, exact"]()
    assert resized(small, _parts(small).joined()) == small


@pytest.mark.parametrize("value", [1.0, 2.0**-126, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("part", ["codes", "mask", "exact"])
def test_bounds_of_the_payloads_in_a_predicted_array_are_refused(part: str, value: float) -> None:
    small = SMALL["predicted, exact"]()
    parts = _parts(small)
    altered = struct.pack("<d", value) + getattr(parts, part)[8:]
    assert_refused(resized(small, parts._replace(**{part: altered}).joined()))


@pytest.mark.parametrize("part", ["codes", "mask", "exact"])
def test_predicted_arrays_in_a_predicted_array_are_refused(part: str) -> None:
    small = SMALL["predicted, exact"]()
    parts = _parts(small)
    assert_refused(resized(small, parts._replace(**{part: parts.joined()}).joined()))


@pytest.mark.parametrize("name", MASKED)
def test_hostile_masks_are_refused(name: str) -> None:
    small = SMALL[name]()
    parts = _parts(small)
    fill, axes, nbytes = struct.unpack("<QQQ", parts.mask_head)
    width = checks.array_of(small).dtype.itemsize * 8
    heads = [(fill, other, nbytes) for other in (16, 255, 2**63)]
    heads += [(fill, axes, other) for other in (0, nbytes - 4, nbytes + 4, 2**32, 2**63, 2**64 - 8)]
    heads += [(fill | 1 << width, axes, nbytes)] if width < 64 else []
    payload = parts.joined()
    at = payload.index(parts.mask_head + parts.mask)
    for head in heads:
        assert_refused(resized(small, payload[:at] + struct.pack("<QQQ", *head) + payload[at + 24 :]))
    assert_refused(resized(small, parts._replace(mask=b"").joined()))


@pytest.mark.parametrize("name", MASKED)
def test_masks_along_any_axes_are_read(name: str) -> None:
    """And of any fill. Axes of one place, and short ones at the end, which lines have, are refused."""
    small = SMALL[name]()
    parts = _parts(small)
    sizes = struct.unpack_from("<4Q", parts.head, AXES_OFFSET)
    refused = [size == 1 or math.prod(sizes[axis + 1 :]) < 32 for axis, size in enumerate(sizes[:3])]
    for axes in range(16):
        altered = parts._replace(mask_head=struct.pack("<QQQ", 5, axes, 0)).joined()
        if any(own and axes >> axis & 1 for axis, own in enumerate(refused)):
            assert_refused(resized(small, altered))
        else:
            assert assert_reader_agrees(resized(small, altered))


@pytest.mark.parametrize("name", PREDICTED)
def test_a_mask_is_there_or_is_not(name: str) -> None:
    small = SMALL[name]()
    start, _ = checks.payload_span(small)
    assert (name in MASKED) == bool(small[start + 13] & MASK_FLAG)
    assert_refused(_with(small, "<B", 13, small[start + 13] ^ MASK_FLAG))


@pytest.mark.parametrize("count", [699, 673, 672, 701, 704, 705, 1, 4096, 4097])
def test_other_sizes_of_the_array_never_crash(count: int) -> None:
    small = SMALL["packed"]()
    _, end = checks.payload_span(small)
    body = bytearray(small[:end])
    struct.pack_into("<Q", body, SHAPE_OFFSET, count)
    outcome(checks.seal(body))


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), float("-inf")])
def test_impossible_bounds_are_refused(value: float) -> None:
    assert_refused(_with(SMALL["packed"](), "<d", 0, value))


@pytest.mark.parametrize(("offset", "values"), [(8, [0, 3, 5, 8, 2**31, 2**32 - 1]), (12, [0, 1, 3, 8, 2**32 - 1])])
def test_impossible_group_and_entry_sizes_are_refused(offset: int, values: list[int]) -> None:
    for value in values:
        assert_refused(_with(SMALL["packed"](), "<I", offset, value))


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
