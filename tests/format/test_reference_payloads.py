"""Payloads of arrays with a reference that no writer makes: read as the format's page says, or refused by its name."""

from __future__ import annotations

import dataclasses
import json
import struct
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
import reference_reader
from arrcomp import CorruptStreamError, WrongReferenceError
from checks import Array
from forged_references import (
    CODE_GAPS,
    DIFFERENCE,
    EXACT,
    EXACT_GAPS,
    EXCLUSIVE_OR,
    HEADER,
    PLAIN,
    Payload,
    listed,
    part,
)
from small_streams import REFERENCE, SMALL, assert_reader_agrees, assert_refused, decoded, read_independently, resized

from .test_corrupt_configurations import reconfigured

pytestmark = [pytest.mark.asan, pytest.mark.wheel]

REFERENCED = [name for name in SMALL if name.startswith("referenced")]
LISTS = ["referenced, list", "referenced, list of bits", "referenced, bounded list"]
HUGE = (1 << 31, 1 << 63, (1 << 64) - 8, (1 << 64) - 1)
HASH_AT, LENGTHS_AT = 8, HEADER.size - 32


def with_field(stream: bytes, layout: str, offset: int, value: Any) -> bytes:
    """The stream with another field of the payload, and a right checksum."""
    start, end = checks.payload_span(stream)
    body = bytearray(stream[:end])
    struct.pack_into(layout, body, start + offset, value)
    return checks.seal(body)


def refused(stream: bytes) -> None:
    """Both readers refuse the stream."""
    assert_refused(stream)
    with pytest.raises(reference_reader.CorruptStreamError):
        read_independently(stream)


def test_the_payloads_that_are_forged_are_sound() -> None:
    for name in REFERENCED:
        stream = SMALL[name]()
        assert Payload.of(stream).put_into(stream) == stream
        assert assert_reader_agrees(stream)


def test_small_streams_have_every_way() -> None:
    found = {name: reference_reader.describe_comparison(SMALL[name]()) for name in REFERENCED}
    ways = {(each.way, each.is_list, each.exact > 0, each.bound > 0) for each in found.values() if each is not None}
    assert {way for way, *_ in ways} == {"plain", "difference", "exclusive or"}
    assert {("difference", is_list, True, True) for is_list in (False, True)} <= ways
    assert {("difference", is_list, False, False) for is_list in (False, True)} <= ways
    listed = {name for name, each in found.items() if each is not None and each.is_list}
    assert listed - {"referenced, empty"} == {*LISTS, "referenced, equal"}


# ---- the header


@pytest.mark.parametrize(
    ("offset", "layout", "values"),
    [
        pytest.param(0, "<d", [-1.0, 2.0**-1001, 5e-324, float("inf"), float("nan")], id="bound"),
        pytest.param(16, "<B", [3, 255], id="way"),
        pytest.param(17, "<B", [2, 255], id="list"),
        *(pytest.param(18 + i, "<B", [1, 128], id=f"zero {i}") for i in range(6)),
        pytest.param(24, "<Q", [113, *HUGE], id="number of codes"),
        pytest.param(32, "<Q", [113, *HUGE], id="number of exact elements"),
        *(pytest.param(LENGTHS_AT + 8 * i, "<Q", [1, 8, 15, *HUGE], id=f"length of part {i}") for i in range(4)),
    ],
)
@pytest.mark.parametrize("name", REFERENCED)
def test_a_field_that_no_writer_makes_is_refused(name: str, offset: int, layout: str, values: list[Any]) -> None:
    small = SMALL[name]()
    for value in values:
        refused(with_field(small, layout, offset, value))


@pytest.mark.parametrize("name", REFERENCED)
def test_a_length_that_overlaps_the_next_part_or_leaves_a_rest_is_refused(name: str) -> None:
    small = SMALL[name]()
    start, _ = checks.payload_span(small)
    for number in range(4):
        (length,) = struct.unpack_from("<Q", small, start + LENGTHS_AT + 8 * number)
        for other in (length - 8, length - 4, length + 1, length + 4, length + 8, 2 * length, 0):
            if other >= 0 and other != length:
                refused(with_field(small, "<Q", LENGTHS_AT + 8 * number, other))


