"""Differences that are coded as their distance from a step (FORMAT.md, sections 3.2 and 3.4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import arrcomp
import checks
import reference_reader
from arrcomp import ErrorBounded, Lossless
from checks import Array
from reference_reader import Chunk

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm]

SIZE = 3 * 4096 + 77


def chunks_of(array: Array, codec: arrcomp.Codec | None = None) -> list[Chunk]:
    """What the writer chose; the stream is read by both readers."""
    stream = checks.stream_of(array, codec or Lossless())
    checks.check_reference(stream, checks.array_of(stream))
    if codec is None:
        checks.check_same_bits(checks.array_of(stream), array)
    return reference_reader.describe(stream)


def bits(array: Array, codec: arrcomp.Codec | None = None) -> float:
    """That an element takes."""
    return 8 * len(checks.stream_of(array, codec or Lossless())) / array.size


def times(size: int, step: int, jitter: int, seed: int = 1) -> Array:
    """At equal distances, but for a jitter of each."""
    return np.arange(size) * step + np.random.default_rng(seed).integers(-jitter, jitter + 1, size)


@pytest.mark.parametrize("step", [3, -3, 1000, 10**7, -(10**15)])
def test_values_at_equal_distances_take_no_bits(step: int) -> None:
    chunks = chunks_of(np.arange(2 * 4096) * np.int64(step))
    assert [(chunk.predictor, chunk.step, chunk.plain, chunk.coder) for chunk in chunks] == [
        (True, step, False, "none")
    ] * 2


def test_steps_that_no_field_holds_are_not_taken() -> None:
    for step in (2**62, -(2**62) - 1, 2**63 - 1):
        with np.errstate(over="ignore"):
            array = np.arange(SIZE, dtype=np.uint64).astype(np.int64) * np.int64(step)
        assert all(chunk.step in (None, -(2**62)) for chunk in chunks_of(array))
    chunks_of((np.arange(SIZE) * 2**30).astype(np.int32))


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_every_integer_type_steps(dtype: str) -> None:
    """Around both ends of the type too."""
    rng = np.random.default_rng(2)
    for step in (5, -7):
        array = np.cumsum(step + rng.integers(-1, 2, SIZE)).astype(dtype)
        assert any(chunk.step for chunk in chunks_of(array))
        assert bits(array) < 2.1


@pytest.mark.parametrize(("step", "jitter"), [(1000, 5), (10**7, 500), (10**9, 40_000), (-40, 3)])
def test_time_stamps_take_the_bits_of_their_jitter(step: int, jitter: int) -> None:
    array = times(1 << 18, step, jitter)
    assert all(chunk.step for chunk in chunks_of(array))
    differences = np.convolve(*(np.full(2 * jitter + 1, 1 / (2 * jitter + 1)),) * 2)  # of two jitters: a triangle
    entropy = -(differences * np.log2(differences)).sum()
    assert bits(array) < entropy + 0.25


@pytest.mark.parametrize("share", [0.001, 0.01, 0.05])
def test_gaps_between_time_stamps_move_the_step_little(share: float) -> None:
    rng = np.random.default_rng(3)
    gaps = np.where(rng.random(1 << 16) < share, 10**11, 0)
    array = np.cumsum(10**6 + rng.integers(-100, 101, 1 << 16) + gaps)
    steps = [chunk.step for chunk in chunks_of(array)]
    assert all(step is not None and abs(step - 10**6) < 50 for step in steps)


def test_floats_that_count_seconds_step() -> None:
    seconds = np.round(1.7e9 + times(SIZE, 500, 8) / 1000, 3)
    assert {chunk.kind for chunk in chunks_of(seconds)} == {"multiples"}
    assert bits(seconds) < 8


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantized_slopes_step(dtype: str) -> None:
    slope = (np.arange(SIZE) * 0.7 + np.random.default_rng(4).normal(0, 0.01, SIZE)).astype(dtype)
    codec = ErrorBounded(abs=1e-2)
    assert all(chunk.step for chunk in chunks_of(slope, codec))
    assert bits(slope, codec) < 3


@pytest.mark.parametrize(("mean", "least"), [(3, 1), (50, 1), (1000, 1), (50, 0)])
def test_ascending_integers_have_no_signs(mean: int, least: int) -> None:
    gaps = np.random.default_rng(5).geometric(1 / mean, 1 << 17) - 1 + least
    chunks = chunks_of(np.cumsum(gaps))
    assert {(chunk.predictor, chunk.plain) for chunk in chunks} == {(True, True)}
    assert {chunk.step for chunk in chunks} <= {0, 1}
    p = 1 / mean
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p)) / p
    assert bits(np.cumsum(gaps)) < entropy + 0.2


def test_those_that_descend_somewhere_come_back() -> None:
    """The sample does not see it: the few long words are escapes."""
    array = np.cumsum(np.random.default_rng(6).geometric(0.02, SIZE))
    array[4096 + 3 * 32 + 5 :: 4096] -= 10**6
    chunks_of(array)


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 64, 65, 100, 256, 4095, 4097])
def test_any_number_of_elements(size: int) -> None:
    chunks_of(times(size, 1000, 9))
    chunks_of(times(size, 1000, 9).astype(np.int32), Lossless(speed="fast"))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes_that_wrap_come_back(dtype: str) -> None:
    chunks_of(np.cumsum(5 + np.random.default_rng(2).integers(-1, 2, SIZE)).astype(dtype))


def test_waves_that_a_sample_meets_on_their_way_up_have_no_step() -> None:
    """Rows of the sample are as far from each other as waves are long."""
    wave = np.rint(1000 * np.sin(np.arange(1 << 16) * 2 * np.pi / 128 + 0.3)).astype(np.int32)
    assert {chunk.step for chunk in chunks_of(wave) if chunk.predictor} <= {None}
    smooth = (wave / 100).astype(np.float32)
    assert all(chunk.step is None for chunk in chunks_of(smooth, ErrorBounded(abs=1e-3)) if chunk.predictor)


@pytest.mark.parametrize("dtype", ["uint16", "int32", "int64", "float32"])
@pytest.mark.parametrize("period", [40, 100, 256, 1440])
def test_numbers_that_begin_again_have_a_step(period: int, dtype: str) -> None:
    """As indices, positions in lines and minutes of a day have."""
    array = (np.arange(SIZE) % period).astype(dtype)
    chunks = chunks_of(array)[:3]
    assert {chunk.step for chunk in chunks} == {1}
    assert bits(array) < 0.3 + 24 / period


def test_walks_have_no_step() -> None:
    walk = np.cumsum(np.random.default_rng(7).integers(-100, 101, SIZE))
    assert [(chunk.predictor, chunk.step) for chunk in chunks_of(walk)] == [(True, None)] * 4


def test_equal_words_of_a_masked_chunk_step() -> None:
    """Most values are a step apart: these words are zeros, which a mask leaves out."""
    rng = np.random.default_rng(8)
    late = np.where(rng.random(SIZE) < 0.01, rng.integers(-(10**5), 10**5, SIZE), 0)
    chunks = chunks_of(np.arange(SIZE) * 10**6 + late)
    assert all(chunk.step == 10**6 for chunk in chunks)
    assert any(chunk.mask != "none" for chunk in chunks)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint64"])
def test_every_instruction_set_takes_the_same_step(dtype: str) -> None:
    for array in (times(SIZE, 37, 4), np.cumsum(np.random.default_rng(9).geometric(0.3, SIZE))):
        typed = array.astype(dtype)
        checks.check_same_bytes(typed, Lossless(), checks.stream_of(typed, Lossless()))


def test_a_part_is_decoded_alone(tmp_path: Path) -> None:
    array = times((1 << 18) + 5000, 12345, 7)
    (tmp_path / "x.arrcomp").write_bytes(checks.stream_of(array, Lossless()))
    with arrcomp.open_file(tmp_path / "x.arrcomp") as file:
        for first, end in ((0, 1), (4095, 4097), (100_000, 130_001), (array.size - 7, array.size)):
            np.testing.assert_array_equal(file.slice("arr_0")[first:end], array[first:end])
