"""JAX's randomized_linear: the same projections as PyTorch's, and JAX's transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from arrcomp._methods.projections import KINDS
from ordinary import then_full
from reference_projections import weight_gradient

jax = pytest.importorskip("jax")

from jax import numpy as jnp

from arrcomp.jax import _projections
from arrcomp.jax.nn import randomized_linear

ROWS, IN, OUT = 60, 7, 5
RNG = np.random.default_rng(5)
SCALES = np.linspace(0.1, 3, 130)[:, None]


def batch(rows: int, columns: int) -> NDArray[Any]:
    """Rows of which some are much larger than others, and which have a mean."""
    return ((RNG.normal(0, 1, (rows, columns)) + 0.5) * SCALES[:rows]).astype(np.float32)


X, Y = batch(ROWS, IN), batch(ROWS, OUT)
WEIGHT = RNG.normal(0, 1, (IN, OUT)).astype(np.float32)


def weight_gradient_of(x: Any, y: Any, **options: Any) -> Any:
    """The weight gradient for a gradient `y` of the output, [in_features, out_features]."""
    weight = jnp.zeros((x.shape[-1], y.shape[-1]), x.dtype)
    return jax.grad(lambda weight: (randomized_linear(x, weight, **options) * y).sum())(weight)


def row_drawn(gradient: Any, x: Any = X, y: Any = Y) -> int:
    """Which row a gradient was calculated from, with one row of projection; fails if it was from none."""
    expected = len(x) * np.einsum("ni,no->nio", x, y)
    (found,) = np.flatnonzero(np.abs(expected - np.asarray(gradient)).max((1, 2)) < 1e-3 * np.abs(expected).max())
    return int(found)


# The estimate


@pytest.mark.parametrize("kind", then_full(KINDS[:2], KINDS[2:]))
@pytest.mark.parametrize(("rows", "dim"), [(ROWS, 12), (61, 17), (61, 60), (130, 1)])
def test_the_gradient_is_not_that_of_the_projection_from_the_seed(kind: str, rows: int, dim: int) -> None:
    x, y = batch(rows, IN), batch(rows, OUT)
    for seed in (0, 2**64 - 1):
        made = weight_gradient_of(jnp.asarray(x), jnp.asarray(y), projection=kind, proj_dim=dim, seed=seed)
        expected = weight_gradient(kind, x.astype(float), y.astype(float), dim, seed).T
        np.testing.assert_allclose(np.asarray(made), expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("kind", then_full(KINDS[:1], KINDS[1:]))
def test_the_gradient_is_wrong_on_average(kind: str) -> None:
    x, y = jnp.asarray(X), jnp.asarray(Y)
    draw = jax.vmap(lambda seed: weight_gradient_of(x, y, projection=kind, proj_dim=13, seed=seed))
    made = np.asarray(jax.jit(draw)(jnp.arange(4000, dtype=jnp.uint32)), np.float64)
    exact = X.T.astype(float) @ Y
    z = (made.mean(0) - exact) / (made.std(0) / len(made) ** 0.5)
    assert np.abs(z).max() < 4.5  # 35 numbers, nearly normal: once in 4000 runs
    scale = (made * exact).sum((1, 2)) / (exact**2).sum()
    assert scale.std() / len(made) ** 0.5 < 0.01  # so that a factor of 1.05 would be seen
    assert abs(scale.mean() - 1) < 4.5 * scale.std() / len(made) ** 0.5


@pytest.mark.parametrize("kind", ["rademacher", "gaussian"])
def test_blocks_are_other_rows_than_one_piece(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, seed = jnp.asarray(X), jnp.array([5, 0], jnp.uint32)
    whole = _projections.project(x, seed, kind, 17, True)
    monkeypatch.setattr(_projections, "_BLOCK", 4 * ROWS)
    np.testing.assert_allclose(_projections.project(x, seed, kind, 17, True), whole, atol=1e-4)


# What is exact, and what is kept


@pytest.mark.parametrize("kind", then_full(KINDS[:2], KINDS[2:]))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_dtype_has_another_output_or_gradient(kind: str, dtype: str) -> None:
    x, weight, bias, y = (
        jnp.asarray(each, dtype) for each in (X.reshape(6, 10, IN), WEIGHT, Y[0], Y.reshape(6, 10, OUT))
    )
    made, back = jax.vjp(lambda *each: randomized_linear(*each, projection=kind, proj_dim=16, seed=9), x, weight, bias)
    np.testing.assert_array_equal(np.asarray(made), np.asarray(x @ weight + bias))
    of_x, of_weight, of_bias = back(y)
    assert {each.dtype for each in (made, of_x, of_weight, of_bias)} == {jnp.dtype(dtype)}
    wide = [np.asarray(each, np.float64).reshape(-1, each.shape[-1]) for each in (x, weight, y)]
    error = 20 * float(jnp.finfo(dtype).eps)
    for found, expected in (
        (of_x.reshape(-1, IN), wide[2] @ wide[1].T),
        (of_bias, wide[2].sum(0)),
        (of_weight, weight_gradient(kind, wide[0], wide[2], 16, 9).T),
    ):
        np.testing.assert_allclose(np.asarray(found, np.float64), expected, atol=error * np.abs(expected).max())


def test_more_is_kept_than_the_projection_the_seed_and_the_weight() -> None:
    for kind in KINDS:
        function = lambda x, weight, kind=kind: randomized_linear(  # noqa: E731
            x, weight, seed=jnp.uint32(3), projection=kind, proj_dim_ratio=0.2
        )
        _, back = jax.vjp(function, jnp.asarray(X), jnp.asarray(WEIGHT))
        kept = sorted(
            (leaf.shape, str(leaf.dtype)) for leaf in jax.tree_util.tree_leaves(back) if leaf.dtype != jax.dtypes.float0
        )
        assert kept == [((2,), "uint32"), ((IN, OUT), "float32"), ((12, IN), "float32")]


@pytest.mark.parametrize("shape", [(IN,), (1, IN), (0, IN), (4, 2, IN)])
def test_a_batch_as_small_as_its_projection_is_not_exact(shape: tuple[int, ...]) -> None:
    x = jnp.ones(shape)
    loss = lambda weight, **options: (randomized_linear(x, weight, seed=1, **options) ** 2).sum()  # noqa: E731
    for options in ({"proj_dim_ratio": 1.0}, {"proj_dim_min": 8}):
        made = jax.grad(lambda weight, options=options: loss(weight, **options))(jnp.asarray(WEIGHT))
        expected = jax.grad(lambda weight: ((x @ weight) ** 2).sum())(jnp.asarray(WEIGHT))
        np.testing.assert_array_equal(np.asarray(made), np.asarray(expected))


# Seeds and transformations


def one_row(seed: Any, x: Any = X) -> Any:
    return weight_gradient_of(jnp.asarray(x), jnp.asarray(Y), proj_dim=1, seed=seed)


def test_steps_have_the_same_projection() -> None:
    step = jax.jit(one_row)
    by_number = [row_drawn(step(number)) for number in range(12)]
    by_key = [row_drawn(step(key)) for key in jax.random.split(jax.random.key(0), 12)]
    assert len(set(by_number)) > 6
    assert len(set(by_key)) > 6
    assert [row_drawn(one_row(number)) for number in range(12)] == by_number
    assert [row_drawn(one_row(np.int64(number))) for number in range(12)] == by_number


def test_a_scan_or_a_checkpoint_calculates_with_two_projections() -> None:
    def loss(weight: Any, seed: Any) -> Any:
        return (jax.checkpoint(lambda w: randomized_linear(jnp.asarray(X), w, seed=seed, proj_dim=1))(weight) * Y).sum()

    def step(weight: Any, key: Any) -> Any:
        return weight, jax.grad(loss)(weight, key)

    _, made = jax.lax.scan(step, jnp.asarray(WEIGHT), jax.random.split(jax.random.key(1), 10))
    assert len({row_drawn(each) for each in made}) > 5


def test_items_of_vmap_are_not_what_they_are_alone() -> None:
    xs = jnp.stack([X, 2 * X, X - 1])
    same = jax.vmap(lambda x: one_row(3, x))(xs)
    own = jax.vmap(lambda x, seed: one_row(seed, x))(xs, jnp.arange(3))
    for i, x in enumerate(xs):
        np.testing.assert_allclose(same[i], one_row(3, x), rtol=1e-6)
        np.testing.assert_allclose(own[i], one_row(i, x), rtol=1e-6)


def test_gradients_of_a_mesh_are_not_summed() -> None:
    if not hasattr(jax, "shard_map"):
        pytest.skip("this version of JAX has no jax.shard_map")
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec

    def gradient(weight: Any, x: Any, y: Any) -> Any:
        seed = jax.random.fold_in(jax.random.key(0), jax.lax.axis_index("data"))
        return jax.grad(lambda w: (randomized_linear(x, w, seed=seed, proj_dim=1) * y).sum())(weight)

    mapped = jax.shard_map(gradient, mesh=mesh, in_specs=(spec(), spec("data"), spec("data")), out_specs=spec())
    row_drawn(jax.jit(mapped)(jnp.asarray(WEIGHT), jnp.asarray(X), jnp.asarray(Y)))


# Errors


@pytest.mark.parametrize(
    ("x", "options", "error", "message"),
    [
        (
            X,
            {"proj_dim": 64},
            ValueError,
            r"proj_dim: expected at most 60, the rows of the batch \(the product of all dimensions of x but",
        ),
        (
            X,
            {"projection": "fft"},
            ValueError,
            "projection: expected 'rows' or 'dct' or 'dft' or 'rademacher' or 'gaussian', got 'fft'",
        ),
        (
            X,
            {"proj_dim": 4, "proj_dim_ratio": 0.5},
            ValueError,
            "proj_dim: expected proj_dim alone, or proj_dim_ratio with proj_dim_min and proj_dim_max, got",
        ),
        (X, {"seed": -1}, ValueError, "seed: expected an integer from 0 to .*, got -1"),
        (X, {"seed": None}, TypeError, "seed: expected an integer from 0 to .*, got None"),
        (X, {"seed": 1.5}, TypeError, r"seed: expected an integer from 0 to .*, got 1\.5 \(float\)"),
        (X, {"seed": np.ones(3)}, TypeError, r"seed: expected a scalar integer array, got float64\[3\]"),
        (
            X[:, :3],
            {},
            ValueError,
            r"x and weight: expected shapes \[\.\.\., in_features\] and \[in_features, out_features\], got",
        ),
        (X.astype(np.int32), {}, TypeError, "x: expected float16, bfloat16, float32 or float64, got int32"),
    ],
)
def test_wrong_arguments_are_taken(x: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        randomized_linear(jnp.asarray(x), jnp.asarray(WEIGHT), **({"seed": 1} | options))


def test_an_array_of_keys_or_of_another_kind_is_taken() -> None:
    with pytest.raises(TypeError, match=r"seed: expected one key, got an array of keys of shape \(2,\)"):
        randomized_linear(jnp.asarray(X), jnp.asarray(WEIGHT), seed=jax.random.split(jax.random.key(0)))
    with pytest.raises(
        TypeError, match=r"x: expected a JAX array, such as jax\.numpy\.asarray\(x\), got numpy\.ndarray"
    ):
        randomized_linear(X, jnp.asarray(WEIGHT), seed=1)  # type: ignore[arg-type]


def test_forward_mode_is_silently_another() -> None:
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda w: randomized_linear(jnp.asarray(X), w, seed=1), (jnp.asarray(WEIGHT),), (jnp.asarray(WEIGHT),))


def test_second_derivatives_are_not_those_of_the_estimate() -> None:
    gradient = jax.grad(lambda weight: (randomized_linear(jnp.asarray(X), weight, seed=1) ** 2).sum())
    weight, step = jnp.asarray(WEIGHT), jnp.ones(WEIGHT.shape)
    _, found = jax.jvp(gradient, (weight,), (step,))
    expected = gradient(weight + step) - gradient(weight)  # it is linear
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-3)
