"""FloatFormat: codes against ml_dtypes, PyTorch and exact integers, scales and errors against plain NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import arrcomp
import checks
import reference_buckets
import reference_float_format as reference
from arrcomp import FloatFormat
from checks import FLOATS, Array, numpy_dtype
from reference_philox import random_words

# What ml_dtypes has of the formats.
TWINS = {
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    "fp8_e4m3fnuz": "float8_e4m3fnuz",
    "fp8_e5m2fnuz": "float8_e5m2fnuz",
    "fp8_e4m3b11fnuz": "float8_e4m3b11fnuz",
    "e3m4": "float8_e3m4",
    "e4m3": "float8_e4m3",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
}
WITHOUT_NAN = ("fp6_e3m2", "fp6_e2m3", "fp4_e2m1")
OTHERS = ("e2m1", "e2m13", "e3m2", "e4m6", "e5m1", "e6m9", "e7m8", "e8m1", "e8m5")
BLOCKS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "mxint8", "nvfp4")
ROUNDINGS: tuple[Any, ...] = ("nearest", "stochastic")
OVERFLOWS: tuple[Any, ...] = ("saturate", "infinity")
COUNT = 3 * 4096 + 5

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


def small(codec: FloatFormat) -> reference.Format:
    return reference.format_of(codec.format)


def real_of(dtype: np.dtype[Any]) -> Any:
    """The arithmetic type."""
    return np.float64 if dtype.itemsize == 8 else np.float32


def normal(name: str, count: int = COUNT, scale: float = 1.0) -> Array:
    """Normal values, the same whatever their type."""
    with np.errstate(all="ignore"):
        found: Array = np.random.default_rng(11).normal(0, scale, count).astype(numpy_dtype(name))
    return found


def bucket_size(codec: FloatFormat, count: int) -> int:
    """Elements that share a scale; 0 where none do."""
    return small(codec).block or {"tensor": count, "bucket": codec.bucket_size or 0}.get(codec.scaling or "", 0)


def codes_of(stream: bytes, codec: FloatFormat, count: int, itemsize: int) -> Array:
    """The codes in a stream, from its end."""
    payload = stream[slice(*checks.payload_span(stream))]
    bits = small(codec).bits
    nbytes = 64 * -(-(-(-count // 32) * bits) // 16)
    return reference_buckets.read_codes(payload[len(payload) - nbytes :], count, bits)


def scales_of(stream: bytes, codec: FloatFormat, count: int, real: Any) -> Array:
    """Each element's scale."""
    size = bucket_size(codec, count)
    payload = stream[slice(*checks.payload_span(stream))]
    with np.errstate(all="ignore"):
        scales, _ = reference.scales_of(payload, -(-count // size), small(codec), real)
    return scales[np.arange(count) // size]


def largest_of(found: reference.Format) -> float:
    """L."""
    top = (1 << found.x) - (2 if found.specials == "IEEE" else 1)
    steps = (2 << found.y) - (2 if found.specials == "one NaN" else 1)
    return float(steps * 2.0 ** (top - found.bias - found.y))


def nan_code(found: reference.Format) -> int:
    """The one that writers take."""
    ones = (1 << found.x + found.y) - 1
    ieee = ones - (1 << found.y) + 1 | 1 << found.y - 1
    return {"IEEE": ieee, "one NaN": ones, "unsigned zero": ones + 1}[found.specials]


def rounded(z: Array, found: reference.Format, next_is_special: bool, words: Array | None, mantissa: int) -> Array:
    """The magnitudes m that z becomes, in integers alone; z is not negative, and exact in float64."""
    largest = largest_of(found)
    lowest = 1 - found.bias
    if next_is_special:
        largest += np.ldexp(1.0, int(np.frexp(largest)[1]) - 1 - found.y)
    z = np.minimum(z, largest)
    exponent = np.maximum(np.frexp(z)[1] - 1, lowest)
    dropped = mantissa - found.y
    # In units of the arithmetic type's mantissa: a whole number but for subnormal numbers, which "stochastic" rounds.
    units = np.ldexp(z, (dropped + found.y - exponent).astype(np.int32))
    if words is None:
        steps = np.rint(np.ldexp(units, -dropped)).astype(np.int64)
    else:
        fraction = words >> np.uint64(32 - dropped) if dropped <= 32 else (words * 2 + 1) << np.uint64(dropped - 33)
        steps = (np.rint(units).astype(np.int64) + fraction.astype(np.int64)) >> dropped
    found_codes: Array = steps + (exponent - lowest).astype(np.int64) * (1 << found.y)
    return found_codes


def expected_codes(array: Array, codec: FloatFormat, scales: Array | None = None, seed: int = checks.SEED) -> Array:
    """Every code by FORMAT.md, from the scales that were written."""
    found, real = small(codec), real_of(array.dtype)
    x = array.astype(real)
    with np.errstate(all="ignore"):
        if scales is None:
            z = np.abs(x)
        else:
            tiny = (scales > 0) & (scales < np.finfo(real).tiny / 2)
            p = np.where(tiny, real(2.0**64), real(1))
            z = np.abs((x * p) * np.where(scales == 0, real(0), real(1) / (scales * p)))
        broken = np.isnan(z)
        words = random_words(array.size, seed) if codec.rounding == "stochastic" else None
        special = codec.overflow == "infinity" and found.specials not in ("none", "integer")
        wide = np.where(broken, np.inf, z).astype(np.float64)
        m = rounded(wide, found, special, words, 52 if real == np.float64 else 23)
    negative = np.signbit(x)
    if found.specials == "integer":
        return np.where(negative, (256 - m) % 256, m)
    sign = np.where(negative, 1 << found.x + found.y, 0)
    if found.specials == "unsigned zero":
        sign = np.where(m == 0, 0, sign)
    codes = m | sign
    if scales is None:
        infinite = (((1 << found.x) - 1) << found.y) | sign
        codes = np.where(np.isinf(x), infinite if found.specials == "IEEE" else nan_code(found), codes)
        codes = np.where(np.isnan(x), nan_code(found), codes)
    return codes


def sweep(name: str) -> Array:
    """Every exponent with mantissas at edges, both signs, and random bits; all bits there are of 16."""
    dtype = numpy_dtype(name)
    if dtype.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    limits: Any = np.finfo(dtype)
    mantissa, unsigned = limits.nmant, np.dtype(f"u{dtype.itemsize}")
    places = [1 << k for k in range(mantissa)]
    edges = {0, *places, *((1 << mantissa) - p for p in places)}
    edges |= {(p + d) % (1 << mantissa) for p in places for d in (-1, 1)} | {3 * p % (1 << mantissa) for p in places}
    edges |= {(3 * p + d) % (1 << mantissa) for p in places for d in (-1, 1)}
    exponents = np.arange(1 << (8 * dtype.itemsize - 1 - mantissa), dtype=unsigned) << unsigned.type(mantissa)
    every = (exponents[:, None] | np.array(sorted(edges), unsigned)).reshape(-1)
    sign = unsigned.type(1 << (8 * dtype.itemsize - 1))
    random = np.random.default_rng(5).integers(0, np.iinfo(unsigned).max, 1 << 22, unsigned, endpoint=True)
    if dtype.itemsize == 8:  # or nearly all would be out of every format's range
        random = (random & ~(exponents[-1])) | (np.uint64(1023 - 160) + random % np.uint64(320)) << np.uint64(52)
    return np.concatenate([every, every | sign, random]).view(dtype)


SWEEPS = {name: sweep(name) for name in FLOATS}


def check_codes(array: Array, codec: FloatFormat, expected: Array) -> None:
    found = codes_of(checks.stream_of(array, codec), codec, array.size, array.dtype.itemsize)
    different = np.flatnonzero(found != expected)
    assert different.size == 0, (codec, different.size, array[different[:3]], found[different[:3]])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TWINS)
def test_codes_are_those_of_ml_dtypes(name: str, dtype: str) -> None:
    codec, twin, array = FloatFormat(name, overflow="infinity"), numpy_dtype(TWINS[name]), SWEEPS[dtype]
    if name == "fp32" and array.dtype.itemsize == 2:
        return
    with np.errstate(all="ignore"):
        if dtype == "float64":  # theirs is rounded to float32 first, but for float16's and float32's
            array = array if name in ("fp16", "fp32") else array.astype(np.float32).astype(np.float64)
        cast = array.astype(twin)
    expected = cast.view(f"u{twin.itemsize}")
    found = codes_of(checks.stream_of(array, codec), codec, array.size, array.dtype.itemsize)
    lost = np.isnan(cast.astype(np.float32))
    np.testing.assert_array_equal(found[~lost], expected[~lost])
    assert np.isnan(found[lost].astype(expected.dtype).view(twin).astype(np.float32)).all()
    decoded = checks.array_of(checks.stream_of(array, codec))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(decoded[~lost], cast.astype(array.dtype)[~lost])
    assert np.isnan(decoded[lost].astype(np.float32)).all()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "bfloat16", "float16"])
