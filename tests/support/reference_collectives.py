"""What collective operations with compressed data give, by NumPy's compress and decompress alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp._methods.seeds import derived
from arrcomp._methods.shards import Shards

Array = NDArray[Any]
SCATTER, GATHER = 0, 1


def all_reduced(xs: Array, codec: arrcomp.Codec, seed: int | None = None, mean: bool = False) -> Array:
    """The sum of arrays, xs[W, ...], as every device gets it. Nothing fills the last bucket up."""
    world = len(xs)
    flat = xs.reshape(world, -1)
    shards = Shards.of(flat.shape[1], world, codec.granularity)
    parts = []
    for owner in range(world):
        first, end = shards.bounds(owner)
        received = [
            arrcomp.compress(x[first:end], codec, seed=seed_of(seed, SCATTER, rank, owner))
            for rank, x in enumerate(flat)
        ]
        parts.append(_compressed_sum(received, seed_of(seed, GATHER, owner), 1 / world if mean else 1.0))
    return np.concatenate(parts).reshape(xs.shape[1:])


def scattered_sum(parts: Array, codec: arrcomp.Codec) -> Array:
    """The sums of parts[W, W, ...], of each device those for each: [W, ...]."""
    back = [[np.asarray(arrcomp.decompress(arrcomp.compress(x, codec))) for x in row] for row in parts]
    return np.stack([_sum([row[owner] for row in back]) for owner in range(len(parts))])


def seed_of(seed: int | None, step: int, rank: int, shard: int | None = None, place: int = 0) -> int | None:
    """The seed of a device's step for the array in this place, as `psum_quantized` documents it."""
    if seed is None:
        return None
    own = derived(seed, step, rank, place)
    return own if shard is None else derived(own, shard)


def _compressed_sum(received: list[arrcomp.Compressed], seed: int | None, weight: float) -> Array:
    codec = received[0].codec
    if codec.has_sums:
        total = arrcomp.compress_sum(received, weights=[weight] * len(received), seed=seed)
    else:
        total = arrcomp.compress(_sum([np.asarray(arrcomp.decompress(c)) for c in received], weight), codec, seed=seed)
    return np.asarray(arrcomp.decompress(total))


def _sum(arrays: list[Array], weight: float = 1.0) -> Array:
    dtype = arrays[0].dtype
    wide: Any = np.float64 if dtype == np.float64 else np.float32
    total = arrays[0].astype(wide)
    for x in arrays[1:]:
        total = total + x.astype(wide)
    return (total * wide(weight)).astype(dtype)
