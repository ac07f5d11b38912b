"""What test_jax.py runs in a process of its own, where JAX has two CPU devices."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import arrcomp
import arrcomp.jax

X = np.random.default_rng(3).normal(0, 1, (4, 3000)).astype(np.float32)
CODEC = arrcomp.ErrorBounded(abs=1e-3)


def shard_map(function: Any, **options: Any) -> Any:
    """`jax.shard_map`, or what it was before it had that name (and had no rule for calls of other libraries)."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, **options)
    from jax.experimental.shard_map import shard_map as before

    return before(function, **options, check_rep=False)


def expected(x: Any) -> Any:
    """What NumPy makes of it."""
    return arrcomp.decompress(arrcomp.compress(np.asarray(x), CODEC))


def check_each_device(devices: list[Any]) -> None:
    """Payload and array stay on the device of the array."""
    for device in devices:
        x = jax.device_put(X, device)
        c = arrcomp.jax.compress(x, CODEC)
        assert c.payload.buffer.devices() == {device}
        assert arrcomp.jax.decompress(c).devices() == {device}
        untrusted = arrcomp.from_bytes(c.to_bytes())
        assert arrcomp.decompress(untrusted, like=x).devices() == {device}
        assert arrcomp.jax.roundtrip(x, CODEC).devices() == {device}
    moved = arrcomp.jax.compress(jax.device_put(X, devices[0]), CODEC).to(devices[1])
    assert moved.payload.buffer.devices() == {devices[1]}
    np.testing.assert_array_equal(np.asarray(arrcomp.decompress(moved)), expected(X))


def check_sharded(mesh: Mesh) -> None:
    """Each device compresses its own part; the payloads travel."""
    rows = PartitionSpec("d")
    x = jax.device_put(X, NamedSharding(mesh, rows))
    parts = np.concatenate([expected(part) for part in np.split(X, 2)])

    @jax.jit
    @functools.partial(shard_map, mesh=mesh, in_specs=rows, out_specs=rows)
    def local(part: Any) -> Any:
        back = arrcomp.jax.decompress(arrcomp.jax.compress(part, CODEC))
        return 0.5 * (back + arrcomp.jax.roundtrip(part, CODEC))

    np.testing.assert_array_equal(np.asarray(local(x)), parts)
    assert len(local(x).devices()) == 2
    gradient = jax.grad(lambda x: (local(x) * 2).sum())(x)
    np.testing.assert_array_equal(np.asarray(gradient), np.ones_like(X))

    @jax.jit
    @functools.partial(shard_map, mesh=mesh, in_specs=rows, out_specs=rows)
    def exchanged(part: Any) -> Any:
        gathered = jax.lax.all_gather(arrcomp.jax.compress(part, CODEC), "d")
        return jax.vmap(arrcomp.jax.decompress)(gathered)[1 - jax.lax.axis_index("d")]

    np.testing.assert_array_equal(np.asarray(exchanged(x)), np.roll(parts, 2, axis=0))

    for function in (arrcomp.jax.compress, arrcomp.jax.roundtrip, arrcomp.compress):
        with pytest.raises(TypeError, match="shard_map"):
            function(x, CODEC)


def check_files(mesh: Mesh) -> None:
    """Arrays that are spread over devices are saved whole, and come back spread as is wanted."""
    rows, all_of_it = NamedSharding(mesh, PartitionSpec("d")), NamedSharding(mesh, PartitionSpec())
    tree = {"rows": jax.device_put(X, rows), "second": jax.device_put(X, mesh.devices[1])}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.safetensors"
        arrcomp.jax.save(tree, path, CODEC)
        for sharding in (rows, all_of_it, tree["second"].sharding):
            wanted = {name: jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=sharding) for name in tree}
            for like in (wanted, {name: jax.device_put(X, sharding) for name in tree}):
                for x in arrcomp.jax.load(path, like=like).values():
                    assert x.sharding == sharding
                    np.testing.assert_array_equal(np.asarray(x), expected(X))


def main() -> None:
    """Run all checks."""
    devices = jax.devices()
    assert len(devices) == 2
    check_each_device(devices)
    mesh = Mesh(np.array(devices), ("d",))
    check_sharded(mesh)
    check_files(mesh)
    x = jnp.asarray(X).reshape(2, 2, 3000)
    if hasattr(jax, "pmap"):
        mapped = jax.pmap(lambda part: arrcomp.jax.roundtrip(part, CODEC))(x)
        np.testing.assert_array_equal(np.asarray(mapped).reshape(X.shape), expected(X))
    print("passed")


if __name__ == "__main__":
    main()
