"""Activations of `jax.nn`, with its names, that save few bits per value for the backward pass.

The values are JAX's, up to rounding. The derivative is approximated by a step function, and the residual is the packed
index of its level: `bits` per value. Piecewise linear functions have exact derivatives with 1 bit. Without
differentiation, JAX's own functions are called.

All take float16, bfloat16, float32 and float64, of any shape, under `jit`, `vmap`, `grad` and `checkpoint`; but not
forward mode (`jvp`), as they are `jax.custom_vjp`. Other arguments than the input are static Python numbers:

- bits: of each index, 1 to 8. The steps are optimal for normally distributed inputs (`arrcomp.activations.steps_of`).
  For other parameters than the defaults, the first call fits them: half a second for 3 bits, seconds for 8.
- steps: your own `arrcomp.activations.StepFunction`, instead of those for `bits`.

Functions that JAX does not have are named as in PyTorch, with underscores: `hard_shrink`, `soft_shrink`, `tanh_shrink`,
`threshold`. Arguments of a wrong type raise TypeError, those out of range ValueError.

Reference: G. Novikov et al., "Few-bit backward", arXiv:2202.00441.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..._arguments import check_flag, wrong_type
from ...activations import StepFunction, activation, steps_of
from .._few_bit_ops import activate, step_grad

_DTYPES = ("float16", "bfloat16", "float32", "float64")


def gelu(x: ArrayLike, approximate: bool = True, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.gelu`, saving `bits` per value; approximate: by tanh, or exact."""
    check_flag("approximate", approximate)
    return _few_bit(x, "gelu_tanh" if approximate else "gelu", (), bits, steps)


