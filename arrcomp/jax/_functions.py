"""Compression inside and outside of JAX's transformations."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from .._api.compress import checked_codec, checked_seed, compress_with, spec_of
from .._api.compressed import Compressed
from .._api.sums import accumulate_with, checked_summand, checked_summands, compress_sum_with
from .._arguments import thread_count, type_name
from .._arrays.checks import admit
from .._arrays.contract import Payload
from ..codecs import Codec
from . import _ops
from ._adapter import ADAPTER, check_hashable, is_traced, seed_operand, single_device, uint64_pair


def compress(x: jax.Array, codec: Codec | None = None, *, threads: int | None = None, seed: Any = None) -> Compressed:
    """Compress an array; usable inside `jax.jit`, `jax.vmap`, `jax.grad`, `jax.shard_map` and `jax.lax.scan`.

    The result is a pytree: its leaves are a buffer, uint8[at least the longest payload], and the payload's length,
    uint32[2] (a little-endian uint64); codec, dtype and shape are static. Its bytes are those of every framework. The
    payload of a fixed-rate codec is all of its buffer, which is then the only leaf.

    Under `jax.vmap` each item is compressed for itself, and the leaves get the batch's dimension; a batch of seeds
    gives each item its own, else all have the same. Gradients stop here,
    as at any conversion to integers; `roundtrip` lets them pass. An array that is sharded over devices is compressed
    where it lies inside `jax.shard_map`; under `jax.jit` alone XLA gathers it first.

    Args:
        x: an array of any shape, and a dtype that the codec takes.
        codec: what to keep; None for `Lossless()`. Static: another one compiles anew.
        threads: how many to use on the CPU; None for all cores that the process may use.
        seed: of a codec that draws random numbers; others ignore it. An integer from 0 to 2^64 - 1, or one of JAX's
            arrays of one integer without dimensions, traced or not, whose value is read when the program runs (without
            its sign, as 64 bits): neither traces or compiles anew. Integers that are arguments of a jitted function
            become 32-bit ones there, unless they are NumPy's or JAX's.

    Returns:
        The compressed array, on the device of `x`. Nothing waits.

    Raises:
        TypeError: `x` is not one of JAX's arrays, is spread over several devices, or has a dtype that the codec does
            not take; or `codec` is not one, or not hashable; or it needs a seed, and `seed` is none.
        ValueError: `seed` is negative or too large.
        DeviceUnavailableError: `x` is on a device that is neither the CPU nor CUDA.

    >>> import jax, arrcomp.jax
    >>> squeeze = jax.jit(lambda x: arrcomp.jax.compress(x, arrcomp.ErrorBounded(abs=1e-3)))
    >>> c = squeeze(jax.numpy.linspace(0, 1, 10_000))
    >>> c.shape, c.ratio > 2
    ((10000,), True)
    """
    codec = checked_codec(codec)
    return compress_with(ADAPTER, checked_array(x), codec, None, thread_count(threads), checked_seed(codec, seed))


def decompress(c: Compressed, *, threads: int | None = None, max_size: int | None = None) -> jax.Array:
    """The array that was compressed; usable wherever `compress` is.

    Args:
        c: a compressed array, of any framework; one without batch dimensions: what `jax.vmap` of `compress` made, goes
            to `jax.vmap(decompress)`.
        threads: how many to use on the CPU; None for all cores that the process may use.
        max_size: bytes that the array may have, as of `arrcomp.decompress`.

    Returns:
        An array of the same shape and dtype, on the payload's device, or on JAX's default one if the payload is
        another framework's.

    Raises:
        CorruptStreamError: the payload is corrupt, and was not made in this process. (The leaves that a compiled
            program gets are not doubted: a corrupt one is an error of XLA on the CPU, an array of anything on CUDA.)
        SizeLimitError: the array is larger than `max_size`.
        TypeError: `c` is not a `Compressed`, or JAX has no such dtype (64-bit types need jax_enable_x64).
        ValueError: `c` is a batch.
    """
    if not isinstance(c, Compressed):
        raise TypeError(f"c is a {type_name(c)}; a Compressed is allowed")
    admit(c.spec, c.payload, max_size)
    array: jax.Array
    (array,) = ADAPTER.decompress([_payload_of_jax(c)], [c.spec], None, thread_count(threads))
    return array


def accumulate(c: Compressed, into: jax.Array, weight: float = 1.0, *, threads: int | None = None) -> jax.Array:
    """``into + weight * decompress(c)`` in one pass; usable wherever `compress` is.

    As `arrcomp.accumulate`; the memory of `into` is used again where it is not needed any more, or is donated.

    Args:
        c: a compressed array of any framework, of a codec that has sums.
        into: one of JAX's arrays of the same shape and dtype.
        weight: a finite number. Static: another one compiles anew.
        threads: how many to use on the CPU; None for all cores that the process may use.

    Returns:
        A new array. No gradient passes through `c`, nor to `into`.

    Raises:
        CorruptStreamError, TypeError, ValueError: as `arrcomp.accumulate`.
    """
    threads = thread_count(threads)
    checked_summand("c", c)
    result: jax.Array = accumulate_with(ADAPTER, c, _payload_of_jax(c), checked_array(into), weight, threads)
    return result


def compress_sum(
    compressed: Sequence[Compressed],
    codec: Codec | None = None,
    *,
    weights: Sequence[float] | None = None,
    threads: int | None = None,
    seed: Any = None,
) -> Compressed:
    """Compress the (weighted) sum of compressed arrays in one pass; usable wherever `compress` is.

    As `arrcomp.compress_sum`.

    Args:
        compressed: compressed arrays of one dtype, shape and codec, whose rate is fixed; one at least.
        codec: of the result; None for the one of `compressed`. Static, as the weights.
        weights: a finite number for each; None for ones.
        threads: how many to use on the CPU; None for all cores that the process may use.
        seed: of the result's codec, as of `compress`.

    Raises:
        CorruptStreamError, TypeError, ValueError: as `arrcomp.compress_sum`.
    """
    parts = checked_summands(compressed)
    parts = [Compressed(c.spec, _payload_of_jax(c)) for c in parts]
    codec = parts[0].codec if codec is None else checked_codec(codec)
    return compress_sum_with(ADAPTER, parts, codec, weights, None, thread_count(threads), checked_seed(codec, seed))


def roundtrip(x: jax.Array, codec: Codec | None = None, *, seed: Any = None) -> jax.Array:
    """What comes back of an array when it is compressed: `decompress(compress(x))`, with a straight-through gradient.

    The gradient passes unchanged, as if nothing had been lost. Compiled into a program it needs no second array: it
    works in place where `x` is not used any more, or is donated (`jax.jit(..., donate_argnums=...)`).

    Args:
        x: an array of any shape, and a dtype that the codec takes.
        codec: what to keep; None for `Lossless()`. Static: another one compiles anew.
        seed: as of `compress`.

    Returns:
        An array of the same shape and dtype, on the device of `x`.

    Raises:
        TypeError, ValueError, DeviceUnavailableError: as `compress`.

    >>> import jax, arrcomp.jax
    >>> coarse = lambda x: arrcomp.jax.roundtrip(x, arrcomp.ErrorBounded(abs=0.25)).sum()
    >>> jax.grad(coarse)(jax.numpy.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """
    codec = checked_codec(codec)
    check_hashable(codec)
    spec_of(ADAPTER, checked_array(x), codec)
    if not is_traced(x):
        single_device(x)
    result: jax.Array = _ops.roundtrip(x, seed_operand(checked_seed(codec, seed)), codec)
    return result


def _payload_of_jax(c: Compressed) -> Payload:
    if c.payload.adapter is ADAPTER:
        return c.payload
    probe = jax.device_put(np.zeros(0, np.uint8))
    if not is_traced(probe):
        return c.payload.to(ADAPTER, ADAPTER.device(probe))
    c.verify()  # a compiled program has no exceptions
    data = c.payload.to_host()
    return Payload(ADAPTER, data, uint64_pair(data.size), trusted=True)


def checked_array(x: Any) -> jax.Array:
    """Raise TypeError unless this is one of JAX's arrays, traced or not."""
    if not isinstance(x, jax.Array):
        raise TypeError(f"x is a {type_name(x)}; one of JAX's arrays is allowed, as jax.numpy.asarray(x)")
    return x


def fixed_rate_codec(codec: Any, use: str, example: str) -> Codec:
    """A codec whose payloads have one size, as XLA has for its arrays.

    Args:
        codec: what a user gave.
        use: what XLA would do with payloads of any length, for the message.
        example: of what is allowed, for the message.

    Raises:
        TypeError: it is no codec, not hashable, or of a variable rate.
    """
    checked = checked_codec(codec)
    check_hashable(checked)
    if not checked.fixed_rate:
        raise TypeError(
            f"codec={checked!r}: its payloads may have any length, and XLA would {use} them at their largest size; "
            f"a codec of fixed rate is allowed, as {example}"
        )
    return checked
