"""Masks of gaps: gaps of the same bits take few bytes, come back bit for bit, and parts of arrays have them."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
import reference_reader
from arrcomp import Codec, ErrorBounded, Lossless, _core
from checks import FLOATS
from predicted_fields import exact_nbytes, field, mask_of

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

HEADER_NBYTES = 24  # of a mask
BLUR = 7  # elements


@pytest.mark.parametrize("codec", [ErrorBounded(abs=0.05, predictor="interpolation"), Lossless(predictor="lorenzo")])
@pytest.mark.parametrize("name", FLOATS)
def test_gaps_that_stay_where_they_are_take_few_bytes(name: str, codec: Codec) -> None:
    """As land does in a series of maps of the sea. Few that come and go are no harm."""
    x = field(name, 30, 20, 50)
    map_of_gaps = np.random.default_rng(6).random(x.shape[1:]) < 0.2
    x[:, map_of_gaps] = np.nan
    x[7, 3:9, ::3] = np.nan
    x[9, map_of_gaps] = 1
    moving = field(name, 30, 20, 50)
    for i, each in enumerate(moving):
        each[np.roll(map_of_gaps, i)] = np.nan
    checks.check_codec(x, codec)
    assert mask_of(x, codec).axes & 2
    assert mask_of(x, codec).nbytes < mask_of(moving, codec).nbytes / 3
    assert exact_nbytes(x, codec) == 0


def _land(*shape: int) -> NDArray[np.bool_]:
    """Land and sea with coasts that are not straight: what is above 0 of noise that is blurred."""
    heights = np.random.default_rng(4).normal(0, 1, [size + 2 * BLUR for size in shape])
    for axis in (0, 0, 1, 1):
        sums = np.moveaxis(heights, axis, 0).cumsum(0)
        heights = np.moveaxis(sums[BLUR:] - sums[:-BLUR], 0, axis)
    return np.asarray(heights[: shape[0], : shape[1]] > 0)


@pytest.mark.parametrize("shape", [(300, 400), (333, 217)])
def test_a_mask_takes_no_more_bytes_than_zlib(shape: tuple[int, ...]) -> None:
    x = field("float32", *shape)
    land = _land(*shape)
    x[land] = np.nan
    for codec in (ErrorBounded(abs=1e-2, predictor="interpolation"), Lossless(predictor="lorenzo")):
        checks.check_codec(x, codec)
        assert mask_of(x, codec).nbytes + HEADER_NBYTES <= len(zlib.compress(np.packbits(land).tobytes(), 9))


def test_a_mask_has_the_gaps_that_are_the_most() -> None:
    """Others are kept exactly, bit for bit."""
    x = field("float32", 60, 70)
    x[5:40, 3:60] = np.nan
    x.view(np.uint32)[50, :40] = 0xFFC12345  # another NaN
    x[52, 7:30] = -np.inf
    x[54, ::2] = -9999.0
    codec = ErrorBounded(abs=1e-2, predictor="interpolation", fill_value=-9999.0)
    checks.check_codec(x, codec)
    assert mask_of(x, codec).fill == 0x7FC00000
    x[:, 3:60] = -9999.0
    checks.check_codec(x, codec)
    assert mask_of(x, codec).fill == np.float32(-9999.0).view(np.uint32)


def test_infinities_alone_have_no_mask() -> None:
    x = field("float32", 60, 70)
    x[5:40, 3:60] = np.inf
    codec = Lossless(predictor="interpolation")
    checks.check_codec(x, codec)
    assert reference_reader.describe_mask(checks.stream_of(x, codec)) is None
    assert exact_nbytes(x, codec) > 0


SHAPES = [(9000,), (3, 4500), (40, 60), (7, 30, 33), (6, 50, 5), (2, 3, 20, 40), (5, 11, 3, 7, 9), (700, 2), (2, 9999)]


@pytest.mark.parametrize("gaps", ["coarse", "scattered", "all but a few"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_parts_of_a_masked_array(shape: tuple[int, ...], gaps: str) -> None:
    """From the bytes alone that are told."""
    x = field("float32", *shape)
    x[_gaps(gaps, *shape)] = np.nan
    for codec in (ErrorBounded(abs=1e-2, predictor="interpolation"), Lossless(predictor="lorenzo")):
        checks.check_codec(x, codec)
        assert mask_of(x, codec).fill == 0x7FC00000
        c = arrcomp.compress(x, codec)
        whole = checks.bits_of(arrcomp.decompress(c)).ravel()
        for first, end in _ranges(x.size):
            assert (_part(c, first, end - first) == whole[first:end]).all(), (first, end)


def _gaps(kind: str, *shape: int) -> NDArray[np.bool_]:
    rng = np.random.default_rng(len(shape))
    count, run = int(np.prod(shape)), 40 if kind == "coarse" else 1
    share = 0.99 if kind == "all but a few" else 0.4
    return np.repeat(rng.random(count // run + 1) < share, run)[:count].reshape(shape)


def _ranges(size: int) -> list[tuple[int, int]]:
    drawn = np.sort(np.random.default_rng(size).integers(0, size + 1, (12, 2)), axis=1).tolist()
    return [(0, size), (0, 1), (size - 1, size), (31, 33), *((a, b) for a, b in drawn if a < b)]


def _part(c: arrcomp.Compressed, first: int, count: int) -> NDArray[Any]:
    """The bits of some elements, from those bytes of the payload that they need."""
    payload, coding = c.host_payload(), (c.codec.id, c.codec.core_parameters(), c.spec.dtype.id)
    room, size = np.full(payload.size, 0xA5, np.uint8), c.spec.elements
    for begin, end in _core.directory_ranges(*coding, payload.size, size):
        room[begin:end] = payload[begin:end]
    for begin, end in _core.payload_ranges(*coding, room, size, first, count * c.dtype.itemsize):
        room[begin:end] = payload[begin:end]
    out = np.empty(count * c.dtype.itemsize, np.uint8)
    _core.decode_range(*coding, room, size, first, out, 1)
    return checks.bits_of(out.view(c.dtype))
