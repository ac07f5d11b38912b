"""Collective operations inside `jax.shard_map` and its relatives, whose data crosses the wire compressed."""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

from .._api.compress import checked_seed, spec_of
from .._arguments import check_flag, checked_integer, thread_count
from ..codecs import Codec
from . import _ops
from ._adapter import ADAPTER, seed_operand
from ._exchange import Exchange, all_gathered, all_reduced, scattered_sums, wire_nbytes
from ._functions import checked_array, fixed_rate_codec

_Arrays = list[jax.Array]
_lax: Any = lax  # parts of which have no types in every version


def psum_quantized(x: Any, axis_name: Any, codec: Codec, *, seed: Any = None, threads: int | None = None) -> Any:
    """`jax.lax.psum` with compressed data on the wire, inside `jax.shard_map`, `jax.pmap` or `jax.vmap(axis_name=...)`.

    The array, in C order, is cut into a shard for each of the W devices. Each device compresses all shards and sends
    each to its device (all-to-all), which adds the W payloads and compresses the sum, in one pass where the codec has
    sums; all get these (all-gather) and decompress them. So each value is coded twice, however many devices there are,
    and all devices end with the same bits, of which `shard_map` knows: ``out_specs=PartitionSpec()`` is allowed under
    ``check_vma=True`` (with JAX 0.6.2 or newer). The sum is calculated in the devices' order, in float32 (float64 for
    float64 arrays).

    Shards are whole buckets of the codec, as those of the whole array: so an array that is much smaller than W buckets
    sends more than it has. Values that are missing at the end of the last bucket count as zeros or, for
    ``QSGD(norm="minmax")``, as the last value, which leaves its range as it is. What a codec calculates from the whole
    array, as S2FP8 without buckets, it does for each shard. With ``skip_incomplete`` the last, shorter bucket goes
    through `jax.lax.psum`.

    Of a pytree each array is cut and compressed for itself, but their payloads travel together: two collective
    operations, however many arrays there are. On an axis of one device nothing is exchanged, or changed.

    The derivative is that of `jax.lax.psum`, in both modes and of any order: straight-through, as if nothing had been
    lost, and not compressed. (Of a jitted function around ``jax.vmap(axis_name=...)`` JAX has none for collective
    operations with rules of their own: differentiate first.) Under ``check_vma=True`` JAX itself adds up gradients of
    parameters that are the same on all devices, uncompressed, before they come here:
    ``jax.lax.pcast(params, axis_name, to="varying")`` gives each device its own.

    Args:
        x: an array of any shape and a dtype that the codec takes, or a pytree of them.
        axis_name: of the devices, or a tuple of names.
        codec: one of fixed rate, as ``QSGD(bits=4)``. Static. Payloads of any length are refused: XLA, whose shapes
            are fixed, would send them at their largest size, above that of the array.
        seed: of a codec that rounds at random, the same on all devices; as of `compress`. Each device, shard, array
            and step has one of its own: `derived` of the step (0: all-to-all, 1: all-gather), the
            device's index, the array's place in the pytree and in step 0 the shard's. So the result is unbiased.
        threads: how many each device uses on the CPU; None for all cores that the process may use.

    Returns:
        The sums. A bucket in which one device has a NaN or an infinity is what the codec makes of it: of QSGD, all NaN.

    Raises:
        TypeError: `x` has something else than JAX's arrays, or a dtype that the codec does not take; `codec` is not
            one, or not of fixed rate; `axis_name` is an integer; the codec needs a seed, and `seed` is none.
        ValueError: `seed` is negative or too large, or `threads` below 1.
        NameError: there is no such axis here.

    >>> import jax, numpy, arrcomp.jax
    >>> total = lambda x: arrcomp.jax.psum_quantized(x, "devices", arrcomp.QSGD(bits=8))
    >>> x = jax.numpy.array([[1.0, 2.0], [3.0, 4.0]])
    >>> jax.vmap(total, axis_name="devices")(x)[0].tolist()
    [4.0, 6.0]
    """
    return _all_reduced(x, _exchange(axis_name, codec, threads), seed, lax.psum)


