"""A linear layer that saves a random projection of its input for the backward pass."""

import functools
import math
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from ..._arguments import checked_integer
from ..._methods.projections import KINDS, Projection
from ..._methods.seeds import MAX_SEED
from .._adapter import seed_operand
from .._functions import checked_array
from .._ops import seed_operands, varying_alike
from .._projections import project
from .._sharding import check_not_sharded


def randomized_linear(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    *,
    seed: Any,
    projection: str = KINDS[0],
    proj_dim_ratio: float | None = None,
    proj_dim: int | None = None,
    proj_dim_min: int | None = None,
    proj_dim_max: int | None = None,
) -> jax.Array:
    """``x @ weight + bias``, with an unbiased random estimate of the weight gradient.

    Same as `arrcomp.torch.functional.randomized_linear`, with the same projections for the same seed; but the weight
    has the layout of Flax and Haiku. A projection of `x` with fewer rows, and the seed, are saved for the backward
    pass. The gradients of `x` and `bias` are exact. Usable in `jax.jit`, `jax.grad`, `jax.vmap`, `jax.checkpoint`,
    `jax.lax.scan` and `jax.shard_map`, but not in forward mode (`jax.jvp`). Second derivatives are those of the
    estimate.

    Args:
        x: [..., in_features], floating-point. All dimensions but the last form the rows of the batch (without those
            that `jax.vmap` maps over).
        weight: [in_features, out_features].
        bias: [out_features], or None.
        seed: different for each layer and step: a key of `jax.random`, an integer from 0 to 2^64 - 1, or a scalar
            integer array, traced or not. Devices of a mesh, and items of `jax.vmap`, need different seeds to get
            different projections (`jax.random.fold_in(key, jax.lax.axis_index(name))`).
        projection: "rows" (a sample of rows: the least work), "dct" or "dft" (a sample of rows of a fast transform),
            "rademacher" or "gaussian" (dense matrices: slow). Static, like the sizes.
        proj_dim_ratio: rows of the projection divided by rows of the batch, above 0 and at most 1; None for 0.5 (if
            `proj_dim` is None). At 1 the layer is exact.
        proj_dim: number of rows, instead of a ratio.
        proj_dim_min: the least number of rows with a ratio. A smaller batch is saved whole, and is exact.
        proj_dim_max: the largest number of rows with a ratio.

    Returns:
        [..., out_features].

    Raises:
        TypeError: an argument has a wrong type, or `x` is not floating-point.
        ValueError: a number is out of range, shapes do not match, or `proj_dim` exceeds the rows of the batch.

    >>> import jax
    >>> x, weight = jax.numpy.ones((64, 8)), jax.numpy.ones((8, 4))
    >>> loss = lambda weight: randomized_linear(x, weight, seed=jax.random.key(0), proj_dim_ratio=0.25).sum()
    >>> jax.grad(loss)(weight).shape
    (8, 4)
    """
    settings = Projection(projection, proj_dim_ratio, proj_dim, proj_dim_min, proj_dim_max)
    _check_input(checked_array(x), jnp.asarray(weight))
    words = _seed_words(seed)
    dim = settings.rows_of(rows := math.prod(x.shape[:-1]))
    y = x @ weight if dim == rows else _linear(*varying_alike([x, weight, words]), settings.kind, dim)
    return y if bias is None else y + bias


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _linear(x: jax.Array, weight: jax.Array, seed: jax.Array, kind: str, dim: int) -> jax.Array:
    return x @ weight


def _forward(x: jax.Array, weight: jax.Array, seed: jax.Array, kind: str, dim: int) -> Any:
    check_not_sharded("x", x)  # rows of a sharded array have no sharding that JAX could tell
    check_not_sharded("weight", weight)
    kept = project(x.reshape(-1, x.shape[-1]), seed, kind, dim)
    return x @ weight, (kept, weight, seed)


def _backward(kind: str, dim: int, residuals: Any, gradient: jax.Array) -> Any:
    kept, weight, seed = residuals
    projected = project(gradient.reshape(-1, gradient.shape[-1]), seed, kind, dim, weighted=True)
    x_grad = (gradient @ weight.T).astype(kept.dtype)
    return x_grad, (kept.T @ projected).astype(weight.dtype), None


_linear.defvjp(_forward, _backward)


def _seed_words(seed: Any) -> jax.Array:
    """A seed as uint32[2], a little-endian uint64."""
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        if seed.ndim:
            raise TypeError(f"seed: expected one key, got an array of keys of shape {seed.shape}; index it")
        return jax.random.bits(seed, (2,), jnp.uint32)
    if not isinstance(seed, (jax.Array, np.ndarray)):
        seed = checked_integer("seed", seed, 0, MAX_SEED)
    return seed_operands(seed_operand(seed))[0]


def _check_input(x: jax.Array, weight: jax.Array) -> None:
    if not jnp.issubdtype(x.dtype, jnp.floating) or x.dtype.itemsize == 1:
        raise TypeError(f"x: expected float16, bfloat16, float32 or float64, got {x.dtype}")
    if x.ndim == 0 or weight.ndim != 2 or x.shape[-1] != weight.shape[0]:
        raise ValueError(
            "x and weight: expected shapes [..., in_features] and [in_features, out_features], got "
            f"{list(x.shape)} and {list(weight.shape)}"
        )
