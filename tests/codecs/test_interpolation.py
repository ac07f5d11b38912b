"""Interpolation: its steps fit the values of an array, and so take fewer bytes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import checks
from arrcomp import ErrorBounded, Lossless
from checks import FLOATS, Array, numpy_dtype
from predicted_fields import codecs_of, field, nbytes_of, prediction_of

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]


# ---- ends of lines


@pytest.mark.parametrize("shape", [(512,), (64, 48), (16, 20, 24)], ids=str)
@pytest.mark.parametrize("name", FLOATS)
def test_where_values_are_rough_the_last_one_is_held(name: str, shape: tuple[int, ...]) -> None:
    """A polynomial through rough values is far off behind the last of them."""
    x = np.random.default_rng(31).normal(0, 1, shape).cumsum(-1).astype(numpy_dtype(name))
    for codec in codecs_of("interpolation", 0.5):
        checks.check_codec(x, codec)
    steps = prediction_of(x, ErrorBounded(abs=0.5, predictor="interpolation")).steps
    assert [step for step in steps if step.axis == 3][-1].held  # the size is even


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_where_they_are_smooth_it_is_not(name: str) -> None:
    x = np.add.outer(np.sin(np.arange(128) / 20), np.cos(np.arange(96) / 15)).astype(name)
    codec = ErrorBounded(abs=1e-4, predictor="interpolation")
    checks.check_codec(x, codec)
    steps = prediction_of(x, codec).steps
    assert not any(step.held for step in steps[-2:])


@pytest.mark.parametrize("shape", [(513,), (65, 49), (17, 21, 25)], ids=str)
def test_lines_of_odd_sizes_have_no_such_end(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(32).normal(0, 1, shape).cumsum(-1).astype(np.float32)
    codec = ErrorBounded(abs=0.5, predictor="interpolation")
    checks.check_codec(x, codec)
    steps = prediction_of(x, codec).steps[-x.ndim :]
    assert not any(step.held or step.keeps_last for step in steps)


EVEN_SHAPES = [(96, 128), (8, 64), (128, 16), (40, 36, 34), (2, 80, 100), (6, 10, 12, 14), (14, 512), (130, 66)]


@pytest.mark.parametrize("shape", EVEN_SHAPES, ids=str)
@pytest.mark.parametrize("name", FLOATS)
def test_the_last_slice_of_smooth_fields_is_kept(name: str, shape: tuple[int, ...]) -> None:
    """Behind the others, it would be the only one that is not between two."""
    x = field(name, *shape)
    for codec in codecs_of("interpolation", 2e-2):
        checks.check_codec(x, codec)
    steps = prediction_of(x, ErrorBounded(abs=2e-2, predictor="interpolation")).steps
    assert any(step.keeps_last for step in steps)
    assert not any(step.keeps_last and step.held for step in steps)


def test_even_sizes_cost_no_more_than_odd_ones() -> None:
    codec = ErrorBounded(abs=1e-3, predictor="interpolation")
    even, odd = field("float32", 64, 64, 64), field("float32", 65, 65, 65)
    assert nbytes_of(even, codec) < 1.05 * nbytes_of(odd, codec)


def test_where_nothing_tells_of_the_last_slice_it_is_not_kept() -> None:
    """As on a line, or where slices are unlike each other but along one axis."""
    line = field("float32", 4096)
    rows = np.random.default_rng(33).normal(0, 1, (64, 1)) + np.sin(np.arange(128) / 9)
    for x, fine_steps in ((line, None), (rows.astype(np.float32), 4)):  # coarse rows are alike along both axes
        codec = ErrorBounded(abs=1e-3, predictor="interpolation")
        checks.check_codec(x, codec)
        steps = prediction_of(x, codec).steps
        assert not any(step.keeps_last for step in steps[-(fine_steps or len(steps)) :])


# ---- weights


def short_waves(name: str, *shape: int, period: float = 4.5) -> Array:
    """Waves of some points each, of mean 0, all along the last axis, with slowly changing heights and some noise."""
    rng = np.random.default_rng(len(shape))
    heights = np.sin(np.arange(math.prod(shape)) / 500).reshape(shape)
    phases = rng.uniform(0, 2 * np.pi, (*shape[:-1], 1))
    waves = np.sin(np.arange(shape[-1]) * 2 * np.pi / period + phases)
    values = 1000 * (1.5 + heights) * waves + rng.normal(0, 30, shape)
    return np.asarray(values.astype(numpy_dtype(name)))


@pytest.mark.parametrize("shape", [(1201,), (40, 500), (12, 10, 130)], ids=str)
@pytest.mark.parametrize("name", FLOATS)
def test_short_waves_are_predicted_by_weights(name: str, shape: tuple[int, ...]) -> None:
    x = short_waves(name, *shape)
    for predictor in ("interpolation", "auto"):
        for codec in codecs_of(predictor, 5):
            checks.check_codec(x, codec)
    assert any(step.weights for step in prediction_of(x, ErrorBounded(abs=5, predictor="interpolation")).steps)


@pytest.mark.parametrize("name", ["int16", "int32", "int64", "uint16"])
def test_short_waves_of_integers_are_predicted_by_weights(name: str) -> None:
    x = (short_waves("float64", 40, 500) + 9000).astype(name)
    codec = Lossless(predictor="interpolation")
    checks.check_codec(x, codec)
    assert any(step.weights for step in prediction_of(x, codec).steps)


@pytest.mark.parametrize("period", [2.6, 3.6, 4.5, 5.5, 8, 12])
def test_weights_are_those_of_least_squares(period: float) -> None:
    x = short_waves("float64", 30, 501, period=period)
    last = prediction_of(x, ErrorBounded(abs=1, predictor="interpolation")).steps[-1]
    assert last.axis == 3
    assert last.weights is not None
    own = np.array(last.weights) / 2**15
    middle = x[:, 3:-3]
    neighbours = np.stack([x[:, 2:-4] + x[:, 4:-2], x[:, :-6] + x[:, 6:]], axis=-1)
    best, *_ = np.linalg.lstsq(neighbours.reshape(-1, 2), middle.ravel(), rcond=None)
    errors = [np.square(middle - neighbours @ weights).mean() for weights in (own, best)]
    assert errors[0] < 1.03 * errors[1]


def test_weights_take_fewer_bytes() -> None:
    """A cubic is off by half of a wave's height or more, where weights are off by its noise."""
    x = short_waves("float32", 64, 513)
    unpredicted = nbytes_of(x, ErrorBounded(abs=1))
    assert nbytes_of(x, ErrorBounded(abs=1, predictor="interpolation")) < 0.75 * unpredicted


