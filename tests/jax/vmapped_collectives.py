"""`arrcomp.jax`'s collective operations on one device: `jax.vmap`, with a name for its axis, stands for several."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from numpy.typing import NDArray

import arrcomp.jax
from arrcomp import Codec

QUANTIZED = (
    arrcomp.jax.psum_quantized,
    arrcomp.jax.pmean_quantized,
    arrcomp.jax.psum_scatter_quantized,
    arrcomp.jax.all_gather_quantized,
)


def normal(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    """Arrays that differ from device to device in size as well."""
    x = np.random.default_rng(17).normal(0, 1, shape)
    return (x * (1 + np.arange(shape[0])).reshape(-1, *[1] * (len(shape) - 1))).astype(dtype)


def on_devices(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A collective operation of arrays that have a row for each device; a row for each comes back."""

    def call(x: Any, codec: Codec, seed: Any = None) -> Any:
        local = functools.partial(function, axis_name="d", codec=codec, seed=seed, **options)
        return jax.tree.map(np.asarray, jax.jit(jax.vmap(local, axis_name="d"))(jax.tree.map(jnp.asarray, x)))

    return call
