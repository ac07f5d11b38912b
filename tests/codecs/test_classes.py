"""Classes: a chunk's own table, where no static one is like the distribution of its words (FORMAT.md, section 4.5)."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import checks
import reference_reader
from arrcomp import Codec, CorruptStreamError, ErrorBounded, Lossless
from checks import Array
from reference_reader import Chunk
from small_streams import assert_reader_agrees

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

CHUNK = 4096
FLOATS = ("float32", "float64")
INTEGERS = ("int16", "uint16", "int32", "uint32", "int64", "uint64")
SIZES = [600, 4096, 9000, 4 * CHUNK + 1]


def heavy_tails(name: str, count: int, bits: float = 14, seed: int = 0) -> Array:
    """Integers of any length up to `bits`, all lengths about as frequent: indices of a vocabulary are like that."""
    numbers = np.floor(2 ** np.random.default_rng(seed).uniform(0, bits, count))
    return np.asarray(numbers.astype(checks.numpy_dtype(name)))


def chunks_of(array: Array, codec: Codec) -> list[Chunk]:
    """What the writer chose; the stream is read by both readers."""
    return reference_reader.describe(checks.check_codec(array, codec))


def assert_has_classes(array: Array, codec: Codec) -> list[Chunk]:
    """All full chunks have them."""
    chunks = chunks_of(array, codec)
    assert all(chunk.has_classes for chunk in chunks if chunk.m >= 600)
    return chunks


def entropy(array: Array) -> float:
    """Bits that an element takes by how often each value is in the array."""
    _, counts = np.unique(array, return_counts=True)
    return float(np.log2(len(array)) - (counts * np.log2(counts)).sum() / len(array))


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("name", INTEGERS)
def test_every_integer_is_kept(name: str, count: int) -> None:
    assert_has_classes(heavy_tails(name, count), Lossless())


@pytest.mark.parametrize("name", FLOATS)
def test_bounds_are_kept(name: str) -> None:
    array = heavy_tails(name, 9000, bits=20) * np.random.default_rng(1).choice([-0.3, 0.3], 9000).astype(name)
    assert_has_classes(array, ErrorBounded(abs=0.1))


def test_indices_of_a_vocabulary_take_their_entropy() -> None:
    """The n-th of 50,000 words is there one time in n + 3 (G. K. Zipf, 1935)."""
    share = 1 / (np.arange(50_000) + 3.0)
    tokens = np.random.default_rng(2).choice(len(share), 1 << 18, p=share / share.sum())
    exact = -(share / share.sum() * np.log2(share / share.sum())).sum()
    for name in ("uint16", "int32", "int64"):
        start, end = checks.payload_span(checks.stream_of(tokens.astype(name), Lossless()))
        assert 8 * (end - start) / len(tokens) < 1.012 * exact


def test_any_frequencies_of_few_words_take_their_entropy() -> None:
    shares = np.array([1, 1, 9, 1, 30, 1, 1, 9, 1, 1, 30, *[5] * 40])
    array = np.random.default_rng(3).choice(len(shares), 1 << 18, p=shares / shares.sum()).astype(np.int32)
    start, end = checks.payload_span(checks.stream_of(array, Lossless()))
    assert 8 * (end - start) / len(array) < entropy(array) + 0.25


@pytest.mark.parametrize("bits", [3, 5, 6, 7, 9, 10, 14, 17, 18, 25, 31, 32])
def test_words_of_any_length(bits: int) -> None:
    """Classes tell as many bits as there are classes for; a state gives 16 of the others at once."""
    array = heavy_tails("uint32", 9000, bits)
    array[::3] = 1 + np.arange(3000) % 2
    chunks = chunks_of(array, Lossless())
    told = {chunk.told for chunk in chunks if chunk.has_classes}
    assert told <= {5 if bits <= 6 else 4 if bits <= 7 else 3 if bits <= 10 else 2 if bits <= 17 else 1}
    assert told or bits < 7


@pytest.mark.parametrize("count", [CHUNK - 32, CHUNK, 3 * CHUNK])
@pytest.mark.parametrize("bits", [33, 34, 36])
def test_longer_words_have_low_bits(bits: int, count: int) -> None:
    chunks = assert_has_classes(heavy_tails("uint64", count, bits), Lossless())
    assert all(chunk.shift == bits - 32 for chunk in chunks)
    assert any(chunk.carrying for chunk in chunks) == (bits > 33 and count >= CHUNK)


def test_chunks_of_a_group_share_a_table() -> None:
    chunks = assert_has_classes(heavy_tails("int32", 1 << 18), Lossless())
    assert [chunk.own_frequencies for chunk in chunks] == [False, True] * 32


def test_a_chunk_unlike_the_one_behind_has_its_own() -> None:
    array = heavy_tails("int32", 1 << 18)
    array[:CHUNK] = heavy_tails("int32", CHUNK, bits=20)
    chunks = assert_has_classes(array, Lossless())
    assert chunks[0].own_frequencies
    assert chunks[1].own_frequencies
    assert chunks[0].told != chunks[1].told


@pytest.mark.parametrize("count", [640, CHUNK, 2 * CHUNK + 640])
def test_the_last_rows_of_a_group_are_dry(count: int) -> None:
    assert all(chunk.dry_rows for chunk in assert_has_classes(heavy_tails("int16", count), Lossless()))


def test_rows_that_no_state_has_room_for_are_not_dry() -> None:
    assert not any(chunk.dry_rows for chunk in assert_has_classes(heavy_tails("uint32", CHUNK, bits=32), Lossless()))


def test_the_fast_mode_has_none() -> None:
    assert not any(chunk.has_classes for chunk in chunks_of(heavy_tails("int32", 9000), Lossless(speed="fast")))


@pytest.mark.parametrize("name", ["float32", "int32", "uint64"])
def test_normal_numbers_have_none(name: str) -> None:
    numbers = np.random.default_rng(4).normal(1000, 100, 9000).astype(name)
    codec = ErrorBounded(abs=0.1) if name == "float32" else Lossless()
    assert not any(chunk.has_classes for chunk in chunks_of(numbers, codec))


def test_zeros_beside_classes_have_a_mask() -> None:
    array = heavy_tails("int32", 9000, bits=20)
    array[np.random.default_rng(5).random(9000) < 0.8] = 0
    masks = {chunk.mask for chunk in chunks_of(array, Lossless()) if chunk.has_classes}
    assert masks <= {"values", "marks"}
    assert masks


def test_missing_elements_stand_beside_classes() -> None:
    array = heavy_tails("float32", 9000, bits=20)
    array[np.arange(9000) // 40 % 5 == 2] = np.nan
    assert any(chunk.has_classes and chunk.missing for chunk in chunks_of(array, ErrorBounded(abs=0.1)))


def test_exceptions_stand_beside_classes() -> None:
    array = heavy_tails("float32", 9000, bits=20)
    array[[5, 5000]] = [1e30, -np.inf]
    assert any(chunk.has_classes and chunk.exceptions for chunk in chunks_of(array, ErrorBounded(abs=0.1)))


def test_differences_have_classes() -> None:
    chunks = assert_has_classes(np.cumsum(heavy_tails("int64", 9000)), Lossless())
    assert all(chunk.predictor for chunk in chunks)


def test_numbers_of_multiples_have_classes() -> None:
    chunks = assert_has_classes(heavy_tails("int64", 9000) * 1000, Lossless())
    assert all(chunk.unit == 1000 for chunk in chunks)


@pytest.mark.parametrize("predictor", ["auto", "lorenzo", "columns"])
def test_predicted_arrays_have_classes(predictor: Any) -> None:
    numbers = heavy_tails("float32", 120 * 150, bits=12).reshape(120, 150)
    checks.check_codec(np.cumsum(numbers, axis=0, dtype=np.float32), Lossless(predictor=predictor))


@given(st.data())
def test_any_array(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*FLOATS, *INTEGERS]))
    dtype = checks.numpy_dtype(name)
    most = 15 if dtype.itemsize == 2 else 8 * dtype.itemsize - 1
    count, bits = data.draw(st.integers(256, 9000)), data.draw(st.floats(1, most))
    array = heavy_tails(name, count, bits, seed=data.draw(st.integers(0, 2**32)))
    array[np.random.default_rng(0).random(count) < data.draw(st.floats(0, 1))] //= 3
    checks.check_codec(array, data.draw(st.sampled_from([Lossless(), Lossless(predictor="auto")])))


# ---- corrupt tables


def classes_of() -> tuple[bytearray, int]:
    """A stream of one chunk with classes, without its checksum, and where their table is."""
    stream = checks.stream_of(heavy_tails("uint16", CHUNK), Lossless())
    start, _ = checks.payload_span(stream)
    head = start + 24  # behind the bound, S, o and the only group's end
    assert stream[head + 2] == 253
    return bytearray(stream[: -checks.CHECKSUM_NBYTES]), head + 4 + 4 * (stream[head + 1] >> 7)


@pytest.mark.parametrize("told", [0, 6, 255])
def test_classes_that_tell_other_bits_are_corrupt(told: int) -> None:
    body, at = classes_of()
    body[at] = told
    assert_corrupt(body)


@pytest.mark.parametrize("count", [0, 1, 65, 255, 2**24 - 1])
def test_other_numbers_of_frequencies_are_corrupt(count: int) -> None:
    body, at = classes_of()
    body[at + 1 : at + 4] = struct.pack("<I", count)[:3]
    assert_corrupt(body)


@pytest.mark.parametrize("bits", [0, ~0], ids=["none", "too many"])
def test_other_sums_of_frequencies_are_corrupt(bits: int) -> None:
    body, at = classes_of()
    rows = -(-int.from_bytes(body[at + 1 : at + 4], "little") // 32)
    body[at + 4 : at + 4 + 24 * rows] = bytes([bits & 255]) * (24 * rows)
    assert_corrupt(body)


def test_other_frequencies_are_read_as_the_format_says() -> None:
    """What is decoded then is anything, but the same by both readers; or words run out, or are left over."""
    body, at = classes_of()
    for byte in range(4, 52):
        for bit in (1, 16, 128):
            altered = bytearray(body)
            altered[at + byte] ^= bit
            assert_reader_agrees(checks.seal(altered))


def assert_corrupt(body: bytearray) -> None:
    """Both readers refuse the stream."""
    stream = checks.seal(body)
    with pytest.raises(CorruptStreamError):
        checks.array_of(stream)
    with pytest.raises(reference_reader.CorruptStreamError):
        reference_reader.read_stream(stream)
