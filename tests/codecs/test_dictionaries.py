"""Chunks of few different elements, which are coded as indices of a dictionary (FORMAT.md, section 3.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
import reference_reader
from arrcomp import ErrorBounded, Lossless
from checks import Array
from reference_reader import Chunk

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm]

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = ("float16", "bfloat16", "float32", "float64", *INTEGERS)


def any_elements(dtype: str, count: int, seed: int = 0) -> Array:
    """Different elements of any bits."""
    kind = checks.numpy_dtype(dtype)
    rng = np.random.default_rng(seed)
    if kind.itemsize == 1:
        return rng.permutation(256)[:count].astype(np.uint8).view(kind)
    words = np.unique(rng.integers(0, 256, (2 * count, kind.itemsize), np.uint8), axis=0)
    return rng.permutation(words)[:count].copy().view(kind).ravel()


def drawn(elements: Array, size: Any, seed: int = 1) -> Array:
    """Any of them, anywhere."""
    return elements[np.random.default_rng(seed).integers(0, len(elements), size)]


def chunks_of(stream: bytes) -> list[Chunk]:
    """The chunks, after a check of what they hold."""
    checks.check_reference(stream, checks.array_of(stream))
    return reference_reader.describe(stream)


def transforms(stream: bytes) -> set[str]:
    return {chunk.kind for chunk in chunks_of(stream)}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [2, 3, 16, 31, 32, 33, 255, 256, 257])
def test_any_elements_come_back(dtype: str, count: int, device: checks.Host) -> None:
    array = drawn(any_elements(dtype, count), 3 * 4096 + 77)
    for speed in ("default", "fast"):
        stream = checks.stream_of(array, Lossless(speed=speed), device)
        checks.check_same_bits(checks.array_of(stream, device), array)
        checks.check_reference(stream, array)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64", "float16"])
@pytest.mark.parametrize("count", [2, 16, 100])  # of more, the sample of some chunk may have no two alike
def test_indices_take_little_more_than_their_entropy(dtype: str, count: int) -> None:
    array = drawn(any_elements(dtype, count), 1 << 16)
    stream = checks.stream_of(array, Lossless())
    assert transforms(stream) == {"dictionary"} or count == 2  # which are multiples of how far they are apart
    dictionaries = 16 * count * array.itemsize
    assert len(stream) < 1.04 * array.size * np.log2(count) / 8 + dictionaries + 16 * 150 + 200


@pytest.mark.parametrize("count", [1023, 1024, 1500, 2047, 2048, 2500])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_dictionaries_of_many_entries(dtype: str, count: int) -> None:
    """Each element once, so that there are as many, and some very often."""
    elements = any_elements(dtype, count)
    often = drawn(elements[:30], (1 << 18) - count)
    array = np.concatenate([elements, often])
    stream = checks.stream_of(array, Lossless())
    checks.check_same_bits(checks.array_of(stream), array)
    assert max(len(chunk.entries) for chunk in chunks_of(stream)) <= 2047


@pytest.mark.parametrize("elements", [100, 127, 1000, 4095, 4096, 4097, 8192 - 31])
def test_any_number_of_elements(elements: int) -> None:
    array = drawn(any_elements("float64", 7), elements)
    stream = checks.stream_of(array, Lossless())
    assert "dictionary" in transforms(stream)
    checks.check_same_bits(checks.array_of(stream), array)


def skewed(count: int, size: int, seed: int = 1) -> Array:
    """Indices of which the r-th most frequent is as frequent as 1 / r, in no order."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, count + 1)
    return rng.permutation(count)[rng.choice(count, size, p=weights / weights.sum())]