def test_codes_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    array = SWEEPS["float32"]
    codec = FloatFormat({twin: own for own, twin in TWINS.items()}[name], overflow="infinity")
    cast = torch.from_numpy(array).to(getattr(torch, name))
    expected = cast.view(torch.uint8 if cast.element_size() == 1 else torch.int16).numpy()
    found = codes_of(checks.stream_of(array, codec), codec, array.size, 4).astype(expected.dtype)
    same = (found == expected) | np.isnan(cast.float().numpy())
    if name in ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3fn"):
        same |= np.isinf(array)
    assert same.all(), array[~same][:5]


@pytest.mark.parametrize("overflow", OVERFLOWS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*TWINS, *OTHERS])
def test_every_code_is_the_nearest(name: str, dtype: str, overflow: Any) -> None:
    array = SWEEPS[dtype]
    if name == "fp32" and array.dtype.itemsize == 2:
        return
    codec = FloatFormat(name, overflow=overflow)
    check_codes(array, codec, expected_codes(array, codec))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*TWINS, *OTHERS])
def test_every_code_of_stochastic_rounding_is_predicted(name: str, dtype: str) -> None:
    array = SWEEPS[dtype][: 1 << 18]
    if name == "fp32" and array.dtype.itemsize == 2:
        return
    for overflow in OVERFLOWS:
        codec = FloatFormat(name, rounding="stochastic", overflow=overflow)
        check_codes(array, codec, expected_codes(array, codec))


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


