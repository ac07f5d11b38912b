"""Arrays larger than most caches, which are decoded around them: the same elements as in any other memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import ErrorBounded, Lossless
from checks import Array

BYTES = 36 << 20  # the last-level cache of many a machine is smaller
CODECS: list[arrcomp.Codec] = [Lossless(), ErrorBounded(abs=1e-3), ErrorBounded(abs=1e-3, speed="fast")]
DTYPES = [np.float32, ml_dtypes.bfloat16, np.float64, np.float16]


def array_of(dtype: Any) -> Array:
    """Chunks of all kinds: normal values, zeros, one value, ramps, and some that no bound allows to be quantized."""
    count = BYTES // np.dtype(dtype).itemsize + 4096 + 77  # the last row is not full
    block = np.random.default_rng(3).normal(0, 0.02, 1 << 20).astype(np.float32)
    block[1 << 17 : 1 << 18] = 0
    block[1 << 18 : 5 << 16] = 3
    block[5 << 16 : 6 << 16] = np.linspace(-1, 1, 1 << 16)
    block[7 << 16 :: 999] = np.nan
    block[1 << 19 : (1 << 19) + 8192] *= np.float32(1e5)
    return np.resize(block, count).astype(dtype)


def memory_at(offset: int, like: Array) -> Array:
    """An array of other elements whose address is that many bytes above a multiple of 64."""
    memory = np.full(like.nbytes + 128, 0x5A, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + like.nbytes].view(like.dtype)


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_elements_depend_on_no_alignment(codec: arrcomp.Codec, dtype: Any) -> None:
    array = array_of(dtype)
    stream = arrcomp.compress(array, codec)
    step = array.dtype.itemsize
    expected = memory_at(step, array)  # aligned to no more than its elements: stored as small arrays are
    arrcomp.decompress(stream, out=expected, threads=1)
    if codec == Lossless():
        checks.check_same_bits(expected, array)
    for offset, threads in [(0, 1), (16, 1), (48, 2)]:
        target = memory_at(offset, array)
        arrcomp.decompress(stream, out=target, threads=threads)
        checks.check_same_bits(target, expected)


@pytest.mark.parametrize("kind", ["u1", "<i8", "?"])
def test_integers_are_the_same(kind: str) -> None:
    array = np.resize(np.random.default_rng(4).integers(0, 2, 1 << 19).astype(kind), BYTES // np.dtype(kind).itemsize)
    target = memory_at(16, array)
    arrcomp.decompress(arrcomp.compress(array, Lossless()), out=target)
    checks.check_same_bits(target, array)


@pytest.mark.parametrize("dtype", [*DTYPES, np.int8], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("codec", [Lossless(), ErrorBounded(abs=1e-3)], ids=repr)
def test_elements_beside_a_reference_are_the_same(codec: arrcomp.Codec, dtype: Any) -> None:
    if codec != Lossless() and dtype is np.int8:
        pytest.skip("integers have no error bound")
    array = array_of(dtype) if dtype is not np.int8 else np.resize(np.arange(1 << 19), BYTES + 77).astype(np.int8)
    reference = np.concatenate([array[7:], array[:7]])
    stream = arrcomp.compress(array, codec, reference=reference)
    expected = reference.copy()
    arrcomp.decompress(stream, reference=expected, out=expected, threads=1)  # in place: never streamed
    if codec == Lossless():
        checks.check_same_bits(expected, array)
    for offset, threads in [(array.dtype.itemsize, 1), (0, 1), (16, 1), (48, 2)]:
        target = memory_at(offset, array)
        arrcomp.decompress(stream, reference=reference, out=target, threads=threads)
        checks.check_same_bits(target, expected)
