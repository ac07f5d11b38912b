"""What test_jax.py runs in a process of its own, where JAX has four CPU devices: sharded arrays under `jax.jit`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import arrcomp
import arrcomp.jax
from two_devices import shard_map

optax: Any = pytest.importorskip("optax")

X = np.random.default_rng(3).normal(0, 1, (8, 512)).astype(np.float32)
CODEC = arrcomp.QSGD(bits=4, bucket_size=64)
ROWS, WHOLE = PartitionSpec("d"), PartitionSpec()
ENCODE = functools.partial(arrcomp.jax.compress, codec=CODEC)


def gradient_of(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The gradient of a sum of squares."""
    return jax.grad(lambda x: (function(x) ** 2).sum())


def roundtrip(x: Any) -> Any:
    """Through a stream."""
    return arrcomp.jax.roundtrip(x, CODEC)


def optimize(x: Any) -> Any:
    """A first step with compressed state."""
    tx = arrcomp.jax.compressed_optimizer(optax.adam(0.1), CODEC, min_size=1)
    return tx.update(x, tx.init(jnp.zeros(X.shape)), jnp.zeros(X.shape))


def accumulate(x: Any) -> Any:
    """Added to a compressed array."""
    return arrcomp.jax.accumulate(ENCODE(jnp.ones(X.shape)), x)


def residuals(x: Any) -> Any:
    """Two layers, the first of which saves its residual compressed."""
    return jnp.tanh(arrcomp.jax.compress_residuals(lambda x: jnp.tanh(jnp.tanh(x)), min_size=1)(x))


# With the argument's name in their errors.
CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "roundtrip": ("x", roundtrip),
    "its gradient": ("x", gradient_of(roundtrip)),
    "items": ("x", jax.vmap(roundtrip)),
    "compress": ("x", ENCODE),
    "accumulate": ("c and into", accumulate),
    "activation": ("x", gradient_of(arrcomp.jax.nn.gelu)),
    "residuals": ("x", gradient_of(residuals)),
    "optimizer": ("x", optimize),
}
NEW = hasattr(jax, "set_mesh")  # else explicit axes are an experiment


def mesh_of(kind: AxisType) -> Any:
    """Four devices in a row."""
    return jax.make_mesh((4,), ("d",), axis_types=(kind,))


def check_refused(kind: AxisType, error: Any) -> None:
    """Sharded arrays are an error with the argument's name, arrays that are whole on each device are none."""
    mesh = mesh_of(kind)
    x, whole = (jax.device_put(X, NamedSharding(mesh, spec)) for spec in (ROWS, WHOLE))
    payload = jax.tree.map(lambda leaf: jax.device_put(leaf, NamedSharding(mesh, ROWS)), ENCODE(jnp.asarray(X)))
    with jax.set_mesh(mesh) if NEW else contextlib.nullcontext():
        for name, call in CALLS.values():
            expected = jax.tree.map(np.asarray, jax.jit(call)(jnp.asarray(X)))
            jax.tree.map(np.testing.assert_array_equal, jax.jit(call)(whole), expected)
            with pytest.raises(
                error, match=rf"{name}: expected an array .*float32\[8, 512\] in shards of \[2, 512\]; .*shard_map"
            ):
                jax.block_until_ready(jax.jit(call)(x))
        with pytest.raises(error, match="c: expected an array on one device"):
            jax.block_until_ready(jax.jit(arrcomp.jax.decompress)(payload))
        with pytest.raises(error, match="compressed: expected an array on one device"):
            jax.block_until_ready(jax.jit(lambda c: arrcomp.jax.compress_sum([c, c]))(payload))


def check_remedies() -> None:
    """What the error advises."""
    mesh = mesh_of(AxisType.Auto)
    x = jax.device_put(X, NamedSharding(mesh, ROWS))
    expected = np.asarray(roundtrip(jnp.asarray(X)))
    gathered = jax.jit(lambda x: roundtrip(jax.lax.with_sharding_constraint(x, NamedSharding(mesh, WHOLE))))
    np.testing.assert_array_equal(np.asarray(gathered(x)), expected)
    each = jax.jit(shard_map(roundtrip, mesh=mesh, in_specs=ROWS, out_specs=ROWS))
    parts = [np.asarray(roundtrip(jnp.asarray(part))) for part in np.split(X, 4)]
    np.testing.assert_array_equal(np.asarray(each(x)), np.concatenate(parts))
    if NEW:
        explicit = mesh_of(AxisType.Explicit)
        with jax.set_mesh(explicit):
            again = jax.jit(gradient_of(lambda x: roundtrip(jax.sharding.reshard(x, WHOLE))))
            np.testing.assert_array_equal(np.asarray(again(jax.device_put(X, ROWS))), 2 * expected)
            linear = jax.grad(lambda x: arrcomp.jax.nn.randomized_linear(x, jnp.ones((512, 3)), seed=1).sum())
            with pytest.raises(TypeError, match=r"x: expected an array .* in shards of"):
                linear(jax.device_put(X, ROWS))


def check_partly_manual() -> None:
    """Inside shard_map over one axis of two, arrays may be sharded over the other."""
    if not NEW:
        return
    mesh = jax.make_mesh((2, 2), ("d", "e"), axis_types=(AxisType.Auto,) * 2)
    call = jax.jit(jax.shard_map(roundtrip, mesh=mesh, in_specs=ROWS, out_specs=ROWS, axis_names={"d"}))
    parts = [np.asarray(roundtrip(jnp.asarray(part))) for part in np.split(X, 2)]
    np.testing.assert_array_equal(np.asarray(call(jax.device_put(X, NamedSharding(mesh, ROWS)))), np.concatenate(parts))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"x: expected an array .*shard_map"):
        call(jax.device_put(X, NamedSharding(mesh, PartitionSpec("d", "e"))))
    jax.config.update("jax_use_shardy_partitioner", False)
    with pytest.raises(TypeError, match=r"mesh: expected jax\.shard_map over all axes, or jax_use_shardy"):
        jax.jit(jax.shard_map(lambda x: roundtrip(x), mesh=mesh, in_specs=ROWS, out_specs=ROWS, axis_names={"d"}))(X)
    jax.config.update("jax_use_shardy_partitioner", True)


def check_forward_mode() -> None:
    """A seed that varies over the devices does not change what the tangent varies over."""
    mesh = mesh_of(AxisType.Auto)
    noisy = arrcomp.QSGD(bits=2, bucket_size=64, rounding="stochastic")

    @functools.partial(shard_map, mesh=mesh, in_specs=WHOLE, out_specs=ROWS)
    def each(x: Any) -> Any:
        seed = jax.lax.axis_index("d").astype(jnp.uint32)
        return jnp.stack(jax.jvp(lambda x: arrcomp.jax.roundtrip(x, noisy, seed=seed), (x,), (2 * x,)))

    pairs = np.asarray(jax.jit(each)(jnp.asarray(X))).reshape(4, 2, *X.shape)
    np.testing.assert_array_equal(pairs[:, 1], np.stack([2 * X] * 4))
    assert (pairs[0, 0] != pairs[1, 0]).any()


def main() -> None:
    """Run all checks."""
    assert jax.device_count() == 4
    check_refused(AxisType.Auto, jax.errors.JaxRuntimeError)
    if NEW:
        check_refused(AxisType.Explicit, TypeError)
    check_remedies()
    check_partly_manual()
    check_forward_mode()
    print("passed")


if __name__ == "__main__":
    main()
