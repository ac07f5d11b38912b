"""Arrays of more than 2^31 elements: no count or offset is kept in 32 bits. About 14 GB of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import QSGD, S2FP8, BaseDelta, Codebook, Codec, ErrorBounded, FloatFormat, Lossless, SmaQ
from checks import Array

COUNT = 2**31 + 4096 * 5 + 77
BLOCK = 2**26 + 64  # not a multiple of a chunk, so that repetitions differ in their chunks


def repeated(block: Array) -> Array:
    """COUNT elements: a block again and again, each time with its number in its first elements."""
    array = np.empty(COUNT, block.dtype)
    for number, start in enumerate(range(0, COUNT, block.size)):
        piece = array[start : start + block.size]
        piece[:] = block[: piece.size]
        piece[:16] = number
    return array


def assert_same(actual: Array, expected: Array) -> None:
    """Compare block by block: one comparison of all would take another 2 GB."""
    assert actual.shape == expected.shape
    for start in range(0, COUNT, BLOCK):
        part = slice(start, start + BLOCK)
        assert np.array_equal(actual[part], expected[part]), f"differs after element {start}"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("width", [2, 256], ids=["compressible", "random"])
def test_more_than_2_31_elements(dtype: Any, width: int, device: checks.Host) -> None:
    block = np.random.default_rng(0).integers(0, width, BLOCK, dtype=np.uint8).view(dtype)
    array = repeated(block)
    compressed = arrcomp.compress(device.put(array), Lossless())
    assert compressed.nbytes < 1.01 * COUNT * (1 if width == 256 else 0.2)
    assert_same(device.get(arrcomp.decompress(compressed)), array)


@pytest.mark.slow
def test_more_than_2_31_elements_within_a_bound(device: checks.Host) -> None:
    block = (np.random.default_rng(1).integers(-8, 9, BLOCK, dtype=np.int8)).astype(np.float16)
    array = repeated(block)
    compressed = arrcomp.compress(device.put(array), ErrorBounded(abs=0.25))
    assert compressed.nbytes < 0.6 * array.nbytes
    decoded = device.get(arrcomp.decompress(compressed))
    assert decoded.shape == array.shape
    for start in range(0, COUNT, BLOCK):
        part = slice(start, start + BLOCK)
        assert np.abs(decoded[part] - array[part]).max() <= 0.25, f"differs after element {start}"


@pytest.mark.slow
def test_more_than_2_31_elements_in_lines(device: checks.Host) -> None:
    block = np.random.default_rng(2).integers(-8, 8, BLOCK, dtype=np.int8)
    array = repeated(block)
    compressed = arrcomp.compress(device.put(array), BaseDelta())
    assert compressed.nbytes < 0.6 * COUNT
    assert_same(device.get(arrcomp.decompress(compressed)), array)


@pytest.mark.slow
@pytest.mark.parametrize(
    "codec",
    [
        QSGD(),
        QSGD(coding="entropy"),
        SmaQ(rounding="nearest"),
        FloatFormat("fp8_e5m2"),
        FloatFormat("fp8_e4m3", scaling="tensor"),
        FloatFormat("nvfp4"),
        S2FP8(bucket_size=512),
        Codebook.nf4(),
    ],
    ids=repr,
)
def test_more_than_2_31_elements_quantized(codec: Codec, device: checks.Host) -> None:
    period = 4096 * 8191  # whole buckets, and no power of two: a wrong offset hits other values
    block = np.random.default_rng(2).normal(0, 1, period).astype(np.float16)
    array = np.resize(block, COUNT)
    decoded = device.get(arrcomp.decompress(arrcomp.compress(device.put(array), codec)))
    expected = arrcomp.decompress(arrcomp.compress(block, codec))
    whole = COUNT - COUNT % 4096  # the last buckets may be shorter
    for start in range(0, whole, period):
        part = decoded[start : min(start + period, whole)]
        assert np.array_equal(part, expected[: part.size]), f"differs after element {start}"
    assert decoded.shape == (COUNT,)
    assert np.abs(decoded[whole:] - array[whole:]).max() < 0.5


@pytest.mark.slow
def test_more_than_2_31_elements_with_statistics_of_all(device: checks.Host) -> None:
    block = np.where(np.random.default_rng(2).integers(0, 3, BLOCK, dtype=np.int8) == 0, 1, 0.5).astype(np.float16)
    array = np.resize(block, COUNT)
    for codec in (S2FP8(), SmaQ(block_size=None, rounding="nearest")):
        decoded = device.get(arrcomp.decompress(arrcomp.compress(device.put(array), codec)))
        assert decoded.shape == array.shape
        for start in range(0, COUNT, BLOCK):
            part = slice(start, start + BLOCK)
            assert np.allclose(decoded[part], array[part], rtol=0.02), f"differs after element {start}"


@pytest.mark.slow
def test_places_beyond_2_32_are_cut_off(device: checks.Host) -> None:
    count = 2**32 + 5000
    reference = np.zeros(count, np.uint8)
    reference[::4097] = 7
    array = reference.copy()
    array[[0, 5, 2**32 - 1, 2**32, count - 1]] += 1
    there, old = device.put(array), device.put(reference)
    compressed = arrcomp.compress(there, reference=old)
    assert compressed.nbytes < 1000
    assert np.array_equal(device.get(arrcomp.decompress(compressed, reference=old)), array)