@pytest.mark.parametrize("name", REFERENCED)
def test_parts_that_stand_elsewhere_are_refused(name: str) -> None:
    small = SMALL[name]()
    own = Payload.of(small)
    for number, length in enumerate(map(len, own.parts)):
        if length:
            refused(own.with_part(number, b"").put_into(small))
            refused(own.with_part(number, own.parts[number] + bytes(4)).put_into(small))
            refused(own.with_part(number, own.parts[number][:-4]).put_into(small))
        else:
            refused(own.with_part(number, part([0], np.uint32)).put_into(small))
    start, end = checks.payload_span(small)
    for more in (4, 8):
        refused(resized(small, small[start:end] + bytes(more)))


@pytest.mark.parametrize("name", REFERENCED)
def test_a_part_without_elements_or_elements_without_a_part_are_refused(name: str) -> None:
    small = SMALL[name]()
    own = Payload.of(small)
    refused(dataclasses.replace(own, codes=0 if own.codes else 1).put_into(small))
    refused(dataclasses.replace(own, exact=0 if own.exact else 1).put_into(small))
    refused(dataclasses.replace(own, is_list=1 - own.is_list).put_into(small))


@pytest.mark.parametrize("name", REFERENCED)
def test_every_altered_bit_of_the_hash_is_another_reference(name: str) -> None:
    small = SMALL[name]()
    start, end = checks.payload_span(small)
    for bit in range(64):
        body = bytearray(small[:end])
        body[start + HASH_AT + bit // 8] ^= 1 << bit % 8
        with pytest.raises(WrongReferenceError):
            decoded(checks.seal(body))
        with pytest.raises(reference_reader.WrongReferenceError):
            read_independently(checks.seal(body))


@pytest.mark.parametrize(("way", "is_list"), [(way, is_list) for way in range(3) for is_list in range(2)])
@pytest.mark.parametrize("name", REFERENCED)
def test_the_same_parts_in_another_way_are_read_or_refused(name: str, way: int, is_list: int) -> None:
    small = SMALL[name]()
    own = Payload.of(small)
    assert_reader_agrees(dataclasses.replace(own, way=way, is_list=is_list).put_into(small))
    assert_reader_agrees(dataclasses.replace(own, way=way, is_list=is_list, bound=0.0).put_into(small))
    if own.way != EXCLUSIVE_OR and own.bound > 0:
        refused(dataclasses.replace(own, way=EXCLUSIVE_OR).put_into(small))
        refused(dataclasses.replace(own, way=PLAIN).put_into(small))


def test_a_plain_array_is_no_list_and_has_neither_bound_nor_exact_elements() -> None:
    small = SMALL["referenced, plain"]()
    own = Payload.of(small)
    assert own.way == PLAIN
    refused(dataclasses.replace(own, bound=1.0).put_into(small))
    refused(dataclasses.replace(own, is_list=1).put_into(small))
    values, gaps = listed([3, 9], np.ones(2), np.float32)
    exact = own.with_part(EXACT, values).with_part(EXACT_GAPS, gaps)
    refused(dataclasses.replace(exact, exact=2).put_into(small))


@pytest.mark.parametrize("way", [DIFFERENCE, EXCLUSIVE_OR])
def test_exact_elements_without_a_bound_are_refused(way: int) -> None:
    assert assert_reader_agrees(_exact_payload([3, 9]).stream(_reference()))
    refused(dataclasses.replace(_exact_payload([3, 9]), bound=0.0, way=way).stream(_reference()))


@pytest.mark.parametrize("dtype", ["int32", "bool", "float8_e4m3fn"])
def test_a_bound_of_a_dtype_that_has_none_is_refused(dtype: str) -> None:
    reference = np.zeros(100, checks.numpy_dtype(dtype))
    codes = part([1] * 100, np.int32, 1)
    refused(Payload(bound=1.0, parts=(codes, b"", b"", b"")).stream(reference))


# ---- the parts


@pytest.mark.parametrize("name", REFERENCED)
def test_a_bound_of_a_part_is_refused(name: str) -> None:
    small = SMALL[name]()
    own = Payload.of(small)
    for number, data in enumerate(own.parts):
        for bound in (-0.0, 1.0, 2.0**-126, -1.0, float("inf"), float("nan")) if data else ():
            altered = own.with_part(number, struct.pack("<d", bound) + data[8:]).put_into(small)
            if bound == 0:
                checks.check_same_bits(decoded(altered), decoded(small))
            elif own.way == PLAIN and bound in (1.0, 2.0**-126):
                assert_reader_agrees(altered)
            else:
                refused(altered)


@pytest.mark.parametrize("chunks", [0, 1, 2, 3, 4, 5, 8, 16, 1 << 31])
@pytest.mark.parametrize("name", REFERENCED)
def test_groups_of_another_number_of_chunks_are_refused(name: str, chunks: int) -> None:
    small = SMALL[name]()
    own = Payload.of(small)
    for number, data in enumerate(own.parts):
        if data and struct.unpack_from("<I", data, 8) != (chunks,):
            refused(own.with_part(number, data[:8] + struct.pack("<I", chunks) + data[12:]).put_into(small))


@pytest.mark.parametrize(
    "name", [name for name in REFERENCED if name not in ("referenced, equal", "referenced, empty")]
)
def test_a_payload_with_a_reference_in_a_part_is_refused(name: str) -> None:
    small = SMALL[name]()
    own = Payload.of(small)
    for number, data in enumerate(own.parts):
        if data:
            refused(own.with_part(number, own.packed()).put_into(small))


COUNT = 800  # elements of the arrays below: of these 200 are in a list at most, and 100 exact


def _reference(dtype: str = "float32") -> Array:
    return np.frombuffer(REFERENCE, checks.numpy_dtype(dtype))[:COUNT]


def _list_payload(places: list[int], dtype: Any = np.int32, **fields: Any) -> Payload:
    codes, gaps = listed(places, np.arange(len(places)), dtype)
    return Payload(is_list=1, codes=len(places), parts=(codes, gaps, b"", b""), **fields)


def _exact_payload(places: list[int]) -> Payload:
    exact, gaps = listed(places, np.arange(len(places)), np.float32)
    return Payload(bound=1.0, is_list=1, exact=len(places), parts=(b"", b"", exact, gaps))


@pytest.mark.parametrize("make", [_list_payload, _exact_payload])
def test_places_up_to_the_last_element_are_read(make: Any) -> None:
    for places in ([0], [COUNT - 1], [0, COUNT - 1], list(range(100)), list(range(COUNT - 100, COUNT)), [3, 400, 799]):
        assert assert_reader_agrees(make(places).stream(_reference()))
        changed = np.flatnonzero(
            checks.bits_of(decoded(make(places).stream(_reference()))) != checks.bits_of(_reference())
        )
        assert changed.tolist() == places


@pytest.mark.parametrize("make", [_list_payload, _exact_payload])
def test_places_behind_the_last_element_are_refused(make: Any) -> None:
    for places in ([COUNT], [0, COUNT], [COUNT - 1, COUNT], [3, 1 << 31], [(1 << 32) - 1]):
        refused(make(places).stream(_reference()))


@pytest.mark.parametrize("number", [CODE_GAPS, EXACT_GAPS])
def test_places_do_not_begin_again_where_gaps_are_huge(number: int) -> None:
    payload = _list_payload([3, 9, 12]) if number == CODE_GAPS else _exact_payload([3, 9, 12])
    most = (1 << 32) - 1
    for gaps in ([3, most, 2], [most, most, most], [0, most - 1, 0], [most, 0, 0], [3, most - 3, 0]):
        refused(payload.with_part(number, part(gaps, np.uint32)).stream(_reference()))


@pytest.mark.parametrize(("make", "share"), [(_list_payload, 4), (_exact_payload, 8)])
def test_longer_lists_are_refused(make: Any, share: int) -> None:
    assert assert_reader_agrees(make(list(range(0, COUNT, share))).stream(_reference()))
    refused(make(list(range(COUNT // share + 1))).stream(_reference()))
    assert assert_reader_agrees(make([2]).stream(_reference()[:share]))
    refused(make([2]).stream(_reference()[: share - 1]))
    refused(make(list(range(COUNT // share))).stream(_reference()[:-1]))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "int32", "float32", "uint64", "complex64"]
)
@pytest.mark.parametrize("way", [DIFFERENCE, EXCLUSIVE_OR])
def test_any_codes_without_loss(dtype: str, way: int) -> None:
    reference = _reference(dtype)
    width = reference.itemsize // (2 if reference.dtype.kind == "c" else 1)
    n = COUNT * reference.itemsize // width
    rng = np.random.default_rng(12)
    kind = np.dtype(f"{'i' if way == DIFFERENCE else 'u'}{width}")
    limits = np.iinfo(kind)
    ends = np.array([limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1], kind)
    anything = rng.integers(limits.min, limits.max, n, kind, endpoint=True)
    anything[:6] = ends
    whole = Payload(way=way, parts=(part(anything, kind, 1), b"", b"", b""))
    assert assert_reader_agrees(whole.stream(reference))
    places = np.sort(rng.permutation(n)[:90]).tolist()
    codes, gaps = listed(places, anything[:90], kind)
    assert assert_reader_agrees(Payload(way=way, is_list=1, codes=90, parts=(codes, gaps, b"", b"")).stream(reference))


@pytest.mark.parametrize("dtype", checks.FLOATS)
@pytest.mark.parametrize("bound", [2.0**-110, 1e-9, 1e-3, 1.0, 1e30, 3e38, 1e39, 1e300])
def test_any_codes_with_a_bound(dtype: str, bound: float) -> None:
    reference = _reference(dtype).copy()
    bits = checks.bits_of(reference)
    infinity = int(checks.bits_of(np.array([np.inf], reference.dtype))[0])
    bits[:60:4], bits[1:60:4], bits[2:60:4] = infinity, infinity + 3, 1
    width = 8 if dtype == "float64" else 4
    rng = np.random.default_rng(13)
    most = 2**50 if width == 8 else 2**31 - 1
    codes = (rng.integers(-most, most, COUNT, endpoint=True) >> rng.integers(0, 50, COUNT)).astype(f"i{width}")
    codes[:9] = -most, most, most - 1, 0, 1, -1, 0, -most, 0
    if width == 4:
        codes[20:28] = -(2**31), 2**31 - 1, 2**24, 2**24 + 1, -(2**24) - 1, -(2**31), 0, 1
    places = np.sort(rng.permutation(COUNT)[:70]).tolist()
    any_bits = np.frombuffer(rng.bytes(70 * reference.itemsize), reference.dtype)
    exact, gaps = listed(places, any_bits, reference.dtype)
    whole = Payload(bound=bound, exact=70, parts=(part(codes, f"i{width}", 1), b"", exact, gaps))
    assert assert_reader_agrees(whole.stream(reference), reference.tobytes())
    stored, code_gaps = listed(places[::-1][::-1], codes[:70], f"i{width}")
    both = Payload(bound=bound, is_list=1, codes=70, exact=70, parts=(stored, code_gaps, exact, gaps))
    assert assert_reader_agrees(both.stream(reference), reference.tobytes())


def test_exact_elements_replace_what_codes_make() -> None:
    reference = _reference()
    codes, gaps = listed([5, 6], np.array([7, 8]), np.int32)
    exact, exact_gaps = listed([6, 7], np.array([1.5, np.nan]), np.float32)
    lists = Payload(bound=0.25, is_list=1, codes=2, exact=2, parts=(codes, gaps, exact, exact_gaps))
    stream = lists.stream(reference)
    expected = reference.copy()
    step = np.float32(0.25 - 0.25 * 2.0**-22) * np.float32(2)
    expected[5] += np.float32(8) * step
    expected[6:8] = 1.5, np.nan
    checks.check_same_bits(decoded(stream), expected)
    assert assert_reader_agrees(stream)


def test_an_element_without_a_code_keeps_its_bits() -> None:
    bits = np.array([0x7FC00001, 0xFF800001, 0x80000000, 0x7F800000, 1, 0x3F800000] * 20, np.uint32)
    reference = bits.view(np.float32)
    payload = Payload(bound=1.0, parts=(part([0] * 120, np.int32, 1), b"", b"", b""))
    found = decoded(payload.stream(reference), reference=reference.tobytes())
    checks.check_same_bits(found, reference)


# ---- streams


@pytest.mark.parametrize("predictor", [None, "auto", "interpolation", "lorenzo"])
@pytest.mark.parametrize("name", ["referenced, list", "referenced, bounded", "referenced, plain"])
def test_a_payload_with_a_reference_needs_its_predictor(name: str, predictor: str | None) -> None:
    small = SMALL[name]()
    config = arrcomp.from_bytes(small).codec.config() | {"predictor": predictor}
    altered = reconfigured(small, json.dumps(config).encode())
    assert not arrcomp.from_bytes(altered).needs_reference
    assert not assert_reader_agrees(altered)


def test_other_payloads_are_refused_where_the_configuration_has_a_reference() -> None:
    for name in ("sparse integers", "exponents", "empty", "predicted, lossless"):
        refused(reconfigured(SMALL[name](), b'{"codec":"lossless","predictor":"reference"}'))


def test_a_reference_in_a_frame() -> None:
    pytest.importorskip("zstandard")
    reference = np.arange(9000, dtype=np.int16)
    x = reference + np.int16(1) * (np.arange(9000) % 2 == 0)
    c = arrcomp.compress(x, reference=reference)
    framed = c.to_bytes(zstd_level=9)
    assert checks.is_framed(framed)
    checks.check_same_bits(checks.array_of(framed, reference=reference), x)
    checks.check_reference(framed, x, reference)
    with pytest.raises(WrongReferenceError):
        checks.array_of(framed, reference=x)


def test_the_hash_is_that_of_the_page() -> None:
    rng = np.random.default_rng(14)
    for nbytes in (0, 1, 3, 4, 127, 128, 129, 4096, 65535, 65536, 65537, 65664, 200_001, 1_000_000):
        data = np.frombuffer(rng.bytes(nbytes), np.uint8)
        assert arrcomp.content_hash(data) == reference_reader.content_hash(data.tobytes()), nbytes
    for name in checks.DTYPES:
        array = np.frombuffer(REFERENCE, checks.numpy_dtype(name))
        if name == "bool":
            array = np.frombuffer(REFERENCE, np.uint8) % 2 == 1
        assert arrcomp.content_hash(array) == reference_reader.content_hash(array.tobytes()), name
        assert arrcomp.content_hash(array.reshape(8, -1)[:, ::3]) == reference_reader.content_hash(
            array.reshape(8, -1)[:, ::3].tobytes()
        ), name


def test_late_faults_are_found_before_or_after_the_reference_but_never_pass() -> None:
    small = SMALL["referenced, all"]()
    start, end = checks.payload_span(small)
    body = bytearray(small[:end])
    body[start + HEADER.size + 24] |= 12  # a coder that there is none of
    with pytest.raises(CorruptStreamError):
        decoded(checks.seal(body))
    with pytest.raises((CorruptStreamError, WrongReferenceError)):
        decoded(checks.seal(body), reference=bytes(8))