def expected_scales(array: Array, codec: FloatFormat) -> Array:
    """Each element's scale by the definition, where float64 suffices to tell."""
    found, size = small(codec), bucket_size(codec, array.size)
    x = np.abs(array.astype(np.float64))
    amax = np.array([part.max() for part in np.split(x, range(size, array.size, size))])
    most = largest_of(found)
    if found.block == 32:
        power = np.floor(np.log2(amax)) - np.floor(np.log2(most))
        if codec.scale_rule == "ceil":
            power = np.ceil(np.log2(amax / most))
        scales = 2.0 ** np.clip(power, -127, 127)
    elif found.block == 16:
        of_array = x.max() / (448 * 6)
        scales = (amax / of_array / 6).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * of_array
    else:
        scales = amax / most
    return scales[np.arange(array.size) // size]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_code_with_a_scale_is_predicted(dtype: str, rounding: Any) -> None:
    array = normal(dtype) * np.linspace(0.1, 3, COUNT).astype(numpy_dtype(dtype))
    for codec in scaled_codecs(rounding):
        stream = checks.stream_of(array, codec)
        scales = scales_of(stream, codec, array.size, real_of(array.dtype))
        np.testing.assert_allclose(scales.astype(np.float64), expected_scales(array, codec), rtol=3e-7)
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
            check_codes(array, codec, expected_codes(array, codec, scales_of(stream, codec, 3000, real_of(array.dtype))))
            y = checks.array_of(stream).astype(np.float64)
            assert np.isfinite(y).all()
            least: Any = ml_dtypes.finfo(array.dtype)  # type: ignore[no-untyped-call]
            step = np.abs(x).max() / largest_of(small(codec)) * 2.0 ** -(small(codec).y - 1)
            coarse = 0.5 if codec.numbers.block_size else 2.0 ** -small(codec).y
            assert np.all(np.abs(x - y) <= coarse * np.abs(x) + step + 40 * float(least.smallest_subnormal)), (codec, power)


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
    assert arrcomp.verify.compare(array, checks.array_of(stream), codec).holds


@pytest.mark.parametrize("codec", KINDS, ids=repr)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_promise_holds(dtype: str, codec: FloatFormat) -> None:
    for scale in (1e-6, 0.02, 1, 300):
        array = normal(dtype, scale=scale)
        decoded = checks.array_of(checks.stream_of(array, codec))
        assert arrcomp.verify.compare(array, decoded, codec).holds, scale
        decoded[77] = 1.3 * decoded[77] + numpy_dtype(dtype).type(1)
        assert not arrcomp.verify.compare(array, decoded, codec).holds


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
    array[:] = np.nan
    assert np.isnan(checks.array_of(checks.check_codec(array, codec)).astype(np.float32)).all()


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("overflow", OVERFLOWS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TWINS)
def test_without_a_scale_nothing_that_is_not_finite_becomes_a_number(
    name: str, dtype: str, overflow: Any, rounding: Any
) -> None:
    if name == "fp32" and dtype in ("float16", "bfloat16"):
        return
    array = np.array([np.nan, -np.nan, np.inf, -np.inf] * 10).astype(numpy_dtype(dtype))
    codec = FloatFormat(name, overflow=overflow, rounding=rounding)
    decoded = checks.array_of(checks.check_codec(array, codec)).astype(np.float64).reshape(-1, 4)
    assert np.isnan(decoded[:, :2]).all()
    if codec.numbers.has_infinity:
        np.testing.assert_array_equal(decoded[:, 2:], np.array([[np.inf, -np.inf]] * 10))
    else:
        assert np.isnan(decoded[:, 2:]).all()


def test_what_the_elements_do_not_hold_saturates_or_is_infinite() -> None:
    array = np.array([65504, -65504, 65440, 1.0, np.inf], np.float16)
    kept = checks.array_of(checks.check_codec(array, FloatFormat("bf16")))
    np.testing.assert_array_equal(kept, np.array([65504, -65504, 65280, 1, np.inf], np.float16))
    lost = checks.array_of(checks.check_codec(array, FloatFormat("bf16", overflow="infinity")))
    np.testing.assert_array_equal(lost, np.array([np.inf, -np.inf, 65280, 1, np.inf], np.float16))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "codec",
    [
        FloatFormat("fp8_e4m3", rounding="stochastic"),
        FloatFormat("e8m3", rounding="stochastic"),
        FloatFormat("fp4_e2m1", scaling="bucket", bucket_size=100, rounding="stochastic"),
        FloatFormat("mxint8", rounding="stochastic"),
        FloatFormat("mxfp4", scale_rule="ceil", rounding="stochastic"),
    ],
    ids=repr,
)
def test_stochastic_is_unbiased(codec: FloatFormat, dtype: str) -> None:
    array, seeds = normal(dtype, 2000), 300
    total, squares = np.zeros(array.size), np.zeros(array.size)
    for seed in range(seeds):
        error = checks.array_of(checks.stream_of(array, codec, seed=seed)).astype(float) - array.astype(float)
        total += error
        squares += error**2
    variance = squares / seeds
    # A coin that nearly always falls alike is left to the sum over all elements.
    fair = variance > 0.05 * np.maximum(np.abs(array.astype(float)) * 2.0 ** -small(codec).y, 1e-3) ** 2
    assert fair.sum() > 500
    assert np.all(np.abs(total[fair]) <= 4.5 * np.sqrt(seeds * variance[fair]))
    assert abs(total.sum()) <= 4 * np.sqrt(squares.sum())


