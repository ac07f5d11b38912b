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
    """The values of an activation, and the packed indices of its steps, uint8[packed bytes]. The gradient is zero.

    `function` is PyTorch's name, or "" for the identity; `parameters` are in PyTorch's order.
    """
    results = [struct(x.shape, x.dtype), struct((_core.step_bytes(steps.core_parameters(), x.size),), jnp.uint8)]
    attributes = {"function": function, "parameters": np.array(parameters, np.float64)}
    values, packed = _call("arrcomp_activate", [jax.lax.stop_gradient(x)], results, steps, attributes)
    return values, packed


@functools.partial(jax.jit, static_argnums=2)
def step_grad(gradient: jax.Array, packed: jax.Array, steps: StepFunction) -> jax.Array:
    """Multiply gradients, with the dtype and size of the input of `activate`, by the levels of the steps it packed."""
    (product,) = _call("arrcomp_step_grad", [gradient, packed], [struct(gradient.shape, gradient.dtype)], steps, {})
    return product


def _call(
    target: str, operands: list[jax.Array], results: list[Any], steps: StepFunction, attributes: dict[str, Any]
) -> list[jax.Array]:
    x = operands[0]
    attributes |= {
        "dtype_id": _dtypes.by_numpy(x.dtype).id,
        "elements": x.size,
        "steps": np.array(steps.core_parameters(), np.float64),
        "threads": 0,  # all cores
    }
    return custom_call(target, operands, results, attributes)
