"""Chunks of integers that are multiples of one number, from another one on (FORMAT.md, section 3.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
import reference_reader
from arrcomp import Lossless
from checks import Array
from reference_reader import Chunk

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

SIZE = 2 * 4096 + 77
FLOAT32 = 12  # its dtype id
DTYPES = ["int16", "uint16", "int32", "uint32", "int64", "uint64"]


def chunks_of(array: Array) -> list[Chunk]:
    """What the writer chose; the stream is read by both readers."""
    return reference_reader.describe(checks.check_codec(array, Lossless()))


def units_of(array: Array) -> set[int]:
    """The units of all full chunks, 0 where these are not multiples."""
    return {chunk.unit for chunk in chunks_of(array)[:2]}


def bits(array: Array) -> float:
    """That an element takes."""
    return 8 * len(checks.stream_of(array, Lossless())) / array.size


def counts(seed: int, least: int, most: int) -> Array:
    """Any integers of that range, in no order."""
    return np.random.default_rng(seed).integers(least, most, SIZE, endpoint=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("unit", [2, 3, 7, 10, 16, 25, 96])
def test_integers_are_counted(unit: int, dtype: str) -> None:
    least = 0 if dtype.startswith("u") else -300
    numbers = counts(1, least, 300)
    array = (numbers * unit).astype(dtype)
    assert units_of(array) == {unit}
    assert bits(array) < bits(numbers.astype(dtype)) + 0.3


@pytest.mark.parametrize("dtype", DTYPES)
def test_they_may_begin_anywhere(dtype: str) -> None:
    limits = np.iinfo(dtype)
    numbers = counts(2, 0, 60)
    for offset in (1, 5, int(limits.min), int(limits.min) + 3, int(limits.max) - 90 * 61, int(limits.max) // 2):
        array = (numbers.astype(object) * 90 + offset).astype(dtype)
        assert units_of(array) == {90}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("unit", [2, 3, 1000, 4096, 12_345])
def test_all_that_there_are(unit: int, dtype: str) -> None:
    """Up to both ends of the type."""
    limits = np.iinfo(dtype)
    least, most = -(-int(limits.min) // unit), int(limits.max) // unit
    shares = np.random.default_rng(3).integers(0, 2**62, SIZE)
    numbers = [least + (most - least) * int(share) // 2**62 for share in shares]
    numbers[:4] = least, most, 0, most
    array = np.array([number * unit for number in numbers], dtype=object).astype(dtype)
    checks.check_same_bits(checks.array_of(checks.stream_of(array, Lossless())), array)
    assert unit not in (3, 1000) or units_of(array) == {unit}


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_time_stamps_take_the_bits_of_their_unit(unit: Any) -> None:
    times = np.datetime64("2026-11-30T00:00:00", unit) + np.cumsum(counts(4, 1, 60)).astype(f"m8[{unit}]")
    nanoseconds = times.astype("M8[ns]").astype(np.int64)
    assert bits(nanoseconds) < bits(times.astype(np.int64)) + 0.3


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_few_may_be_others(dtype: str) -> None:
    array = (counts(5, -300, 300) * 100).astype(dtype)
    array[::500] += 37
    assert units_of(array) == {100}
    assert sum(chunk.exceptions for chunk in chunks_of(array)[:2]) == len(array[:8192:500])
    array[::3] += 1
    assert units_of(array) == {0}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 31, 33, 64, 4096 + 1])
def test_any_number_of_elements(size: int, dtype: str) -> None:
    chunks_of((counts(6, 0, 300)[:size] * 50 + 3).astype(dtype))


@pytest.mark.parametrize("array", [np.zeros(5000, np.int32), np.full(5000, -7, np.int64), np.arange(5000) % 2 * 1000])
def test_few_different_ones(array: Array) -> None:
    chunks_of(array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_among_many_others_they_come_back(dtype: str) -> None:
    array = (counts(7, 0, 300) * 100).astype(dtype)
    array[np.random.default_rng(8).random(SIZE) < 0.3] = np.iinfo(dtype).max
    chunks_of(array)


def test_a_part_is_decoded_alone(tmp_path: Path) -> None:
    array = np.random.default_rng(9).integers(0, 1000, (1 << 18) + 5000) * 10**9
    (tmp_path / "x.arrcomp").write_bytes(checks.stream_of(array, Lossless()))
    with arrcomp.open_file(tmp_path / "x.arrcomp") as file:
        for first, end in ((0, 1), (4095, 4097), (100_000, 130_001), (array.size - 7, array.size)):
            np.testing.assert_array_equal(file.slice("arr_0")[first:end], array[first:end])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_instruction_set_writes_the_same(dtype: str) -> None:
    array = (counts(11, 0, 300) * 77 + 5).astype(dtype)
    checks.check_same_bytes(array, Lossless(), checks.stream_of(array, Lossless()))


def test_floats_have_none() -> None:
    """A kind that is not legal for the type is corrupt, for both readers."""
    body = bytearray(checks.stream_of((counts(10, 0, 300) * 100).astype(np.int32), Lossless())[:-8])
    body[7] = FLOAT32
    stream = checks.seal(body)
    with pytest.raises(arrcomp.CorruptStreamError):
        checks.array_of(stream)
    with pytest.raises(reference_reader.CorruptStreamError):
        reference_reader.read_stream(stream)
