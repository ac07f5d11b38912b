"""Activation functions as JAX operations: values, and in the same pass packed step indices for their gradient."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _core, _dtypes
from ..activations._steps import StepFunction
from ._ops import custom_call, struct


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def activate(
    x: jax.Array, function: str, parameters: tuple[float, ...], steps: StepFunction
) -> tuple[jax.Array, jax.Array]:
    """Compute an activation function and its packed step indices. The gradient is zero.

    Args:
        x: float16, bfloat16, float32 or float64, of any shape.
        function: PyTorch's name of it, or "" for the identity.
        parameters: of the function, in PyTorch's order.
        steps: the approximation of its derivative.

    Returns:
        The values, of x's shape and dtype, and the packed step indices, uint8[packed bytes].
    """
    results = [struct(x.shape, x.dtype), struct((_core.step_bytes(steps.core_parameters(), x.size),), jnp.uint8)]
    attributes = {"function": function, "parameters": np.array(parameters, np.float64)}
    values, packed = _call("arrcomp_activate", [jax.lax.stop_gradient(x)], results, steps, attributes)
    return values, packed


@functools.partial(jax.jit, static_argnums=2)
def step_grad(gradient: jax.Array, packed: jax.Array, steps: StepFunction) -> jax.Array:
    """Multiply gradients by the levels of the steps whose indices `activate` packed.

    Args:
        gradient: with the dtype and number of values of the input of `activate`.
        packed: uint8[packed bytes].
        steps: same as in `activate`.
    """
    result = [struct(gradient.shape, gradient.dtype)]
    (product,) = _call("arrcomp_step_grad", [gradient, packed], result, steps, {})
    return product


def _call(
    target: str,
    operands: list[jax.Array],
    results: list[Any],
    steps: StepFunction,
    attributes: dict[str, Any],
) -> list[jax.Array]:
    x = operands[0]
    attributes |= {
        "dtype_id": _dtypes.by_numpy(x.dtype).id,
        "elements": x.size,
        "steps": np.array(steps.core_parameters(), np.float64),
        "threads": 0,  # all cores
    }
    return custom_call(target, operands, results, attributes)
