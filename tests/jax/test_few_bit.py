"""JAX's few-bit activations: values, gradients, residuals, and JAX's transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from arrcomp.activations import ACTIVATIONS, StepFunction, fit, steps_of

jax = pytest.importorskip("jax")

from jax import experimental
from jax import numpy as jnp

import arrcomp.jax.nn as few

# The function's name, its arguments after the input, and the activation's name and parameters.
CALLS: list[tuple[str, tuple[Any, ...], str, tuple[float, ...]]] = [
    ("gelu", (), "gelu_tanh", ()),
    ("gelu", (False,), "gelu", ()),
    *((name, (), name, ()) for name in ("silu", "mish", "sigmoid", "tanh", "selu", "relu", "relu6")),
    ("soft_sign", (), "softsign", ()),
    ("log_sigmoid", (), "logsigmoid", ()),
    ("hard_swish", (), "hardswish", ()),
    ("hard_sigmoid", (), "hardsigmoid", ()),
    ("tanh_shrink", (), "tanhshrink", ()),
    ("hard_shrink", (0.25,), "hardshrink", (0.25,)),
    ("soft_shrink", (0.25,), "softshrink", (0.25,)),
    ("elu", (1.5,), "elu", (1.5,)),
    ("celu", (1.5,), "celu", (1.5,)),
    ("leaky_relu", (0.25,), "leaky_relu", (0.25,)),
    ("softplus", (2.0, 20.0), "softplus", (2.0, 20.0)),
    ("threshold", (0.5, -1.0), "threshold", (0.5, -1.0)),
    ("hard_tanh", (-0.5, 2.0), "hardtanh", (-0.5, 2.0)),
]
IDS = [call[2] for call in CALLS]
DTYPES = ["float16", "bfloat16", "float32", "float64"]


def inputs(dtype: str = "float32") -> Any:
    x = 2.5 * np.random.default_rng(3).normal(size=(17, 59))
    x.flat[:12] = [0, 0.5, -0.5, 6, -3, 3, 2, -0.25, 0.25, 20, -20, 1e-3]
    return jnp.asarray(x, dtype)


def slope(call: Any, x: Any) -> Any:
    return jax.grad(lambda x: call(x).astype(jnp.float32).sum())(x)


def residuals(call: Any, x: Any) -> list[Any]:
    """The arrays that are kept for the backward pass."""
    return jax.tree.leaves(jax.vjp(call, x)[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "arguments", "activation", "parameters"), CALLS, ids=IDS)
def test_values_and_gradients_are_right(
    name: str, arguments: tuple[Any, ...], activation: str, parameters: tuple[float, ...], dtype: str
) -> None:
    with (jax if hasattr(jax, "enable_x64") else experimental).enable_x64(dtype == "float64"):
        x = inputs(dtype)
        wide = np.asarray(x).astype(np.float64)
        call = getattr(few, name)
        expected = ACTIVATIONS[activation].function(wide, *parameters)
        unit = float(jnp.finfo(dtype).eps)
        # JAX's own functions of short floats round each of their steps.
        for y, units in ((call(x, *arguments), 16), (jax.vjp(lambda x: call(x, *arguments), x)[0], 4)):
            assert y.dtype == x.dtype
            bound = units * unit * (np.abs(expected) + np.abs(wide).max())
            assert (np.abs(np.asarray(y).astype(np.float64) - expected) <= bound).all()
        levels = steps_of(activation, parameters, bits=3)(wide)
        gradient = slope(lambda x: call(x, *arguments), x)
        assert gradient.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(gradient), levels.astype(x.dtype))


@pytest.mark.parametrize("bits", range(1, 9))
def test_residuals_are_so_many_bits_and_nothing_else(bits: int) -> None:
    x = jnp.ones((32, 160))
    for call in (few.gelu, few.tanh, few.mish):
        (only,) = residuals(lambda x, call=call: call(x, bits=bits), x)
        assert only.dtype == jnp.uint8
        assert only.size == x.size * bits // 8


def test_names_are_jax_s() -> None:
    own = {"hard_shrink", "soft_shrink", "tanh_shrink", "threshold", "stepwise", "randomized_linear"}
    assert [name for name in few.__all__ if not hasattr(jax.nn, name)] == sorted(own)
    assert {call[0] for call in CALLS} | {"stepwise", "randomized_linear"} == set(few.__all__)


def test_transformations_have_the_same_gradients() -> None:
    x = inputs()
    for call in (few.gelu, lambda x: few.sigmoid(x, bits=2), few.relu, lambda x: few.stepwise(x, jnp.sin, SINE)):
        expected = slope(call, x)
        for made in (
            jax.jit(lambda x, call=call: slope(call, x))(x),
            jax.vmap(lambda x, call=call: slope(call, x))(x),
            jax.vmap(lambda x, call=call: slope(call, x), in_axes=1, out_axes=1)(x),
            slope(jax.checkpoint(call), x),
            jax.lax.map(lambda x, call=call: slope(call, x), x),
            jax.jacrev(lambda x, call=call: call(x).sum())(x),
        ):
            np.testing.assert_array_equal(made, expected)


def test_layers_learn() -> None:
    """A network with 2-bit derivatives fits a function."""

    def loss(weights: Any, x: Any) -> Any:
        hidden = few.gelu(x @ weights[0], bits=2)
        return jnp.mean((few.tanh(hidden @ weights[1], bits=2)[:, 0] - jnp.sin(2 * x[:, 0])) ** 2)

    keys = jax.random.split(jax.random.key(0), 3)
    weights = [jax.random.normal(keys[0], (2, 32)), 0.1 * jax.random.normal(keys[1], (32, 1))]
    x = jnp.stack([jnp.linspace(-1, 1, 64), jnp.ones(64)], 1)
    before = loss(weights, x)

    @jax.jit
    def step(weights: Any) -> Any:
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights, x))

    for _ in range(200):
        weights = step(weights)
    assert loss(weights, x) < before / 10


SINE = fit(np.sin, 3)


def test_steps_go_with_any_function() -> None:
    x = inputs()
    np.testing.assert_array_equal(few.stepwise(x, jnp.sin, SINE), jnp.sin(x))
    np.testing.assert_array_equal(slope(lambda x: few.stepwise(x, jnp.sin, SINE), x), SINE(np.asarray(x)))
    assert [kept.dtype for kept in residuals(lambda x: few.stepwise(x, jnp.sin, SINE), x)] == [jnp.uint8]


def test_own_steps_take_the_place_of_the_tables() -> None:
    steps, x = StepFunction((-1, 1), (0.125, 0.5, 1)), inputs()
    np.testing.assert_array_equal(slope(lambda x: few.elu(x, 2.0, steps=steps), x), steps(np.asarray(x)))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_all_shapes_are_taken(shape: tuple[int, ...]) -> None:
    x = jnp.ones(shape)
    assert few.gelu(x).shape == slope(few.gelu, x).shape == shape


def test_forward_mode_is_refused_by_jax() -> None:
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(few.gelu, (inputs(),), (inputs(),))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: few.gelu(x, bits=0), ValueError, "bits: expected an integer from 1 to 8, got 0"),
        (lambda x: few.gelu(x, bits=9), ValueError, "bits: expected an integer from 1 to 8, got 9"),
        (
            lambda x: jax.jit(lambda x, n: few.gelu(x, bits=n))(x, 3),
            TypeError,
            r"bits: expected an integer from 1 to 8, got jax\._src\.interpreters\.partial_eval\.DynamicJaxprTracer",
        ),
        (lambda x: few.gelu(x, "tanh"), TypeError, r"approximate: expected True or False, got 'tanh' \(str\)"),  # type: ignore[arg-type]
        (lambda x: few.tanh(x, steps=3), TypeError, r"steps: expected a StepFunction, got 3 \(int\)"),  # type: ignore[arg-type]
        (lambda x: few.celu(x, -1.0), ValueError, r"alpha: expected a number above 0, got -1\.0"),
        (
            lambda x: jax.jit(few.elu)(x, 2.0),
            TypeError,
            r"alpha: expected a finite number, got jax\._src\.interpreters\.partial_eval\.DynamicJaxprTracer",
        ),
        (lambda x: few.relu(x.astype(int)), TypeError, "x: expected float16, bfloat16, float32 or float64, got int32"),
        (
            lambda x: few.stepwise(x, jnp.sum, SINE),
            ValueError,
            r"function\(x\): expected float32 of shape \(17, 59\), got float32 of shape \(\)",
        ),
        (lambda x: few.stepwise(x, 3, SINE), TypeError, r"function: expected a function of an array, got 3 \(int\)"),  # type: ignore[arg-type]
        (lambda x: few.stepwise(x, jnp.sin, 3), TypeError, r"steps: expected a StepFunction, got 3 \(int\)"),  # type: ignore[arg-type]
    ],
)
def test_impossible_arguments_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(inputs())
