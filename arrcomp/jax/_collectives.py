"""Collective operations with compressed communication, inside `jax.shard_map` and `jax.pmap`."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import lax
from jax import numpy as jnp

from .._api.compress import checked_seed, spec_of
from .._arguments import check_flag, checked_integer, shown, thread_count, wrong_type
from .._methods.error_feedback import check_error_feedback
from ..codecs import Codec
from . import _ops, _seeds
from ._adapter import ADAPTER, seed_operand
from ._exchange import (
    Exchange,
    Residuals,
    all_gathered,
    all_reduced,
    all_reduced_with_feedback,
    all_to_all,
    scattered_sums,
    wire_nbytes,
    zero_residuals,
)
from ._functions import checked_array, fixed_rate_codec

_checked_codec = functools.partial(fixed_rate_codec, use="send", example="QSGD(bits=4)")
_Arrays = list[jax.Array]
_Collective = Callable[[_Arrays], _Arrays]
_BACKWARD = 2  # derives seeds of backward passes; steps of forward ones have 0 and 1
_lax: Any = lax  # untyped: some types are missing in some versions


class Residual(NamedTuple):
    """What a device keeps for error feedback: a pytree, made by `zero_residual`.

    All arrays have one dimension, so that inside `jax.shard_map` ``PartitionSpec(axis_name)`` divides them. In a
    checkpoint they belong to this number of devices.

    Attributes:
        own: what compression lost of this device's arrays so far, a pytree like theirs.
        shard: what it lost of the sums that this device codes, a pytree like theirs.
    """

    own: Any
    shard: Any


def zero_residual(x: Any, axis_name: Any, codec: Codec) -> Residual:
    """The residual of a first step: zeros, for the arrays of one device.

    It is called inside `jax.shard_map`, `jax.pmap` or `jax.vmap(axis_name=...)`, like the collective operations. The
    residual takes 1 + 1 / W times the memory of `x`, with W devices.

    Args:
        x: a pytree of arrays like those to be averaged: the parameters or their gradients.
        axis_name: of the devices, or a tuple of names.
        codec: the one that the collective operation gets.

    Raises:
        TypeError, NameError: same as in `psum_quantized`.
        ValueError: the codec is QSGD with 1 bit.

    >>> import jax, arrcomp.jax
    >>> start = lambda x: arrcomp.jax.zero_residual(x, "devices", arrcomp.QSGD(bits=2, bucket_size=16))
    >>> residual = jax.vmap(start, axis_name="devices")(jax.numpy.ones((4, 10, 20)))
    >>> residual.own.shape, residual.shard.shape
    ((4, 200), (4, 64))
    """
    exchange = _exchange(axis_name, codec, None)
    check_error_feedback([exchange.codec], "a residual")
    residuals = [zero_residuals(leaf, exchange) for leaf in _leaves(x, exchange.codec)]
    return _residual(jax.tree.structure(x), residuals)


def psum_quantized(
    x: Any, axis_name: Any, codec: Codec, *, seed: Any = None, threads: int | None = None, residual: Any = None
) -> Any:
    """`jax.lax.psum` with compressed communication, inside `jax.shard_map`, `jax.pmap` or `jax.vmap(axis_name=...)`.

    (`arrcomp.torch.distributed.all_reduce` does the same for PyTorch.) The array, in C order, is divided into a shard
    for each of the W devices. Each device compresses all shards and sends each to its device (all-to-all). That device
    sums the W payloads and compresses the sum, in one pass if the codec has sums. All devices receive the sums
    (all-gather) and decompress them. So each value is coded twice, for any number of devices, and all devices get
    bit-identical results. `shard_map` knows this: ``out_specs=PartitionSpec()`` works under ``check_vma=True`` (with
    JAX 0.6.2 or newer). The sum is computed in the devices' order, in float32 (float64 for float64 arrays).

    Shards consist of whole buckets, so an array much smaller than W buckets sends more bytes than it has. The last
    bucket is padded with zeros or, for ``QSGD(norm="minmax")``, with the last value, which does not change its range.
    Codecs that use statistics of the whole array, such as S2FP8 without buckets, use those of each shard. With
    ``skip_incomplete`` the last, shorter bucket goes through `jax.lax.psum`.

    The arrays of a pytree are compressed separately and sent together, with two collectives in total. On an axis of one
    device nothing is exchanged or changed.

    The derivative is that of `jax.lax.psum`, in both modes and of any order: straight-through, as if nothing were lost,
    and not compressed. (JAX cannot differentiate a jitted function around ``jax.vmap(axis_name=...)``: differentiate
    first.)

    Under ``check_vma=True`` JAX itself sums gradients of replicated parameters, uncompressed, before this function is
    called. That is an error: such gradients do not vary over the devices. Take the gradients of
    ``jax.lax.pcast(params, axis_name, to="varying")`` instead.

    With a `residual` there is error feedback (H. Tang et al., "DoubleSqueeze", arXiv:1905.05957, algorithm 1), as in
    `arrcomp.torch.distributed.QuantizedState`: each device adds what compression lost of its last array to this one,
    and what it lost of the last sum that it coded to this sum. Over many steps no part of a gradient is lost. NaNs and
    infinities are not kept.

    Args:
        x: an array of any shape and a dtype that the codec supports, or a pytree of them.
        axis_name: of the devices, or a tuple of names.
        codec: a fixed-rate codec, such as ``QSGD(bits=4)``. Static. Others raise an error: XLA would send their
            payloads at their capacity, which is larger than the array. (QSGD with 1 bit is too coarse for gradients:
            its two levels are the lowest and the highest of a bucket, and models learn badly or nothing.)
        seed: for stochastic rounding; same as in `compress`, and the same on all devices. Each device, shard, array and
            step derives its own from the step (0: all-to-all, 1: all-gather), the device's index, the array's index in
            the pytree, and in step 0 the shard's index. So the result is unbiased.
        threads: CPU threads of each device; None for all cores that the process may use. Static.
        residual: of the last step, or `zero_residual(x, axis_name, codec)`; None for no error feedback. It has no
            gradient.

    Returns:
        The sums; with a `residual` the pair of the sums and the next residual. If a device has a NaN or an infinity in
        a bucket, the sum is what the codec makes of it: for QSGD, a bucket of NaN.

    Raises:
        TypeError: `x` contains something else than JAX arrays, or a dtype that the codec does not support; `codec` is
            not a fixed-rate codec; `axis_name` is an integer; the codec needs a seed, and `seed` is None; `residual` is
            none.
        ValueError: `seed` or `threads` is out of range; `x` does not vary over the devices; `residual` belongs to other
            arrays; the codec with a `residual` is QSGD with 1 bit.
        NameError: there is no such axis.

    >>> import jax, numpy, arrcomp.jax
    >>> total = lambda x: arrcomp.jax.psum_quantized(x, "devices", arrcomp.QSGD(bits=8))
    >>> x = jax.numpy.array([[1.0, 2.0], [3.0, 4.0]])
    >>> jax.vmap(total, axis_name="devices")(x)[0].tolist()
    [4.0, 6.0]
    """
    return _all_reduced(x, _exchange(axis_name, codec, threads), seed, residual, lax.psum)


def pmean_quantized(
    x: Any, axis_name: Any, codec: Codec, *, seed: Any = None, threads: int | None = None, residual: Any = None
) -> Any:
    """`jax.lax.pmean` with compressed communication.

    Same as `psum_quantized`, with the same arguments, results and errors, but each summand is multiplied by 1 / W
    before the sum, so that 16-bit floats do not overflow.
    """
    exchange = _exchange(axis_name, codec, threads)
    return _all_reduced(x, exchange._replace(weight=1 / exchange.world), seed, residual, lax.pmean)


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
    """`jax.lax.psum_scatter` with compressed communication: each device gets its shard of the sum.

    The first half of `psum_quantized`: each shard is compressed separately, and once; the sums are not coded. A
    device's own values are coded too, so that the result does not depend on which device gets it. The derivative inside
    a jitted `shard_map` needs JAX 0.7 or newer.

    Arguments and errors are those of `psum_quantized`, without `residual`. `scatter_dimension` is divided into a shard
    for each device. With `tiled` this dimension is kept, with a fraction of its size; else its size is the number of
    devices, and it is removed. It is a ValueError if the dimension does not exist, or has a wrong size.
    """
    check_flag("tiled", tiled)
    exchange = _exchange(axis_name, codec, threads)
    _check_varying(x, exchange.axis)
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
    """`jax.lax.all_gather` with compressed communication: each device gets the arrays of all.

    Each array is compressed whole, and once. A device's own array is coded too, so that all devices get bit-identical
    results. The derivative inside a jitted `shard_map` needs JAX 0.7 or newer.

    Arguments and errors are those of `psum_quantized`, without `residual`, and `x` may be the same on all devices.
    `axis` is the dimension of the result along which the
    devices' arrays are gathered: with `tiled` concatenated along a dimension of `x`, else stacked along a new one. It
    is a ValueError if the dimension does not exist.
    """
    check_flag("tiled", tiled)
    exchange = _exchange(axis_name, codec, threads)
    axes = [_dimension("axis", axis, leaf, 0 if tiled else 1) for leaf in _leaves(x, exchange.codec)]

    def gathered(xs: _Arrays, words: Any) -> _Arrays:
        rows = all_gathered(xs, words, exchange)
        return [_along(leaf, each, tiled) for leaf, each in zip(rows, axes, strict=True)]

    def exact(xs: _Arrays) -> _Arrays:
        gather = functools.partial(lax.all_gather, axis_name=exchange.axis, tiled=tiled)
        return [gather(leaf, axis=each) for leaf, each in zip(xs, axes, strict=True)]

    return _straight_through(gathered, exact, x, seed, exchange)


def all_to_all_quantized(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    codec: Codec,
    *,
    tiled: bool = False,
    backward_codec: Codec | None = None,
    seed: Any = None,
    threads: int | None = None,
) -> Any:
    """`jax.lax.all_to_all` with compressed communication: each device sends a part of its array to each.

    (`arrcomp.torch.distributed.all_to_all_autograd` does the same for PyTorch.) Each part is compressed alone, in C
    order, and once. A device's own part is coded too, so that results do not depend on which device gets what. With a
    bucket for each row, such as ``QSGD(bits=8, bucket_size=x.shape[-1])`` where neither axis is the last one, a token
    of a mixture of experts has its own scale, and does not depend on other tokens. (Random numbers of stochastic
    rounding depend on its position.)

    In reverse mode the gradient goes the other way, with axes exchanged, and is compressed with `backward_codec`; the
    codecs count as identity (straight-through). Forward mode is an error. On an axis of one device nothing is coded.

    Args:
        x: an array of a dtype that the codec supports, or a pytree of them.
        axis_name: of the devices, or a tuple of names.
        split_axis: the dimension that is divided into a part for each device.
        concat_axis: the dimension of the result along which the parts of all devices are put together.
        codec: a fixed-rate codec. Static.
        tiled: whether `split_axis` is kept, with a fraction of its size, and parts are concatenated along
            `concat_axis`. Else the size of `split_axis` is the number of devices, it is removed, and parts are stacked
            along a new dimension. Same as in `jax.lax.all_to_all`.
        backward_codec: for the gradient, a fixed-rate codec; None for `codec`. Static.
        seed: for stochastic rounding, same as in `psum_quantized`; the backward pass derives its own.
        threads: CPU threads of each device; None for all cores that the process may use. Static.

    Returns:
        An array of the shape that `jax.lax.all_to_all` gives, or a pytree of them.

    Raises:
        TypeError, NameError: same as in `psum_quantized`.
        ValueError: `seed` or `threads` is out of range; a dimension does not exist, or `split_axis` has a wrong size.

    >>> import jax, arrcomp.jax
    >>> x = jax.numpy.arange(8.0).reshape(2, 2, 2)
    >>> codec = arrcomp.FloatFormat("bf16")
    >>> exchange = lambda x: arrcomp.jax.all_to_all_quantized(x, "devices", 0, 0, codec)
    >>> jax.vmap(exchange, axis_name="devices")(x).tolist()
    [[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]
    """
    check_flag("tiled", tiled)
    forward = _exchange(axis_name, codec, threads)
    backward = forward._replace(codec=_checked_codec(codec if backward_codec is None else backward_codec))
    for exchange in (forward, backward):
        leaves = _leaves(x, exchange.codec)
    structure, varying = jax.tree.structure(x), _ops.varying_axes([lax.axis_index(forward.axis)])
    leaves = [_ops.vary(leaf, varying) for leaf in leaves]
    axes = [
        (_dimension("split_axis", split_axis, leaf, 0), _dimension("concat_axis", concat_axis, leaf, 0))
        for leaf in leaves
    ]
    checked = seed_operand(checked_seed(_first_random(forward.codec, backward.codec), seed))
    words = None if checked is None or not leaves else _ops.seed_operands(checked)[0]
    made = _transposable(forward, backward, axes, tiled)(leaves, words) if leaves else leaves
    return jax.tree.unflatten(structure, made)


def psum_wire_nbytes(x: Any, codec: Codec, axis_size: int) -> int:
    """Bytes that each device sends, and receives, in `psum_quantized` or `pmean_quantized`.

    This is 2 (W - 1) times the compressed size of a shard: 2 (W - 1) / W of the compressed size of the array.
    `jax.lax.psum`, as a ring, sends 2 (W - 1) / W of the uncompressed size.

    Args:
        x: an array, anything else with a shape and a dtype, or a pytree of them.
        codec: a fixed-rate codec.
        axis_size: number of devices, W.

    Raises:
        TypeError, ValueError: `codec` is not a fixed-rate codec or does not support a dtype, or `axis_size` is below 1.

    >>> import jax, arrcomp.jax
    >>> x = jax.ShapeDtypeStruct((1000, 1000), "float32")
    >>> arrcomp.jax.psum_wire_nbytes(x, arrcomp.QSGD(bits=4), 8)
    905520
    """
    world = checked_integer("axis_size", axis_size, 1, 1 << 30)
    exchange = Exchange(None, world, _checked_codec(codec), 0)
    return sum(wire_nbytes(leaf, exchange) for leaf in jax.tree.leaves(x))


def _all_reduced(x: Any, exchange: Exchange, seed: Any, residual: Any, collective: Callable[..., Any]) -> Any:
    exact = functools.partial(collective, axis_name=exchange.axis)
    leaves = _leaves(x, exchange.codec)
    _check_varying(x, exchange.axis)
    if residual is None:
        return _straight_through(lambda xs, words: all_reduced(xs, words, exchange, exact), exact, x, seed, exchange)
    check_error_feedback([exchange.codec], "a residual")
    given = _checked_residuals(residual, x, leaves, exchange)

    def quantized(xs: _Arrays, words: Any, residuals: list[Residuals]) -> tuple[_Arrays, list[Residuals]]:
        return all_reduced_with_feedback(xs, residuals, words, exchange, exact)

    sums, kept = _with_feedback(quantized, exact, leaves, given, seed, exchange)
    structure = jax.tree.structure(x)
    return jax.tree.unflatten(structure, sums), _residual(structure, kept)


def _transposable(forward: Exchange, backward: Exchange, axes: list[tuple[int, int]], tiled: bool) -> Any:
    """All-to-alls of arrays; the gradient goes the other way through `backward`, and its own through `forward`."""

    def exchanged(xs: _Arrays, words: Any) -> _Arrays:
        if forward.world == 1:
            move = functools.partial(lax.all_to_all, axis_name=forward.axis, tiled=tiled)
            return [move(leaf, split_axis=a, concat_axis=b) for leaf, (a, b) in zip(xs, axes, strict=True)]
        rows = [_rows(leaf, split, forward.world, tiled) for leaf, (split, _) in zip(xs, axes, strict=True)]
        received = all_to_all(rows, words, forward)
        return [_along(leaf, concat, tiled) for leaf, (_, concat) in zip(received, axes, strict=True)]

    def transposed(words: Any, gradients: _Arrays) -> tuple[_Arrays, None]:
        own = None if words is None else _seeds.derived(words, _BACKWARD)
        other = _transposable(backward, forward, [(concat, split) for split, concat in axes], tiled)
        return other(gradients, own), None

    call = jax.custom_vjp(exchanged)
    call.defvjp(lambda xs, words: (exchanged(xs, words), words), transposed)
    return call


def _first_random(*codecs: Codec) -> Codec:
    """The first codec that needs a seed, if one does."""
    return next((codec for codec in codecs if codec.needs_seed), codecs[0])


def _straight_through(
    quantized: Callable[[_Arrays, Any], _Arrays], exact: _Collective, x: Any, seed: Any, exchange: Exchange
) -> Any:
    """Apply `quantized` to the leaves of a pytree, with the derivative of `exact`."""
    leaves, structure = jax.tree.flatten(x)
    made, _ = _with_feedback(lambda xs, words, _: (quantized(xs, words), []), exact, leaves, [], seed, exchange)
    return jax.tree.unflatten(structure, made)


def _with_feedback(
    quantized: Callable[[_Arrays, Any, list[Residuals]], tuple[_Arrays, list[Residuals]]],
    exact: _Collective,
    xs: _Arrays,
    residuals: list[Residuals],
    seed: Any,
    exchange: Exchange,
) -> tuple[_Arrays, list[Residuals]]:
    """Apply `quantized`, with the derivative of `exact`; residuals have none."""
    checked = seed_operand(checked_seed(exchange.codec, seed))
    if not xs:
        return xs, residuals
    if exchange.world == 1:
        return exact(xs), residuals

    call = jax.custom_jvp(quantized)

    def derivative(primals: Any, tangents: Any) -> Any:
        made, kept = call(*primals)
        return (made, kept), (exact(tangents[0]), jax.tree.map(lambda x: x - x, kept))

    call.defjvp(derivative)
    words = None if checked is None else _ops.seed_operands(checked)[0]
    result: tuple[_Arrays, list[Residuals]] = call(xs, words, residuals)
    return result


def _residual(structure: Any, residuals: list[Residuals]) -> Residual:
    """A pytree of residuals, from those of its leaves."""
    return Residual(*[jax.tree.unflatten(structure, [each[part] for each in residuals]) for part in (0, 1)])


def _checked_residuals(residual: Any, x: Any, leaves: _Arrays, exchange: Exchange) -> list[Residuals]:
    """The residuals of the leaves of x, without gradients."""
    if not isinstance(residual, Residual):
        raise wrong_type("residual", "a Residual, as zero_residual returns it", residual)
    structure: Any = jax.tree.structure(x)
    if any(structure != jax.tree.structure(part) for part in residual):
        raise ValueError(f"residual: expected the structure of x, {structure}, got another one")
    found = [Residuals(*each) for each in zip(*map(jax.tree.leaves, residual), strict=True)]
    for leaf, each in zip(leaves, found, strict=True):
        for expected, got in zip(zero_residuals(leaf, exchange), each, strict=True):
            if (expected.shape, expected.dtype) != (got.shape, got.dtype):
                wanted = f"{expected.dtype}{list(expected.shape)} for an array {leaf.dtype}{list(leaf.shape)}"
                raise ValueError(f"residual: expected {wanted}, got {got.dtype}{list(got.shape)}")
    return [Residuals(*map(lax.stop_gradient, each)) for each in found]


def _check_varying(x: Any, axis: Any) -> None:
    """Raise ValueError if `shard_map` knows that an array is the same on all devices: JAX has summed it already."""
    names = frozenset(axis if isinstance(axis, tuple) else (axis,))
    if not names <= _ops.varying_axes([lax.axis_index(axis)]):
        return  # nothing is known: check_vma=False, pmap, or vmap
    for path, leaf in jax.tree_util.tree_leaves_with_path(x):
        missing = names - _ops.varying_axes([leaf])
        if missing:
            over = ", ".join(map(repr, sorted(missing)))
            name, to = ("pcast", ", to='varying'") if hasattr(lax, "pcast") else ("pvary", "")
            raise ValueError(
                f"x{jax.tree_util.keystr(path)}: expected values that vary over {over}, got the same on all devices; "
                "if they are gradients, JAX has already summed them: take those of "
                f"jax.lax.{name}(params, {axis!r}{to}), or pass check_vma=False to jax.shard_map"
            )


def _exchange(axis_name: Any, codec: Any, threads: int | None) -> Exchange:
    axis = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else axis_name
    if any(isinstance(name, int) for name in (axis if isinstance(axis, tuple) else (axis,))):
        raise TypeError(f"axis_name: expected names of axes of shard_map or pmap, got {shown(axis_name)}")
    return Exchange(axis, int(_lax.psum(1, axis)), _checked_codec(codec), thread_count(threads))


def _leaves(x: Any, codec: Codec) -> _Arrays:
    """The arrays of a pytree, whose dtypes the codec supports."""
    leaves = [checked_array(leaf) for leaf in jax.tree.leaves(x)]
    for leaf in leaves:
        spec_of(ADAPTER, leaf, codec)
    return leaves


def _dimension(name: str, value: Any, x: jax.Array, more: int) -> int:
    """The non-negative index of a dimension of an array with `more` additional dimensions."""
    ndim = x.ndim + more
    if ndim == 0:
        raise ValueError(f"{name}: expected an array with dimensions, got a scalar")
    return checked_integer(name, value, -ndim, ndim - 1) % ndim


def _rows(x: jax.Array, dimension: int, world: int, tiled: bool) -> jax.Array:
    """An array, divided into a row for each device along a new first dimension."""
    before, size, after = x.shape[:dimension], x.shape[dimension], x.shape[dimension + 1 :]
    if size % world if tiled else size != world:
        raise ValueError(
            f"x: expected {'a multiple of ' if tiled else ''}{world} (the number of devices) in dimension {dimension} "
            f"with tiled={tiled}, got shape {x.shape}"
        )
    rest = (size // world,) if tiled else ()
    return jnp.moveaxis(x.reshape(*before, world, *rest, *after), dimension, 0)


def _along(rows: jax.Array, axis: int, tiled: bool) -> jax.Array:
    """Move the rows to another dimension; with `tiled` concatenate them along an existing one."""
    moved = jnp.moveaxis(rows, 0, axis)
    if not tiled:
        return moved
    before, (world, size), after = moved.shape[:axis], moved.shape[axis : axis + 2], moved.shape[axis + 2 :]
    return moved.reshape(*before, world * size, *after)
