"""Fits of codebooks: against brute force and known optima."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import checks
from arrcomp import Codebook
from checks import Array

pytestmark = pytest.mark.arithmetic


def brute_force(values: Array, weights: Array, runs: int) -> float:
    """The least sum of weighted squared differences from means, over all ways to cut."""

    def error(cuts: tuple[int, ...]) -> float:
        total = 0.0
        for begin, end in itertools.pairwise((0, *cuts, values.size)):
            part, weight = values[begin:end], weights[begin:end]
            total += float((weight * (part - np.average(part, weights=weight)) ** 2).sum())
        return total

    return min(error(cuts) for cuts in itertools.combinations(range(1, values.size), runs - 1))


def test_fits_are_the_best_of_all() -> None:
    rng = np.random.default_rng(2)
    for bits, size, weighted in itertools.product((1, 2), (5, 8, 10), (False, True)):
        samples, weights = rng.normal(3, 2, size), rng.random(size) + 0.01 if weighted else np.ones(size)
        codec = Codebook.fit(samples, bits, weights=weights if weighted else None)
        y = np.array(codec.levels)[np.searchsorted(codec.borders, samples)]
        order = np.argsort(samples)
        least = brute_force(samples[order], weights[order], 2**bits)
        assert (weights * (samples - y) ** 2).sum() == pytest.approx(least, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize(("bits", "known"), [(1, 0.36338), (2, 0.11748), (3, 0.034548), (4, 0.0095013)])
def test_fits_of_normal_samples_reach_the_known_optimum(bits: int, known: float) -> None:
    """The least mean squared errors of J. Max, "Quantizing for minimum distortion", 1960, table I."""
    samples = np.random.default_rng(1).normal(size=200_000).astype(np.float32)
    codec = Codebook.fit(samples, bits)
    decoded = checks.array_of(checks.stream_of(samples, codec))
    assert np.mean((decoded.astype(np.float64) - samples) ** 2) == pytest.approx(known, rel=0.01)


def test_scaled_fits_beat_the_published_table() -> None:
    samples = np.random.default_rng(4).laplace(size=64 * 2000).astype(np.float32)
    fitted = Codebook.fit(samples, 4, scaling="absmax")
    errors = [np.linalg.norm(checks.array_of(checks.stream_of(samples, c)) - samples) for c in (fitted, Codebook.nf4())]
    assert errors[0] < 0.97 * errors[1]


def test_fits_of_few_different_samples_are_exact() -> None:
    codec = Codebook.fit([3, 1, 1, 2], bits=4)
    assert codec.levels == (1.0, 2.0, 3.0)
    assert codec.borders == (1.5, 2.5)
    assert Codebook.fit([1, 2, 9], bits=1, weights=[1, 1, 0]).levels == (1.0, 2.0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1, 2], 0), ValueError, "^bits: expected an integer from 1 to 8, got 0"),
        (([1, 2], 9), ValueError, "^bits: expected an integer from 1 to 8, got 9"),
        (([1, np.nan], 2), ValueError, "^samples: expected finite numbers, got NaN or infinities"),
        (([1, 1], 2), ValueError, "^samples: expected different numbers with weights above 0, got equal ones"),
        (([], 2), ValueError, "^samples: expected different numbers with weights above 0, got equal ones"),
        ((["a"], 2), TypeError, "^samples: expected real numbers, got <U1"),
        (([1, 2], 2, [1]), ValueError, r"^weights: expected shape \(2,\), that of the samples, got \(1,\)"),
        (([1, 2], 2, [1, -1]), ValueError, r"^weights: expected numbers of at least 0, got -1\.0"),
    ],
)
def test_wrong_samples_are_named(arguments: Any, error: type[Exception], message: str) -> None:
    samples, bits, *weights = arguments
    with pytest.raises(error, match=message):
        Codebook.fit(samples, bits, weights=weights[0] if weights else None)


def gelu_slope(x: Array) -> Array:
    """The derivative of x Phi(x)."""
    phi = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x.reshape(-1)]).reshape(x.shape)
    found: Array = phi + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return found


def test_the_steps_of_a_function_are_the_best_of_all() -> None:
    def function(x: Array) -> Array:
        return np.sin(3 * x)

    codec = Codebook.fit_function(function, 2, (-2, 2), lambda x: 1 + x * x, points=200)
    edges = [-2.0, *codec.borders, 2.0]
    x = np.linspace(-2, 2, 200_001)
    y = np.array(codec.levels)[np.searchsorted(codec.borders, x)]
    error = float(((1 + x * x) * (function(x) - y) ** 2).sum())
    rng = np.random.default_rng(0)
    for _ in range(300):  # no others are better, but for the grid's sake
        borders = np.sort(rng.uniform(-2, 2, 3))
        index = np.searchsorted(borders, x)
        means = np.bincount(index, (1 + x * x) * function(x)) / np.bincount(index, 1 + x * x)
        assert error < 1.01 * float(((1 + x * x) * (function(x) - means[index]) ** 2).sum())
    assert edges == sorted(edges)


@pytest.mark.parametrize(("bits", "known"), [(1, 0.0385), (2, 8.01e-3), (3, 1.91e-3), (4, 5.9e-4)])
def test_the_steps_of_gelu_are_as_good_as_known(bits: int, known: float) -> None:
    codec = Codebook.fit_function(gelu_slope, bits, (-10, 10))
    x = np.linspace(-8, 8, 20_001)
    y = np.array(codec.levels)[np.searchsorted(codec.borders, x)]
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    assert np.sum(density * (gelu_slope(x) - y) ** 2) * (x[1] - x[0]) <= known
    assert codec.scaling is None
    assert codec.bits == bits


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"function": 3}, TypeError, r"^function: expected a function of arrays, got 3 \(int\)"),
        (
            {"function": lambda x: x / 0 * 0},
            ValueError,
            r"^function\(x\): expected finite numbers, got NaN or infinities",
        ),
        ({"function": lambda x: x[:1]}, ValueError, r"^function\(x\): expected shape \(2048,\), got \(1,\)"),
        ({"domain": (1, 1)}, ValueError, r"^domain: expected two numbers, the lower one first, got \(1, 1\)"),
        ({"domain": (0, math.inf)}, ValueError, "^domain: expected finite numbers in the range of float32, got inf"),
        ({"domain": 3}, ValueError, "^domain: expected two numbers, the lower one first, got 3"),
        ({"density": lambda x: -x}, ValueError, r"^density\(x\): expected numbers of at least 0, got -0"),
        ({"density": lambda x: 0 * x}, ValueError, r"^density: expected numbers above 0 in \(0, 1\), got 0 everywhere"),
        ({"points": 3}, ValueError, "^points: expected an integer from 4 to 8192, got 3"),
        ({"bits": 9}, ValueError, "^bits: expected an integer from 1 to 8, got 9"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wrong_functions_are_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    given: dict[str, Any] = {"function": np.sin, "bits": 2, "domain": (0, 1)} | arguments
    with pytest.raises(error, match=message):
        Codebook.fit_function(given.pop("function"), given.pop("bits"), given.pop("domain"), **given)