def pmean_quantized(x: Any, axis_name: Any, codec: Codec, *, seed: Any = None, threads: int | None = None) -> Any:
    """`jax.lax.pmean` with compressed data on the wire.

    As `psum_quantized`, which says more. Each summand is weighed before it is added, so that 16-bit floats do not
    overflow.

    Args:
        x: as of `psum_quantized`, as are all arguments.
        axis_name: of the devices.
        codec: one of fixed rate.
        seed: of a codec that rounds at random.
        threads: how many each device uses on the CPU.

    Returns:
        The means.

    Raises:
        TypeError, ValueError, NameError: as `psum_quantized`.
    """
    exchange = _exchange(axis_name, codec, threads)
    return _all_reduced(x, exchange._replace(weight=1 / exchange.world), seed, lax.pmean)


def psum_scatter_quantized(
    x: Any,
    axis_name: Any,
    codec: Codec,
    *,
    scatter_dimension: int = 0,
    tiled: bool = False,
    seed: Any = None,
    threads: int | None = None,
) -> Any:
    """`jax.lax.psum_scatter` with compressed data on the wire: each device gets its part of the sum.

    The first half of `psum_quantized`, which says more: each part is compressed for itself, and once; the sums are not.
    A device's own part goes through the codec as well, so that the result does not depend on which device has it. The
    derivative inside of a jitted `shard_map` needs JAX 0.7 or newer.

    Args:
        x: as of `psum_quantized`, as are all arguments that it has.
        axis_name: of the devices.
        codec: one of fixed rate.
        scatter_dimension: which is cut into parts, one for each device.
        tiled: whether the dimension stays, with a part of its size; else it has the number of devices and goes.
        seed: of a codec that rounds at random.
        threads: how many each device uses on the CPU.

    Returns:
        The sums of this device's part.

    Raises:
        TypeError, ValueError, NameError: as `psum_quantized`; or the dimension is not there, or of a wrong size.
    """
    check_flag("tiled", tiled)
    exchange = _exchange(axis_name, codec, threads)
    dimensions = [_dimension("scatter_dimension", scatter_dimension, leaf, 0) for leaf in _leaves(x, exchange.codec)]

    def sums(xs: _Arrays, words: Any) -> _Arrays:
        rows = [_rows(leaf, dimension, exchange.world, tiled) for leaf, dimension in zip(xs, dimensions, strict=True)]
        return scattered_sums(rows, words, exchange)

    def exact(xs: _Arrays) -> _Arrays:
        scatter = functools.partial(lax.psum_scatter, axis_name=exchange.axis, tiled=tiled)
        return [scatter(leaf, scatter_dimension=d) for leaf, d in zip(xs, dimensions, strict=True)]

    return _straight_through(sums, exact, x, seed, exchange)


def all_gather_quantized(
    x: Any,
    axis_name: Any,
    codec: Codec,
    *,
    axis: int = 0,
    tiled: bool = False,
    seed: Any = None,
    threads: int | None = None,
) -> Any:
    """`jax.lax.all_gather` with compressed data on the wire: each device gets the arrays of all.

    As `psum_quantized`, which says more; but each array is compressed as it is, and once. A device's own array goes
    through the codec as well, so that all devices end with the same bits. The derivative inside of a jitted `shard_map`
    needs JAX 0.7 or newer.

    Args:
        x: as of `psum_quantized`, as are all arguments that it has.
        axis_name: of the devices.
        codec: one of fixed rate.
        axis: which dimension the devices' arrays stand along in the result.
        tiled: whether that dimension is one of `x`, which gets longer; else it is a new one.
        seed: of a codec that rounds at random.
        threads: how many each device uses on the CPU.

    Returns:
        The arrays of all devices.

    Raises:
        TypeError, ValueError, NameError: as `psum_quantized`; or the dimension is not there.
    """
    check_flag("tiled", tiled)
    exchange = _exchange(axis_name, codec, threads)
    axes = [_dimension("axis", axis, leaf, 0 if tiled else 1) for leaf in _leaves(x, exchange.codec)]

    def gathered(xs: _Arrays, words: Any) -> _Arrays:
        rows = all_gathered(xs, words, exchange)
        return [_along(leaf, place, tiled) for leaf, place in zip(rows, axes, strict=True)]

    def exact(xs: _Arrays) -> _Arrays:
        gather = functools.partial(lax.all_gather, axis_name=exchange.axis, tiled=tiled)
        return [gather(leaf, axis=place) for leaf, place in zip(xs, axes, strict=True)]

    return _straight_through(gathered, exact, x, seed, exchange)


