"""Codecs that need a seed and whose payloads' lengths vary: PyTorch, eager and compiled; JAX, jitted and batched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import SmaQ
from checks import Array

CODECS = [SmaQ(), SmaQ(4, 9, block_size=None, statistics="sampled"), SmaQ(rounding="nearest")]
X: Array = np.random.default_rng(13).normal(0, 1, (5, 5003)).astype(np.float32)
SEEDS = [0, 7, 2**63 + 1]


def stream(x: Array, codec: arrcomp.Codec, seed: int) -> bytes:
    """What NumPy makes of it."""
    return arrcomp.compress(x, codec, seed=seed).to_bytes()


def values(x: Array, codec: arrcomp.Codec, seed: int) -> Array:
    """What comes back in NumPy."""
    return np.asarray(arrcomp.decompress(arrcomp.compress(x, codec, seed=seed)))


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_torch_writes_the_same_bytes(codec: SmaQ) -> None:
    torch = pytest.importorskip("torch")
    import arrcomp.torch

    x = torch.from_numpy(X)
    for seed in SEEDS:
        assert arrcomp.torch.compress(x, codec, seed=seed).to_bytes() == stream(X, codec, seed)
        np.testing.assert_array_equal(arrcomp.torch.roundtrip(x, codec, seed=seed).numpy(), values(X, codec, seed))
    room = torch.empty(arrcomp.max_compressed_nbytes(x), dtype=torch.uint8)
    seed_tensor = torch.tensor(7)
    c = arrcomp.torch.compress(x, codec, out=room, seed=seed_tensor)
    assert c.to_bytes() == stream(X, codec, 7)
    many = arrcomp.compress_many([x, x[:1], x[0, :3]], codec, seed=3)
    assert [c.to_bytes() for c in many] == [stream(part, codec, 3) for part in (X, X[:1], X[0, :3])]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("codec", CODECS[:2], ids=repr)
def test_compiled_torch_writes_the_same_values(codec: SmaQ) -> None:
    torch = pytest.importorskip("torch")
    import arrcomp.torch

    def both(x: Any, seed: Any) -> tuple[Any, Any]:
        c = arrcomp.torch.compress(x, codec, seed=seed)
        return arrcomp.torch.decompress(c), arrcomp.torch.roundtrip(x, codec, seed=seed)

    torch.compiler.reset()
    compiled = torch.compile(both, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows, seed in ((5, 7), (3, 8), (1, 2**40)):
        x = X[:rows]
        for y in compiled(torch.from_numpy(x), torch.tensor(seed)):
            np.testing.assert_array_equal(y.numpy(), values(x, codec, seed))


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_jax_writes_the_same_bytes(codec: SmaQ) -> None:
    jax = pytest.importorskip("jax")
    import arrcomp.jax

    x = jax.numpy.asarray(X)
    compress = jax.jit(lambda x, seed: arrcomp.jax.compress(x, codec, seed=seed))
    for seed in (0, 7, 2**31 - 1):
        assert arrcomp.jax.compress(x, codec, seed=seed).to_bytes() == stream(X, codec, seed)
        c = compress(x, jax.numpy.int32(seed))
        assert c.to_bytes() == stream(X, codec, seed)
        np.testing.assert_array_equal(np.asarray(arrcomp.jax.decompress(c)), values(X, codec, seed))
        y = jax.jit(lambda x, seed: arrcomp.jax.roundtrip(x, codec, seed=seed))(x, jax.numpy.int32(seed))
        np.testing.assert_array_equal(np.asarray(y), values(X, codec, seed))


@pytest.mark.parametrize("codec", CODECS[:2], ids=repr)
def test_batches_of_seeds_under_vmap(codec: SmaQ) -> None:
    jax = pytest.importorskip("jax")
    import arrcomp.jax

    seeds = jax.numpy.arange(5, dtype=jax.numpy.int32)
    batch = jax.vmap(lambda x, seed: arrcomp.jax.compress(x, codec, seed=seed))(jax.numpy.asarray(X), seeds)
    back = jax.vmap(arrcomp.jax.decompress)(batch)
    round_trip = jax.vmap(lambda x, seed: arrcomp.jax.roundtrip(x, codec, seed=seed))(jax.numpy.asarray(X), seeds)
    lengths = set()
    for i, row in enumerate(X):
        item = jax.tree_util.tree_map(lambda leaf, i=i: leaf[i], batch)
        assert item.to_bytes() == stream(row, codec, i)
        lengths.add(item.nbytes)
        np.testing.assert_array_equal(np.asarray(back[i]), values(row, codec, i))
        np.testing.assert_array_equal(np.asarray(round_trip[i]), values(row, codec, i))
    assert len(lengths) > 1
