"""Integers that are predicted along their axes: images, volumes, grids of heights (FORMAT.md, section 9)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
from arrcomp import Lossless
from checks import Array
from predicted_fields import ALWAYS, PREDICTORS, SHAPES, field, is_predicted

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def integers(name: str, *shape: int, noise: float = 0.01) -> Array:
    """A smooth field over a third of the type's range, or of 2^40, around the middle of the range."""
    info = np.iinfo(name)
    extent, middle = min(info.max - info.min, 2**40) // 20, (int(info.max) + int(info.min) + 1) // 2
    whole = np.rint(field("float64", *shape, noise=noise) * extent).astype(np.int64)
    return (whole.astype(object) + middle).astype(name)


def check(x: Array, codec: Lossless) -> bytes:
    """The stream, after a check of what both readers make of it."""
    stream = checks.check_codec(x, codec)
    checks.check_reference(stream, x)
    return stream


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("name", INTEGERS)
def test_every_value_is_kept(name: str, predictor: Any, shape: tuple[int, ...]) -> None:
    x = integers(name, *shape)
    for speed in ("default", "fast"):
        stream = check(x, Lossless(predictor=predictor, speed=speed))
        if x.size < 512:
            assert not is_predicted(stream)


@pytest.mark.parametrize("predictor", ALWAYS)
@pytest.mark.parametrize("name", INTEGERS)
def test_smooth_integers_take_fewer_bytes(name: str, predictor: Any) -> None:
    x = integers(name, 190, 210, noise=0)
    stream = check(x, Lossless(predictor=predictor))
    assert is_predicted(stream)
    assert len(stream) < 0.9 * len(checks.stream_of(x, Lossless()))
    assert len(checks.stream_of(x, Lossless(predictor="auto"))) <= len(stream)


@pytest.mark.parametrize("predictor", ALWAYS)
@pytest.mark.parametrize("name", INTEGERS)
def test_values_at_both_ends_of_the_type(name: str, predictor: Any) -> None:
    """Predictions may lie beyond them, and those of 64 bits are not told apart by the arithmetic type."""
    info = np.iinfo(name)
    rng = np.random.default_rng(1)
    ends = np.array([info.min, info.min + 1, info.max - 1, info.max, 0, 1], dtype=name)
    check(ends[rng.integers(0, len(ends), (30, 40))], Lossless(predictor=predictor))
    steep = np.where(np.arange(50) < 25, info.min, info.max).astype(name) * np.ones((30, 1), name)
    check(steep, Lossless(predictor=predictor))


@pytest.mark.parametrize("predictor", ALWAYS)
@pytest.mark.parametrize("name", ["int64", "uint64"])
def test_integers_that_are_no_floats(name: str, predictor: Any) -> None:
    """Those above 2^50 in size count as 0 in predictions."""
    for scale in (2**47, 2**51, 2**60):
        x = (np.rint(field("float64", 25, 41) * 8).astype(np.int64) * scale).astype(name)
        x[::3] += np.arange(41, dtype=name)
        check(x, Lossless(predictor=predictor))


@pytest.mark.parametrize("predictor", ALWAYS)
@pytest.mark.parametrize("name", ["int32", "uint32"])
def test_integers_that_float32_rounds(name: str, predictor: Any) -> None:
    x = np.cumsum(np.random.default_rng(2).integers(-9, 9, (40, 60)), axis=1) + (1 << 29)
    stream = check(x.astype(name), Lossless(predictor=predictor))
    assert is_predicted(stream)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 8, 9, 16, 17])
@pytest.mark.parametrize("name", ["uint8", "int16", "int64"])
def test_channels_stand_side_by_side(name: str, channels: int) -> None:
    """Pixels: lines of so few elements that a row has several, along which differences are taken too."""
    x = integers(name, 37, 41, channels, noise=0.02)
    for predictor in PREDICTORS:
        for threads in (1, 2):
            compressed = arrcomp.compress(x, Lossless(predictor=predictor), threads=threads)
            np.testing.assert_array_equal(arrcomp.decompress(compressed, threads=threads), x)
        checks.check_reference(compressed.to_bytes(), x)


def test_colours_are_predicted_from_each_other() -> None:
    grey = np.rint(100 + 20 * field("float64", 200, 220, noise=0.05))
    image = np.stack([grey, 255 - grey, grey + 60], axis=-1).astype(np.uint8)
    assert len(check(image, Lossless(predictor="auto"))) < 0.6 * len(checks.stream_of(image, Lossless()))


@pytest.mark.parametrize("name", ["bool", "uint4", "int4", "float8_e8m0fnu"])
def test_other_types_that_are_stored_as_integers(name: str) -> None:
    x = (np.arange(4000).reshape(40, 100) // 7 % 2).astype(checks.numpy_dtype(name))
    for predictor in PREDICTORS:
        check(x, Lossless(predictor=predictor))


@pytest.mark.parametrize("name", INTEGERS)
def test_noise_takes_as_much_as_without_a_predictor(name: str) -> None:
    noise = np.random.default_rng(4).integers(0, 256, (60, 70, np.dtype(name).itemsize)).astype(np.uint8).view(name)
    stream = check(noise, Lossless(predictor="auto"))
    assert not is_predicted(stream)
    assert len(stream) <= len(checks.stream_of(noise, Lossless())) + 24


@given(data=st.data())
def test_any_shape_and_any_integers(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(INTEGERS))
    shape = (*data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)), data.draw(st.integers(1, 50)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    words = rng.integers(0, 256, (*shape, np.dtype(name).itemsize), dtype=np.uint8)
    smooth = np.cumsum(rng.integers(-3, 4, shape), axis=-1).astype(name)
    x = np.where(rng.random(shape) < 0.02, words.view(name)[..., 0], smooth)
    check(x, Lossless(predictor=data.draw(st.sampled_from(PREDICTORS))))


@pytest.mark.parametrize("name", INTEGERS)
def test_every_instruction_set_writes_the_same_bytes(name: str) -> None:
    x = integers(name, 9, 33, 47)
    for predictor in ALWAYS:
        codec = Lossless(predictor=predictor)
        checks.check_same_bytes(x, codec, checks.stream_of(x, codec))


@pytest.mark.parametrize("predictor", ALWAYS)
@pytest.mark.parametrize("name", ["uint8", "int16", "uint64"])
def test_a_part_is_decoded_alone(name: str, predictor: Any, tmp_path: Path) -> None:
    x = integers(name, 50, 40, 23)
    (tmp_path / "x.arrcomp").write_bytes(checks.stream_of(x, Lossless(predictor=predictor)))
    with arrcomp.open_file(tmp_path / "x.arrcomp") as file:
        for rows in (slice(0, 1), slice(7, 20), slice(49, 50), slice(0, 50)):
            np.testing.assert_array_equal(file.slice("arr_0")[rows], x[rows])
