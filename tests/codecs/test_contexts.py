"""Contexts: where neighbours are alike, symbols take fewer bits than by how often they are there."""

from __future__ import annotations

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

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

CHUNK = 4096
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint64", "int64")


def bursts(name: str, count: int, period: int = 300, seed: int = 0) -> Array:
    """Numbers that rise from almost nothing, fall, and are zero for a while; unsigned ones have no sign."""
    place = np.arange(count) % period
    rise = np.maximum(0, np.minimum(place, period // 2 - place)) / (period / 30)
    numbers = np.random.default_rng(seed).normal(0, 1, count) * rise
    dtype = checks.numpy_dtype(name)
    return np.asarray((np.abs(numbers) if dtype.kind == "u" else numbers).astype(dtype))


def codec_for(array: Array, **options: Any) -> Codec:
    """A codec by which the words of bursts are small."""
    return Lossless(**options) if array.dtype.kind in "iu" else ErrorBounded(abs=0.5, **options)


def chunks_of(array: Array, codec: Codec) -> list[Chunk]:
    """What the writer chose."""
    return reference_reader.describe(checks.stream_of(array, codec))


def entropy_of(codes: Array) -> float:
    """Bytes that the codes take by how often each is in its chunk."""
    total = 0.0
    for first in range(0, len(codes), CHUNK):
        _, counts = np.unique(codes[first : first + CHUNK], return_counts=True)
        total -= (counts * np.log2(counts / counts.sum())).sum() / 8
    return total


@pytest.mark.parametrize("count", [1000, 4096, 9000, 4 * CHUNK + 1, 70_000])
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_every_element_is_kept(name: str, count: int) -> None:
    array = bursts(name, count)
    codec = codec_for(array)
    checks.check_codec(array, codec)
    assert any(chunk.has_contexts for chunk in chunks_of(array, codec))


@pytest.mark.parametrize("name", ["float32", "float64", "int16"])
def test_words_take_less_than_their_entropy(name: str) -> None:
    array = bursts(name, 40 * CHUNK)
    codec = codec_for(array)
    codes = array if array.dtype.kind == "i" else np.rint(array)
    assert all(chunk.has_contexts for chunk in chunks_of(array, codec))
    start, end = checks.payload_span(checks.stream_of(array, codec))
    assert end - start < 0.88 * entropy_of(codes)


@pytest.mark.parametrize("predictor", ["auto", "interpolation", "lorenzo", "columns"])
def test_predicted_arrays_have_contexts_too(predictor: Any) -> None:
    rng = np.random.default_rng(1)
    x, y = np.meshgrid(np.arange(256), np.arange(300))
    place = (x - 120.0) ** 2 + (y - 140.0) ** 2
    array = (np.sin(place / 500) * np.exp(-place / 4000) + rng.normal(0, 1e-4, place.shape)).astype(np.float32)
    codec = ErrorBounded(abs=1e-3, predictor=predictor)
    checks.check_codec(array, codec)
    assert any(chunk.has_contexts for chunk in chunks_of(array, codec))


def test_words_in_no_order_have_none() -> None:
    rng = np.random.default_rng(2)
    array = rng.permutation(bursts("float32", 20 * CHUNK))
    assert not any(chunk.has_contexts for chunk in chunks_of(array, ErrorBounded(abs=0.5)))


@pytest.mark.parametrize("name", ["float32", "int16"])
def test_the_fast_mode_has_none(name: str) -> None:
    array = bursts(name, 20 * CHUNK)
    codec = codec_for(array, speed="fast")
    checks.check_codec(array, codec)
    assert not any(chunk.has_contexts for chunk in chunks_of(array, codec))


def test_exceptions_stand_beside_contexts() -> None:
    array = bursts("float32", 9000)
    array[[5, 5000, 8000]] = [1e30, np.nan, -np.inf]
    codec = ErrorBounded(abs=0.5)
    checks.check_codec(array, codec)
    assert all(chunk.has_contexts and chunk.exceptions for chunk in chunks_of(array, codec)[:2])


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_missing_elements_stand_beside_contexts(name: str) -> None:
    array = bursts(name, 9000)
    array[np.arange(9000) // 40 % 5 == 2] = np.nan
    codec = ErrorBounded(abs=0.5)
    checks.check_codec(array, codec)
    assert all(chunk.has_contexts and chunk.missing for chunk in chunks_of(array, codec))


def test_differences_have_contexts() -> None:
    steps = bursts("int32", 9000) + 1000 * np.arange(9000, dtype=np.int32)
    checks.check_codec(np.cumsum(steps), Lossless())
    walk = np.cumsum(bursts("int32", 9000))
    checks.check_codec(walk, Lossless())
    assert any(chunk.has_contexts and chunk.predictor for chunk in chunks_of(walk, Lossless()))


@pytest.mark.parametrize("name", ["int32", "int64"])
def test_a_word_far_from_all_others_is_an_escape(name: str) -> None:
    array = bursts(name, 9000)
    array[[7, 5000]] = 15_000
    checks.check_codec(array, Lossless())
    assert any(chunk.has_contexts and chunk.escapes for chunk in chunks_of(array, Lossless()))


@pytest.mark.parametrize("count", [CHUNK, 2 * CHUNK, 2 * CHUNK + 500])
def test_the_last_rows_of_a_group_are_dry(count: int) -> None:
    array = bursts("int16", count)
    stream = checks.check_codec(array, Lossless())
    assert any(chunk.has_contexts and chunk.dry_rows for chunk in reference_reader.describe(stream))


@given(st.data())
def test_any_array(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*FLOATS, *INTEGERS]))
    count, period = data.draw(st.integers(1, 9000)), data.draw(st.integers(4, 3000))
    array = bursts(name, count, period, seed=data.draw(st.integers(0, 2**32)))
    checks.check_codec(array, codec_for(array, **data.draw(st.sampled_from([{}, {"predictor": "auto"}]))))


# ---- corrupt heads


def head_of_contexts() -> tuple[bytes, int]:
    """A stream of one chunk with contexts, and where its head is."""
    stream = checks.stream_of(bursts("float32", CHUNK), ErrorBounded(abs=0.5))
    start, _ = checks.payload_span(stream)
    head = start + 24  # behind the bound, S, o and the only group's end
    assert stream[head + 2] == 254
    return stream, head


@pytest.mark.parametrize(
    ("place", "value"),
    [
        pytest.param(0, 0x10, id="a mask of blocks"),
        pytest.param(0, 0x20, id="a mask of values"),
        pytest.param(0, 0x30, id="a mask of marks"),
        pytest.param(0, 0x04, id="words that are packed too"),
        pytest.param(1, 0x01, id="low bits"),
    ],
)
def test_what_contexts_exclude_is_corrupt(place: int, value: int) -> None:
    stream, head = head_of_contexts()
    body = bytearray(stream[: -checks.CHECKSUM_NBYTES])
    body[head + place] ^= value
    assert_corrupt(checks.seal(body))


@pytest.mark.parametrize("table", [192, 253, 254, 255])
@pytest.mark.parametrize("context", range(4))
def test_a_context_without_a_table_is_corrupt(context: int, table: int) -> None:
    stream, head = head_of_contexts()
    body = bytearray(stream[: -checks.CHECKSUM_NBYTES])
    base = 4 * (body[head + 1] >> 7)
    body[head + 4 + base + context] = table
    assert_corrupt(checks.seal(body))


def test_other_tables_are_read_as_the_format_says() -> None:
    """What is decoded then is anything, but the same by both readers; words run out, or are left over."""
    stream, head = head_of_contexts()
    for table in range(0, 192, 5):
        body = bytearray(stream[: -checks.CHECKSUM_NBYTES])
        body[head + 4 : head + 8] = bytes([table] * 4)
        assert_corrupt(checks.seal(body))


def assert_corrupt(stream: bytes) -> None:
    """Both readers refuse the stream."""
    with pytest.raises(CorruptStreamError):
        checks.array_of(stream)
    with pytest.raises(reference_reader.CorruptStreamError):
        reference_reader.read_stream(stream)
