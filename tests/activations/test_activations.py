"""Activations in steps: their functions and derivatives, the fits, and the shipped tables."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from arrcomp.activations import ACTIVATIONS, StepFunction, steps_of
from arrcomp.activations._functions import PIECEWISE, Activation

Array = NDArray[np.float64]

# As of the reference: the activations that FewBit has.
NAMES = {
    "gelu", "gelu_tanh", "silu", "mish", "sigmoid", "tanh", "softplus", "softsign", "elu", "celu", "selu", "logsigmoid",
    "hardswish", "tanhshrink", "relu", "relu6", "leaky_relu", "threshold", "hardsigmoid", "hardtanh", "hardshrink",
    "softshrink",
}  # fmt: skip
OTHER = {"threshold": (0.3, -1.5), "elu": (2.0,), "celu": (0.7,), "softplus": (2.0, 20.0), "hardshrink": (0.0,)}


def parameters_of(activation: Activation) -> tuple[float, ...]:
    return OTHER.get(activation.name, activation.defaults)


def test_all_activations_are_there() -> None:
    assert set(ACTIVATIONS) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_derivatives_are_those_of_the_functions(name: str) -> None:
    activation = ACTIVATIONS[name]
    parameters = parameters_of(activation)
    x, step = np.linspace(-6.987, 6.987, 1000), 1e-5
    between = activation.function(x + step, *parameters) - activation.function(x - step, *parameters)
    np.testing.assert_allclose(activation.derivative(x, *parameters), between / (2 * step), rtol=1e-6, atol=1e-8)


def test_functions_have_known_values() -> None:
    for name, x, known in [
        ("gelu", 1.0, 0.8413447460685429),
        ("gelu", -9.0, -1.0157295653584581e-18),
        ("silu", 1.0, 0.7310585786300049),
        ("mish", 1.0, 0.8650983882673103),
        ("softplus", 0.0, 0.6931471805599453),
        ("selu", -1.0, -1.1113307378125625),
        ("hardswish", 1.0, 2 / 3),
        ("logsigmoid", -800.0, -800.0),
        ("sigmoid", -700.0, 9.859676543759772e-305),
    ]:
        activation = ACTIVATIONS[name]
        found = activation.function(np.array([x]), *activation.defaults)
        np.testing.assert_allclose(found, [known], rtol=1e-7, err_msg=name)


# Steps


def test_indices_are_those_of_the_rules() -> None:
    x = np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, np.nan, np.inf, -np.inf])
    levels = (1, 2, 3)
    for steps, expected in [
        (StepFunction((-1, 1), levels), [0, 0, 1, 1, 1, 1, 2, 0, 2, 0]),
        (StepFunction((0.5, 1), levels, "even"), [2, 1, 0, 0, 0, 1, 2, 0, 2, 2]),
        (StepFunction((-1, 1), (0, 1), "inside"), [0, 0, 1, 1, 1, 0, 0, 0, 0, 0]),
        (StepFunction((-1, 1), (0, 1), "outside"), [1, 0, 0, 0, 0, 0, 1, 0, 1, 1]),
    ]:
        assert steps.index(x).tolist() == expected
        assert steps(x).tolist() == [steps.levels[index] for index in expected]


def test_bits_are_no_more_than_levels_need() -> None:
    """FewBit's 3-bit tables take 4 bits."""
    for levels, bits in [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (16, 4), (256, 8)]:
        steps = StepFunction(range(levels - 1), range(levels))
        assert steps.bits == bits
        assert steps.core_parameters() == (0, bits, *range(levels - 1), *range(levels))


