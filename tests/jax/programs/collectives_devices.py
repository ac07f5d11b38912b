"""What test_collective_calls.py runs in a process of its own, where JAX has eight CPU devices."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

import jax
import ml_dtypes
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.sharding import Mesh, PartitionSpec

import arrcomp
import arrcomp.jax
import reference_collectives as reference
from arrcomp import QSGD, Codebook
from two_devices import shard_map

CODEC = QSGD(bits=4, bucket_size=64)
RANDOM = QSGD(bits=2, bucket_size=64, rounding="stochastic")
EVERYWHERE = PartitionSpec()
TRACKED = ({"check_vma": True}, {"check_vma": False}) if hasattr(jax, "shard_map") else ({},)


def mesh_of(*shape: int) -> Mesh:
    """Some of the devices."""
    return Mesh(np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape), ("a", "b")[: len(shape)])


def normal(*shape: int) -> Any:
    """Some numbers."""
    return np.random.default_rng(6).normal(0, 1, shape).astype(np.float32)


def check_on_all(y: Any, expected: Any) -> None:
    """What each device has of an array of which all should have the same, bit for bit."""
    assert len(y.addressable_shards) > 0
    for shard in y.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), expected)


def check_sums() -> None:
    """All numbers of devices, with `shard_map` knowing that the results are the same, or not looking."""
    for world in (1, 2, 3, 4, 8):
        dtype = {3: np.float16, 4: ml_dtypes.bfloat16}.get(world, np.float32)
        for count, codec, seed in ((1001, CODEC, None), (64 * world, RANDOM, 7), (5, Codebook.nf4(), None)):
            x = normal(world, count).astype(dtype)
            expected = x[0] if world == 1 else reference.all_reduced(x, codec, seed)
            for options in TRACKED:
                local = functools.partial(arrcomp.jax.psum_quantized, axis_name="a", codec=codec, seed=seed)
                places = {"mesh": mesh_of(world), "in_specs": PartitionSpec("a"), "out_specs": EVERYWHERE}
                total = shard_map(lambda row, local=local: local(row[0]), **places, **options)
                check_on_all(jax.jit(total)(x), expected)


def check_axes() -> None:
    """Several axes, or one of several; and values that are the same on all devices, which nobody checks."""
    x, mesh = normal(2, 4, 300), mesh_of(2, 4)

    def total(row: Any, names: Any) -> Any:
        return arrcomp.jax.psum_quantized(row.reshape(-1), names, CODEC)

    options = {"mesh": mesh, "in_specs": PartitionSpec("a", "b"), "out_specs": EVERYWHERE}
    both = shard_map(functools.partial(total, names=("a", "b")), **options)
    check_on_all(jax.jit(both)(x), reference.all_reduced(x.reshape(8, 300), CODEC))
    reverse = shard_map(functools.partial(total, names=("b", "a")), **options)
    check_on_all(jax.jit(reverse)(x), reference.all_reduced(x.swapaxes(0, 1).reshape(8, 300), CODEC))
    one = shard_map(functools.partial(total, names="b"), **{**options, "out_specs": PartitionSpec("a")})
    np.testing.assert_array_equal(jax.jit(one)(x), np.concatenate([reference.all_reduced(row, CODEC) for row in x]))
    same = shard_map(functools.partial(total, names="b"), **{**options, "in_specs": EVERYWHERE}, **TRACKED[-1])
    check_on_all(jax.jit(same)(x[0, 0]), reference.all_reduced(np.tile(x[0, 0], (4, 1)), CODEC))


def check_gradients_that_jax_has_summed() -> None:
    """They do not vary over the devices: an error that says so, and what to do instead."""
    if not hasattr(jax, "shard_map"):
        return
    vary: Any = functools.partial(lax.pcast, to="varying") if hasattr(lax, "pcast") else getattr(lax, "pvary", None)
    mesh, rows = mesh_of(4), PartitionSpec("a")
    x, params = normal(4, 300), {"w": normal(300), "unused": normal(3)}

    def step(params: Any, x: Any, cast: bool, names: Any = "a", function: Any = arrcomp.jax.pmean_quantized) -> Any:
        own = vary(params, names) if cast else params
        return function(jax.grad(lambda p: (p["w"] * x[0]).sum())(own), names, CODEC)

    def mapped(**options: Any) -> Any:
        tracked = options.pop("check_vma", True)
        local = functools.partial(step, **options)
        places = {"mesh": mesh, "in_specs": (EVERYWHERE, rows), "out_specs": EVERYWHERE}
        return jax.jit(shard_map(local, **places, check_vma=tracked))(params, x)

    for function in (arrcomp.jax.psum_quantized, arrcomp.jax.pmean_quantized, arrcomp.jax.psum_scatter_quantized):
        message = ""
        try:
            mapped(cast=False, function=function)
        except ValueError as error:
            message = str(error)
        assert message.startswith("x['unused']: expected values that vary over 'a', got the same on all"), message
        assert re.search(r"JAX has already summed them: take those of jax\.lax\.p\w+\(params, 'a'", message), message
    expected = reference.all_reduced(x, CODEC, mean=True)
    for options in ({"cast": True}, {"cast": False, "check_vma": False}):
        check_on_all(mapped(**options)["w"], expected)


def check_error_feedback() -> None:
    """`PartitionSpec` divides residuals, and the steps are those of `vmap`, in both modes."""
    tree = {"w": normal(5, 4, 700), "b": [normal(5, 4, 33)]}
    mesh, rows = mesh_of(4), PartitionSpec("a")
    codec = QSGD(bits=2, bucket_size=64)

    def step(tree: Any, residual: Any) -> Any:
        return arrcomp.jax.pmean_quantized(tree, "a", codec, residual=residual)

    start = functools.partial(arrcomp.jax.zero_residual, axis_name="a", codec=codec)
    plain = jax.vmap(start, axis_name="a")(jax.tree.map(lambda x: jnp.asarray(x[0]), tree))
    for options in TRACKED:
        places = {"mesh": mesh, "out_specs": rows, **options}
        begin = shard_map(lambda tree: start(jax.tree.map(lambda x: x[0], tree)), in_specs=rows, **places)
        local = shard_map(
            lambda tree, residual: step(jax.tree.map(lambda x: x[0], tree), residual),
            in_specs=rows, **places | {"out_specs": (EVERYWHERE, rows)},
        )  # fmt: skip
        residual, expected = jax.jit(begin)(jax.tree.map(lambda x: x[0], tree)), plain
        for number in range(5):
            now = jax.tree.map(lambda x, number=number: jnp.asarray(x[number]), tree)
            mean, residual = jax.jit(local)(now, residual)
            expected_mean, expected = jax.jit(jax.vmap(step, axis_name="a"))(now, expected)
            jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[0]), mean, expected_mean)
            jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b.reshape(-1)), residual, expected)


def check_other_seeds() -> None:
    """Devices end with the same, even if each brings a seed of its own."""
    x, seeds = normal(8, 500), np.arange(8, dtype=np.uint32)

    def total(row: Any, seed: Any) -> Any:
        return arrcomp.jax.pmean_quantized(row[0], "a", RANDOM, seed=seed[0])

    rows = PartitionSpec("a")
    y = jax.jit(shard_map(total, mesh=mesh_of(8), in_specs=(rows, rows), out_specs=EVERYWHERE))(x, seeds)
    check_on_all(y, np.asarray(y))
    assert np.abs(np.asarray(y) - x.mean(0)).max() < 4


def check_gradients() -> None:
    """Inside and outside of `shard_map` the derivatives are those of the exact collectives."""
    x = jnp.asarray(normal(8, 16))
    # JAX 0.6 takes the types of the others' primals and tangents for different ones.
    names = ("psum", "pmean", "psum_scatter", "all_gather")[: 2 if jax.__version_info__ < (0, 7) else None]
    for name in names:
        quantized = functools.partial(getattr(arrcomp.jax, f"{name}_quantized"), codec=CODEC)
        for options in TRACKED:
            found, expected = (gradients(f, x, options) for f in (quantized, getattr(lax, name)))
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def gradients(collective: Callable[..., Any], x: Any, options: Any) -> list[Any]:
    """Inside, and outside in both modes."""
    gradient = jax.grad(lambda part: loss(collective, part).sum())
    inside = jax.jit(shard_map(gradient, **local(options)))(x)
    mapped = jax.jit(shard_map(functools.partial(loss, collective), **local(options)))
    return [inside, jax.jit(jax.grad(lambda x: mapped(x).sum()))(x), jax.jvp(mapped, (x,), (x,))[1]]


def check_all_to_all() -> None:
    """Parts and their gradients are those of `vmap`, over one of two axes too, and where all devices have the same."""
    x, weights = normal(16, 3, 32), normal(16, 3, 32)
    codec = QSGD(bits=4, bucket_size=32)
    function = functools.partial(
        arrcomp.jax.all_to_all_quantized, axis_name="a", split_axis=0, concat_axis=1, codec=codec, tiled=True
    )

    def both(x: Any, weights: Any) -> Any:
        y, pull = jax.vjp(function, x)
        return y, pull(weights.reshape(y.shape))[0]

    parts = x.reshape(4, 4, 3, 32), weights.reshape(4, 4, 3, 32)
    expected = jax.vmap(both, axis_name="a")(*map(jnp.asarray, parts))
    for options in TRACKED:
        mapped = shard_map(both, **local(options) | {"in_specs": (PartitionSpec("a"),) * 2})
        for a, b in zip(jax.jit(mapped)(x, weights), expected, strict=True):
            np.testing.assert_array_equal(a, b.reshape(a.shape))
        outside = shard_map(function, **local(options))
        gradient = jax.jit(jax.grad(lambda x, f=outside: (f(x) * weights.reshape(4, 12, 32)).sum()))(x)
        np.testing.assert_array_equal(gradient, expected[1].reshape(16, 3, 32))
        same = shard_map(function, **local(options) | {"in_specs": EVERYWHERE})
        gradient = jax.jit(jax.grad(lambda x, f=same: f(x).sum()))(x[:4])
        np.testing.assert_allclose(gradient, np.full((4, 3, 32), 4.0), rtol=1e-6)
        two = {**local(options), "mesh": mesh_of(4, 2), "in_specs": PartitionSpec("a", None, "b")}
        made = jax.jit(shard_map(function, **two | {"out_specs": PartitionSpec("a", None, "b")}))(np.tile(x, (1, 1, 2)))
        np.testing.assert_array_equal(made, np.tile(expected[0].reshape(4, 12, 32), (1, 1, 2)))


def local(options: Any) -> Any:
    """The options of functions of each device's own."""
    return {"mesh": mesh_of(4), "in_specs": PartitionSpec("a"), "out_specs": PartitionSpec("a"), **options}