def silu(x: ArrayLike, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.silu`, saving `bits` per value."""
    return _few_bit(x, "silu", (), bits, steps)


def mish(x: ArrayLike, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.mish`, saving `bits` per value."""
    return _few_bit(x, "mish", (), bits, steps)


def sigmoid(x: ArrayLike, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.sigmoid`, saving `bits` per value."""
    return _few_bit(x, "sigmoid", (), bits, steps)


def tanh(x: ArrayLike, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.tanh`, saving `bits` per value."""
    return _few_bit(x, "tanh", (), bits, steps)


def softplus(
    x: ArrayLike, beta: float = 1.0, threshold: float = 20.0, *, bits: int = 3, steps: StepFunction | None = None
) -> jax.Array:
    """`jax.nn.softplus` of beta x, over beta, saving `bits` per value; x itself where beta x > threshold.

    beta is above 0.
    """
    return _few_bit(x, "softplus", (beta, threshold), bits, steps)


def soft_sign(x: ArrayLike, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.soft_sign`, saving `bits` per value."""
    return _few_bit(x, "softsign", (), bits, steps)


def elu(x: ArrayLike, alpha: float = 1.0, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.elu`, saving `bits` per value."""
    return _few_bit(x, "elu", (alpha,), bits, steps)


def celu(x: ArrayLike, alpha: float = 1.0, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.celu`, saving `bits` per value; alpha is above 0."""
    return _few_bit(x, "celu", (alpha,), bits, steps)


def selu(x: ArrayLike, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.selu`, saving `bits` per value."""
    return _few_bit(x, "selu", (), bits, steps)


def log_sigmoid(x: ArrayLike, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.log_sigmoid`, saving `bits` per value."""
    return _few_bit(x, "logsigmoid", (), bits, steps)


def hard_swish(x: ArrayLike, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """`jax.nn.hard_swish`, saving `bits` per value."""
    return _few_bit(x, "hardswish", (), bits, steps)


def tanh_shrink(x: ArrayLike, *, bits: int = 3, steps: StepFunction | None = None) -> jax.Array:
    """X - tanh(x), saving `bits` per value."""
    return _few_bit(x, "tanhshrink", (), bits, steps)


def relu(x: ArrayLike) -> jax.Array:
    """`jax.nn.relu`, saving 1 bit per value."""
    return _few_bit(x, "relu")


def relu6(x: ArrayLike) -> jax.Array:
    """`jax.nn.relu6`, saving 1 bit per value."""
    return _few_bit(x, "relu6")


def leaky_relu(x: ArrayLike, negative_slope: float = 0.01) -> jax.Array:
    """`jax.nn.leaky_relu`, saving 1 bit per value."""
    return _few_bit(x, "leaky_relu", (negative_slope,))


def threshold(x: ArrayLike, threshold: float, value: float) -> jax.Array:
    """X where it is above the threshold, else the value, saving 1 bit per value."""
    return _few_bit(x, "threshold", (threshold, value))


def hard_sigmoid(x: ArrayLike) -> jax.Array:
    """`jax.nn.hard_sigmoid`, saving 1 bit per value."""
    return _few_bit(x, "hardsigmoid")


def hard_tanh(x: ArrayLike, min_val: float = -1.0, max_val: float = 1.0) -> jax.Array:
    """`jax.nn.hard_tanh`, or x between other numbers, saving 1 bit per value; max_val is above min_val."""
    return _few_bit(x, "hardtanh", (min_val, max_val))


def hard_shrink(x: ArrayLike, lambd: float = 0.5) -> jax.Array:
    """X where |x| > lambd, else 0, saving 1 bit per value; lambd is 0 or above."""
    return _few_bit(x, "hardshrink", (lambd,))


def soft_shrink(x: ArrayLike, lambd: float = 0.5) -> jax.Array:
    """X nearer to 0 by lambd, or 0 where that would pass it, saving 1 bit per value; lambd is 0 or above."""
    return _few_bit(x, "softshrink", (lambd,))


def stepwise(x: ArrayLike, function: Callable[[jax.Array], jax.Array], steps: StepFunction) -> jax.Array:
    """Your own elementwise function, saving `steps.bits` per value.

    Args:
        x: the input.
        function: an elementwise function. It may not close over traced values.
        steps: its derivative, for instance from `arrcomp.activations.fit`; exact for a piecewise linear function.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: the function changes the shape or dtype.
    """
    if not callable(function):
        raise wrong_type("function", "a function of an array", function)
    return _stepwise(function, _checked_steps(steps), _checked_input(x))


_PLAIN: dict[str, Callable[..., jax.Array]] = {
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": functools.partial(jax.nn.gelu, approximate=True),
    "silu": jax.nn.silu,
    "mish": jax.nn.mish,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "softplus": lambda x, beta, threshold: jnp.where(beta * x > threshold, x, jax.nn.softplus(beta * x) / beta),
    "softsign": jax.nn.soft_sign,
    "elu": jax.nn.elu,
    "celu": jax.nn.celu,
    "selu": jax.nn.selu,
    "logsigmoid": jax.nn.log_sigmoid,
    "hardswish": jax.nn.hard_swish,
    "tanhshrink": lambda x: x - jnp.tanh(x),
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "leaky_relu": jax.nn.leaky_relu,
    "threshold": lambda x, border, value: jnp.where(x > border, x, jnp.asarray(value, x.dtype)),
    "hardsigmoid": jax.nn.hard_sigmoid,
    "hardtanh": jnp.clip,
    "hardshrink": lambda x, border: jnp.where(jnp.abs(x) > border, x, jnp.zeros_like(x)),
    "softshrink": lambda x, border: x - jnp.clip(x, -border, border),
}


def _few_bit(
    x: ArrayLike, function: str, parameters: tuple[float, ...] = (), bits: int = 3, steps: StepFunction | None = None
) -> jax.Array:
    values = activation(function).checked(parameters)
    chosen = steps_of(function, values, bits) if steps is None else _checked_steps(steps)
    return _activation(function, values, chosen, _checked_input(x))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _activation(function: str, parameters: tuple[float, ...], steps: StepFunction, x: jax.Array) -> jax.Array:
    return _PLAIN[function](x, *parameters)


_activation.defvjp(
    lambda function, parameters, steps, x: activate(x, function, parameters, steps),
    lambda function, parameters, steps, index, gradient: (step_grad(gradient, index, steps),),
)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _stepwise(function: Callable[[jax.Array], Any], steps: StepFunction, x: jax.Array) -> jax.Array:
    y: jax.Array = function(x)
    if jnp.shape(y) != x.shape or jnp.result_type(y) != x.dtype:
        raise ValueError(
            f"function(x): expected {x.dtype} of shape {x.shape}, got {jnp.result_type(y)} of shape {jnp.shape(y)}"
        )
    return y


_stepwise.defvjp(
    lambda function, steps, x: (_stepwise(function, steps, x), activate(x, "", (), steps)[1]),
    lambda function, steps, index, gradient: (step_grad(gradient, index, steps),),
)


def _checked_steps(steps: object) -> StepFunction:
    if not isinstance(steps, StepFunction):
        raise wrong_type("steps", "a StepFunction", steps)
    return steps


def _checked_input(x: ArrayLike) -> jax.Array:
    array = jnp.asarray(x)
    if array.dtype.name not in _DTYPES:
        raise TypeError(f"x: expected float16, bfloat16, float32 or float64, got {array.dtype}")
    return array
