"""Random projections of JAX arrays, in operations that XLA compiles; the same projections as in `arrcomp.torch`."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

from .._methods import projections
from ._seeds import derived, upper_half

_barrier: Callable[[jax.Array], jax.Array] = lax.optimization_barrier  # JAX has no types for it
_BLOCK = 1 << 20  # entries of a dense S in memory at a time


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def project(x: jax.Array, seed: jax.Array, kind: str, dim: int, weighted: bool = False) -> jax.Array:
    """S x, [dim, columns], of x's dtype, or W S x if weighted; `arrcomp._methods.projections` defines S and W.

    The seed is uint32[2], a little-endian uint64. Transforms of float16 and bfloat16 are computed in float32.
    """
    if kind in projections.ENTRIES_OF_WORD:
        return _dense(x, seed, kind, dim, weighted)
    sampled = _sampled(seed, x.shape[0], dim)
    kept = x[sampled] if kind == "rows" else _transformed(x, seed, kind, sampled)
    if weighted:
        kept = kept * _lengths(x.shape[0], dim)[:, None].astype(kept.dtype)
    return kept.astype(x.dtype)


def _words(seed: jax.Array, *parts: Any) -> jax.Array:
    """`derived`, materialized: otherwise XLA would recompute it for each value that depends on it."""
    return _barrier(derived(seed, *parts))


def _lengths(rows: int, dim: int) -> jax.Array:
    length, longer = projections.strata(rows, dim)
    lengths: jax.Array = length + (jnp.arange(dim, dtype=jnp.uint32) < longer).astype(jnp.uint32)
    return lengths


def _sampled(seed: jax.Array, rows: int, dim: int) -> jax.Array:
    """A row of each stratum, uint32[dim], in ascending order."""
    run = jnp.arange(dim, dtype=jnp.uint32)
    length, longer = projections.strata(rows, dim)
    words = _words(seed, projections.SAMPLES, run)[1]
    chosen: jax.Array = run * length + jnp.minimum(run, longer) + upper_half(words, _lengths(rows, dim))
    return chosen


def _transformed(x: jax.Array, seed: jax.Array, kind: str, chosen: jax.Array) -> jax.Array:
    """Chosen rows of T D x, float32 or float64."""
    rows = x.shape[0]
    signs = _words(seed, projections.SIGNS, jnp.arange(rows, dtype=jnp.uint32))[0] & 1
    exact = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    exact = jnp.where(signs[:, None] == 0, exact, -exact)
    if kind == "dct":  # by a Fourier transform, same as in arrcomp.torch._projections
        exact = jnp.concatenate([exact[0::2], exact[1::2][::-1]])
    mirrored = chosen > rows // 2
    index = jnp.where(mirrored, rows - chosen, chosen)
    spectrum = jnp.fft.rfft(exact, axis=0, norm="ortho")[index]
    imaginary = jnp.where(mirrored[:, None], -spectrum.imag, spectrum.imag)
    if kind == "dft":
        return spectrum.real - imaginary
    angle = chosen.astype(exact.dtype) * (math.pi / (2 * rows))
    norm = jnp.sqrt(2 - (chosen == 0).astype(exact.dtype))
    return (spectrum.real * jnp.cos(angle)[:, None] + imaginary * jnp.sin(angle)[:, None]) * norm[:, None]


def _dense(x: jax.Array, seed: jax.Array, kind: str, dim: int, weighted: bool) -> jax.Array:
    rows = x.shape[0]
    scale, weight = projections.dense_scale(dim)

    def block(numbers: jax.Array) -> jax.Array:
        return (_entries(seed, kind, numbers, rows) * scale).astype(x.dtype) @ x

    kept = _in_blocks(block, dim, max(1, _BLOCK // rows))
    return (kept * weight).astype(x.dtype) if weighted else kept


def _in_blocks(block: Callable[[jax.Array], jax.Array], count: int, size: int) -> jax.Array:
    """Apply a function to the numbers below `count`, `size` of them at a time."""
    if count <= size:
        return block(jnp.arange(count, dtype=jnp.uint32))
    blocks = -(-count // size)
    numbers = jnp.arange(blocks * size, dtype=jnp.uint32).reshape(blocks, size)
    made: jax.Array = lax.map(block, numbers).reshape(blocks * size, -1)
    return made[:count]


def _entries(seed: jax.Array, kind: str, numbers: jax.Array, rows: int) -> jax.Array:
    """Unscaled rows of S, float32[len(numbers), rows]."""
    words = jnp.arange(-(-rows // projections.ENTRIES_OF_WORD[kind]), dtype=jnp.uint32)
    low, high = _words(seed, projections.ENTRIES, numbers[:, None], words)
    if kind == "rademacher":
        halves = jnp.stack([low, high], axis=-1)[..., None] >> jnp.arange(32, dtype=jnp.uint32)
        entries = 1 - 2 * (halves & 1).astype(jnp.float32)
    else:
        uniform = ((high >> 8).astype(jnp.float32) + 0.5) * 2.0**-24
        radius = jnp.sqrt(-2 * jnp.log(uniform))
        angle = (low >> 8).astype(jnp.float32) * (2.0**-23 * math.pi)
        entries = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=-1)
    result: jax.Array = entries.reshape(numbers.shape[0], -1)[:, :rows]
    return result
