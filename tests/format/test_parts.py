"""Parts of arrays: the elements that decoding the whole array gives, whatever groups, chunks and buckets they cut."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import QSGD, Codebook, Codec, CorruptStreamError, ErrorBounded, FloatFormat, Lossless, SmaQ, _core
from checks import Array

pytestmark = [pytest.mark.arithmetic, pytest.mark.asan]

CODECS = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()] + [
    Lossless(speed="fast"),
    QSGD(bits=3, bucket_size=100),
    QSGD(bits=3, bucket_size=5000, skip_incomplete=True),
    QSGD(bits=6, coding="entropy", bucket_size=777, skip_incomplete=True),
    SmaQ(block_size=None),
    SmaQ(min_size=10**6),
    FloatFormat("nvfp4"),
    Codebook.nf4(),
]
# A part of a predicted array needs all of its payload: tests/codecs/test_predicted_parts.py.
PREDICTING = [ErrorBounded(abs=1e-3, predictor="interpolation"), Lossless(predictor="lorenzo")]
SIZES = (1, 31, 4096, 4097, 3 * 4096 + 5, (1 << 20) + 4096 + 7)


def _compressed(codec: Codec, size: int, dtype: Any = np.float32) -> tuple[arrcomp.Compressed, Array]:
    x = np.random.default_rng(size).normal(0, 0.02, size).astype(dtype)
    x[:: max(size // 7, 1)] = 0
    c = arrcomp.compress(x, codec, seed=checks.SEED if codec.needs_seed else None)
    return c, arrcomp.decompress(c)


def _part(c: arrcomp.Compressed, first: int, count: int, threads: int = 1) -> Array:
    out = np.full(count * c.dtype.itemsize, 0xA5, np.uint8)
    payload = c.host_payload()
    parameters, dtype_id, elements = c.codec.core_parameters(), c.spec.dtype.id, c.spec.elements
    _core.decode_range(c.codec.id, parameters, dtype_id, payload, elements, first, out, threads)
    return out.view(c.dtype)


def _ranges(size: int) -> list[tuple[int, int]]:
    edges = sorted({0, 1, 31, 32, 4095, 4096, 4097, 8192, size - 4096, size - 1, size} & set(range(size + 1)))
    rng = np.random.default_rng(size)
    drawn = np.sort(rng.integers(0, size + 1, (5, 2)), axis=1).tolist()
    return [(a, b - a) for i, a in enumerate(edges) for b in edges[i:]][:: max(len(edges) // 4, 1)] + [
        (a, b - a) for a, b in drawn
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_a_part_has_the_elements_of_the_whole(codec: Codec, size: int) -> None:
    c, whole = _compressed(codec, size)
    bits = checks.bits_of(whole)
    for first, count in _ranges(size):
        part = checks.bits_of(_part(c, first, count))
        assert (part == bits[first : first + count]).all(), (first, count)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_a_part_needs_no_more_of_a_payload_than_is_told(codec: Codec, size: int) -> None:
    c, whole = _compressed(codec, size)
    bits, payload = checks.bits_of(whole), c.host_payload()
    coding, item = (codec.id, codec.core_parameters(), c.spec.dtype.id), c.dtype.itemsize
    index = _core.directory_ranges(*coding, payload.size, size)
    for first, count in _ranges(size):
        room = np.full(payload.size, 0xA5, np.uint8)
        for begin, end in index:
            room[begin:end] = payload[begin:end]
        spans = _core.payload_ranges(*coding, room, size, first, count * item)
        for begin, end in spans:
            room[begin:end] = payload[begin:end]
        out = np.empty(count * item, np.uint8)
        if count:
            _core.decode_range(*coding, room, size, first, out, 1)
        assert (checks.bits_of(out.view(c.dtype)) == bits[first : first + count]).all(), (first, count)
        if (first, count) == (0, 1) and size == max(SIZES):
            assert sum(end - begin for begin, end in spans) < payload.size // 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("codec", [Lossless(), ErrorBounded(abs=1e-3), QSGD(bits=5), SmaQ()], ids=repr)
def test_parts_of_other_elements(codec: Codec, dtype: str) -> None:
    c, whole = _compressed(codec, 20_001, checks.numpy_dtype(dtype))
    assert (checks.bits_of(_part(c, 4090, 9000)) == checks.bits_of(whole)[4090:13_090]).all()


def test_threads_share_a_part() -> None:
    c, whole = _compressed(ErrorBounded(abs=1e-4), 3_000_001)
    assert (_part(c, 5, 2_999_990, threads=2) == whole[5:2_999_995]).all()


def test_a_payload_at_any_address_is_read() -> None:
    c, whole = _compressed(QSGD(bits=4), 10_000)
    moved = np.empty(c.host_payload().size + 1, np.uint8)[1:]
    moved[:] = c.host_payload()
    out = np.empty(400, np.uint8)
    _core.decode_range(c.codec.id, c.codec.core_parameters(), c.spec.dtype.id, moved, 10_000, 5000, out, 1)
    assert (out.view(np.float32) == whole[5000:5100]).all()


@pytest.mark.parametrize("codec", [*CODECS, *PREDICTING], ids=repr)
def test_parts_of_damaged_payloads_stay_within_their_memory(codec: Codec) -> None:
    c, _ = _compressed(codec, 9000)
    payload = c.host_payload().copy()
    rng = np.random.default_rng(1)
    for _ in range(60):
        damaged = payload.copy()
        damaged[rng.integers(0, len(damaged), 3)] ^= rng.integers(1, 256, 3).astype(np.uint8)
        if rng.random() < 0.3:
            damaged = damaged[: rng.integers(0, len(damaged) + 1)]
        room = np.full(5000 * 4 + 128, 0xA5, np.uint8)
        arguments = (c.codec.id, c.codec.core_parameters(), c.spec.dtype.id, damaged, 9000, 3000)
        with contextlib.suppress(CorruptStreamError):
            _core.decode_range(*arguments, room[64:-64], 1)
        assert (room[:64] == 0xA5).all()
        assert (room[-64:] == 0xA5).all()


@pytest.mark.parametrize(("first", "nbytes"), [(-1, 4), (0, 404), (97, 16), (101, 0), (0, 3)])
def test_elements_that_are_not_there_are_refused(first: int, nbytes: int) -> None:
    c, _ = _compressed(Lossless(), 100)
    arguments = (c.codec.id, c.codec.core_parameters(), c.spec.dtype.id, c.host_payload(), 100)
    with pytest.raises(ValueError, match=r"first|out"):
        _core.decode_range(*arguments, first, np.empty(nbytes, np.uint8), 1)
