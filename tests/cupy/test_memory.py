"""CuPy's memory: what is read and written in place, and what does not fit is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import ErrorBounded
from cupy_fixtures import ARRAYS, Calls, X, counted

RNG = np.random.default_rng(11)


def test_nothing_is_copied_that_need_not_be(cupy: Any, calls: Calls) -> None:
    x = cupy.asarray(X)
    arrcomp.decompress(arrcomp.compress(x))
    c, sizes = counted(cupy, lambda: arrcomp.compress(x))
    assert len(sizes) == 3  # payload, length, scratch
    assert calls.encode[-1][ARRAYS][0][0] == x.data.ptr
    assert max(sizes) >= c.payload.buffer.nbytes >= c.spec.capacity
    y, sizes = counted(cupy, lambda: arrcomp.decompress(c))
    assert len(sizes) == 2  # array, status
    payload, limit, length, target, elements = calls.decode[-1][ARRAYS][0]
    assert (payload, limit) == (c.payload.buffer.data.ptr, c.payload.buffer.size)
    assert (length, target, elements) == (c.payload.length.data.ptr, y.data.ptr, X.size)


def test_out_is_used_in_place(cupy: Any, calls: Calls) -> None:
    x = cupy.asarray(X)
    buffer = cupy.empty(arrcomp.max_compressed_nbytes(x) + 100, np.uint8)
    out = cupy.empty(X.shape, X.dtype)
    c, sizes = counted(cupy, lambda: arrcomp.compress(x, out=buffer))
    assert len(sizes) == 2  # length, scratch
    assert calls.encode[-1][ARRAYS][0][1] == c.payload.buffer.data.ptr == buffer.data.ptr
    y, sizes = counted(cupy, lambda: arrcomp.decompress(c, out=out))
    assert len(sizes) == 1  # status
    assert y is out
    assert calls.decode[-1][ARRAYS][0][3] == out.data.ptr
    np.testing.assert_array_equal(cupy.asnumpy(out), X)


def test_many_arrays_go_in_one_call(cupy: Any, calls: Calls) -> None:
    arrays: list[NDArray[Any]] = [RNG.normal(size=n).astype(np.float32) for n in (1, 5000, 0, 100, 70_000)]
    tree, sizes = counted(cupy, lambda: arrcomp.compress_many({"a": list(map(cupy.asarray, arrays))}))
    assert len(calls.encode) == 1
    assert len(sizes) == 3 + 4  # payloads, lengths, scratch; and the arrays themselves
    assert all(payload % 256 == 0 for _, payload, _ in calls.encode[0][ARRAYS])
    found, sizes = counted(cupy, lambda: arrcomp.decompress_many(tree))
    assert len(calls.decode) == 1
    assert len(sizes) == 2 + 4
    for x, c, y in zip(arrays, tree["a"], found["a"], strict=True):
        assert c.to_bytes() == arrcomp.compress(x).to_bytes()
        checks.check_same_bits(cupy.asnumpy(y), x)


def test_trimming_gives_memory_back(cupy: Any) -> None:
    c = arrcomp.compress(cupy.asarray(X), ErrorBounded(abs=0.1))
    trimmed = c.trim()
    assert trimmed.payload.buffer.size < c.payload.buffer.size // 2
    assert trimmed.to_bytes() == c.to_bytes()
    checks.check_same_bits(cupy.asnumpy(arrcomp.decompress(trimmed)), cupy.asnumpy(arrcomp.decompress(c)))


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (
            lambda cupy: cupy.empty(16, np.uint8),
            ValueError,
            r"out: expected at least \d+ bytes \(max_compressed_nbytes\), got 16",
        ),
        (lambda cupy: cupy.empty(10**6, np.float32), TypeError, "out: expected dtype uint8, got float32"),
        (lambda cupy: cupy.empty(10**6, np.uint8)[::2], ValueError, "out: expected a C-contiguous"),
        (lambda cupy: cupy.empty(10**6, np.uint8)[4:], ValueError, "multiple of 8"),
        (lambda cupy: bytearray(10**6), TypeError, r"out: expected a cupy\.ndarray, got bytearray"),
        (lambda cupy: np.empty(10**6, np.uint8), TypeError, r"out: expected a cupy\.ndarray, got numpy\.ndarray"),
    ],
)
def test_buffers_that_do_not_fit_are_refused(cupy: Any, out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrcomp.compress(cupy.asarray(X), out=out(cupy))


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (
            lambda cupy: cupy.empty((300, 41), np.float32),
            ValueError,
            r"out: expected shape \(300, 40\), got \(300, 41\)",
        ),
        (lambda cupy: cupy.empty((300, 40), np.float64), TypeError, "out: expected dtype float32, got float64"),
        (lambda cupy: cupy.empty((300, 80), np.float32)[:, ::2], ValueError, "out: expected a C-contiguous"),
        (lambda cupy: cupy.empty(48_001, np.uint8)[1:].view(np.float32).reshape(300, 40), ValueError, "multiple of 4"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(cupy: Any, out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrcomp.decompress(arrcomp.compress(cupy.asarray(X)), out=out(cupy))


def test_memory_that_overlaps_is_refused(cupy: Any) -> None:
    memory = cupy.empty(200_000, np.uint8)
    x = memory[:48_000].view(np.float32)
    with pytest.raises(ValueError, match="out: expected memory of its own, got memory that overlaps x"):
        arrcomp.compress(x, out=memory)
    c = arrcomp.compress(cupy.asarray(X.reshape(-1)), out=memory)
    with pytest.raises(ValueError, match=r"out: .* overlaps the compressed array"):
        arrcomp.decompress(c, out=x)
