"""JAX's arrays and codecs that round at random, or whose payloads have one length."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
from arrcomp import QSGD, Codec

jax = pytest.importorskip("jax")

from jax import numpy as jnp

import arrcomp.jax
from arrcomp.jax import _ops

RANDOM = QSGD(bits=3, rounding="stochastic")
CODECS = [RANDOM, QSGD(bits=5, norm="l2"), QSGD(bucket_size=100, skip_incomplete=True)]
X: NDArray[Any] = np.random.default_rng(13).normal(0, 1, (6, 5003)).astype(np.float32)
SEEDS = [0, 1, 7, 2**31, 2**32 + 5, 2**63, 2**64 - 1]
DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def stream(x: NDArray[Any], seed: int | None, codec: Codec = RANDOM) -> bytes:
    """What NumPy makes of it."""
    return arrcomp.compress(x, codec, seed=seed).to_bytes()


def values(x: NDArray[Any], seed: int | None, codec: Codec = RANDOM) -> NDArray[Any]:
    """What comes back in NumPy."""
    return np.asarray(arrcomp.decompress(arrcomp.compress(x, codec, seed=seed)))


def item(tree: Any, index: int) -> Any:
    """One of a batch."""
    return jax.tree_util.tree_map(lambda leaf: leaf[index], tree)


@contextlib.contextmanager
def x64() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", False)


# Seeds


def test_a_new_number_compiles_anew() -> None:
    x = jnp.asarray(X)
    before = _ops.encode._cache_size(), _ops.roundtrip._cache_size()  # type: ignore[attr-defined]
    seeds: tuple[Any, ...] = (*SEEDS, np.uint64(2**63 + 1), np.int8(3), np.array(4))
    for seed in seeds:
        number = int(seed)
        assert arrcomp.jax.compress(x, RANDOM, seed=seed).to_bytes() == stream(X, number)
        np.testing.assert_array_equal(
            np.asarray(arrcomp.jax.roundtrip(x, RANDOM, seed=seed)), values(X, number), strict=True
        )
    assert (_ops.encode._cache_size(), _ops.roundtrip._cache_size()) == (before[0] + 1, before[1] + 1)  # type: ignore[attr-defined]


def test_a_new_traced_seed_is_traced_again() -> None:
    traces = 0

    @jax.jit
    def function(x: Any, seed: Any) -> Any:
        nonlocal traces
        traces += 1
        return arrcomp.jax.compress(x, RANDOM, seed=seed), arrcomp.jax.roundtrip(x, RANDOM, seed=seed)

    x = jnp.asarray(X)
    for seed in range(20):
        c, y = function(x, seed)
        assert c.to_bytes() == stream(X, seed)
        np.testing.assert_array_equal(np.asarray(y), values(X, seed))
    assert traces == 1


@pytest.mark.parametrize("name", DTYPES)
def test_an_integer_type_is_read_wrongly(name: str) -> None:
    wide = name.endswith("64")
    seeds = [5, np.iinfo(name).max, np.iinfo(name).min]
    with x64() if wide else contextlib.nullcontext():
        x = jnp.asarray(X[0])
        for seed in seeds:
            array = jnp.asarray(np.array(seed, name))
            assert array.dtype == name
            for function in (arrcomp.jax.compress, jax.jit(arrcomp.jax.compress, static_argnums=1)):
                assert function(x, RANDOM, seed=array).to_bytes() == stream(X[0], seed % 2**64)


def test_the_seed_in_a_scan_is_one_for_all_steps() -> None:
    def step(seed: Any, row: Any) -> Any:
        return seed + 1, arrcomp.jax.roundtrip(row, RANDOM, seed=seed)

    _, rows = jax.jit(lambda x: jax.lax.scan(step, jnp.uint32(10), x))(jnp.asarray(X))
    np.testing.assert_array_equal(np.asarray(rows), np.stack([values(row, 10 + i) for i, row in enumerate(X)]))


def test_codecs_without_random_numbers_mind_the_seed() -> None:
    x = jnp.asarray(X)
    for codec in (arrcomp.Lossless(), QSGD()):
        for seed in (None, -1, jnp.ones(2)):
            assert arrcomp.jax.compress(x, codec, seed=seed).to_bytes() == stream(X, None, codec)
            arrcomp.jax.roundtrip(x, codec, seed=seed)


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (None, TypeError, r"seed: expected an integer, or a 0-dimensional integer array, for QSGD.*, got None"),
        (True, TypeError, r"seed: expected an integer, or a 0-dimensional integer array, for QSGD.*, got True"),
        (1.5, TypeError, r"seed: expected an integer, or a 0-dimensional integer array, for QSGD.*, got 1\.5"),
        (-1, ValueError, "seed: expected an integer from 0 to .*, got -1"),
        (2**64, ValueError, "seed: expected an integer from 0 to .*, got 18446744073709551616"),
        (np.array(1.5), TypeError, r"seed: expected a scalar integer array, got float64\[\]"),
        (lambda: jnp.float32(1), TypeError, r"seed: expected a scalar integer array, got float32\[\]"),
        (lambda: jnp.array(True), TypeError, r"seed: expected a scalar integer array, got bool\[\]"),
        (lambda: jax.random.key(0), TypeError, r"jax\.random\.bits"),
    ],
)
def test_what_is_no_seed_is_taken(seed: Any, error: type[Exception], message: str) -> None:
    given = seed() if callable(seed) else seed
    for function in (arrcomp.jax.compress, arrcomp.jax.roundtrip):
        with pytest.raises(error, match=message):
            function(jnp.asarray(X), RANDOM, seed=given)


# Transformations


def test_items_get_the_seeds_of_others() -> None:
    x, seeds = jnp.asarray(X), jnp.arange(6, dtype=jnp.uint32)
    own = jax.vmap(lambda row, seed: arrcomp.jax.compress(row, RANDOM, seed=seed))(x, seeds)
    same = jax.vmap(lambda row: arrcomp.jax.compress(row, RANDOM, seed=3))(x)
    draws = jax.vmap(lambda seed: arrcomp.jax.compress(x[0], RANDOM, seed=seed))(seeds)
    mixed = jax.vmap(lambda row, seed: arrcomp.compress_many([row, row[:50]], RANDOM, seed=seed))(x, seeds // 2)
    for i, row in enumerate(X):
        assert item(own, i).to_bytes() == stream(row, i)
        assert item(same, i).to_bytes() == stream(row, 3)
        assert item(draws, i).to_bytes() == stream(X[0], i)
        assert item(mixed[0], i).to_bytes() == stream(row, i // 2)
        assert item(mixed[1], i).to_bytes() == stream(row[:50], i // 2)
    decoded = jax.vmap(arrcomp.jax.decompress)(own)
    np.testing.assert_array_equal(np.asarray(decoded), np.stack([values(row, i) for i, row in enumerate(X)]))


def test_round_trips_get_the_seeds_of_others() -> None:
    x, seeds = jnp.asarray(X), jnp.arange(6)
    roundtrip = lambda row, seed: arrcomp.jax.roundtrip(row, RANDOM, seed=seed)  # noqa: E731
    own = jax.jit(jax.vmap(roundtrip))(x, seeds)
    np.testing.assert_array_equal(np.asarray(own), np.stack([values(row, i) for i, row in enumerate(X)]))
    draws = jax.vmap(roundtrip, in_axes=(None, 0))(x[0], seeds)
    np.testing.assert_array_equal(np.asarray(draws), np.stack([values(X[0], i) for i in range(6)]))
    nested = jax.vmap(jax.vmap(roundtrip), in_axes=(0, None))(x.reshape(2, 3, 5003), seeds[:3])
    expected = np.stack([values(row, i % 3) for i, row in enumerate(X)])
    np.testing.assert_array_equal(np.asarray(nested).reshape(X.shape), expected)
    assert jax.vmap(roundtrip)(x[:0], seeds[:0]).shape == (0, 5003)
    assert jax.vmap(roundtrip)(x[:, :0], seeds).shape == (6, 0)


def test_the_gradient_with_a_seed_is_not_the_one_that_came() -> None:
    gradient = jax.jit(jax.grad(lambda x, seed: (arrcomp.jax.roundtrip(x, RANDOM, seed=seed) * 2).sum()))
    for seed in (3, np.uint32(4)):
        np.testing.assert_array_equal(np.asarray(gradient(jnp.asarray(X), seed)), np.full_like(X, 2))


# Fixed rates


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_a_fixed_rate_has_another_leaf(codec: Codec) -> None:
    compress = lambda x: arrcomp.jax.compress(x, codec, seed=7)  # noqa: E731
    x = jnp.asarray(X)
    expected = arrcomp.compress(X, codec, seed=7)
    structure = jax.tree_util.tree_structure(compress(x))
    for c in (
        compress(x),
        jax.jit(compress)(x),
        arrcomp.compress_many([jnp.ones(3), x], codec, seed=7)[1],
        jax.device_get(compress(x)),
        pickle.loads(pickle.dumps(compress(x))),  # noqa: S301
        expected,
        arrcomp.from_bytes(expected.to_bytes()),
    ):
        leaves, found = jax.tree_util.tree_flatten(c)
        assert [leaf.shape for leaf in leaves] == [(c.spec.capacity,)]
        assert found == structure
        assert c.payload.length is None
        assert c.to_bytes() == expected.to_bytes()
        for decompress in (arrcomp.jax.decompress, jax.jit(arrcomp.jax.decompress)):
            np.testing.assert_array_equal(np.asarray(decompress(c)), arrcomp.decompress(expected))
    paths, _ = jax.tree_util.tree_flatten_with_path(compress(x))
    assert [jax.tree_util.keystr(path) for path, _ in paths] == [".buffer"]


def test_the_size_of_a_fixed_rate_is_not_known_while_tracing() -> None:
    sizes = []

    @jax.jit
    def function(x: Any) -> Any:
        c = arrcomp.jax.compress(x, RANDOM, seed=1)
        sizes.append(c.nbytes)
        return c

    assert function(jnp.asarray(X)).nbytes == sizes[0] == len(stream(X, 1))


def test_a_payload_of_another_length_is_an_array() -> None:
    c = arrcomp.jax.compress(jnp.asarray(X), RANDOM, seed=1)
    for wrong in (c.payload.buffer[:-8], jnp.concatenate([c.payload.buffer, c.payload.buffer[:8]])):
        twin = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(c), [wrong])
        with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="bytes of a payload"):
            jax.block_until_ready(jax.jit(arrcomp.jax.decompress)(twin))


def test_a_corrupt_payload_of_another_length_is_an_array() -> None:
    c = arrcomp.compress(X, RANDOM, seed=1)
    payload = arrcomp._arrays.contract.Payload(arrcomp._arrays.numpy.ADAPTER, c.host_payload()[:-8])
    corrupt = arrcomp.Compressed(c.spec, payload)
    for use in (
        lambda: arrcomp.jax.decompress(corrupt),
        lambda: arrcomp.decompress(corrupt, like=jnp.zeros(1)),
        lambda: jax.tree_util.tree_leaves(corrupt),
    ):
        with pytest.raises(arrcomp.CorruptStreamError):
            use()
