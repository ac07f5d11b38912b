"""JAX's arrays that are compressed against others, inside its transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import ErrorBounded, Lossless

jax = pytest.importorskip("jax")

from jax import numpy as jnp

import arrcomp.jax

RNG = np.random.default_rng(29)
OLD = RNG.normal(0, 1, (3, 5000)).astype(np.float32)
NEW = OLD.copy()
NEW[:, ::50] += np.float32(0.01)


def test_vmap_mixes_up_the_references() -> None:
    codec = ErrorBounded(abs=1e-3)
    c = jax.vmap(lambda x, old: arrcomp.jax.compress(x, codec, reference=old))(NEW, OLD)
    y = jax.vmap(lambda c, old: arrcomp.jax.decompress(c, reference=old))(c, OLD)
    for i in range(3):
        item = jax.tree.map(lambda leaf, i=i: leaf[i], c)
        expected = arrcomp.compress(NEW[i], codec, reference=OLD[i])
        assert item.to_bytes() == expected.to_bytes()
        np.testing.assert_array_equal(y[i], expected.decompress(reference=OLD[i]))


def test_one_reference_of_a_batch_is_another_for_each() -> None:
    c = jax.vmap(lambda x: arrcomp.jax.compress(x, reference=jnp.asarray(OLD[0])))(NEW)
    y = jax.vmap(lambda c: arrcomp.jax.decompress(c, reference=jnp.asarray(OLD[0])))(c)
    np.testing.assert_array_equal(y, NEW)


def test_a_chain_in_a_scan_breaks() -> None:
    def step(weights: Any, change: Any) -> tuple[Any, Any]:
        c = arrcomp.jax.compress(weights + change, reference=weights)
        there = arrcomp.jax.decompress(c, reference=weights)
        return there, c.payload.length

    changes = jnp.where(jnp.arange(5000) % 40 == 0, 0.01, 0.0)[None].repeat(3, 0).astype(jnp.float32)
    last, lengths = jax.jit(lambda w: jax.lax.scan(step, w, changes))(jnp.asarray(OLD[0]))
    expected = jnp.asarray(OLD[0])
    for change in changes:
        expected = expected + change
    np.testing.assert_array_equal(last, expected)
    assert (np.asarray(lengths)[:, 0] < OLD[0].nbytes / 10).all()


def test_trees_lose_their_references_when_compiled() -> None:
    tree, old = (
        {"a": jnp.asarray(NEW[0]), "b": [jnp.asarray(NEW[1])]},
        {"a": jnp.asarray(OLD[0]), "b": [jnp.asarray(OLD[1])]},
    )
    packed = jax.jit(lambda tree, old: arrcomp.compress_many(tree, reference=old))(tree, old)
    back = jax.jit(lambda packed, old: arrcomp.decompress_many(packed, reference=old))(packed, old)
    np.testing.assert_array_equal(back["a"], NEW[0])
    np.testing.assert_array_equal(back["b"][0], NEW[1])


def test_the_gradient_through_a_reference_is_not_zero() -> None:
    def loss(x: Any, old: Any) -> Any:
        return arrcomp.jax.decompress(arrcomp.jax.compress(x, reference=old), reference=old).sum()

    for gradient in jax.grad(loss, (0, 1))(jnp.asarray(NEW[0]), jnp.asarray(OLD[0])):
        assert not np.asarray(gradient).any()


def test_what_is_no_reference_is_taken() -> None:
    x, old = jnp.asarray(NEW[0]), jnp.asarray(OLD[0])
    c = arrcomp.jax.compress(x, reference=old)
    with pytest.raises(arrcomp.WrongReferenceError, match=r"reference: expected the array that was given to compress"):
        arrcomp.jax.decompress(c, reference=x)
    with pytest.raises(TypeError, match=r"reference: expected a JAX array"):
        arrcomp.jax.compress(x, reference=OLD[0])
    with pytest.raises(ValueError, match=r"reference: expected shape \(5000,\), got \(3, 5000\)"):
        jax.jit(lambda x, old: arrcomp.jax.compress(x, reference=old))(x, jnp.asarray(OLD))
    with pytest.raises(ValueError, match=r"reference: expected the array that c was compressed against, got none"):
        jax.jit(arrcomp.jax.decompress)(c)
    with pytest.raises(
        ValueError, match=r"reference: expected an array for Lossless\(predictor='reference'\), got none"
    ):
        arrcomp.jax.roundtrip(x, Lossless(predictor="reference"))


def test_a_stream_from_elsewhere_is_not_applied_to_arrays_of_jax() -> None:
    stream = arrcomp.compress(NEW[0], reference=OLD[0]).to_bytes()
    made = arrcomp.decompress(arrcomp.from_bytes(stream), reference=jnp.asarray(OLD[0]))
    assert isinstance(made, jax.Array)
    np.testing.assert_array_equal(made, NEW[0])
