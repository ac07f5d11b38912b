"""Sums over devices with compressed data on the wire: their values, bit for bit, and their seeds."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import reference_collectives as reference
from arrcomp import QSGD, S2FP8, Codebook, Codec, FloatFormat
from ordinary import then_full

jax = pytest.importorskip("jax")

from jax import numpy as jnp

import arrcomp.jax
from arrcomp.jax import _seeds

from .vmapped_collectives import normal, on_devices

Array = NDArray[Any]
WORLDS = (1, 2, 3, 4, 8)
DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)
RANDOM = QSGD(bits=3, bucket_size=64, rounding="stochastic")
CODECS = (
    QSGD(bits=4, bucket_size=64),
    QSGD(bits=8, bucket_size=100, norm="l2"),
    QSGD(bits=2, norm="linf"),
    FloatFormat("mxfp8_e4m3"),
    FloatFormat("fp16"),
    Codebook.nf4(),
    S2FP8(bucket_size=64),
)
psum = on_devices(arrcomp.jax.psum_quantized)
pmean = on_devices(arrcomp.jax.pmean_quantized)


def step_sizes(x: Array, codec: QSGD) -> Array:
    """The distance of two levels at each element."""
    steps = np.empty(x.size)
    for first in range(0, x.size, codec.bucket_size):
        bucket = x[first : first + codec.bucket_size].astype(np.float64)
        steps[first : first + codec.bucket_size] = (bucket.max() - bucket.min()) / (2**codec.bits - 1)
    return steps


# Values


@pytest.mark.parametrize(
    ("world", "codec"), [*((world, CODECS[0]) for world in WORLDS[1:]), *((3, codec) for codec in CODECS[1:])], ids=repr
)
def test_a_sum_is_not_the_one_of_numpys_shards(world: int, codec: Codec) -> None:
    x = normal(world, 5003)
    for function, mean in ((psum, False), (pmean, True)):
        expected = reference.all_reduced(x, codec, mean=mean)
        for row in function(x, codec):
            np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("world", then_full(WORLDS[1:3], WORLDS[:1] + WORLDS[3:]))
def test_a_sum_is_farther_off_than_its_steps_allow(world: int, dtype: Any) -> None:
    codec = QSGD(bits=6, bucket_size=64)
    x = normal(world, 3001, dtype=dtype)
    exact = x.astype(np.float64).sum(0)
    first = sum(step_sizes(row, codec) for row in x)
    # The range of what is added differs from the exact sum's by the first step's errors.
    second = step_sizes(exact, codec) + 2 * first / (2**codec.bits - 1)
    places = float(ml_dtypes.finfo(dtype).eps) * np.abs(x.astype(np.float64)).max() * world * 2
    for row in psum(x, codec):
        assert row.dtype == dtype
        assert (np.abs(row.astype(np.float64) - exact) <= 0.5 * (first + second) + places).all()
    for row in pmean(x, codec):
        assert (np.abs(row.astype(np.float64) - exact / world) <= (0.5 * (first + second) + places) / world).all()


@pytest.mark.parametrize("world", then_full([3], [2, 4, 8]))
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_constants_change(world: int, dtype: Any) -> None:
    bits = {2: 1, 3: 2, 4: 8, 8: 4}[world]
    x = np.full((world, 1000), 0.7, dtype) * (np.arange(world)[:, None] + 1).astype(dtype)
    expected = functools.reduce(np.add, x.astype(np.float32)).astype(dtype)
    for codec in (QSGD(bits=bits), QSGD(bits=bits, rounding="stochastic")):
        for row in psum(x, codec, seed=3):
            np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize("bits", then_full([2, 4, 8], [3, 5, 6, 7]))
@pytest.mark.parametrize(("world", "bucket_size", "count"), [(8, 64, 5000), (4, 512, 333), (2, 2048, 4096)])
def test_numbers_in_order_are_farther_off_than_cgx_allows(bits: int, world: int, bucket_size: int, count: int) -> None:
    x = np.arange(count, dtype=np.float32) * (1 + np.arange(world, dtype=np.float32))[:, None]
    allowed = 2 * min(bucket_size, count) / (2**bits - 1) * world * (world + 1)
    error = np.abs(psum(x, QSGD(bits=bits, bucket_size=bucket_size)) - x.sum(0)).max()
    assert error <= allowed / 4 * 1.001  # half a step of each summand, and of the sum


@pytest.mark.parametrize("shape", then_full([(), (0,), (3, 21)], [(1,), (7,), (3, 0, 2), (64,), (65,), (4097,)]))
def test_a_shape_is_not_taken(shape: tuple[int, ...]) -> None:
    x = np.asarray(20 + normal(3, *shape))  # so that a bucket with a zero more would differ
    for codec in (CODECS[0], CODECS[1]):
        y = psum(x, codec)
        assert y.shape == x.shape
        for row in y:
            np.testing.assert_array_equal(row, reference.all_reduced(x, codec))


def test_a_mean_of_16_bits_overflows() -> None:
    x = np.full((4, 100), 60000, np.float16)
    np.testing.assert_array_equal(pmean(x, QSGD()), x)
    assert np.isnan(psum(x, QSGD())).all()


def test_the_values_of_an_incomplete_bucket_are_quantized() -> None:
    codec = QSGD(bits=2, bucket_size=64, skip_incomplete=True)
    for count in (5, 130):
        x = normal(3, count)
        y = psum({"a": x, "b": x[:, :64]}, codec)
        cut = count - count % 64
        for row, whole in zip(y["a"], y["b"], strict=True):
            np.testing.assert_array_equal(row[:cut], reference.all_reduced(x[:, :cut], codec))
            np.testing.assert_allclose(row[cut:], x[:, cut:].sum(0), rtol=1e-6, atol=1e-6)
            np.testing.assert_array_equal(whole, reference.all_reduced(x[:, :64], codec))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("codec", [CODECS[0], QSGD(norm="l2", bucket_size=64), Codebook.nf4()], ids=repr)
def test_a_sum_of_what_is_not_finite_looks_right(bad: float, codec: Codec) -> None:
    x = normal(4, 1000)
    finite = psum(x, codec)
    for place in (130, 999):  # the last stands in a bucket that is not full
        x_bad = x.copy()
        x_bad[2, place] = bad
        bucket = slice(place // 64 * 64, place // 64 * 64 + 64)
        y = psum(x_bad, codec)
        assert np.isnan(y[:, bucket]).all()
        others = np.delete(np.arange(1000), bucket)
        np.testing.assert_array_equal(y[:, others], finite[:, others])


def test_64_bits_are_added_in_32() -> None:
    jax.config.update("jax_enable_x64", True)
    try:
        x = 1 + 1e-12 * normal(3, 500, dtype=np.float64)
        for codec in (QSGD(bits=8), FloatFormat("fp32")):
            for row in psum(x, codec):
                assert row.dtype == np.float64
                np.testing.assert_array_equal(row, reference.all_reduced(x, codec))
    finally:
        jax.config.update("jax_enable_x64", False)


# Seeds


def test_seeds_are_others_than_those_of_integers() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        seed = int(rng.integers(0, 1 << 64, dtype=np.uint64))
        parts = [int(part) for part in rng.integers(0, (1 << 32) - 1, 3)] + [0, (1 << 32) - 2]
        words = np.array([seed], "<u8").view(np.uint32)
        made = jax.jit(_seeds.derived)(words, *[np.uint32(part) for part in parts])
        assert int(np.asarray(made).view("<u8")[0]) == arrcomp._methods.seeds.derived(seed, *parts)


@pytest.mark.parametrize("codec", [RANDOM, FloatFormat("mxfp4", rounding="stochastic")], ids=repr)
def test_seeds_are_not_those_that_are_documented(codec: Codec) -> None:
    x = normal(3, 3 * 128)
    for seed in (0, 5, 2**64 - 1):
        for row in psum(x, codec, seed=seed):
            np.testing.assert_array_equal(row, reference.all_reduced(x, codec, seed))


def test_a_new_seed_compiles_anew_or_does_nothing() -> None:
    traces = 0

    @jax.jit
    def total(x: Any, seed: Any) -> Any:
        def local(x: Any) -> Any:
            nonlocal traces
            traces += 1
            return arrcomp.jax.psum_quantized(x, "d", RANDOM, seed=seed)

        return jax.vmap(local, axis_name="d")(x)

    x = normal(2, 1000)
    made = [np.asarray(total(x, np.uint32(seed)))[0] for seed in range(5)]
    assert traces == 1
    for seed, y in enumerate(made):
        np.testing.assert_array_equal(y, np.asarray(total(x, np.uint32(seed)))[0])
        np.testing.assert_array_equal(y, psum(x, RANDOM, seed=seed)[0])
        assert all((y != other).any() for other in made[:seed])


def test_random_rounding_is_biased() -> None:
    x = normal(3, 640)

    @jax.jit
    @jax.vmap
    def total(seed: Any) -> Any:
        local = functools.partial(arrcomp.jax.psum_quantized, axis_name="d", codec=RANDOM, seed=seed)
        return jax.vmap(local, axis_name="d")(jnp.asarray(x))[0]

    sums = np.asarray(total(jnp.arange(2000, dtype=jnp.uint32)), np.float64)
    deviations = (sums.mean(0) - x.astype(np.float64).sum(0)) / (sums.std(0) / np.sqrt(len(sums)) + 1e-6)
    assert np.abs(deviations).max() < 5
    assert abs(deviations.mean()) < 0.25
    nearest = psum(x, QSGD(bits=3, bucket_size=64))[0]  # is what this would find to be biased
    assert np.abs((nearest - x.sum(0)) / (sums.std(0) / np.sqrt(len(sums)) + 1e-6)).max() > 5


def test_devices_shards_or_arrays_draw_the_same_numbers() -> None:
    codec = QSGD(bits=1, bucket_size=128, rounding="stochastic")
    period = np.random.default_rng(5).uniform(0, 1, 128).astype(np.float32)
    x = np.tile(period, (4, 4))  # the same on all devices and in all shards
    local = functools.partial(arrcomp.jax.psum_scatter_quantized, axis_name="d", codec=codec, seed=1, tiled=True)
    parts = np.asarray(jax.vmap(local, axis_name="d")(jnp.asarray(x)))
    assert all((a != b).any() for i, a in enumerate(parts) for b in parts[:i])
    ends = np.isclose(parts / 4, period.min()) | np.isclose(parts / 4, period.max())
    assert ends.mean() < 0.5  # as the four devices' values seldom are all the largest, or all the least
    first, second = psum([x, x], codec, seed=1)
    assert (first != second).any()
    gathered = on_devices(arrcomp.jax.all_gather_quantized)(x, codec, seed=1)[0]
    assert all((a != b).any() for i, a in enumerate(gathered) for b in gathered[:i])