def test_steps_are_values() -> None:
    steps = StepFunction([0.1], np.array([0, 1], np.float32), "even")  # type: ignore[arg-type]
    assert steps.borders == (0.1,)
    assert steps == StepFunction((np.float32(0.1),), (0, 1), "even")  # type: ignore[arg-type]
    assert steps != StepFunction((0.1,), (0, 1))
    assert hash(steps) == hash(pickle.loads(pickle.dumps(steps)))  # noqa: S301
    assert pickle.loads(pickle.dumps(steps)) == steps  # noqa: S301
    assert repr(steps) == "StepFunction((0.1,), (0.0, 1.0), 'even')"
    with pytest.raises(AttributeError):
        steps.rule = "inside"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0, 0), (1, 2, 3)), r"^borders: expected ascending numbers, got 0\.0 before 0\.0 (in float32\)"),
        (((0, 1e-50), (1, 2, 3)), r"^borders: expected ascending numbers, got 0\.0 before 0\.0 (in float32\)"),
        (((), (1,)), "^levels: expected 2 to 256 numbers, got 1"),
        ((range(256), range(257)), "^levels: expected 2 to 256 numbers, got 257"),
        (((0,), (1, 2, 3)), "^borders: expected 2 numbers, one fewer than levels, got 1"),
        (((-1, 1), (1, 2, 3), "even"), r"^borders: expected numbers of at least 0 with rule='even', got -1\.0"),
        (((0,), (0, 1), "inside"), "^borders: expected 2 numbers with the rules 'inside' and 'outside', got 1"),
        (((0, 1), (0, 1, 2), "outside"), "^levels: expected 2 numbers with the rules 'inside' and 'outside', got 3"),
        (((0,), (0, 1), "odd"), "^rule: expected 'ascending' or 'even' or 'inside' or 'outside', got 'odd'"),
        (((np.nan,), (0, 1)), "^borders: expected finite numbers in the range of float32, got nan"),
        (((0,), (0, np.inf)), "^levels: expected finite numbers in the range of float32, got inf"),
    ],
)
def test_impossible_steps_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        StepFunction(*arguments)


@pytest.mark.parametrize("activation", PIECEWISE, ids=lambda activation: activation.name)
def test_pieces_take_one_bit_and_are_exact(activation: Activation) -> None:
    parameters = parameters_of(activation)
    steps = steps_of(activation.name, parameters, bits=5)
    assert steps.bits == 1
    x = np.linspace(-9.0011, 9.0013, 3000)
    slope = np.diff(activation.function(np.stack([x - 1e-4, x + 1e-4]), *parameters), axis=0)[0] / 2e-4
    np.testing.assert_allclose(steps(x), slope, atol=1e-6)


def test_slopes_on_borders_are_those_of_pytorch() -> None:
    """Gradients of relu6 at 6 and above are 0; FewBit has 1 there."""
    for name, parameters, x, expected in [
        ("relu", (), [0, 1e-30], [0, 1]),
        ("relu6", (), [0, 1, 6, 7], [0, 1, 0, 0]),
        ("leaky_relu", (0.25,), [-1, 0, 1], [0.25, 0.25, 1]),
        ("threshold", (2, 5), [2, 2.5], [0, 1]),
        ("hardtanh", (-1, 1), [-1, 0, 1], [0, 1, 0]),
        ("hardshrink", (0.5,), [-0.6, -0.5, 0.5, 0.6], [1, 0, 0, 1]),
        ("softshrink", (0,), [-1e-30, 0, 1e-30], [1, 0, 1]),
    ]:
        assert steps_of(name, parameters)(np.array(x, np.float32)).tolist() == expected, name


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("gelU",), ValueError, "^function: expected 'gelu' or 'gelu_tanh' or.*got 'gelU'"),
        ((3,), TypeError, r"^function: expected 'gelu' or 'gelu_tanh' or.*got 3 \(int\)"),
        (("gelu", 1), TypeError, r"^parameters: expected a list or tuple of numbers, got 1 \(int\)"),
        (("elu", np.array(1.0)), TypeError, r"^parameters: expected a list or tuple of numbers, got numpy\.ndarray"),
        (("gelu", (1,)), ValueError, r"^parameters: expected 0 numbers \(none\) for gelu, got 1"),
        (("threshold",), ValueError, r"^parameters: expected 2 numbers \(threshold, value\) for threshold, got 0"),
        (("celu", (0,)), ValueError, "^alpha: expected a number above 0, got 0"),
        (("elu", ("a",)), TypeError, r"^alpha: expected a finite number, got 'a' \(str\)"),
        (("elu", (np.inf,)), ValueError, "^alpha: expected a finite number, got inf"),
        (("softplus", (-1, 20)), ValueError, "^beta: expected a number above 0, got -1"),
        (("hardshrink", (-1,)), ValueError, "^lambd: expected a number of at least 0, got -1"),
        (("hardtanh", (1, 1)), ValueError, r"^max_val: expected a number above min_val=1\.0, got 1\.0"),
        (("gelu", (), 9), ValueError, "^bits: expected an integer from 1 to 8, got 9"),
    ],
)
def test_impossible_activations_are_refused(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        steps_of(*arguments)
