"""Compression inside and outside JAX's transformations."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from .._api.compress import check_values, checked_codec, checked_seed, compress_with, spec_of
from .._api.compressed import Compressed, admit_with, own_references
from .._api.references import codec_for_reference
from .._api.sums import accumulate_with, checked_summand, checked_summands, compress_sum_with
from .._arguments import shown, thread_count, wrong_type, wrong_value
from .._arrays.contract import Payload
from ..codecs import Codec
from . import _ops
from ._adapter import ADAPTER, check_hashable, is_traced, seed_operand, single_device, uint64_pair


def compress(
    x: jax.Array,
    codec: Codec | None = None,
    *,
    reference: jax.Array | None = None,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
) -> Compressed:
    """Compress an array; usable inside `jax.jit`, `jax.vmap`, `jax.grad`, `jax.shard_map` and `jax.lax.scan`.

    The result is a pytree. Its leaves are a buffer, uint8[capacity], and the payload's length, uint32[2] (a
    little-endian uint64); the payload of a fixed-rate codec fills its buffer, which is then the only leaf. Codec, dtype
    and shape are static. The bytes are the same as in every framework.

    The gradient of ``decompress(compress(x))`` is zero, without a warning, as for any conversion to integers. Use
    `roundtrip` to differentiate.

    `jax.vmap` compresses each item separately and adds a batch dimension to the leaves; a batch of seeds gives each
    item its own. Inside `jax.shard_map`, each device compresses its shard; elsewhere an array that is sharded, by the
    caller or by XLA, is an error.

    Args:
        x: an array of any shape, and a dtype that the codec supports.
        codec: what to keep; None for `Lossless()`. Static: changing it triggers recompilation.
        reference: an array of the dtype and shape of `x`, same as in `arrcomp.compress`, traced or not.
        threads: number of CPU threads; None for all cores that the process may use. Static.
        seed: for stochastic rounding; other codecs ignore it. An integer from 0 to 2^64 - 1, or a scalar integer array,
            traced or not, read as unsigned 64-bit when the program runs. Changing it does not trigger recompilation.
            (Python integers that are arguments of a jitted function are 32-bit there.)
        check_finite: raise if a value is NaN or infinite. Reads the array again and synchronizes. Not under tracing.

    Returns:
        The compressed array, on the device of `x`. Asynchronous.

    Raises:
        TypeError: `x` is not a JAX array, is sharded over several devices, or has a dtype that the codec does not
            support; or `codec` is not a codec, or not hashable; or it needs a seed, and `seed` is None.
        ValueError: `seed` is out of range; or with `check_finite` a value is not finite, or `x` is traced.
        DeviceUnavailableError: `x` is on a device that is neither the CPU nor CUDA.
        jax.errors.JaxRuntimeError: under `jax.jit` with automatic axes, where only XLA knows, `x` is sharded.

    >>> import jax, arrcomp.jax
    >>> compress = jax.jit(lambda x: arrcomp.jax.compress(x, arrcomp.ErrorBounded(abs=1e-3)))
    >>> c = compress(jax.numpy.linspace(0, 1, 10_000))
    >>> c.shape, c.ratio > 2
    ((10000,), True)
    """
    codec = checked_codec(codec)
    x = checked_array(x)
    if reference is not None:
        checked_array(reference, "reference")
    if check_finite:
        _check_values(x)
    return compress_with(ADAPTER, x, codec, None, thread_count(threads), checked_seed(codec, seed), reference)


def decompress(
    c: Compressed, *, reference: jax.Array | None = None, threads: int | None = None, max_nbytes: int | None = None
) -> jax.Array:
    """Decompress to a JAX array; usable wherever `compress` is. The result has no gradient.

    Args:
        c: a compressed array of any framework. Pass a batch, from `jax.vmap` of `compress`, to `jax.vmap(decompress)`.
        reference: the array that `compress` was given as `reference`, traced or not; None without one.
        threads: number of CPU threads; None for all cores that the process may use. Static.
        max_nbytes: the most bytes that the array may have, same as in `arrcomp.decompress`.

    Returns:
        An array of the same shape and dtype, on the payload's device, or on JAX's default device for a payload of
        another framework.

    Raises:
        CorruptStreamError: the payload is corrupt, and was not made in this process. (The leaves that a compiled
            program receives are trusted: a corrupt one is an error of XLA on the CPU, and gives any values on CUDA.)
        WrongReferenceError: `reference` is another array. (In a compiled program that is an error of XLA.)
        SizeLimitError: the array is larger than `max_nbytes`.
        TypeError: `c` is not a `Compressed`, or JAX has no such dtype (64-bit types need jax_enable_x64).
        ValueError: `c` is a batch.
    """
    if not isinstance(c, Compressed):
        raise wrong_type("c", "a Compressed (arrcomp.from_bytes reads a stream)", c)
    admit_with(c, max_nbytes, reference)
    if reference is not None:
        checked_array(reference, "reference")
    payload = _payload_of_jax(c)
    references = own_references(c, payload, reference)
    array: jax.Array
    (array,) = ADAPTER.decompress([payload], [c.spec], None, thread_count(threads), references)
    return array


def accumulate(c: Compressed, into: jax.Array, weight: float = 1.0, *, threads: int | None = None) -> jax.Array:
    """Compute ``into + weight * decompress(c)`` in one pass; usable wherever `compress` is.

    Same as `arrcomp.accumulate`, with the same arguments and errors, but it returns a new array, without a gradient, as
    JAX arrays are immutable. The memory of `into` is reused if it is donated or not used later. `weight` and `threads`
    are static: changing them triggers recompilation.
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

    Arguments and errors are those of `arrcomp.compress_sum`, except: `codec`, `weights` and `threads` are static, and
    `seed` is the one of `compress`.
    """
    terms = [Compressed(c.spec, _payload_of_jax(c)) for c in checked_summands(compressed)]
    codec = terms[0].codec if codec is None else checked_codec(codec)
    return compress_sum_with(ADAPTER, terms, codec, weights, None, thread_count(threads), checked_seed(codec, seed))


def roundtrip(
    x: jax.Array,
    codec: Codec | None = None,
    *,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
) -> jax.Array:
    """Compress, then decompress, with a straight-through gradient: an array of the same shape and dtype, where `x` is.

    The gradient passes unchanged, as if nothing were lost, and so does the tangent of forward mode (`jax.jvp`,
    `jax.jacfwd`, `jax.linearize`). (The derivative of ``decompress(compress(x))`` is zero.) In a compiled program it
    works in place if `x` is donated (`jax.jit(..., donate_argnums=...)`) or not used later. Arguments and errors are
    those of `compress`.

    >>> import jax, arrcomp.jax
    >>> coarse = lambda x: arrcomp.jax.roundtrip(x, arrcomp.ErrorBounded(abs=0.25)).sum()
    >>> jax.grad(coarse)(jax.numpy.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """
    codec = codec_for_reference(checked_codec(codec), None)
    check_hashable(codec)
    spec_of(ADAPTER, checked_array(x), codec)
    if not is_traced(x):
        single_device(x)
    if check_finite:
        _check_values(x)
    result: jax.Array = _ops.roundtrip(x, seed_operand(checked_seed(codec, seed)), codec, thread_count(threads))
    return result


def _check_values(x: jax.Array) -> None:
    """Raise ValueError if a value is NaN or infinite, or under tracing. Synchronizes."""
    if is_traced(x):
        raise wrong_value("check_finite", "False under tracing", True)
    ADAPTER.dtype_and_shape(x)
    check_values(ADAPTER, x, "x")


def _payload_of_jax(c: Compressed) -> Payload:
    if c.payload.adapter is ADAPTER:
        return c.payload
    probe = jax.device_put(np.zeros(0, np.uint8))
    if not is_traced(probe):
        return c.payload.to(ADAPTER, ADAPTER.device(probe))
    c.verify()  # a compiled program cannot raise
    data = c.payload.to_host()
    return Payload(ADAPTER, data, uint64_pair(data.size), trusted=True)


def checked_array(x: Any, name: str = "x") -> jax.Array:
    """A JAX array, traced or not; raise TypeError for anything else."""
    if not isinstance(x, jax.Array):
        raise wrong_type(name, f"a JAX array, such as jax.numpy.asarray({name})", x)
    return x


def fixed_rate_codec(codec: Any, use: str, example: str) -> Codec:
    """The user's codec; raise TypeError unless it is hashable and fixed-rate, as XLA's arrays have fixed sizes.

    `use` is what XLA would do with other payloads, and `example` a fixed-rate codec, for the message.
    """
    checked = checked_codec(codec)
    check_hashable(checked)
    if not checked.fixed_rate:
        raise TypeError(
            f"codec: expected a fixed-rate codec, such as {example}, got {shown(checked)}; XLA would {use} its "
            "payloads at their capacity"
        )
    return checked