def test_the_same_seed_gives_the_same_bytes() -> None:
    array = normal("float32", 100_000)
    for codec in KINDS:
        if codec.needs_seed:
            stream = checks.stream_of(array, codec, seed=5)
            checks.check_same_bytes(array, codec, checks.stream_of(array, codec))
            assert stream == checks.stream_of(array, codec, seed=5, threads=2)
            assert stream != checks.stream_of(array, codec, seed=6)


def test_fp32_is_exact_for_float32() -> None:
    array = SWEEPS["float32"][:: 64]
    for rounding in ROUNDINGS:
        decoded = checks.array_of(checks.stream_of(array, FloatFormat("fp32", rounding=rounding)))
        np.testing.assert_array_equal(decoded, array)


@pytest.mark.parametrize(("name", "expected"), [
    ("mxfp8", "mxfp8_e4m3"), ("mxfp6", "mxfp6_e2m3"), ("e5m10", "fp16"), ("e8m7", "bf16"), ("e5m2", "fp8_e5m2"),
    ("e4m3", "e4m3"),
])  # fmt: skip
def test_formats_of_two_names_have_one(name: str, expected: str) -> None:
    assert FloatFormat(name).format == expected
    assert FloatFormat(name) == FloatFormat(expected)


def test_defaults_that_depend_are_filled_in() -> None:
    assert FloatFormat("mxfp4") == FloatFormat("mxfp4", scale_rule="floor")
    assert FloatFormat("fp16", scaling="bucket").bucket_size == 512
    assert FloatFormat("fp16").bucket_size is None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"format": 8}, TypeError, "^format=8 is a int; fp8_e4m3, .* or eXmY"),
        ({"format": "fp7"}, ValueError, "^format='fp7': fp8_e4m3, .*nvfp4 or eXmY with X from 2 to 8"),
        ({"format": "e1m3"}, ValueError, "^format='e1m3'"),
        ({"format": "e9m3"}, ValueError, "^format='e9m3'"),
        ({"format": "e4m0"}, ValueError, "^format='e4m0'"),
        ({"format": "e8m8"}, ValueError, "^format='e8m8'"),
        ({"format": "e5m10 "}, ValueError, "^format='e5m10 '"),
        ({"format": "fp4_e2m1"}, ValueError, "^format='fp4_e2m1' has no NaN.* scaling='tensor' or 'bucket' is needed"),
        ({"format": "fp6_e3m2"}, ValueError, "has no NaN"),
        ({"format": "fp16", "scaling": "row"}, ValueError, "^scaling='row': 'tensor' or 'bucket' is allowed"),
        ({"format": "fp16", "scaling": 3}, TypeError, "^scaling=3 is a int"),
        ({"format": "fp16", "bucket_size": 512}, ValueError, "^bucket_size=512: scaling='bucket' alone takes it"),
        ({"format": "fp16", "scaling": "tensor", "bucket_size": 512}, ValueError, "scaling='bucket' alone takes it"),
        ({"format": "fp16", "scaling": "bucket", "bucket_size": 15}, ValueError, "^bucket_size=15: 16 to 10995"),
        ({"format": "fp16", "scaling": "bucket", "bucket_size": 2**40 + 1}, ValueError, "^bucket_size=10995"),
        ({"format": "fp16", "scaling": "bucket", "bucket_size": 16.5}, TypeError, "^bucket_size=16.5 is a float"),
        ({"format": "mxfp4", "scaling": "bucket"}, ValueError, "^scaling='bucket': format='mxfp4' has scales of its own"),
        ({"format": "nvfp4", "bucket_size": 16}, ValueError, "^bucket_size=16: format='nvfp4' has scales of its own"),
        ({"format": "mxfp4", "scale_rule": "up"}, ValueError, "^scale_rule='up': 'floor' or 'ceil' is allowed"),
        ({"format": "nvfp4", "scale_rule": "ceil"}, ValueError, "^scale_rule='ceil': formats whose names begin with 'mx'"),
        ({"format": "fp16", "scale_rule": "ceil"}, ValueError, "^scale_rule='ceil': formats whose names begin with 'mx'"),
        ({"format": "fp16", "rounding": "up"}, ValueError, "^rounding='up': 'nearest' or 'stochastic' is allowed"),
        ({"format": "fp16", "overflow": "wrap"}, ValueError, "^overflow='wrap': 'saturate' or 'infinity' is allowed"),
        ({"format": "mxfp8", "overflow": "infinity"}, ValueError, "^overflow='infinity': format='mxfp8_e4m3' has scales"),
        ({"format": "fp16", "scaling": "tensor", "overflow": "infinity"}, ValueError, "^overflow='infinity': scaling="),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_say_what_is_allowed(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        FloatFormat(**arguments)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_fp32_is_wider_than_16_bits(dtype: str) -> None:
    with pytest.raises(TypeError, match=f"dtype {dtype}: format='fp32' is wider; float32 and float64 are allowed"):
        arrcomp.compress(np.zeros(3, numpy_dtype(dtype)), FloatFormat("fp32"))


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
    np.testing.assert_array_equal(np.isnan(checks.array_of(streams[0]))[-20:], np.arange(count - 20, count) // 16 == count // 16)


