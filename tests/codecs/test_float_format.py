"""FloatFormat with scales: against plain NumPy, value by value and over many seeds; all kinds of arrays."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import checks
import reference_float_format as reference
from arrcomp import FloatFormat, _core
from arrcomp._cli.guarantees import compare
from arrcomp._dtypes import by_numpy
from checks import FLOATS, numpy_dtype

from .small_floats import (
    BLOCKS,
    COUNT,
    ROUNDINGS,
    SWEEPS,
    WITHOUT_NAN,
    bucket_size,
    check_codes,
    expected_codes,
    expected_scales,
    largest_of,
    normal,
    real_of,
    scales_of,
    small,
)

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

# One of each kind.
KINDS = [
    FloatFormat("fp8_e4m3"),
    FloatFormat("bf16", overflow="infinity"),
    FloatFormat("e3m5", rounding="stochastic"),
    FloatFormat("fp8_e5m2", scaling="tensor"),
    FloatFormat("fp6_e2m3", scaling="bucket", bucket_size=100, rounding="stochastic"),
    FloatFormat("fp4_e2m1", scaling="bucket", bucket_size=16),
    FloatFormat("fp8_e4m3", scaling="bucket", bucket_size=5000),
    *(FloatFormat(name) for name in BLOCKS),
    FloatFormat("mxfp4", scale_rule="ceil", rounding="stochastic"),
    FloatFormat("nvfp4", rounding="stochastic"),
]


def scaled_codecs(rounding: Any) -> list[FloatFormat]:
    """Formats with scales of all kinds."""
    formats = ("fp8_e4m3", "fp8_e5m2", "fp8_e4m3fnuz", "fp16", "bf16", "e3m3", *WITHOUT_NAN)
    sizes = (16, 17, 32, 512, 5000)
    found = [
        FloatFormat(name, scaling="bucket", bucket_size=n, rounding=rounding)
        for name, n in itertools.product(formats, sizes)
    ]
    found += [FloatFormat(name, scaling="tensor", rounding=rounding) for name in formats]
    found += [FloatFormat(name, rounding=rounding) for name in BLOCKS]
    return found + [FloatFormat(name, scale_rule="ceil", rounding=rounding) for name in BLOCKS if name != "nvfp4"]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_code_with_a_scale_is_predicted(dtype: str, rounding: Any) -> None:
    array = normal(dtype) * np.linspace(0.1, 3, COUNT).astype(numpy_dtype(dtype))
    for codec in scaled_codecs(rounding):
        stream = checks.stream_of(array, codec)
        scales = scales_of(stream, codec, array.size, real_of(array.dtype))
        np.testing.assert_allclose(scales.astype(np.float64), expected_scales(array, codec), rtol=3e-7, atol=3e-45)
        check_codes(array, codec, expected_codes(array, codec, scales))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_scales_of_tiny_and_huge_values(dtype: str) -> None:
    powers = (-1074, -1060, -700, 600, 1000) if dtype == "float64" else (-149, -140, -130, -127, -126, -120, 120, 126)
    for power in powers:
        array = np.ldexp(normal("float64", 3000) / 2, power).astype(numpy_dtype(dtype))
        x = array.astype(np.float64)
        for codec in scaled_codecs("nearest"):
            if codec.numbers.block_size == 32 and dtype == "float64":
                continue  # out of the range of their scales
            stream = checks.stream_of(array, codec)
            check_codes(
                array, codec, expected_codes(array, codec, scales_of(stream, codec, 3000, real_of(array.dtype)))
            )
            y = checks.array_of(stream).astype(np.float64)
            assert np.isfinite(y).all()
            least: Any = ml_dtypes.finfo(array.dtype)
            step = np.abs(x).max() / largest_of(small(codec)) * 2.0 ** -(small(codec).y - 1)
            coarse = 0.5 if codec.numbers.block_size else 2.0 ** -small(codec).y
            if codec.numbers.block_size == 32:
                step += 2.0 ** (-126 - small(codec).bias - small(codec).y)  # their scales end at 2^-127
            allowed = coarse * np.abs(x) + step + 40 * float(least.smallest_subnormal)
            assert np.all(np.abs(x - y) <= allowed), (codec, power)


def test_doubles_beyond_the_scales_of_blocks_saturate() -> None:
    array = np.array([1e300, -1e300, 1.0, 0.0] * 8)
    for name in BLOCKS[:-1]:
        decoded = checks.array_of(checks.stream_of(array, FloatFormat(name)))
        largest = largest_of(reference.format_of(name)) * 2.0**127
        np.testing.assert_array_equal(decoded, np.array([largest, -largest, 0.0, 0.0] * 8))


@pytest.mark.parametrize("name", BLOCKS[:-1])
def test_rules_of_blocks_at_the_edges(name: str) -> None:
    most = largest_of(reference.format_of(name))
    top = 2.0 ** np.floor(np.log2(most))
    for factor in (1.0, np.nextafter(1, 2, dtype=np.float32), np.nextafter(1, 0, dtype=np.float32)):
        for amax in (most, top, 2 * top):
            block = np.full(32, amax * factor, np.float32)
            block[1:] = 0
            floor, ceil = (FloatFormat(name, scale_rule=rule) for rule in ("floor", "ceil"))
            found = [scales_of(checks.stream_of(block, codec), codec, 32, np.float32)[0] for codec in (floor, ceil)]
            assert found[0] == 2.0 ** (np.floor(np.log2(np.float64(block[0]))) - np.log2(top))
            assert found[1] * most >= block[0] > found[1] / 2 * most


def gaussian_error(codec: FloatFormat) -> float:
    x = np.random.default_rng(1).normal(0, 0.02, 1 << 18).astype(np.float32)
    y = checks.array_of(checks.stream_of(x, codec))
    return float(np.linalg.norm(x.astype(np.float64) - y) / np.linalg.norm(x.astype(np.float64)))


def plain_error(codec: FloatFormat) -> float:
    """The same by a table of all numbers of the format, in float64."""
    x = np.random.default_rng(1).normal(0, 0.02, 1 << 18).astype(np.float32).astype(np.float64)
    found = small(codec)
    numbers = reference.numbers_of(np.arange(1 << found.bits), found)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    size = bucket_size(codec, x.size)
    scale = expected_scales(x, codec) if size else np.ones(x.size)
    z = x / scale
    above = np.searchsorted(numbers, z).clip(1, numbers.size - 1)
    low, high = numbers[above - 1], numbers[above]
    y = scale * np.where(z - low < high - z, low, high)
    return float(np.linalg.norm(x - y) / np.linalg.norm(x))


@pytest.mark.parametrize(
    ("codec", "published"),
    [
        (FloatFormat("fp8_e4m3", scaling="tensor"), 0.027),
        (FloatFormat("fp8_e5m2", scaling="tensor"), 0.053),
        (FloatFormat("mxfp8_e4m3"), 0.030),
        (FloatFormat("mxfp4"), 0.114),
        (FloatFormat("nvfp4"), 0.095),
        (FloatFormat("mxfp8_e5m2"), None),
        (FloatFormat("mxfp6_e2m3"), None),
        (FloatFormat("mxfp6_e3m2"), None),
        (FloatFormat("mxint8"), None),
        (FloatFormat("mxfp4", scale_rule="ceil"), None),
        (FloatFormat("fp4_e2m1", scaling="bucket"), None),
        (FloatFormat("fp8_e4m3"), None),
        (FloatFormat("fp8_e4m3fnuz"), None),
        (FloatFormat("bf16"), None),
        (FloatFormat("fp16"), None),
        (FloatFormat("e3m8"), None),
    ],
    ids=repr,
)
def test_the_error_on_gaussian_values(codec: FloatFormat, published: float | None) -> None:
    found = gaussian_error(codec)
    assert found == pytest.approx(plain_error(codec), rel=0.02)
    if published is not None:
        assert found == pytest.approx(published, rel=0.05)


@pytest.mark.parametrize("codec", KINDS, ids=repr)
@pytest.mark.parametrize("dtype", FLOATS)
def test_all_shapes_and_kinds_of_arrays(dtype: str, codec: FloatFormat) -> None:
    values = normal(dtype, 2 * 4096 + 100)
    for shape in ((), (0,), (3, 0, 2), (1,), (15,), (16,), (31,), (33,), (65,), (5, 7), (4097,), (2, 4096)):
        checks.check_codec(values[: int(np.prod(shape))].reshape(shape), codec)
    wide = values[:8000].reshape(80, 100)
    checks.check_codec(wide[::3, ::-2], codec)
    checks.check_codec(np.asfortranarray(wide), codec)
    frozen = values.copy()
    frozen.flags.writeable = False
    assert checks.stream_of(frozen, codec) == checks.stream_of(values, codec)
    misaligned = np.frombuffer(b"." + values.tobytes(), values.dtype, offset=1)
    assert checks.stream_of(misaligned, codec) == checks.stream_of(values, codec)
    if dtype != "bfloat16":
        swapped = values.astype(values.dtype.newbyteorder(">"))
        assert checks.stream_of(swapped, codec) == checks.stream_of(values, codec)


@pytest.mark.parametrize("codec", KINDS, ids=repr)
@pytest.mark.parametrize("dtype", FLOATS)
def test_any_bits_come_back_the_same_everywhere(dtype: str, codec: FloatFormat) -> None:
    array = SWEEPS[dtype][:: SWEEPS[dtype].size // 20_000]
    stream = checks.check_codec(array, codec)
    assert compare(array, checks.array_of(stream), codec).holds


@pytest.mark.parametrize("codec", KINDS, ids=repr)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_promise_holds(dtype: str, codec: FloatFormat) -> None:
    for scale in (1e-6, 0.02, 1, 300):
        array = normal(dtype, scale=scale)
        decoded = checks.array_of(checks.stream_of(array, codec))
        assert compare(array, decoded, codec).holds, scale
        decoded[77] = -1 - 8 * np.abs(array.astype(np.float64)).max()
        assert not compare(array, decoded, codec).holds


@pytest.mark.parametrize("codec", KINDS, ids=repr)
@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_stay_zeros(dtype: str, codec: FloatFormat) -> None:
    array = np.zeros(1000, numpy_dtype(dtype))
    array[::3] = -0.0
    assert not checks.array_of(checks.check_codec(array, codec)).astype(np.float64).any()
    array[500:] = normal(dtype, 500)
    decoded = checks.array_of(checks.stream_of(array, codec)).astype(np.float64)
    assert not decoded[:500].any()
    assert decoded[500:].any()


@pytest.mark.parametrize("codec", [codec for codec in KINDS if bucket_size(codec, 1000)], ids=repr)
@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_not_finite_makes_its_bucket_nan_and_no_other(dtype: str, codec: FloatFormat) -> None:
    clean = normal(dtype, 1000)
    clean[0] = 100  # the largest, in no broken block
    array, places = clean.copy(), [150, 499, 600, 601, 999]
    array[places] = [np.nan, np.inf, -np.inf, np.inf, -np.nan]
    size = bucket_size(codec, 1000)
    broken = np.isin(np.arange(1000) // size, np.array(places) // size)
    expected = checks.array_of(checks.stream_of(clean, codec))
    expected[broken] = np.nan
    checks.check_same_bits(checks.array_of(checks.check_codec(array, codec)), expected)
    stream = checks.stream_of(array, codec)
    scales = scales_of(stream, codec, 1000, real_of(array.dtype))
    np.testing.assert_array_equal(np.isnan(scales), broken)
    assert not np.signbit(scales[broken]).any()
    check_codes(array, codec, expected_codes(array, codec, scales))
    array[:] = np.nan
    assert np.isnan(checks.array_of(checks.check_codec(array, codec)).astype(np.float32)).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "codec",
    [
        FloatFormat("fp8_e4m3", rounding="stochastic"),
        FloatFormat("e8m3", rounding="stochastic"),
        FloatFormat("fp4_e2m1", scaling="bucket", bucket_size=100, rounding="stochastic"),
        FloatFormat("mxint8", scale_rule="ceil", rounding="stochastic"),
        FloatFormat("mxfp4", scale_rule="ceil", rounding="stochastic"),
    ],
    ids=repr,
)
def test_stochastic_is_unbiased(codec: FloatFormat, dtype: str) -> None:
    array, seeds = normal(dtype, 2000), 300
    errors = np.stack([checks.array_of(checks.stream_of(array, codec, seed=seed)) for seed in range(seeds)])
    errors = errors.astype(np.float64) - array.astype(np.float64)
    low, high = errors.min(axis=0), errors.max(axis=0)  # of an unbiased coin, whose variance follows from them
    variance = -low * high
    # One that nearly always falls alike is left to the sum over all elements.
    fair = variance > 0.03 * (high - low) ** 2
    assert fair.sum() > 500
    assert np.all(np.abs(errors.sum(axis=0)[fair]) <= 4.5 * np.sqrt(seeds * variance[fair]))
    assert abs(errors.sum()) <= 4 * np.sqrt(np.square(errors).sum())


def test_the_same_seed_gives_the_same_bytes() -> None:
    array = normal("float32", 100_000)
    for codec in KINDS:
        if codec.needs_seed:
            stream = checks.stream_of(array, codec, seed=5)
            checks.check_same_bytes(array, codec, checks.stream_of(array, codec))
            assert stream == checks.stream_of(array, codec, seed=5, threads=2)
            assert stream != checks.stream_of(array, codec, seed=6)


@pytest.mark.parametrize("count", [4096 * 34 + 77, 4096 * 1030 + 5])
def test_the_array_scale_of_nvfp4_is_found_by_any_number_of_threads(count: int) -> None:
    array = np.zeros(count, np.float32)
    array[count // 3] = -5
    array[:5000] = normal("float32", 5000)
    array[-1] = np.nan
    codec = FloatFormat("nvfp4")
    streams = [checks.stream_of(array, codec, threads=threads) for threads in (1, 2, 3)]
    assert streams[0] == streams[1] == streams[2]
    payload = streams[0][slice(*checks.payload_span(streams[0]))]
    expected = np.float32(np.abs(array[:-1]).max()) / np.float32(448 * 6)
    assert np.frombuffer(payload, np.float32, 2).tolist() == [expected, 0]
    lost = np.flatnonzero(np.isnan(checks.array_of(streams[0])))
    np.testing.assert_array_equal(lost, np.arange(count // 16 * 16, count))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_core_refuses_formats_that_have_more_bits_than_the_elements(dtype: str) -> None:
    codec = FloatFormat("fp32")
    with pytest.raises(ValueError, match="codec"):
        _core.capacity(codec.id, codec.core_parameters(), by_numpy(numpy_dtype(dtype)).id, 8)
