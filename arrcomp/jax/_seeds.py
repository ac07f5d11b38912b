"""`arrcomp._methods.seeds` for traced arrays, without 64-bit integers."""

from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

Word = tuple[jax.Array, jax.Array]  # the lower and the upper half of a 64-bit integer, uint32 each


def derived(seed: jax.Array, *parts: Any) -> jax.Array:
    """Same as `arrcomp._methods.seeds.derived`, bit for bit: uint32[2, ...] from uint32[2], a little-endian uint64.

    `parts` are integers from 0 to 2^32 - 2, traced or not, or arrays of them, whose shapes broadcast to the result's.
    """
    z = (seed[0], seed[1])
    for part in parts:
        number = jnp.asarray(part, jnp.uint32) + jnp.uint32(1)
        z = _mixed(_sum(z, _product((number, jnp.zeros_like(number)), _word(0x9E3779B97F4A7C15))))
    return jnp.stack(z)


def upper_half(a: jax.Array, b: jax.Array) -> jax.Array:
    """The upper half of a product of uint32s, from products of 16-bit integers, which cannot overflow."""
    (a0, a1), (b0, b1) = ((lax.bitwise_and(x, jnp.uint32(0xFFFF)), x >> 16) for x in (a, b))
    inner = a1 * b0 + (a0 * b0 >> 16)
    outer = a0 * b1 + (inner & 0xFFFF)
    return a1 * b1 + (inner >> 16) + (outer >> 16)


def _mixed(z: Word) -> Word:
    z = _product(_xor_of_shifted(z, 30), _word(0xBF58476D1CE4E5B9))
    z = _product(_xor_of_shifted(z, 27), _word(0x94D049BB133111EB))
    return _xor_of_shifted(z, 31)


def _word(number: int) -> Word:
    return jnp.uint32(number & 0xFFFFFFFF), jnp.uint32(number >> 32)


def _xor_of_shifted(z: Word, bits: int) -> Word:
    low, high = z
    return low ^ (low >> bits | high << 32 - bits), high ^ high >> bits


def _sum(a: Word, b: Word) -> Word:
    low = a[0] + b[0]
    return low, a[1] + b[1] + (low < a[0]).astype(jnp.uint32)


def _product(a: Word, b: Word) -> Word:
    return a[0] * b[0], upper_half(a[0], b[0]) + a[0] * b[1] + a[1] * b[0]
