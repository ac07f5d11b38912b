"""Error feedback of `psum_quantized` and `pmean_quantized`: nothing is lost over many steps, in float64's eyes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
from arrcomp import QSGD, S2FP8, Codebook, Codec, FloatFormat
from arrcomp._methods.shards import Shards

jax = pytest.importorskip("jax")

from jax import numpy as jnp

import arrcomp.jax
from arrcomp.jax import Residual

Array = NDArray[Any]
TWO_BITS = QSGD(bits=2, bucket_size=64)
CODECS = (
    TWO_BITS,
    QSGD(bits=2, bucket_size=64, rounding="stochastic"),
    QSGD(bits=3, bucket_size=32, norm="l2", skip_incomplete=True),
    Codebook.nf4(),
    FloatFormat("fp8_e4m3"),
    S2FP8(bucket_size=64),
)


def stepper(codec: Codec, function: Callable[..., Any] = arrcomp.jax.pmean_quantized) -> Callable[..., Any]:
    def step(x: Any, residual: Any, seed: Any) -> Any:
        return function(x, "d", codec, seed=seed, residual=residual)

    return jax.jit(jax.vmap(step, axis_name="d", in_axes=(0, 0, None)))


def first(x: Any, codec: Codec) -> Any:
    return jax.vmap(lambda x: arrcomp.jax.zero_residual(x, "d", codec), axis_name="d")(x)


def gradients(steps: int, world: int, count: int) -> Array:
    """They differ from device to device, and have a mean of their own."""
    rng = np.random.default_rng(3)
    return (rng.normal(0.1, 1, (1, 1, count)) + rng.normal(0, 1, (steps, world, count))).astype(np.float32)


def whole(shard: Array, count: int) -> Array:
    """The devices' shards of an array, together."""
    return shard.reshape(-1)[:count].astype(np.float64)


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("mean", [True, False])
def test_something_is_lost_over_many_steps(codec: Codec, mean: bool) -> None:
    steps, world, count = 30, 4, 333
    xs = gradients(steps, world, count)
    call = stepper(codec, arrcomp.jax.pmean_quantized if mean else arrcomp.jax.psum_quantized)
    residual, total = first(jnp.asarray(xs[0]), codec), np.zeros(count)
    for number in range(steps):
        y, residual = call(jnp.asarray(xs[number]), residual, number)
        assert all((row == np.asarray(y)[0]).all() for row in np.asarray(y)), "devices differ"
        total += np.asarray(y[0], np.float64)
    combined = np.mean if mean else np.sum
    kept = combined(np.asarray(residual.own, np.float64), axis=0) + whole(np.asarray(residual.shard), count)
    exact = combined(xs.astype(np.float64), axis=1).sum(0)
    np.testing.assert_allclose(total + kept, exact, atol=1e-4)
    assert np.abs(total - exact).max() > 1e-3, "this codec loses nothing, so the test finds nothing"


def test_a_step_is_not_that_of_numpy() -> None:
    """Values and both residuals of each step, bit for bit."""
    world, count, codec = 3, 500, TWO_BITS
    xs = gradients(4, world, count)
    call, residual = stepper(codec), first(jnp.asarray(xs[0]), codec)
    shards = Shards.of(count, world, codec.granularity)
    own, lost = np.zeros((world, count), np.float32), np.zeros(count, np.float32)
    for number, x in enumerate(xs):
        y, residual = call(jnp.asarray(x), residual, number)
        given, mean = x + own, np.zeros(count, np.float32)
        for first_value, end in map(shards.bounds, range(world)):
            part = slice(first_value, end)
            sent = [arrcomp.compress(row[part], codec) for row in given]
            own[:, part] = given[:, part] - np.stack([np.asarray(arrcomp.decompress(c)) for c in sent])
            total = np.zeros(end - first_value, np.float32)
            for c in sent:
                arrcomp.accumulate(c, total, weight=1 / world)
            total += lost[part]
            mean[part] = np.asarray(arrcomp.decompress(arrcomp.compress(total, codec)))
            lost[part] = total - mean[part]
        np.testing.assert_array_equal(np.asarray(y)[0], mean)
        np.testing.assert_array_equal(np.asarray(residual.own), own)
        np.testing.assert_array_equal(whole(np.asarray(residual.shard), count), lost)