def entropy(indices: Array) -> float:
    """Bits for each of them."""
    share = np.bincount(indices) / indices.size
    return float(-(share[share > 0] * np.log2(share[share > 0])).sum())


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "bfloat16"])  # it has no dictionaries
@pytest.mark.parametrize("count", [16, 100, 256])
def test_frequent_elements_take_little_more_than_their_entropy(dtype: str, count: int) -> None:
    indices = skewed(count, 1 << 20)
    array = any_elements(dtype, count)[indices]
    stream = checks.stream_of(array, Lossless())
    dictionaries = 64 * count * array.itemsize
    assert len(stream) < 1.08 * array.size * entropy(indices) / 8 + dictionaries + 64 * 200
    checks.check_same_bits(checks.array_of(stream), array)


def test_the_more_frequent_entries_come_first() -> None:
    array = any_elements("float64", 40)[skewed(40, 1 << 20)]
    for speed in ("default", "fast"):
        stream = checks.stream_of(array, Lossless(speed=speed))
        chunks = chunks_of(stream)
        assert [chunk.own_entries for chunk in chunks] == [False, False, False, True] * 64
        for first in range(0, len(chunks), 4):
            last = array[(first + 3) * 4096 : (first + 4) * 4096].view(np.uint64)  # is coded first
            counts = np.array([np.count_nonzero(last == entry) for entry in chunks[first].entries])
            in_order = np.all(np.diff(np.asarray(chunks[first].entries).view(np.float64)) > 0)
            if speed == "fast":
                assert in_order
            elif not chunks[first].has_classes:  # whose table needs no order
                assert not in_order
                assert np.all(counts[1:] <= 1.5 * counts[:-1] + 1)
            for chunk in chunks[first : first + 4]:
                np.testing.assert_array_equal(chunk.entries, chunks[first].entries)


def test_a_chunk_whose_elements_have_other_frequencies_shares_the_dictionary() -> None:
    elements = any_elements("int32", 60)
    group = np.concatenate([skewed(60, 4096, seed) for seed in (1, 2, 3, 4)])
    array = np.tile(elements[group], 64)
    stream = checks.stream_of(array, Lossless())
    assert [chunk.own_entries for chunk in chunks_of(stream)] == [False, False, False, True] * 64
    checks.check_same_bits(checks.array_of(stream), array)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16", "float32", "uint64"])
def test_every_instruction_set_ranks_alike(dtype: str) -> None:
    array = any_elements(dtype, 200)[skewed(200, 3 * 4096 + 77)]
    checks.check_same_bytes(array, Lossless(), checks.stream_of(array, Lossless()))


def letters(size: int, seed: int = 1) -> Array:
    """Bytes as those of a text: few of them, far apart, some much more frequent."""
    kinds = np.frombuffer(b" etaoinsrhldcumfpgwybvkxjqz.,;-()0123456789\n", np.uint8)
    return kinds[skewed(len(kinds), size, seed)]


def test_bytes_share_a_dictionary_with_the_frequent_ones_first() -> None:
    array = letters(1 << 20)
    stream = checks.stream_of(array, Lossless())
    chunks = chunks_of(stream)
    assert [chunk.own_entries for chunk in chunks] == [False, False, False, True] * 64
    for first in range(0, len(chunks), 4):
        counts = np.bincount(array[first * 4096 : (first + 4) * 4096], minlength=256)[chunks[first].entries]
        assert np.all(counts[1:] <= 1.5 * counts[:-1] + 1)
    assert len(stream) < 1.08 * array.size * entropy(array) / 8
    checks.check_same_bits(checks.array_of(stream), array)


def test_bytes_of_which_a_group_has_others_too() -> None:
    """Chunks without a dictionary, of zeros and of noise, do not keep the others from theirs."""
    noise = np.random.default_rng(2).integers(0, 256, 4096).astype(np.uint8)
    group = np.concatenate([letters(4096), noise, letters(4096, 2), np.zeros(4096, np.uint8)])
    array = np.tile(group, 64)
    stream = checks.stream_of(array, Lossless())
    assert [chunk.kind == "dictionary" for chunk in chunks_of(stream)] == [True, False, True, False] * 64
    checks.check_same_bits(checks.array_of(stream), array)