def test_smooth_values_far_from_0_need_no_weights() -> None:
    """Their weights' sum is 1, so that they are never off by a part of the values."""
    x = field("float32", 60, 70, noise=0.01) + np.float32(3000)
    for step in prediction_of(x, ErrorBounded(abs=1e-3, predictor="interpolation")).steps:
        assert step.weights is None or sum(step.weights) == 2**14


def test_values_whose_sums_overflow_are_kept() -> None:
    for name, most in (("float32", 3e38), ("float64", 1.7e308)):
        x = (short_waves("float64", 40, 500) * (most / 2600)).astype(name)
        for codec in codecs_of("interpolation", most / 1000):
            checks.check_codec(x, codec)


# ---- short axes


SHORT_SHAPES = [(5, 48, 50), (2, 60, 70), (60, 70, 3), (40, 6, 44), (4, 3, 30, 32), (700, 2), (3, 900)]


@pytest.mark.parametrize("shape", SHORT_SHAPES, ids=str)
@pytest.mark.parametrize("name", FLOATS)
def test_short_axes_are_refined_too(name: str, shape: tuple[int, ...]) -> None:
    """As times, levels and channels have, which are often alike."""
    x = field(name, *shape, noise=0.3)
    short = min(range(len(shape)), key=lambda axis: shape[axis])
    x = np.repeat(x.take([0], axis=short), shape[short], axis=short)
    for codec in codecs_of("interpolation", 1e-2):
        checks.check_codec(x, codec)
    steps = prediction_of(x, ErrorBounded(abs=1e-2, predictor="interpolation")).steps
    halvings = math.ceil(math.log2(shape[short]))
    assert [step.axis for step in steps[-halvings:]] == [4 - len(shape) + short] * halvings


@pytest.mark.parametrize("predictor", ["interpolation", "auto"])
@pytest.mark.parametrize("slices", [2, 3, 5, 7, 11])
def test_a_stack_of_slices_that_are_alike_takes_less_than_each_alone(slices: int, predictor: Any) -> None:
    rng = np.random.default_rng(34)
    noise = rng.normal(0, 1, (60, 64))  # what slices have in common, and their neighbours in them do not tell
    x = (noise + np.linspace(0, 1, slices)[:, None, None] * rng.normal(0, 0.3, (60, 64))).astype(np.float32)
    codec = ErrorBounded(abs=1e-2, predictor=predictor)
    checks.check_codec(x, codec)
    assert nbytes_of(x, codec) < 0.9 * sum(nbytes_of(one, codec) for one in x)


def test_slices_that_are_unlike_each_other_stay_apart() -> None:
    """The finest steps are along the axes of a slice."""
    x = np.stack([field("float32", 60, 64), 100 * field("float32", 64, 60).T])
    for codec in codecs_of("interpolation", 1e-2):
        checks.check_codec(x, codec)
    steps = prediction_of(x, ErrorBounded(abs=1e-2, predictor="interpolation")).steps
    assert all(step.axis != 1 for step in steps[-8:])


def test_few_elements_are_left_for_the_coarsest_grid() -> None:
    for shape in [(64, 64, 64), (300, 5), (9, 10, 11), (5000,), (7, 6, 5, 4)]:
        steps = prediction_of(field("float32", *shape), ErrorBounded(abs=1e-3, predictor="interpolation")).steps
        assert math.prod(shape) >> len(steps) <= 64
