"""Predicted arrays in other orders in memory, in files, and parts of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
from arrcomp import Codec, ErrorBounded, Lossless, _core
from predicted_fields import ALWAYS, codecs_of, field, multiples

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

NAMED = (*ALWAYS, "columns")


@pytest.mark.parametrize("codec", [ErrorBounded(abs=1e-3, predictor="interpolation"), Lossless(predictor="lorenzo")])
def test_arrays_of_another_order(codec: Codec) -> None:
    whole = field("float32", 20, 30, 40)
    for x in (
        whole.T,
        whole[:, ::2],
        whole[::-1, :, ::3],
        np.asfortranarray(whole),
        whole.transpose(1, 0, 2),
        whole[3],
    ):
        assert checks.stream_of(x, codec) == checks.stream_of(np.ascontiguousarray(x), codec)
        checks.check_promise(x, checks.array_of(checks.stream_of(x, codec)), codec)


@pytest.mark.parametrize("kind", [None, "2 decimal places"])
@pytest.mark.parametrize("codec", [codec for predictor in NAMED for codec in codecs_of(predictor)[::3]], ids=repr)
def test_a_part_has_the_elements_of_the_whole(codec: Codec, kind: str | None) -> None:
    x = field("float32", 70, 11, 13) if kind is None else multiples("float32", kind, 70, 11, 13)
    x[4, 3:] = np.nan
    x[:, :, 3::4] = np.nan  # the same on all lines
    c = arrcomp.compress(x, codec)
    whole = checks.bits_of(arrcomp.decompress(c))
    payload, size = c.host_payload(), x.size
    coding = (c.codec.id, c.codec.core_parameters(), c.spec.dtype.id)
    for first, count in [
        (0, 0),
        (0, 1),
        (0, size),
        (size - 1, 1),
        (5, 4096),
        (4095, 2),
        (1000, size - 1001),
        (size, 0),
    ]:
        for threads in (1, 3):
            out = np.full(4 * count, 0xA5, np.uint8)
            _core.decode_range(*coding, payload, size, first, out, threads)
            assert (out.view(np.uint32) == whole[first : first + count]).all(), (first, count)
        room = np.full(payload.size, 0xA5, np.uint8)
        for begin, end in _core.directory_ranges(*coding, payload.size, size):
            room[begin:end] = payload[begin:end]
        for begin, end in _core.payload_ranges(*coding, room, size, first, 4 * count):
            room[begin:end] = payload[begin:end]
        if count:
            out = np.empty(4 * count, np.uint8)
            _core.decode_range(*coding, room, size, first, out, 1)
            assert (out.view(np.uint32) == whole[first : first + count]).all(), (first, count)


@given(
    shape=st.one_of(
        st.lists(st.integers(1, 40), min_size=1, max_size=4), st.lists(st.integers(2, 9), min_size=5, max_size=5)
    ).filter(lambda shape: 512 <= math.prod(shape) <= 30_000),
    codec=st.sampled_from([codec for predictor in NAMED for codec in codecs_of(predictor)]),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    has_gaps=st.booleans(),
)
def test_any_part_of_any_shape(shape: list[int], codec: Codec, ends: tuple[float, float], has_gaps: bool) -> None:
    x = field("float32", *shape)
    if has_gaps:
        x.reshape(-1)[5::7] = np.nan
    c = arrcomp.compress(x, codec)
    first, end = sorted(int(part * x.size) for part in ends)
    out = np.full(4 * (end - first), 0xA5, np.uint8)
    coding = (c.codec.id, c.codec.core_parameters(), c.spec.dtype.id)
    _core.decode_range(*coding, c.host_payload(), x.size, first, out, 2)
    assert (out.view(np.uint32) == checks.bits_of(arrcomp.decompress(c))[first:end]).all()


def test_a_part_needs_no_codes_of_rows_far_from_it() -> None:
    x = field("float32", 900, 20, 20, noise=0.01)
    c = arrcomp.compress(x, ErrorBounded(abs=1e-3, predictor="interpolation"))
    payload, size = c.host_payload().copy(), x.size
    payload[-128:] = 0xFF  # states of the last group: codes of the last rows
    coding = (c.codec.id, c.codec.core_parameters(), c.spec.dtype.id)
    out = np.empty(4 * 40_000, np.uint8)
    _core.decode_range(*coding, payload, size, 50_000, out, 1)
    assert (out.view(np.uint32) == checks.bits_of(arrcomp.decompress(c))[50_000:90_000]).all()
    with pytest.raises(arrcomp.errors.CorruptStreamError):
        _core.decode_range(*coding, payload, size, size - 40_000, out, 1)


@pytest.mark.parametrize("predictor", ALWAYS)
def test_slices_of_arrays_in_files(tmp_path: Path, predictor: Any) -> None:
    x = {"a": field("float32", 30, 40, 7), "b": field("float64", 50, 60)}
    arrcomp.save_file(x, tmp_path / "x.safetensors", ErrorBounded(abs=1e-3, predictor=predictor))
    with arrcomp.open_file(tmp_path / "x.safetensors") as file:
        for name in x:
            whole = file.load(name)
            for index in (3, slice(5, 9), (slice(4, 20, 3), 5), (..., 2), (slice(None, None, -2),)):
                checks.check_same_bits(np.asarray(file.slice(name)[index]), np.asarray(whole[index]))


def test_many_arrays_of_different_shapes() -> None:
    codec = ErrorBounded(abs=1e-3, predictor="interpolation")
    shapes = [(20, 30), (600,), (1,), (), (0, 5), (30, 20), (3, 4, 5, 10), (20, 30), (70, 80), (511,)]
    arrays = [field("float32", *shape) if shape else np.float32(1.5) * np.ones(()) for shape in shapes]
    arrays = [x.astype(np.float32) for x in arrays]
    arrays += [field("float64", 25, 30), field("float16", 25, 30)]
    many = arrcomp.compress_many(arrays, codec)
    for c, x in zip(many, arrays, strict=True):
        assert c.to_bytes() == checks.stream_of(x, codec)
    for y, c in zip(arrcomp.decompress_many(many), many, strict=True):
        checks.check_same_bits(y, np.asarray(arrcomp.decompress(c)))