def test_bytes_are_packed_as_places() -> None:
    array = np.where(np.random.default_rng(3).random(1 << 20) < 0.3, 255, 0).astype(np.uint8)
    stream = checks.stream_of(array, Lossless(speed="fast"))
    assert transforms(stream) == {"dictionary"}
    assert len(stream) < 1.02 * array.size / 8 + 1000
    checks.check_same_bits(checks.array_of(stream), array)


def test_codes_of_few_levels_have_a_dictionary() -> None:
    """Codes of buckets, in groups of up to 16 chunks."""
    levels = np.array([-7, -6, 0, 1, 5])[skewed(5, 1 << 18)]
    array = levels.astype(np.float32) / 7
    codec = arrcomp.QSGD(bits=8, bucket_size=1 << 16, coding="entropy")
    stream = checks.stream_of(array, codec)
    checks.check_reference(stream, checks.array_of(stream))
    assert np.abs(checks.array_of(stream) - array).max() < 1 / 127
    checks.check_same_bytes(array, codec, stream)
    assert len(stream) < 1.1 * array.size * entropy(levels + 7) / 8


def test_multiples_that_are_shorter_than_ranks() -> None:
    """A few decimals in a walk: as integers their differences are short, as ranks they are in no order."""
    steps = np.random.default_rng(7).integers(-1, 2, 1 << 16)
    walk = np.round(np.abs(np.cumsum(steps) % 200 - 100) / 100, 2)
    stream = checks.stream_of(walk, Lossless())
    assert "multiples" in transforms(stream)
    checks.check_same_bits(checks.array_of(stream), walk)


def test_chunks_of_a_group_share_a_dictionary() -> None:
    array = drawn(any_elements("float32", 100), 1 << 20)
    stream = checks.stream_of(array, Lossless())
    chunks = chunks_of(stream)
    assert {chunk.kind for chunk in chunks} == {"dictionary"}
    assert [chunk.own_entries for chunk in chunks] == [False, False, False, True] * 64
    values = np.unique(array)
    for chunk in chunks:
        np.testing.assert_array_equal(np.sort(chunk.entries), np.sort(values.view(np.uint32)))
    checks.check_same_bits(checks.array_of(stream), array)


def test_groups_have_nothing_in_common() -> None:
    """A dictionary that an encoder has from the group before is none: bytes would depend on threads."""
    parts = [drawn(any_elements("float32", 50, seed), 1 << 14, seed) for seed in (1, 2, 1, 1)]
    array = np.tile(np.concatenate(parts), 16)
    one = arrcomp.compress(array, Lossless(), threads=1).to_bytes()
    assert arrcomp.compress(array, Lossless(), threads=2).to_bytes() == one
    chunks = chunks_of(one)
    assert [chunk.own_entries for chunk in chunks] == [False, False, False, True] * 64


def test_a_chunk_has_its_own_dictionary_where_others_have_other_elements() -> None:
    """Of the chunks before the last, one has other elements, and one no few: all are coded for themselves."""
    noise = np.random.default_rng(5).normal(size=4096).astype(np.float32)
    rest = drawn(any_elements("float32", 3), (1 << 20) - 4 * 4096)
    few, other = any_elements("float32", 40, 3), any_elements("float32", 90, 4)
    group = np.concatenate([drawn(few, 4096), noise, drawn(other, 4096), drawn(few, 4096, 2)])
    array = np.concatenate([group, rest])
    stream = checks.stream_of(array, Lossless())
    chunks = chunks_of(stream)[:4]
    assert [chunk.kind == "dictionary" for chunk in chunks] == [True, False, True, True]
    assert [chunk.own_entries for chunk in chunks] == [True, False, True, True]
    assert [len(chunk.entries) for chunk in chunks] == [40, 0, 90, 40]
    checks.check_same_bits(checks.array_of(stream), array)