def test_two_bits_stall_with_error_feedback_too() -> None:
    """Each device pulls to a point of its own: the mean of all is reached only if no part of a gradient is lost."""
    points = np.random.default_rng(2).normal(0, 1, (4, 256)).astype(np.float32)
    goal = points.astype(np.float64).mean(0)

    def distance(feedback: bool) -> float:
        def local(point: Any) -> Any:
            def step(state: Any, number: Any) -> Any:
                w, residual = state
                gradient = w - point
                mean, kept = arrcomp.jax.pmean_quantized(gradient, "d", TWO_BITS, residual=residual)
                if not feedback:
                    mean, kept = arrcomp.jax.pmean_quantized(gradient, "d", TWO_BITS), residual
                return (w - 0.5 / (1 + 0.05 * number) * mean, kept), None

            start = jnp.zeros(256), arrcomp.jax.zero_residual(point, "d", TWO_BITS)
            return jax.lax.scan(step, start, jnp.arange(400))[0][0]

        w = jax.jit(jax.vmap(local, axis_name="d"))(jnp.asarray(points))[0]
        return float(np.linalg.norm(np.asarray(w, np.float64) - goal) / np.linalg.norm(goal))

    plain, fed_back = distance(False), distance(True)
    assert plain > 0.1
    assert fed_back < plain / 10


def test_a_tree_changes_its_structure_or_nans_stay() -> None:
    tree: dict[str, Any] = {"w": jnp.ones((3, 4, 50)), "none": None, "b": [jnp.ones((3, 5), jnp.bfloat16)]}
    residual = first(tree, TWO_BITS)
    assert jax.tree.structure(residual.own) == jax.tree.structure(residual.shard) == jax.tree.structure(tree)
    assert residual.own["w"].shape == (3, 200)
    assert residual.own["b"][0].dtype == jnp.bfloat16
    bad = tree | {"w": tree["w"].at[1, 2, 3].set(jnp.nan)}
    y, kept = stepper(TWO_BITS)(bad, residual, 0)
    assert np.isnan(y["w"]).any()
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(kept))


def test_one_device_quantizes() -> None:
    x = jnp.asarray(gradients(1, 1, 100)[0])
    y, residual = stepper(TWO_BITS)(x, first(x, TWO_BITS), 0)
    np.testing.assert_array_equal(y, x)
    assert not any(leaf.any() for leaf in jax.tree.leaves(residual))


def test_residuals_have_a_gradient_or_the_mean_has_another() -> None:
    x = jnp.asarray(gradients(1, 3, 100)[0])
    residual = jax.tree.map(lambda leaf: leaf + 0.25, first(x, TWO_BITS))
    mean = jax.vmap(lambda x, r: arrcomp.jax.pmean_quantized(x, "d", TWO_BITS, residual=r)[0], axis_name="d")
    gradient, of_residual = jax.grad(lambda x, r: (mean(x, r) ** 2).sum(), argnums=(0, 1))(x, residual)
    exact = jax.vmap(lambda x: jax.lax.pmean(x, "d"), axis_name="d")
    expected = jax.vjp(exact, x)[1](2 * mean(x, residual))[0]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
    assert not any(leaf.any() for leaf in jax.tree.leaves(of_residual))


def test_other_residuals_are_taken() -> None:
    x = jnp.ones((3, 100))

    def call(residual: Any, codec: Codec = TWO_BITS) -> None:
        jax.vmap(lambda x: arrcomp.jax.psum_quantized(x, "d", codec, residual=residual), axis_name="d")(x)

    with pytest.raises(TypeError, match=r"residual: expected a Residual, as zero_residual returns it, got .*Array"):
        call(jnp.zeros(100))
    with pytest.raises(ValueError, match="residual: expected the structure of x, "):
        call(Residual({"w": jnp.zeros(100)}, {"w": jnp.zeros(64)}))
    with pytest.raises(ValueError, match=r"expected float32\[100\] for an array float32\[100\], got float32\[3, 100\]"):
        call(Residual(jnp.zeros((3, 100)), jnp.zeros(64)))
    for action in (
        lambda: call(Residual(jnp.zeros(100), jnp.zeros(64)), QSGD(bits=1)),
        lambda: first(x, QSGD(bits=1)),
    ):
        with pytest.raises(ValueError, match="bits: expected at least 2 with a residual, got 1"):
            action()
