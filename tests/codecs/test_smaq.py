"""SmaQ: against plain NumPy, value by value, code by code, bit by bit, and over many seeds."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import arrcomp
import checks
import reference_smaq
from arrcomp import SmaQ, _core
from checks import FLOATS, Array, numpy_dtype
from reference_smaq import Parts

from .test_qsgd import constants, dither, normal, real_of

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

COUNT = 3 * 4096 + 5
BLOCK_SIZES: tuple[Any, ...] = (None, 32, 100, 1024, 4096, 5000)
BITS = ((3, 3), (3, 12), (4, 6), (6, 6), (6, 8), (8, 8), (8, 12))
STATISTICS: tuple[Any, ...] = ("exact", "sampled", "range")
OVERFLOWS: tuple[Any, ...] = ("extend", "clamp")
ROUNDINGS: tuple[Any, ...] = ("nearest", "stochastic", "truncate")
CODECS = (
    SmaQ(),
    SmaQ(3, 12, block_size=32, statistics="sampled"),
    SmaQ(8, 8, block_size=None, rounding="nearest", overflow="clamp", min_size=0),
    SmaQ(5, 9, block_size=5000, rounding="truncate", statistics="range", all_positive=True),
    SmaQ(block_size=100, statistics="given", mean=0.1, std=2, preserve_zeros=False, min_size=40),
)


def settings_of(codec: SmaQ) -> reference_smaq.Settings:
    """The parameters as the independent reader has them."""
    return reference_smaq.settings_of(codec.config())


def written(stream: bytes, codec: SmaQ) -> Parts:
    """A stream taken apart as FORMAT.md says."""
    spec, payload = arrcomp.from_bytes(stream).spec, stream[slice(*checks.payload_span(stream))]
    return reference_smaq.read_parts(payload, spec.elements, spec.dtype.numpy, settings_of(codec))


def blocks_of(codec: SmaQ, count: int) -> Array:
    """The block of each element."""
    found: Array = np.arange(count) // (count if codec.block_size is None else codec.block_size)
    return found


def steps_of(codec: SmaQ, parts: Parts) -> tuple[Array, Array]:
    """The distance of two codes, near the mean and beyond the main threshold, in standard deviations."""
    main = codec.main_threshold / (2 ** (codec.main_bits - 2) - 1)
    outer = (parts.each[:, 2].astype(np.float64) - codec.main_threshold) / (2 ** (codec.outlier_bits - 2) - 1)
    return np.full(parts.codes.size, main), np.maximum(outer, 0)


def expected_codes(array: Array, parts: Parts, codec: SmaQ, seed: int) -> Array:
    """Every code, from the numbers that were written (FORMAT.md, section 5.2)."""
    real = real_of(array.dtype)
    mean, std, threshold = parts.each.T
    k, m = real(2 ** (codec.main_bits - 2) - 1), real(2 ** (codec.outlier_bits - 2) - 1)
    t, x, most = real(codec.main_threshold), array.astype(real), np.finfo(real).max / real(8)
    with np.errstate(all="ignore"):
        plain = (std * threshold <= most) & (mean <= most) & (-mean <= most)
        p = np.where(plain, real(1), real(0.125))
        s = np.where(std * p < np.finfo(real).tiny, real(2.0**64), real(1))
        inverse = np.where(std > 0, real(1) / (std * (s * p)), real(0))
        score = (x * p - mean * p) * s * inverse
        score = np.nan_to_num(np.clip(score, -np.finfo(real).max, np.finfo(real).max), nan=0)
        outer = np.where((threshold > t) & (std > 0), m / (threshold - t), real(0))
        outlier = np.abs(score) > t
        steps = np.where(outlier, (np.abs(score) - t) * outer, np.abs(score) * (k / t))
    if codec.rounding == "stochastic":
        steps = steps + dither(array.size, seed, real)
    whole = np.floor(steps) if codec.rounding == "truncate" else np.rint(steps)
    magnitude = np.clip(whole, 0, np.where(outlier, m, k)).astype(np.uint32)
    sign = (score < 0) & ((magnitude > 0) | outlier)
    codes: Array = magnitude << np.uint32(2) | sign.astype(np.uint32) << np.uint32(1) | outlier.astype(np.uint32)
    return np.where((x == 0) & (inverse != 0), np.uint32(2), codes) if codec.preserve_zeros else codes


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("overflow", OVERFLOWS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_code_is_predicted(dtype: str, overflow: Any, rounding: Any) -> None:
    seed = 0xFEDCBA9876543210
    for (main, outlier), block_size, scale in itertools.product(BITS, (100, None), (1, 1e-39)):
        array = normal(dtype, scale=scale, offset=scale)
        array[::37] = 0
        codec = SmaQ(main, outlier, overflow=overflow, block_size=block_size, rounding=rounding)
        parts = written(checks.stream_of(array, codec, seed=seed), codec)
        np.testing.assert_array_equal(parts.codes, expected_codes(array, parts, codec, seed))


def within(array: Array, decoded: Array, parts: Parts, codec: SmaQ) -> None:
    """No value is further off than its step, or half of it, allows; "clamp" is judged within its threshold."""
    limits: Any = ml_dtypes.finfo(array.dtype)
    x, y = array.astype(np.float64), decoded.astype(np.float64)
    mean, std, threshold = parts.each.T.astype(np.float64)
    main, outer = steps_of(codec, parts)
    real = np.finfo(parts.each.dtype)
    share = 0.5 if codec.rounding == "nearest" else 1
    slack = 16 * float(real.eps) * (np.abs(mean) + std * threshold) + 3 * float(real.smallest_subnormal)
    slack = slack + float(limits.eps) * (np.abs(y) + np.abs(x)) + float(limits.smallest_subnormal)
    inside = np.abs(x - mean) <= std * threshold * (1 + 1e-6)
    step = np.where(parts.codes & 1, outer, main)
    wrong = inside & ~(np.abs(x - y) <= share * std * step * (1 + 1e-6) + slack)
    assert not wrong.any(), (codec, np.flatnonzero(wrong)[:5])


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_values_are_within_their_step(dtype: str, rounding: Any) -> None:
    for (main, outlier), overflow, block_size in itertools.product(BITS[::2], OVERFLOWS, BLOCK_SIZES):
        codec = SmaQ(main, outlier, overflow=overflow, block_size=block_size, rounding=rounding)
        for array in (
            normal(dtype, 6000),
            normal(dtype, 700, 5, 300),
            normal(dtype, 700, 1e-7),
            normal(dtype, 900, 1e-41),
        ):
            stream = checks.stream_of(array, codec)
            within(array, checks.array_of(stream), written(stream, codec), codec)


def test_the_variance_is_divided_by_another_number() -> None:
    array = normal("float64", 100_000)
    blocks = array.reshape(-1, 100)
    exact, sampled = (SmaQ(block_size=100, statistics=s, num_samples=2) for s in ("exact", "sampled"))
    stds = [written(checks.stream_of(array, codec), codec).each[::100, 1] for codec in (exact, sampled)]
    np.testing.assert_allclose(stds[0], blocks.std(1), rtol=1e-6)  # N; of N - 1 it would be 0.5 % larger
    assert np.mean(stds[1] ** 2 / blocks.var(1)) == pytest.approx(1, abs=0.2)  # n - 1; of n it would be half


def test_truncation_goes_towards_the_mean() -> None:
    array, codec = normal("float64"), SmaQ(rounding="truncate", preserve_zeros=False)
    stream = checks.stream_of(array, codec)
    mean, decoded = written(stream, codec).each[:, 0], checks.array_of(stream)
    assert np.all(np.abs(decoded - mean) <= np.abs(array - mean) * (1 + 1e-12))


def test_what_lies_beyond_is_clamped_or_not() -> None:
    array = np.random.default_rng(0).standard_t(3, 4096).astype(np.float32)
    stream = checks.stream_of(array, SmaQ(overflow="clamp", block_size=None, rounding="nearest"))
    each, decoded = written(stream, SmaQ(overflow="clamp", block_size=None)).each[0], checks.array_of(stream)
    assert np.abs(array - each[0]).max() > 5 * each[1]
    assert np.abs(decoded - each[0]).max() == pytest.approx(2.5 * each[1], rel=1e-5)
    extended = checks.array_of(checks.stream_of(array, SmaQ(block_size=None, rounding="nearest")))
    assert np.abs(extended - array).max() < 0.01 * np.abs(array).max()
    assert np.linalg.norm(extended - array) < 0.25 * np.linalg.norm(decoded - array)


@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_come_back_as_zeros_at_no_cost(dtype: str) -> None:
    array = np.maximum(normal(dtype, 8192, 1, -1).astype(np.float32), 0).astype(numpy_dtype(dtype))
    array[5], zeros = -0.0, array == 0
    for rounding, (main, outlier) in itertools.product(ROUNDINGS, BITS):
        codec = SmaQ(main, outlier, rounding=rounding)
        stream = checks.stream_of(array, codec)
        decoded = checks.array_of(stream)
        assert not checks.bits_of(decoded)[zeros].any()
        plain = checks.stream_of(array, SmaQ(main, outlier, rounding=rounding, preserve_zeros=False))
        assert len(stream) <= len(plain)
        assert checks.array_of(plain)[zeros].astype(np.float64).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_constant_block_is_exact(dtype: str) -> None:
    array = np.repeat(np.array(constants(dtype)).astype(numpy_dtype(dtype)), 100)
    for codec in (*(SmaQ(block_size=100, rounding=r) for r in ROUNDINGS), SmaQ(3, 3, block_size=100, overflow="clamp")):
        checks.check_same_bits(checks.array_of(checks.stream_of(array, codec)), array)
    for statistics in ("sampled", "range"):
        codec = SmaQ(block_size=100, statistics=statistics)
        checks.check_same_bits(checks.array_of(checks.stream_of(array, codec)), array)
    given = SmaQ(block_size=100, statistics="given", mean=3, std=1)
    checks.check_same_bits(checks.array_of(checks.stream_of(array, given)), array)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        ("float16", 6e-8),
        ("float16", 1e-5),
        ("bfloat16", 1e-38),
        ("bfloat16", 1e-40),
        ("float32", 1e-41),
        ("float32", 3e-45),
        ("float64", 1e-308),
        ("float64", 1e-313),
        ("float64", 1e-323),
    ],
)
def test_tiny_values_do_not_vanish(dtype: str, scale: float) -> None:
    array = normal(dtype, 3000, scale)
    for codec in (SmaQ(rounding="nearest"), SmaQ(overflow="clamp", rounding="nearest"), SmaQ(3, 12)):
        stream = checks.stream_of(array, codec)
        parts, decoded = written(stream, codec), checks.array_of(stream)
        assert np.all(parts.each[:, 1] > 0)
        within(array, decoded, parts, codec)
        assert np.unique(decoded).size > 1


@pytest.mark.parametrize("statistics", ["exact", "sampled", "range", "given"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_huge_values_stay_finite(dtype: str, statistics: Any) -> None:
    largest = checks.largest_finite(numpy_dtype(dtype))
    array = (np.random.default_rng(3).uniform(-1, 1, 900) * largest).astype(numpy_dtype(dtype))
    array[:2] = largest, -largest
    given: dict[str, Any] = {"mean": 1.0, "std": 1e-300} if statistics == "given" else {}
    for overflow, rounding in itertools.product(OVERFLOWS, ROUNDINGS):
        codec = SmaQ(6, 10, overflow=overflow, rounding=rounding, statistics=statistics, **given)
        decoded = checks.array_of(checks.stream_of(array, codec)).astype(np.float64)
        assert np.isfinite(decoded).all(), codec
        if statistics != "given" and overflow == "extend":
            assert np.all(np.abs(decoded / largest - array.astype(np.float64) / largest) <= 0.1), codec


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_one_huge_value_among_tiny_ones(dtype: str) -> None:
    array = normal(dtype, 500, 1e-38)
    array[77] = checks.largest_finite(numpy_dtype(dtype)) / 4
    for statistics in ("exact", "sampled", "range"):
        codec = SmaQ(statistics=statistics, block_size=None, rounding="nearest")
        decoded = checks.array_of(checks.stream_of(array, codec)).astype(np.float64)
        assert np.isfinite(decoded).all()
        assert decoded[77] == pytest.approx(float(array[77]), rel=0.02)


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_not_finite_makes_its_block_nan_and_no_other(dtype: str) -> None:
    clean, poisoned = normal(dtype, 1000), np.isin(np.arange(1000) // 100, (1, 4, 6, 9))
    array = clean.copy()
    array[[150, 499, 600, 601, 999]] = [np.nan, np.inf, -np.inf, np.inf, -np.nan]
    array[410] = 0
    for overflow, rounding, statistics in itertools.product(OVERFLOWS, ROUNDINGS, STATISTICS):
        codec = SmaQ(block_size=100, overflow=overflow, rounding=rounding, statistics=statistics)
        expected = checks.array_of(checks.stream_of(clean, codec))
        expected[poisoned] = np.nan
        checks.check_same_bits(checks.array_of(checks.check_codec(array, codec)), expected)


def test_second_moments_stay_above_zero() -> None:
    array = (np.random.default_rng(2).normal(0, 1, 5000) ** 2).astype(np.float32)
    for rounding in ROUNDINGS[:2]:  # truncation keeps to the mean's side
        decoded = checks.array_of(checks.stream_of(array, SmaQ(3, 5, rounding=rounding)))
        kept = checks.array_of(checks.stream_of(array, SmaQ(3, 5, rounding=rounding, all_positive=True)))
        assert decoded.min() < 0
        np.testing.assert_array_equal(kept, np.maximum(decoded, 0))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("bits", [(3, 4), (6, 8)])
def test_stochastic_is_unbiased(bits: tuple[int, int], dtype: str) -> None:
    array, seeds, codec = normal(dtype, 2000), 400, SmaQ(*bits)
    parts = written(checks.stream_of(array, codec), codec)
    main, outer = steps_of(codec, parts)
    size = parts.each[:, 1].astype(np.float64) * np.where(parts.codes & 1, outer, main)
    total, squares = np.zeros(array.size), np.zeros(array.size)
    for seed in range(seeds):
        decoded = checks.array_of(checks.stream_of(array, codec, seed=seed))
        error = (decoded.astype(float) - array.astype(float)) / size
        total += error
        squares += error**2
    variance = squares / seeds
    fair = variance > 0.03
    assert fair.sum() > 500
    assert np.all(np.abs(total[fair]) <= 4.5 * np.sqrt(seeds * variance[fair]))
    assert abs(total.sum()) <= 4.5 * np.sqrt(squares.sum())


@pytest.mark.parametrize("dtype", FLOATS)
def test_seeds_decide_the_bytes_and_nothing_else_does(dtype: str) -> None:
    array = normal(dtype)
    for codec in (SmaQ(block_size=100), SmaQ(statistics="sampled", rounding="nearest")):
        assert len({checks.stream_of(array, codec, seed=seed) for seed in (0, 1, 2**32, 2**64 - 1)}) == 4
        checks.check_same_bytes(array, codec, checks.stream_of(array, codec))
        with pytest.raises(TypeError, match=r"^seed: expected an integer, or a.*got None"):
            arrcomp.compress(array, codec)
    assert checks.stream_of(array, SmaQ(rounding="nearest"), seed=1) == checks.stream_of(
        array, SmaQ(rounding="nearest")
    )


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (7,), (8,), (31,), (33,), (2, 3, 5), (4097,), (COUNT,)])
def test_every_shape_comes_back(shape: tuple[int, ...], device: checks.Host) -> None:
    for dtype, codec in itertools.product(FLOATS, CODECS):
        checks.check_codec(normal(dtype, int(np.prod(shape))).reshape(shape), codec, device)


def test_small_arrays_are_stored_as_they_are() -> None:
    array = np.array([1, np.nan, -0.0, np.inf, 1e-45, 3, 4], np.float32)
    for count in range(8):
        checks.check_same_bits(checks.array_of(checks.check_codec(array[:count], SmaQ())), array[:count])
    large = normal("float64", 9000)
    checks.check_same_bits(checks.array_of(checks.check_codec(large, SmaQ(min_size=9001))), large)
    assert not np.array_equal(checks.array_of(checks.check_codec(large, SmaQ(min_size=9000))), large)


def test_other_layouts_and_byte_orders_give_the_same_bytes() -> None:
    for dtype in ("float16", "float32", "float64"):
        array = normal(dtype, 60 * 80).reshape(60, 80)
        padded = np.zeros((120, 83), array.dtype)
        padded[::2, 3:] = array
        frozen = array.copy()
        frozen.flags.writeable = False
        for other in (np.asfortranarray(array), padded[::2, 3:], array.astype(array.dtype.newbyteorder(">")), frozen):
            assert checks.stream_of(other, SmaQ()) == checks.stream_of(array, SmaQ())
        assert checks.stream_of(array[::-1, ::-1], SmaQ()) == checks.stream_of(array[::-1, ::-1].copy(), SmaQ())


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_payload_is_as_long_as_the_format_says(dtype: str) -> None:
    for (main, outlier), block_size, min_size in itertools.product(BITS[::2], (None, 32, 5000), (0, 8, 32, 1000)):
        codec = SmaQ(main, outlier, block_size=block_size, min_size=min_size, rounding="nearest")
        for count in (0, 1, 7, 33, 999, 10_001):
            array = normal(dtype, count)
            stream = checks.stream_of(array, codec)
            checks.check_capacity(stream, array)
            start, end = checks.payload_span(stream)
            parts = written(stream, codec)
            outliers = [np.count_nonzero(parts.codes[i : i + 4096] & 1) for i in range(0, parts.codes.size, 4096)]
            extra = sum(4 * (outlier - main) * -(-number // 32) for number in outliers)
            layout = reference_smaq.layout_of(settings_of(codec), count, array.dtype.itemsize)
            spec = arrcomp.from_bytes(stream).spec
            assert end - start == layout.nbytes + extra
            assert spec.least_payload_nbytes == layout.nbytes
            assert spec.capacity <= arrcomp.max_compressed_nbytes(array)
            terms = _core.capacity_terms(codec.id, codec.core_parameters(), spec.dtype.id)
            sums = [b * -(-(-(-count // i) * m) // o) if i else b for i, m, o, b in terms]
            assert bool(terms) == (min_size <= 32)
            assert not terms or sum(sums) == spec.capacity


def test_bits_a_value_follow_from_the_share_of_outliers() -> None:
    array = np.random.default_rng(4).normal(0, 1, 1 << 20).astype(np.float32)
    codec = SmaQ(block_size=None, rounding="nearest")
    stream = checks.stream_of(array, codec)
    share = np.mean(np.abs((array - array.mean()) / array.std()) > 1)
    start, end = checks.payload_span(stream)
    bits = 8 * (end - start) / array.size
    assert share == pytest.approx(0.3173, abs=0.002)
    assert bits == pytest.approx(6 + 2 * share + 64 / 4096, abs=0.016 + 1e-3)


@pytest.mark.parametrize(("kind", "clamped", "extended"), [("normal", 0.055, 0.025), ("laplace", 0.18, 0.04)])
def test_errors_are_those_of_the_definition(kind: str, clamped: float, extended: float) -> None:
    array = getattr(np.random.default_rng(5), kind)(0, 0.02, 100 * 1024).astype(np.float32)
    x = array.astype(np.float64).reshape(100, 1024)
    score = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    distance = np.abs(score)
    for overflow, most in zip(OVERFLOWS, (extended, clamped), strict=True):
        last = distance.max(1, keepdims=True) if overflow == "extend" else np.full((100, 1), 2.5)
        beyond = 1 + np.minimum(np.rint((distance - 1) * 63 / (last - 1)), 63) * (last - 1) / 63
        plain = np.sign(score) * np.where(distance > 1, beyond, np.rint(distance * 15) / 15)
        plain = x.mean(1, keepdims=True) + x.std(1, keepdims=True) * plain
        decoded = checks.array_of(checks.stream_of(array, SmaQ(overflow=overflow, rounding="nearest")))
        error = np.linalg.norm(decoded.astype(np.float64).reshape(x.shape) - x)
        assert error == pytest.approx(np.linalg.norm(plain - x), rel=1e-3)
        assert error / np.linalg.norm(x) < most


@pytest.mark.parametrize("dtype", FLOATS)
def test_altered_payloads_are_read_as_the_format_says(dtype: str) -> None:
    rng = np.random.default_rng(9)
    for codec in CODECS:
        stream = checks.stream_of(normal(dtype, 777), codec)
        start, end = checks.payload_span(stream)
        layout = reference_smaq.layout_of(settings_of(codec), 777, numpy_dtype(dtype).itemsize)
        numbers, codes = slice(start, start + layout.codes_at), slice(start + layout.nbytes, end)
        body = bytearray(stream[:end])
        for part in (numbers, codes):  # whose bytes may be any
            body[part] = rng.bytes(part.stop - part.start)
        altered = checks.seal(body)
        checks.check_reference(altered, checks.array_of(altered))


def test_seeds_and_lengths_that_vary_come_together_in_batches() -> None:
    arrays = [normal("float32", count) for count in (0, 5, 5000, 33, 20_000)]
    together = arrcomp.compress_many(arrays, SmaQ(), seed=3)
    for array, compressed in zip(arrays, together, strict=True):
        assert compressed.to_bytes() == checks.stream_of(array, SmaQ(), seed=3)
    for array, decoded in zip(arrays, arrcomp.decompress_many(together), strict=True):
        checks.check_same_bits(decoded, checks.array_of(checks.stream_of(array, SmaQ(), seed=3)))