@pytest.mark.parametrize("fill", [np.nan, 1e20])
def test_missing_elements_are_left_out_before(fill: float) -> None:
    array = drawn(any_elements("float32", 20), 3 * 4096)
    array[np.repeat(np.random.default_rng(4).random(len(array) // 50 + 1) < 0.4, 50)[: len(array)]] = fill
    stream = checks.stream_of(array, Lossless())
    assert {"dictionary"} == transforms(stream)
    checks.check_same_bits(checks.array_of(stream), array)


def test_nan_and_zeros_of_both_signs_are_elements() -> None:
    specials = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324, 1.5])
    specials = np.append(specials, np.array([0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF], np.uint64).view(np.float64))
    array = drawn(specials, 9000)
    stream = checks.stream_of(array, Lossless())
    assert "dictionary" in transforms(stream)
    checks.check_same_bits(checks.array_of(stream), array)


def test_smooth_indices_are_predicted() -> None:
    """Images of bytes, as numbers: a dictionary in order keeps the way from each value to the next short."""
    y, x = np.mgrid[:256, :256]
    noise = np.random.default_rng(6).normal(0, 1, x.shape)
    image = np.clip(128 + 60 * np.sin(x / 40) + 50 * np.cos(y / 31) + noise, 0, 255).astype(np.uint8)
    for array in (image / np.float32(255), (image / 255.0 - 0.485) / 0.229):
        stream = checks.stream_of(array, Lossless())
        assert any(chunk.predictor for chunk in chunks_of(stream))
        plain = checks.stream_of(image, Lossless())
        assert len(stream) < 1.1 * len(plain) + 16 * 256 * array.itemsize


@pytest.mark.parametrize(
    "array",
    [
        np.random.default_rng(7).normal(size=20_000).astype(np.float32),
        np.random.default_rng(7).normal(size=20_000),
        np.clip(np.random.default_rng(8).normal(size=20_000), -1, 1).astype(np.float32),
        np.arange(20_000),
        np.random.default_rng(9).integers(0, 30, 20_000),
        np.random.default_rng(9).integers(0, 255, 20_000).astype(np.uint8),
        np.full(20_000, 2.5),
        np.zeros(20_000, np.float32),
    ],
    ids=["float32", "float64", "clipped", "range", "small integers", "bytes", "constant", "zeros"],
)
def test_others_have_none(array: Array) -> None:
    """Numbers that are many, and what takes as few bits without a dictionary."""
    assert "dictionary" not in transforms(checks.stream_of(array, Lossless()))


@pytest.mark.parametrize("dtype", ["uint16", "int32", "int64"])
@pytest.mark.parametrize("size", [16384 + 5, (1 << 18) + 5000])
def test_dictionaries_that_do_not_pay_are_left(dtype: str, size: int) -> None:
    """Of a vocabulary in any order a chunk has so many words that their list takes what their indices save."""
    rng = np.random.default_rng(5)
    by_rank = 1 / np.arange(1, 50_001)
    words = rng.choice(by_rank.size, size, p=by_rank / by_rank.sum())
    array = rng.permutation(by_rank.size).astype(dtype)[words]
    stream = checks.stream_of(array, Lossless())
    checks.check_same_bits(checks.array_of(stream), array)
    checks.check_reference(stream, array)
    assert len(stream) <= array.nbytes + array.nbytes // 64


def test_dropped_bits_are_those_of_elements() -> None:
    array = drawn(np.random.default_rng(10).normal(size=9).astype(np.float32), 9000)
    stream = checks.stream_of(array, ErrorBounded(pointwise=1e-2))
    checks.check_reference(stream, checks.array_of(stream))
    np.testing.assert_allclose(checks.array_of(stream), array, rtol=1e-2)


def test_a_part_is_decoded_alone(tmp_path: Path) -> None:
    array = drawn(any_elements("int64", 60), (1 << 18) + 5000)
    (tmp_path / "x.arrcomp").write_bytes(checks.stream_of(array, Lossless()))
    with arrcomp.open_file(tmp_path / "x.arrcomp") as file:
        for first, end in ((0, 1), (4095, 4097), (100_000, 130_001), (array.size - 7, array.size)):
            np.testing.assert_array_equal(file.slice("arr_0")[first:end], array[first:end])
