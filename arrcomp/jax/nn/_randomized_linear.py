"""A linear layer that keeps a random projection of its input for the backward pass, in place of the input."""

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
    """``x @ weight + bias``, with a weight gradient that is random and right on average.

    As `arrcomp.torch.functional.randomized_linear`, with the same projections for the same seed; the weight is laid
    out as Flax and Haiku have it. For the backward pass a projection of `x` is kept, of fewer rows, and the seed. The
    gradients of `x` and `bias` are exact. Usable in `jax.jit`, `jax.grad`, `jax.vmap`, `jax.checkpoint`, `jax.lax.scan`
    and `jax.shard_map`, not in forward mode (`jax.jvp`). Second derivatives are those of the estimate.

    Args:
        x: [..., in_features], floating-point. All of its dimensions but the last are the batch; those that `jax.vmap`
            takes away are not.
        weight: [in_features, out_features].
        bias: [out_features], or None.
        seed: another one for each layer and step: a key of `jax.random`, an integer from 0 to 2^64 - 1, or an array of
            one integer, traced or not. On all devices of a mesh, and for all items of `jax.vmap`, the projection is
            the same unless the seed is not (`jax.random.fold_in(key, jax.lax.axis_index(name))`).
        projection: "rows" (a sample of rows: the least work), "dct" or "dft" (a sample of rows of a fast transform),
            "rademacher" or "gaussian" (dense matrices: slow). Static, as the sizes.
        proj_dim_ratio: rows of the projection by rows of the batch, above 0, at most 1; None for 0.5, if there is no
            `proj_dim` either. At 1 the layer is exact.
        proj_dim: this number of rows, instead of a ratio.
        proj_dim_min: the fewest rows that the ratio gives; a batch of no more rows is kept, and exact.
        proj_dim_max: the most rows that the ratio gives.

    Returns:
        [..., out_features].

    Raises:
        TypeError: an argument is of a wrong type, or `x` is not floating-point.
        ValueError: a number is out of its range, sizes contradict each other, or `proj_dim` is more than the batch.

    >>> import jax
    >>> x, weight = jax.numpy.ones((64, 8)), jax.numpy.ones((8, 4))
    >>> loss = lambda weight: randomized_linear(x, weight, seed=jax.random.key(0), proj_dim_ratio=0.25).sum()
    >>> jax.grad(loss)(weight).shape
    (8, 4)
    """
    how = Projection(projection, proj_dim_ratio, proj_dim, proj_dim_min, proj_dim_max)
    _check_input(checked_array(x), jnp.asarray(weight))
    words = _seed_words(seed)
    dim = how.rows_of(rows := math.prod(x.shape[:-1]))
    y = x @ weight if dim == rows else _linear(*varying_alike([x, weight, words]), how.kind, dim)
    return y if bias is None else y + bias


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _linear(x: jax.Array, weight: jax.Array, seed: jax.Array, kind: str, dim: int) -> jax.Array:
    return x @ weight


def _forward(x: jax.Array, weight: jax.Array, seed: jax.Array, kind: str, dim: int) -> Any:
    kept = project(x.reshape(-1, x.shape[-1]), seed, kind, dim)
    return x @ weight, (kept, weight, seed)


def _backward(kind: str, dim: int, residuals: Any, gradient: jax.Array) -> Any:
    kept, weight, seed = residuals
    projected = project(gradient.reshape(-1, gradient.shape[-1]), seed, kind, dim, weighted=True)
    of_input = (gradient @ weight.T).astype(kept.dtype)
    return of_input, (kept.T @ projected).astype(weight.dtype), None


_linear.defvjp(_forward, _backward)


def _seed_words(seed: Any) -> jax.Array:
    """A seed as uint32[2], a little-endian uint64."""
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        if seed.ndim:
            raise TypeError(f"seed is an array of keys {list(seed.shape)}; one key is allowed, as of jax.random.split")
        return jax.random.bits(seed, (2,), jnp.uint32)
    if not isinstance(seed, (jax.Array, np.ndarray)):
        seed = checked_integer("seed", seed, 0, MAX_SEED)
    return seed_operands(seed_operand(seed))[0]


def _check_input(x: jax.Array, weight: jax.Array) -> None:
    if not jnp.issubdtype(x.dtype, jnp.floating) or x.dtype.itemsize == 1:
        raise TypeError(f"x has dtype {x.dtype}; float16, bfloat16, float32, float64 are allowed")
    if x.ndim == 0 or weight.ndim != 2 or x.shape[-1] != weight.shape[0]:
        raise ValueError(
            f"x has the shape {list(x.shape)} and weight {list(weight.shape)}; [..., in_features] and "
            "[in_features, out_features] are allowed"
        )
