"""Arrays that are sharded: a custom call takes whole ones, and XLA would gather others on all devices, in silence."""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp
from jax.experimental import custom_partitioning
from jax.sharding import AxisType

_custom_partitioning: Any = custom_partitioning.custom_partitioning  # JAX has no types for it


def whole(name: str, x: jax.Array) -> jax.Array:
    """The array; a TypeError if it is sharded, which fails XLA's compilation under automatic axes."""
    check_not_sharded(name, x)
    watched: jax.Array = _watched(name)(x)
    return watched


def check_not_sharded(name: str, x: jax.Array) -> None:
    """Raise TypeError if an array is sharded over explicit axes, which are part of its type."""
    kind: Any = jax.typeof(x)
    if any(axis is not None for axis in kind.sharding.spec):
        raise _sharded(name, x, kind.sharding)


def on_mesh_of(x: jax.Array, result: jax.Array) -> jax.Array:
    """A call's result, with the mesh of x in its type: JAX 0.6 forgets it, and derivatives need the same type."""
    kinds: list[Any] = [jax.typeof(x), jax.typeof(result)]
    if kinds[0].sharding == kinds[1].sharding:
        return result
    return lax.select(jnp.bool_(True), result, x)  # which XLA removes


def _sharded(name: str, x: Any, sharding: Any) -> TypeError:
    shard = list(sharding.shard_shape(x.shape))
    return TypeError(
        f"{name}: expected an array on one device, or whole on each, got {x.dtype}{list(x.shape)} in shards of {shard};"
        " call arrcomp.jax inside jax.shard_map, or replicate the array first (jax.lax.with_sharding_constraint, or "
        "jax.sharding.reshard under explicit axes)"
    )


@functools.cache
def _watched(name: str) -> Callable[[jax.Array], jax.Array]:
    """The identity, of an array that no partitioner of XLA's has divided."""

    def partition(mesh: Any, arrays: Any, result: Any) -> Any:
        (x,) = arrays
        sharding = x.sharding or _replicated()
        if not sharding.is_fully_replicated:
            raise _sharded(name, x, sharding)
        return mesh, lambda x: x, sharding, (sharding,)

    def rule(mesh: Any, operands: Any, results: Any) -> str:
        axes = range(operands[0].rank)  # no sharding passes from one to the other
        return " -> ".join(" ".join(f"{side}{axis}" for axis in axes) for side in "ab")

    identity: Any = _custom_partitioning(lambda x: x)
    identity.def_partition(
        partition,
        infer_sharding_from_operands=lambda mesh, arrays, result: arrays[0].sharding or _replicated(),
        decode_shardings=False,
        sharding_rule=rule,
    )
    batched = jax.custom_batching.custom_vmap(lambda x: x if _type_tells_sharding(x) else identity(x))
    batched.def_vmap(lambda size, in_batched, x: (whole(name, x), True))
    watched = jax.custom_jvp(batched)
    watched.defjvp(lambda primals, tangents: (watched(*primals), tangents[0]))
    return watched


def _type_tells_sharding(x: jax.Array) -> bool:
    kind: Any = jax.typeof(x)
    kinds = () if kind.sharding.mesh.empty else kind.sharding.mesh.axis_types
    partly_manual = AxisType.Auto in kinds and AxisType.Manual in kinds
    if partly_manual and not getattr(jax.config, "jax_use_shardy_partitioner", True):
        # The old partitioner would end the process.
        raise TypeError(f"mesh: expected jax.shard_map over all axes, or jax_use_shardy_partitioner=True, got {kinds}")
    return bool(kinds) and AxisType.Auto not in kinds


def _replicated() -> Any:
    return jax.sharding.SingleDeviceSharding(jax.devices()[0])
