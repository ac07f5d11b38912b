"""Compressed collectives over an axis of devices: the part that each device runs.

Payloads are rows of uint8[devices, bytes]: one for each sending or receiving device.
"""

import functools
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from .. import _dtypes
from .._format.spec import Spec
from .._methods.shards import Shards
from ..codecs import QSGD, Codec
from . import _ops, _seeds

_lax: Any = lax  # untyped: some functions are missing in some versions
_SCATTER, _GATHER = 0, 1  # the two steps; each device draws different random numbers in each


class Exchange(NamedTuple):
    """Settings of an exchange of arrays."""

    axis: Any  # name of the devices' axis, or a tuple of names
    world: int  # number of devices on it
    codec: Codec
    threads: int  # of the codec, on the CPU; 0 for all cores
    weight: float = 1.0  # of each summand

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each device's summand."""
        return (self.weight,) * self.world

    def spec(self, dtype: Any, shape: tuple[int, ...]) -> Spec:
        """The spec of a payload."""
        return Spec(self.codec, _dtypes.by_numpy(dtype), shape)


class Residuals(NamedTuple):
    """What a device keeps of one array for error feedback: flat arrays."""

    own: jax.Array  # lost of its array
    shard: jax.Array  # lost of the sums that it codes


def wire_nbytes(x: Any, exchange: Exchange) -> int:
    """Bytes that each device sends in `all_reduced` of an array; raises TypeError for a dtype the codec lacks."""
    exchange.codec.check_dtype(_dtypes.by_numpy(x.dtype))
    raw = _tail(x, exchange.codec) * int(np.dtype(x.dtype).itemsize)
    twice = 2 * (exchange.world - 1)
    return twice * _shard_spec(x, exchange).capacity + -(-twice * raw // exchange.world)


def all_reduced(
    xs: Sequence[jax.Array], seed: Any, exchange: Exchange, exact: Callable[[list[jax.Array]], list[jax.Array]]
) -> list[jax.Array]:
    """The sums of arrays, at least one, over all devices, bit-identical on each.

    The seed is uint32[2], or None if the codec needs none; `exact` is the uncompressed collective, for values that the
    codec does not quantize.
    """
    specs = [_shard_spec(x, exchange) for x in xs]
    rows = [_shards(x, spec, exchange) for x, spec in zip(xs, specs, strict=True)]
    own_seeds = _seeds_of(seed, exchange, _GATHER, len(xs))
    received = zip(_all_to_all(rows, specs, seed, exchange), specs, own_seeds, strict=True)
    sums = [_summed_payload(payloads, spec, s, exchange) for payloads, spec, s in received]
    return _gathered_sums(xs, sums, specs, exchange, exact)


def all_reduced_with_feedback(
    xs: Sequence[jax.Array],
    residuals: Sequence[Residuals],
    seed: Any,
    exchange: Exchange,
    exact: Callable[[list[jax.Array]], list[jax.Array]],
) -> tuple[list[jax.Array], list[Residuals]]:
    """Same as `all_reduced`, with error feedback: the residuals are added before coding, and the next ones returned."""
    xs = [x + each.own.reshape(x.shape) for x, each in zip(xs, residuals, strict=True)]
    specs = [_shard_spec(x, exchange) for x in xs]
    rows = [_shards(x, spec, exchange) for x, spec in zip(xs, specs, strict=True)]
    sent = _encoded_rows(rows, specs, seed, exchange)
    received = _sent_rows(sent, specs, exchange)
    own_seeds = _seeds_of(seed, exchange, _GATHER, len(xs))
    sums, kept = [], []
    for i, (x, spec) in enumerate(zip(xs, specs, strict=True)):
        total = _summed(received[i], spec, exchange) + residuals[i].shard
        sums.append(_encoded(total, spec, own_seeds[i], exchange))
        (back,) = _decoded(sums[i][None], spec, exchange)
        head = x.size - _tail(x, exchange.codec)
        own = _lost(rows[i], _decoded(sent[i], spec, exchange)).reshape(-1)[:head]
        in_array = jnp.arange(spec.elements) < head - lax.axis_index(exchange.axis) * spec.elements  # not padding
        shard = jnp.where(in_array, _lost(total, back), 0)
        kept.append(Residuals(jnp.pad(own, (0, x.size - head)), shard))
    return _gathered_sums(xs, sums, specs, exchange, exact), kept


def zero_residuals(x: jax.Array, exchange: Exchange) -> Residuals:
    """The first residuals of an array. They vary over the devices, which `shard_map` must know."""
    zero = (lax.axis_index(exchange.axis) * 0).astype(x.dtype)
    sizes = math.prod(x.shape), _shard_spec(x, exchange).elements
    return Residuals(*[jnp.zeros(size, x.dtype) + zero for size in sizes])


def scattered_sums(rows: Sequence[jax.Array], seed: Any, exchange: Exchange) -> list[jax.Array]:
    """The sums over all devices of this device's row of each array, which has a row for each device."""
    specs = [exchange.spec(x.dtype, x.shape[1:]) for x in rows]
    received = _all_to_all(rows, specs, seed, exchange)
    return [_summed(payloads, spec, exchange) for payloads, spec in zip(received, specs, strict=True)]


def all_gathered(xs: Sequence[jax.Array], seed: Any, exchange: Exchange) -> list[jax.Array]:
    """The arrays of all devices, as rows."""
    specs = [exchange.spec(x.dtype, x.shape) for x in xs]
    own_seeds = _seeds_of(seed, exchange, _GATHER, len(xs))
    sent = jnp.concatenate([_encoded(*each, exchange) for each in zip(xs, specs, own_seeds, strict=True)])
    payloads = _split(lax.all_gather(sent, exchange.axis), specs)
    return [_decoded(*each, exchange) for each in zip(payloads, specs, strict=True)]


def all_to_all(rows: Sequence[jax.Array], seed: Any, exchange: Exchange) -> list[jax.Array]:
    """This device's row of each array, from all devices; the arrays have a row for each device."""
    specs = [exchange.spec(x.dtype, x.shape[1:]) for x in rows]
    received = _all_to_all(rows, specs, seed, exchange)
    return [_decoded(payloads, spec, exchange) for payloads, spec in zip(received, specs, strict=True)]


def _tail(x: Any, codec: Codec) -> int:
    """Number of values in a last, shorter bucket that the codec does not quantize."""
    skips = isinstance(codec, QSGD) and codec.skip_incomplete
    return math.prod(x.shape) % codec.granularity if skips else 0


def _with_tail(x: jax.Array, sums: jax.Array, codec: Codec, exact: Callable[..., Any]) -> jax.Array:
    """The sums of an array: `sums` begins with all but those of the tail."""
    head = x.size - _tail(x, codec)
    if head == x.size:
        return sums[:head].reshape(x.shape)
    (tail,) = exact([x.reshape(-1)[head:]])
    return jnp.concatenate([sums[:head], tail]).reshape(x.shape)


def _shard_spec(x: Any, exchange: Exchange) -> Spec:
    """The spec of a shard. XLA's arrays have the same shape on all devices, so all shards are full."""
    elements = math.prod(x.shape) - _tail(x, exchange.codec)
    shards = Shards.of(elements, exchange.world, exchange.codec.granularity)
    return exchange.spec(x.dtype, (shards.size,))


def _shards(x: jax.Array, spec: Spec, exchange: Exchange) -> jax.Array:
    """An array without its tail, padded and divided into a row for each device.

    The padding must not change the scale of the last bucket: zeros do not, except for norm="minmax".
    """
    head = x.reshape(-1)[: x.size - _tail(x, exchange.codec)]
    missing = exchange.world * spec.elements - head.size
    is_minmax = isinstance(exchange.codec, QSGD) and exchange.codec.norm == "minmax"
    mode = "edge" if is_minmax and missing > 0 else "constant"
    return jnp.pad(head, (0, missing), mode=mode).reshape(exchange.world, -1)


def _gathered_sums(
    xs: Sequence[jax.Array],
    sums: Sequence[jax.Array],
    specs: Sequence[Spec],
    exchange: Exchange,
    exact: Callable[[list[jax.Array]], list[jax.Array]],
) -> list[jax.Array]:
    """The sums of whole arrays, from the payloads of this device's shards."""
    payloads = _split(_all_gather(jnp.concatenate(sums), exchange.axis), specs)
    flat = [_decoded(*each, exchange).reshape(-1) for each in zip(payloads, specs, strict=True)]
    return [_with_tail(x, y, exchange.codec, exact) for x, y in zip(xs, flat, strict=True)]


def _lost(x: jax.Array, back: jax.Array) -> jax.Array:
    return jnp.nan_to_num(x - back, nan=0, posinf=0, neginf=0)  # otherwise NaNs would never go away


def _all_to_all(rows: Sequence[jax.Array], specs: Sequence[Spec], seed: Any, exchange: Exchange) -> list[jax.Array]:
    """The payloads of this device's row of each array, from all devices."""
    return _sent_rows(_encoded_rows(rows, specs, seed, exchange), specs, exchange)


def _encoded_rows(rows: Sequence[jax.Array], specs: Sequence[Spec], seed: Any, exchange: Exchange) -> list[jax.Array]:
    """The payloads of all rows of each array."""
    payloads, numbers = [], jnp.arange(exchange.world, dtype=jnp.uint32)
    for x, spec, own_seed in zip(rows, specs, _seeds_of(seed, exchange, _SCATTER, len(rows)), strict=True):
        row_seeds = None if own_seed is None else jax.vmap(_seeds.derived, (None, 0))(own_seed, numbers)
        payloads.append(jax.vmap(lambda row, s, spec=spec: _encoded(row, spec, s, exchange))(x, row_seeds))
    return payloads


def _sent_rows(payloads: Sequence[jax.Array], specs: Sequence[Spec], exchange: Exchange) -> list[jax.Array]:
    """Send a row of each array to each device. One buffer holds all arrays."""
    sent = jnp.concatenate(payloads, axis=1)
    return _split(_lax.all_to_all(sent, exchange.axis, 0, 0, tiled=True), specs)


def _seeds_of(seed: Any, exchange: Exchange, step: int, arrays: int) -> list[Any]:
    """A seed for each array, different in each step and on each device."""
    if seed is None:
        return [None] * arrays
    own = _seeds.derived(seed, step, lax.axis_index(exchange.axis))
    return [_seeds.derived(own, number) for number in range(arrays)]


def _encoded(x: jax.Array, spec: Spec, seed: Any, exchange: Exchange) -> jax.Array:
    payload: jax.Array
    (payload,), _ = _ops.encode([x], (spec,), exchange.threads, seed)
    return payload


def _decoded(payloads: jax.Array, spec: Spec, exchange: Exchange) -> jax.Array:
    arrays, _ = jax.vmap(lambda payload: _ops.decode([payload], [], (spec,), exchange.threads))(payloads)
    rows: jax.Array = arrays[0]
    return rows


def _summed_payload(payloads: jax.Array, spec: Spec, seed: Any, exchange: Exchange) -> jax.Array:
    """The payload of the sum of rows, in one pass if the codec has sums."""
    if not exchange.codec.has_sums:
        return _encoded(_summed(payloads, spec, exchange), spec, seed, exchange)
    payload: jax.Array
    payload, _ = _ops.encode_sum(list(payloads), exchange.weights, spec, spec, exchange.threads, seed)
    return payload


def _summed(payloads: jax.Array, spec: Spec, exchange: Exchange) -> jax.Array:
    """The sum of rows, in the devices' order, rounded to their dtype once."""
    if exchange.codec.has_sums:
        zeros = jnp.zeros(spec.shape, spec.dtype.numpy)
        sums: jax.Array = _ops.accumulate(zeros, list(payloads), exchange.weights, spec, exchange.threads)
        return sums
    rows = _decoded(payloads, spec, exchange)
    wide = rows.astype(jnp.promote_types(rows.dtype, jnp.float32))
    total: jax.Array = functools.reduce(operator.add, wide)
    return (total * exchange.weight).astype(rows.dtype)


def _split(rows: jax.Array, specs: Sequence[Spec]) -> list[jax.Array]:
    """Split rows of concatenated payloads."""
    return jnp.split(rows, np.cumsum([spec.capacity for spec in specs])[:-1], axis=1)


def _all_gather(x: jax.Array, axis: Any) -> jax.Array:
    """The arrays of all devices. `shard_map` knows that the result is the same on all, if it tracks that."""
    tracked = _ops.varying_axes([x]).issuperset(axis if isinstance(axis, tuple) else (axis,))
    rows: jax.Array = _gather_invariant(x, axis) if tracked else lax.all_gather(x, axis)
    return rows


# JAX's name for it depends on the version.
_gather_invariant: Callable[[jax.Array, Any], jax.Array] = (
    functools.partial(_lax.all_gather, to="invarying")
    if "to" in inspect.signature(lax.all_gather).parameters
    else getattr(_lax, "all_gather_invariant", _lax.all_gather)
)
