"""Steps for activations' derivatives: the fits are the best there are, and the shipped tables are such fits."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from arrcomp.activations import ACTIVATIONS, fit, squared_error, steps_of
from arrcomp.activations._functions import CONTINUOUS, Activation
from arrcomp.codecs import _codebook_fit
from ordinary import then_full

Array = NDArray[np.float64]


def slope_of(activation: Activation) -> Callable[[Array], Array]:
    return lambda x: activation.derivative(x, *activation.defaults)


# Fits


def brute_force(values: Array, weights: Array, runs: int) -> float:
    """The least weighted squared error of all ways to cut."""

    def error(cuts: tuple[int, ...]) -> float:
        bounds = itertools.pairwise((0, *cuts, values.size))
        parts = [(values[begin:end], weights[begin:end]) for begin, end in bounds]
        return sum(float((w * (v - np.average(v, weights=w)) ** 2).sum()) for v, w in parts)

    return min(error(cuts) for cuts in itertools.combinations(range(1, values.size), runs - 1))


def error_of_cuts(values: Array, weights: Array, cuts: NDArray[np.intp]) -> float:
    means = _codebook_fit.segment_means(values, weights, cuts)
    each = np.repeat(means, np.diff([0, *cuts, values.size]))
    return float((weights * (values - each) ** 2).sum())


def test_cuts_are_the_best_of_all() -> None:
    rng = np.random.default_rng(5)
    for size in (6, 12, 13):
        values, weights = rng.normal(size=size), rng.random(size) + 0.01
        for runs, cuts in zip((2, 3, 4), _codebook_fit.splits_for_each(values, weights, (2, 3, 4)), strict=True):
            assert error_of_cuts(values, weights, cuts) == pytest.approx(brute_force(values, weights, runs), rel=1e-9)


def test_moved_cuts_are_the_best_within_reach() -> None:
    rng = np.random.default_rng(6)
    values, weights = rng.normal(size=14), rng.random(14) + 0.01
    for first in ([1, 2, 3], [2, 7, 11], [11, 12, 13]):
        moved = _codebook_fit.refined_splits(values, weights, np.array(first), reach=14)
        assert error_of_cuts(values, weights, moved) == pytest.approx(brute_force(values, weights, 4), rel=1e-9)


@pytest.mark.parametrize("bits", then_full([1, 4], [2, 3, 5, 6, 7, 8]))
def test_steps_of_a_line_are_even(bits: int) -> None:
    """Of f(x) = x^2 / 2 on [0, 1] with uniform inputs: 2^b steps of equal width, with an error of 1 / (12 * 4^b)."""
    steps = fit(lambda x: x * x / 2, bits, density="uniform", domain=(0, 1))
    count = 2**bits
    np.testing.assert_allclose(steps.borders, np.arange(1, count) / count, atol=1e-4)
    np.testing.assert_allclose(steps.levels, (np.arange(count) + 0.5) / count, atol=1e-4)
    error = squared_error(steps, lambda x: x, density="uniform", domain=(0, 1))
    assert error == pytest.approx(1 / (12 * 4**bits), rel=1e-3)


def test_steps_of_a_line_for_normal_inputs_are_the_known_quantizer() -> None:
    """J. Max, "Quantizing for minimum distortion", 1960, table I."""
    for bits, known in [(1, 0.36338), (2, 0.11748), (3, 0.034548), (4, 0.0095013)]:
        steps = fit(lambda x: x * x / 2, bits)
        assert squared_error(steps, lambda x: x) == pytest.approx(known, rel=1e-4)


def test_densities_decide_where_borders_are() -> None:
    silu = ACTIVATIONS["silu"]
    right = fit(silu.function, 3, density=lambda x: np.exp(-((x - 4) ** 2)), derivative=silu.derivative)
    left = fit(silu.function, 3, density=lambda x: np.exp(-((x + 4) ** 2)), derivative=silu.derivative)
    assert np.median(right.borders) > 2
    assert np.median(left.borders) < -2


@pytest.mark.parametrize("name", ["silu", "tanh", "mish"])
def test_fits_without_a_derivative_find_the_same(name: str) -> None:
    activation = ACTIVATIONS[name]
    fitted = fit(activation.function, 3, parity=activation.parity)
    shipped = steps_of(name, bits=3)
    assert fitted.rule == shipped.rule
    np.testing.assert_allclose(fitted.borders, shipped.borders, atol=2e-4)
    np.testing.assert_allclose(fitted.levels, shipped.levels, atol=2e-4)


def test_borders_lie_on_jumps() -> None:
    kinked = fit(lambda x: np.where(x > 0.3, 2 * x, np.sin(x)), 2, jumps=[0.3])
    assert 0.3 in kinked.borders
    assert steps_of("selu", bits=3).borders[-1] == 0
    assert steps_of("elu", (2.0,), bits=3).borders[-1] == 0


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"bits": 0}, ValueError, "^bits: expected an integer from 1 to 8, got 0"),
        ({"bits": 9}, ValueError, "^bits: expected an integer from 1 to 8, got 9"),
        ({"bits": 3.0}, TypeError, r"^bits: expected an integer from 1 to 8, got 3\.0 \(float\)"),
        ({"function": 3}, TypeError, r"^function: expected a function of arrays, got 3 \(int\)"),
        ({"function": lambda x: x[:5]}, ValueError, r"^function\(x\): expected shape \(131073,\), got \(5,\)"),
        (
            {"derivative": lambda x: x * np.nan},
            ValueError,
            r"^derivative\(x\): expected finite numbers, got NaN or infinities",
        ),
        ({"density": "cauchy"}, ValueError, "^density: expected 'normal' or 'uniform', got 'cauchy'"),
        ({"density": lambda x: -x}, ValueError, r"^density\(x\): expected numbers of at least 0, got -9"),
        ({"density": np.zeros_like}, ValueError, r"^density: expected numbers above .*, got 0 everywhere"),
        ({"domain": (1, 1)}, ValueError, r"^domain: expected two numbers, the lower one first, got \(1, 1\)"),
        ({"domain": (-1, 2), "parity": "odd"}, ValueError, "one from -x to x"),
        ({"parity": "even"}, ValueError, r"^parity: expected None for .*, got 'even'"),
        ({"parity": "none"}, ValueError, "^parity: expected 'even' or 'odd', got 'none'"),
        ({"jumps": [np.nan]}, ValueError, "^jumps: expected finite numbers in the range of float32, got nan"),
    ],
)
def test_impossible_fits_are_refused(keywords: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fit(**{"function": np.exp, "bits": 3, **keywords})


# Tables


@pytest.mark.parametrize(
    "activation", then_full(CONTINUOUS[:3], CONTINUOUS[3:]), ids=lambda activation: activation.name
)
def test_tables_are_as_good_as_new_fits(activation: Activation) -> None:
    """And have no more error with each bit than a third of before, as four times the levels would have a sixteenth."""
    errors = []
    for bits in range(1, 9):
        steps = steps_of(activation.name, bits=bits)
        assert steps.bits == bits
        assert len(steps.levels) == 2**bits
        assert (steps.rule == "even") == (activation.parity == "even")
        errors.append(squared_error(steps, slope_of(activation)))
    assert all(after < before / 2.8 for before, after in itertools.pairwise(errors))
    again = fit(activation.function, 2, derivative=slope_of(activation), jumps=activation.jumps)
    free = squared_error(again, slope_of(activation))
    assert errors[1] <= free * 1.001
    if activation.parity != "even":
        assert errors[1] == pytest.approx(free, rel=1e-3)


@pytest.mark.parametrize("activation", CONTINUOUS, ids=lambda activation: activation.name)
def test_odd_tables_mirror_themselves(activation: Activation) -> None:
    for bits in (1, 2, 3, 5, 6, 7, 8):  # at 4 bits gelu and hardswish do better without
        steps = steps_of(activation.name, bits=bits)
        borders, levels = np.array(steps.borders), np.array(steps.levels)
        mirrors = np.array_equal(borders, -borders[::-1]) and np.allclose(levels + levels[::-1], 1, atol=1e-6)
        assert mirrors == (activation.parity == "odd")


def test_parity_is_that_of_the_derivative() -> None:
    x = np.linspace(0.01, 9.99, 500)
    for activation in CONTINUOUS:
        right, left = slope_of(activation)(x), slope_of(activation)(-x)
        assert np.allclose(right, left) == (activation.parity == "even")
        assert np.allclose(right + left, 1) == (activation.parity == "odd")


def test_even_tables_go_twice_as_far() -> None:
    for name in ("sigmoid", "tanh", "softsign", "tanhshrink"):
        slope = slope_of(ACTIVATIONS[name])
        plain = squared_error(fit(np.tanh, 3, derivative=slope), slope)
        assert squared_error(steps_of(name, bits=3), slope) < plain / 2.5


def test_uniform_inputs_have_their_own_steps() -> None:
    for name in ("silu", "sigmoid", "elu"):
        slope = slope_of(ACTIVATIONS[name])
        normal, uniform = steps_of(name), steps_of(name, density="uniform", domain=(-6, 6))
        for density, best, other in (("normal", normal, uniform), ("uniform", uniform, normal)):
            errors = [squared_error(one, slope, density=density, domain=(-6, 6)) for one in (best, other)]  # type: ignore[arg-type]
            assert errors[0] < errors[1]