def psum_wire_nbytes(x: Any, codec: Codec, axis_size: int) -> int:
    """How many bytes each device sends, and gets, in `psum_quantized` or `pmean_quantized`.

    2 (W - 1) times the compressed size of a shard, of which W make an array: 2 (W - 1) / W of the compressed size.
    `jax.lax.psum`, as a ring, sends 2 (W - 1) / W of the array.

    Args:
        x: an array, anything else with a shape and a dtype, or a pytree of them.
        codec: one of fixed rate.
        axis_size: number of devices, W.

    Raises:
        TypeError, ValueError: `codec` is not of fixed rate or does not take a dtype, or `axis_size` is below 1.

    >>> import jax, arrcomp.jax
    >>> x = jax.ShapeDtypeStruct((1000, 1000), "float32")
    >>> arrcomp.jax.psum_wire_nbytes(x, arrcomp.QSGD(bits=4), 8)
    905520
    """
    world = checked_integer("axis_size", axis_size, 1, 1 << 30)
    exchange = Exchange(None, world, fixed_rate_codec(codec, "send", "QSGD(bits=4)"), 0)
    return sum(wire_nbytes(leaf, exchange) for leaf in jax.tree.leaves(x))


def _all_reduced(x: Any, exchange: Exchange, seed: Any, collective: Callable[..., Any]) -> Any:
    def exact(xs: _Arrays) -> _Arrays:
        made: _Arrays = collective(xs, exchange.axis)
        return made

    _leaves(x, exchange.codec)
    return _straight_through(lambda xs, words: all_reduced(xs, words, exchange, exact), exact, x, seed, exchange)


def _straight_through(
    quantized: Callable[[_Arrays, Any], _Arrays],
    exact: Callable[[_Arrays], _Arrays],
    x: Any,
    seed: Any,
    exchange: Exchange,
) -> Any:
    """What `quantized` makes of the leaves of a pytree; the derivative is that of `exact`."""
    checked = seed_operand(checked_seed(exchange.codec, seed))
    leaves, structure = jax.tree.flatten(x)
    if not leaves:
        return x
    if exchange.world == 1:
        return jax.tree.unflatten(structure, exact(leaves))
    call = jax.custom_jvp(quantized)
    call.defjvp(lambda primals, tangents: (call(*primals), exact(tangents[0])))
    words = None if checked is None else _ops.seed_operands(checked)[0]
    return jax.tree.unflatten(structure, call(leaves, words))


def _exchange(axis_name: Any, codec: Any, threads: int | None) -> Exchange:
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in names:
        if isinstance(name, int):
            raise TypeError(f"axis_name={axis_name!r}: names of axes are allowed, as shard_map and pmap have them")
    axis = names if isinstance(axis_name, (tuple, list)) else axis_name
    return Exchange(
        axis, int(_lax.psum(1, axis)), fixed_rate_codec(codec, "send", "QSGD(bits=4)"), thread_count(threads)
    )


def _leaves(x: Any, codec: Codec) -> _Arrays:
    """The arrays of a pytree, all of which the codec takes."""
    leaves = [checked_array(leaf) for leaf in jax.tree.leaves(x)]
    for leaf in leaves:
        spec_of(ADAPTER, leaf, codec)
    return leaves


def _dimension(name: str, value: Any, x: jax.Array, more: int) -> int:
    """The place of a dimension of an array, or of one that will have some more, counted from the first."""
    ndim = x.ndim + more
    if ndim == 0:
        raise ValueError(f"{name}={value!r}: an array without dimensions has none")
    return checked_integer(name, value, -ndim, ndim - 1) % ndim


def _rows(x: jax.Array, dimension: int, world: int, tiled: bool) -> jax.Array:
    """An array as one part for each device, which stand along a new first dimension."""
    before, size, after = x.shape[:dimension], x.shape[dimension], x.shape[dimension + 1 :]
    if size % world if tiled else size != world:
        raise ValueError(
            f"x has shape {x.shape}; with tiled={tiled}, {'a multiple of ' if tiled else ''}{world}, the number of "
            f"devices, is allowed in place {dimension}"
        )
    part = (size // world,) if tiled else ()
    return jnp.moveaxis(x.reshape(*before, world, *part, *after), dimension, 0)


def _along(rows: jax.Array, axis: int, tiled: bool) -> jax.Array:
    """Rows along another dimension than the first; with `tiled` behind each other, in one that they have already."""
    moved = jnp.moveaxis(rows, 0, axis)
    if not tiled:
        return moved
    before, (world, size), after = moved.shape[:axis], moved.shape[axis : axis + 2], moved.shape[axis + 2 :]
    return moved.reshape(*before, world * size, *after)
