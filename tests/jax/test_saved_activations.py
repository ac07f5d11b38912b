"""`compress_residuals`: the gradients, which residuals are compressed, and every transformation around it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from arrcomp import QSGD, ErrorBounded, FloatFormat

jax = pytest.importorskip("jax")

from jax import numpy as jnp

from arrcomp.jax._saved_activations import compress_residuals

EXACT = FloatFormat("fp32")  # of fixed rate, and keeps every bit of float32
X = jnp.asarray(np.random.default_rng(1).normal(0, 1, (32, 64)), jnp.float32)
PARAMETERS = {
    "weight": jnp.asarray(np.random.default_rng(2).normal(0, 0.2, (64, 64)), jnp.float32),
    "bias": jnp.full(64, 0.1),
}


def layer(parameters: Any, x: Any) -> Any:
    return jax.nn.gelu(jax.nn.relu(x @ parameters["weight"]) + parameters["bias"])


exact_layer = compress_residuals(layer, EXACT, min_size=1)


def loss(function: Any) -> Any:
    return lambda *args: (function(*args) ** 2).sum()


# Older versions of XLA fuse the two differently: their last bits differ.
FUSED = 0.0 if hasattr(jax, "shard_map") else 1e-4


def assert_same(these: Any, those: Any, tolerance: float = 0.0) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance), these, those)


def residuals(function: Any, *args: Any) -> list[Any]:
    """What is kept, without what are arguments."""
    known = {id(leaf) for leaf in jax.tree.leaves(args)}
    return [leaf for leaf in jax.tree.leaves(jax.vjp(function, *args)[1]) if id(leaf) not in known]


# Gradients


def test_lossless_gradients_are_the_same_bits() -> None:
    gradient = functools.partial(jax.grad, argnums=(0, 1))
    assert_same(gradient(loss(exact_layer))(PARAMETERS, X), gradient(loss(layer))(PARAMETERS, X), FUSED)
    assert_same(exact_layer(PARAMETERS, X), layer(PARAMETERS, X))


def test_gradients_come_closer_with_the_bits() -> None:
    expected = jax.grad(loss(layer))(PARAMETERS, X)["weight"]
    errors = []
    for bits in (2, 4, 8):
        squeezed = compress_residuals(layer, QSGD(bits=bits), min_size=1)
        made = jax.grad(loss(squeezed))(PARAMETERS, X)["weight"]
        errors.append(float(jnp.linalg.norm(made - expected) / jnp.linalg.norm(expected)))
    assert 0.5 > errors[0] > 2 * errors[1] > 16 * errors[2] > 0


def test_the_error_is_what_the_levels_imply() -> None:
    """D (sum of w y) / d y of y = tanh(x) is w (1 - y^2), which moves by 2 |w y| for each unit that y does."""
    w = jnp.linspace(-1, 1, X.size).reshape(X.shape)
    squeezed = compress_residuals(jnp.tanh, QSGD(bits=8, bucket_size=64), min_size=1)
    gradient = jax.grad(lambda x: (w * squeezed(x)).sum())(X)
    y, exact = np.tanh(np.float64(X)), np.float64(w) * (1 - np.tanh(np.float64(X)) ** 2)
    unit = (y.max(axis=1) - y.min(axis=1))[:, None] / 255 / 2  # half the distance of two levels
    allowed = np.abs(w) * (2 + unit) * unit * 1.01 + 1e-6
    error = np.abs(gradient - exact)
    assert (error <= allowed).all()
    assert error.max() > 1e-4


def test_a_seed_makes_it_unbiased() -> None:
    expected = jax.grad(loss(layer))(PARAMETERS, X)["weight"]

    @jax.jit
    def gradient(seed: Any) -> Any:
        squeezed = compress_residuals(layer, QSGD(bits=4, rounding="stochastic"), min_size=1, seed=seed)
        return jax.grad(loss(squeezed))(PARAMETERS, X)["weight"]

    made = [gradient(jnp.uint32(seed)) for seed in range(50)]
    each = np.mean([np.linalg.norm(g - expected) for g in made])
    assert not np.array_equal(made[0], made[1])
    assert np.array_equal(made[0], gradient(jnp.uint32(0)))
    assert np.linalg.norm(np.mean(made, axis=0) - expected) < 0.4 * each


# Which residuals


def test_residuals_are_bytes_and_arguments_are_left_alone() -> None:
    plain, kept = residuals(layer, PARAMETERS, X), residuals(compress_residuals(layer, min_size=1), PARAMETERS, X)
    assert {leaf.dtype for leaf in kept} == {jnp.dtype("uint8")}
    assert sum(leaf.nbytes for leaf in kept) < sum(leaf.nbytes for leaf in plain if leaf.ndim) / 3.5


def test_masks_take_a_bit() -> None:
    kept = residuals(compress_residuals(jax.nn.relu, min_size=1), X)
    assert [leaf.nbytes for leaf in kept if leaf.size < X.size] == [X.size // 8]
    assert {leaf.dtype for leaf in kept} == {jnp.dtype("uint8")}
    x = X[:, :61]
    assert_same(*(jax.grad(loss(f))(x) for f in (jax.nn.relu, compress_residuals(jax.nn.relu, min_size=1))))


def test_small_residuals_and_other_numbers_are_left_alone() -> None:
    for min_size, dtype in ((X.size, jnp.uint8), (X.size + 1, jnp.float32)):
        (kept,) = residuals(compress_residuals(jnp.exp, min_size=min_size), X)
        assert kept.dtype == dtype
    gather = compress_residuals(lambda x, i: x[i.argsort()], min_size=0)
    order = jnp.arange(32)[::-1]
    assert_same(jax.grad(loss(gather))(X, order), jax.grad(loss(lambda x, i: x[i.argsort()]))(X, order))


def test_arguments_are_compressed_where_it_says_so() -> None:
    product = compress_residuals(lambda w, x: x @ w, EXACT, min_size=1, compress_argnums=[1])
    kept = residuals(product, PARAMETERS["weight"], X)
    assert [leaf.dtype for leaf in kept] == [jnp.dtype("uint8")]
    assert_same(*(jax.grad(loss(f))(PARAMETERS["weight"], X) for f in (product, lambda w, x: x @ w)))


# Transformations


def test_under_jit_gradients_are_the_same() -> None:
    expected, found = (jax.jit(jax.grad(loss(f)))(PARAMETERS, X) for f in (exact_layer, layer))
    assert_same(expected, found, 1e-4)


def test_values_from_around_the_function_have_gradients() -> None:
    def around(function: Any) -> Any:
        return lambda parameters: loss(function(lambda x: layer(parameters, x)))(X)

    expected = jax.grad(around(lambda f: f))(PARAMETERS)
    squeezed = around(lambda f: compress_residuals(f, EXACT, min_size=1))
    assert_same(jax.grad(squeezed)(PARAMETERS), expected, 1e-5)
    assert_same(jax.jit(jax.grad(squeezed))(PARAMETERS), expected, 1e-4)


def test_other_values_from_around_may_be_of_any_trace() -> None:
    key, squeezed = jax.random.key(3), functools.partial(compress_residuals, codec=EXACT, min_size=1)

    def total(function: Any) -> Any:
        def step(x: Any, i: Any) -> Any:
            return function(lambda x: jnp.tanh(x) * i)(x), None

        return jax.jit(jax.grad(lambda x: jax.lax.scan(step, x, jnp.arange(3))[0].sum()))(X)

    def dropped(function: Any) -> Any:
        layer = function(lambda x, key: jnp.where(jax.random.bernoulli(key, 0.5, x.shape), jnp.tanh(x), 0.0))
        inner = function(lambda x: layer(x, key))
        return jax.jit(jax.grad(lambda x: (layer(x, key) + inner(x)).sum()))(X)

    def scaled(function: Any) -> Any:
        return jax.vmap(lambda i: jax.grad(lambda x: function(lambda x: jnp.tanh(x) * i)(x).sum())(X))(jnp.arange(3))

    for case in (total, dropped, scaled):
        assert_same(case(squeezed), case(lambda f: f), 1e-5)


@pytest.mark.parametrize("check_vma", [True, False])
def test_inside_of_shard_map(check_vma: bool) -> None:
    if not hasattr(jax, "shard_map"):
        pytest.skip("this version of JAX has no jax.shard_map")
    spec = jax.sharding.PartitionSpec
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    shard = functools.partial(jax.shard_map, mesh=mesh, out_specs=spec("data"), check_vma=check_vma)
    mapped = shard(exact_layer, in_specs=(spec(), spec("data")))
    assert_same(jax.jit(jax.grad(loss(mapped)))(PARAMETERS, X), jax.grad(loss(layer))(PARAMETERS, X), 1e-4)


def test_under_vmap_both_ways_gradients_are_the_same() -> None:
    rows = X[:, None]
    each, each_exact = (jax.vmap(jax.grad(loss(f)), (None, 0))(PARAMETERS, rows) for f in (layer, exact_layer))
    assert_same(each_exact, each, 1e-5)
    together, together_exact = (jax.grad(loss(jax.vmap(f, (None, 0))))(PARAMETERS, rows) for f in (layer, exact_layer))
    assert_same(together_exact, together, 1e-4)
    seeded = compress_residuals(layer, min_size=1, seed=3)
    assert_same(jax.vmap(jax.grad(loss(seeded)), (None, 0))(PARAMETERS, rows)["bias"], each["bias"], 0.2)


def test_in_a_scan_residuals_are_stacked_bytes() -> None:
    stack = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3) / 2, PARAMETERS)

    def network(function: Any) -> Any:
        return lambda stack, x: jax.lax.scan(lambda x, p: (function(p, x), None), x, stack)[0]

    squeezed = compress_residuals(layer, EXACT, min_size=1, compress_argnums=1)
    expected = jax.jit(jax.grad(loss(network(layer))))(stack, X)
    assert_same(jax.jit(jax.grad(loss(network(squeezed))))(stack, X), expected, 1e-3)
    kept = residuals(network(compress_residuals(layer, min_size=1, compress_argnums=1)), stack, X)
    large = [leaf for leaf in kept if leaf.size > 64 * 64]
    assert large
    if FUSED:  # and keep what they could calculate
        return
    assert {leaf.dtype for leaf in large if leaf.shape != (3, 64, 64)} == {jnp.dtype("uint8")}


def test_inside_of_checkpoint_and_around_it() -> None:
    expected = jax.grad(loss(layer))(PARAMETERS, X)
    assert_same(jax.grad(loss(jax.checkpoint(exact_layer)))(PARAMETERS, X), expected, 1e-4)
    around = compress_residuals(jax.checkpoint(layer), EXACT, min_size=1)
    assert_same(jax.grad(loss(around))(PARAMETERS, X), expected, 1e-4)


def test_static_and_keyword_arguments() -> None:
    def function(mode: str, x: Any, *, scale: Any) -> Any:
        return jnp.tanh(x) * scale["by"] if mode == "tanh" else x

    squeezed = compress_residuals(function, EXACT, min_size=1, static_argnums=0)

    def gradient(function: Any, mode: str) -> Any:
        return jax.grad(lambda x, scale: (function(mode, x, scale=scale) ** 2).sum(), (0, 1))(X, {"by": 2.0})

    for mode in ("tanh", "none"):
        assert_same(gradient(squeezed, mode), gradient(function, mode), FUSED)
    assert squeezed.__name__ == "function"


def test_other_derivatives_are_refused() -> None:
    squeezed = loss(compress_residuals(jnp.tanh, min_size=1))
    with pytest.raises(
        TypeError, match=r"compress_residuals does not support second derivatives; use jax\.checkpoint, or fun itself"
    ):
        jax.grad(lambda x: jax.grad(squeezed)(x).sum())(X)
    with pytest.raises(
        TypeError, match=r"compress_residuals does not support second derivatives; use jax\.checkpoint, or fun itself"
    ):
        jax.hessian(squeezed)(X[0])
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(squeezed, (X,), (X,))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fun": 3}, TypeError, r"fun: expected a function, got 3 \(int\)"),
        ({"codec": "qsgd"}, TypeError, r"codec: expected a codec such as ErrorBounded\(abs=1e-4\), got 'qsgd' \(str\)"),
        (
            {"codec": ErrorBounded(abs=1.0)},
            TypeError,
            r"codec: expected a fixed-rate codec, such as QSGD\(bits=8\), got ErrorBounded\(abs=1\.0\)",
        ),
        (
            {"codec": QSGD(rounding="stochastic")},
            TypeError,
            "seed: expected an integer, or a 0-dimensional integer array, for QSGD.*, got None",
        ),
        ({"seed": -1}, ValueError, "seed: expected an integer from 0 to .*, got -1"),
        ({"min_size": -1}, ValueError, "min_size: expected an integer from 0 to .*, got -1"),
        ({"compress_argnums": -1}, ValueError, "compress_argnums: expected an integer from 0 to 255, got -1"),
        ({"static_argnums": "a"}, TypeError, r"static_argnums: expected an integer from 0 to 255, got 'a' \(str\)"),
        (
            {"static_argnums": 1, "compress_argnums": (0, 1)},
            ValueError,
            r"compress_argnums: expected none of static_argnums, got \[1\] in both",
        ),
    ],
)
def test_arguments_are_checked_before_anything(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compress_residuals(**{"fun": jnp.tanh} | options)