def loss(collective: Callable[..., Any], part: Any) -> Any:
    """Linear in what a collective operation gives, so that the gradient does not depend on its values."""
    made = collective((part**2).reshape(4, 8), "a").reshape(-1)[:8]
    return (made * jnp.asarray(normal(8))).sum()[None] * (1.0 + lax.axis_index("a"))


def check_wire() -> None:
    """Only compressed bytes are exchanged."""
    total = shard_map(
        lambda x: arrcomp.jax.psum_quantized({"a": x, "b": x[:, :9]}, "a", CODEC),
        mesh=mesh_of(8), in_specs=PartitionSpec("a"), out_specs=EVERYWHERE,
    )  # fmt: skip
    program = jax.jit(total).lower(jax.ShapeDtypeStruct((8, 5000), np.float32)).compile().as_text() or ""
    assert "all-reduce" not in program
    for name in ("all-to-all", "all-gather"):
        lines = [line for line in program.splitlines() if f" {name}(" in line]
        assert len(lines) == 1, program
        assert " u8[" in lines[0] or "(u8[" in lines[0], lines


def main() -> None:
    """Run all checks."""
    assert len(jax.devices()) == 8
    check_sums()
    check_axes()
    check_gradients_that_jax_has_summed()
    check_error_feedback()
    check_other_seeds()
    check_gradients()
    check_all_to_all()
    check_wire()
    if hasattr(jax, "pmap"):
        x = normal(8, 1001)
        total = jax.pmap(lambda x: arrcomp.jax.psum_quantized(x, "a", CODEC), axis_name="a")
        check_on_all(total(x), reference.all_reduced(x, CODEC)[None])
    print("passed")


if __name__ == "__main__":
    main()
