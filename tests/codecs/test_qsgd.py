"""QSGD: against plain NumPy, value by value, code by code, and over many seeds."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import arrcomp
import checks
import reference_buckets
from arrcomp import QSGD, _core
from checks import FLOATS, Array, numpy_dtype
from reference_philox import philox, random_words

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

NORMS: tuple[Any, ...] = ("minmax", "l2", "linf")
ROUNDINGS: tuple[Any, ...] = ("nearest", "stochastic")
BUCKET_SIZES = (16, 17, 100, 512, 4096, 5000, 20_000)
COUNT = 3 * 4096 + 5


def real_of(dtype: np.dtype[Any]) -> Any:
    """The arithmetic type."""
    return np.float64 if dtype.itemsize == 8 else np.float32


def normal(name: str, count: int = COUNT, scale: float = 1.0, offset: float = 0.0) -> Array:
    """Normal values, the same whatever their type."""
    found: Array = (offset + np.random.default_rng(11).normal(0, scale, count)).astype(numpy_dtype(name))
    return found


def steps(codec: QSGD) -> int:
    """Levels but one."""
    return (1 << codec.bits) - (1 if codec.norm == "minmax" or codec.bits == 1 else 2)


class Written(NamedTuple):
    """What a stream holds: for each element its bucket's unit and low (0 with a norm), and its code."""

    unit: Array
    low: Array
    codes: Array
    decoded: Array


def written(stream: bytes, codec: QSGD) -> Written:
    """A stream taken apart as FORMAT.md says (without `skip_incomplete`)."""
    decoded, payload = checks.array_of(stream), stream[slice(*checks.payload_span(stream))]
    settings, real = reference_buckets.settings_of(codec.config()), real_of(decoded.dtype)
    layout = reference_buckets.layout_of(settings, decoded.size, decoded.dtype.itemsize)
    numbers = np.frombuffer(payload, real, layout.buckets * layout.columns).reshape(layout.buckets, layout.columns)
    each = numbers[np.arange(decoded.size) // codec.bucket_size]
    low = each[:, 1] if codec.norm == "minmax" else np.zeros(decoded.size, real)
    codes = reference_buckets.read_codes(payload[layout.codes_at : layout.tail_at], decoded.size, codec.bits)
    return Written(each[:, 0], low, codes, decoded.reshape(-1))


def root_of_squares(bucket: Array) -> Any:
    """The "l2" norm, whose squares neither overflow nor vanish."""
    largest = np.abs(bucket).max().astype(np.float64)
    return largest * np.linalg.norm(bucket / largest) if largest else largest


def expected_numbers(array: Array, codec: QSGD) -> tuple[Array, Array]:
    """Each element's unit and low by the codec's definition, in the arithmetic type ("l2": in float64)."""
    real, units, lows = real_of(array.dtype), [], []
    for bucket in np.split(array.astype(real), range(codec.bucket_size, array.size, codec.bucket_size)):
        low, extent = bucket.min(), bucket.max() - bucket.min()
        if codec.norm != "minmax":
            extent = np.abs(bucket).max() if codec.norm == "linf" else root_of_squares(bucket)
            low = real(0)
        parts = steps(codec) / (1 if codec.norm == "minmax" or codec.bits == 1 else 2)
        least = np.finfo(real).smallest_subnormal
        units.append(np.full(bucket.size, max(extent / type(extent)(parts), least if extent else 0)))
        lows.append(np.full(bucket.size, low))
    return np.concatenate(units), np.concatenate(lows)


def distance(found: Written, codec: QSGD) -> Array:
    """How far apart two levels are, for each element, in float64."""
    return found.unit.astype(np.float64) * (2 if codec.bits == 1 and codec.norm != "minmax" else 1)


def roundings(array: Array, found: Written, codec: QSGD) -> Array:
    """What rounding may add to the error of each element: of the arithmetic, and of y to the elements' type."""
    limits: Any = ml_dtypes.finfo(array.dtype)
    real, low = np.finfo(real_of(array.dtype)), found.low.astype(np.float64)
    span = steps(codec) * distance(found, codec) + np.abs(low)
    least = (steps(codec) + 2) * float(real.smallest_subnormal)
    element = float(limits.eps) * np.abs(found.decoded.astype(np.float64)) + float(limits.smallest_subnormal)
    total: Array = (1e-5 if codec.norm == "l2" else 4 * float(real.eps)) * span + least + element
    return total


def check_errors(array: Array, codec: QSGD, share: float) -> Written:
    """No element is further from its value than this share of the distance of two levels, and units are right."""
    found = written(checks.stream_of(array, codec), codec)
    unit, low = expected_numbers(array, codec)
    relative, least = (1e-5, np.finfo(found.unit.dtype).smallest_subnormal) if codec.norm == "l2" else (0, 0)
    np.testing.assert_allclose(found.unit, unit, rtol=relative, atol=least)
    np.testing.assert_array_equal(found.low, low)
    error = np.abs(array.astype(np.float64) - found.decoded.astype(np.float64))
    assert np.all(error <= share * distance(found, codec) + roundings(array, found, codec)), codec
    return found


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_nearest_is_within_half_a_unit(dtype: str, norm: Any) -> None:
    for bits, bucket_size in itertools.product(range(1, 9), BUCKET_SIZES):
        codec = QSGD(bits=bits, bucket_size=bucket_size, norm=norm)
        check_errors(normal(dtype), codec, 0.5)
        check_errors(normal(dtype, 700, scale=5, offset=300), codec, 0.5)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_stochastic_takes_one_of_the_two_neighbouring_levels(dtype: str, norm: Any) -> None:
    for bits, bucket_size in itertools.product((1, 2, 3, 5, 8), (17, 512, 20_000)):
        check_errors(normal(dtype), QSGD(bits=bits, bucket_size=bucket_size, norm=norm, rounding="stochastic"), 1)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        ("float16", 6e-8),
        ("float16", 1e-5),
        ("bfloat16", 1e-38),
        ("bfloat16", 1e-40),
        ("float32", 1e-38),
        ("float32", 1e-41),
        ("float32", 3e-45),
        ("float64", 1e-308),
        ("float64", 1e-313),
        ("float64", 1e-323),
    ],
)
def test_tiny_gradients_do_not_vanish(dtype: str, scale: float, norm: Any) -> None:
    array = normal(dtype, 3000, scale)
    for bits, rounding in itertools.product((1, 2, 4, 8), ROUNDINGS):
        codec = QSGD(bits=bits, norm=norm, rounding=rounding)
        found = check_errors(array, codec, 0.5 if rounding == "nearest" else 1)
        assert np.all(found.unit > 0)
        if norm == "minmax":
            for bucket in np.split(found.decoded, range(512, 3000, 512)):
                assert bucket.min() < bucket.max()


def constants(dtype: str) -> list[float]:
    """Values of a type that are hard to keep."""
    limits: Any = ml_dtypes.finfo(numpy_dtype(dtype))
    tiny, least, largest = (float(v) for v in (limits.tiny, limits.smallest_subnormal, limits.max))
    return [0.0, -0.0, 1 / 3, -1.1, 1e4 + 0.7, tiny, -tiny, least, -3 * least, largest, -largest, largest / 3]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_constant_bucket_is_exact(dtype: str, rounding: Any) -> None:
    array = np.repeat(np.array(constants(dtype)).astype(numpy_dtype(dtype)), 100)
    for bits in range(1, 9):
        stream = checks.stream_of(array, QSGD(bits=bits, bucket_size=100, rounding=rounding))
        checks.check_same_bits(checks.array_of(stream), array)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_stay_zeros(dtype: str, norm: Any) -> None:
    array = np.zeros(1000, numpy_dtype(dtype))
    array[::3] = -0.0
    for bits, rounding in itertools.product(range(1, 9), ROUNDINGS):
        stream = checks.stream_of(array, QSGD(bits=bits, norm=norm, rounding=rounding))
        assert not checks.array_of(stream).astype(np.float64).any()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_ranges_that_overflow_come_back_finite(dtype: str, norm: Any) -> None:
    largest = checks.largest_finite(numpy_dtype(dtype))
    array = (np.random.default_rng(3).uniform(-1, 1, 900) * largest).astype(numpy_dtype(dtype))
    array[:2] = largest, -largest
    for bits, rounding in itertools.product(range(1, 9), ROUNDINGS):
        codec = QSGD(bits=bits, bucket_size=900, norm=norm, rounding=rounding)
        decoded = checks.array_of(checks.stream_of(array, codec)).astype(np.float64)
        assert np.isfinite(decoded).all(), codec
        x, y = array.astype(np.float64) / largest, decoded / largest  # so that all sums are finite
        extent = {"minmax": 2.0, "linf": 2.0, "l2": 2 * float(np.linalg.norm(x))}[norm]
        assert np.all(np.abs(x - y) <= extent / steps(codec) + 0.01), codec


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_not_finite_makes_its_bucket_nan_and_no_other(dtype: str, norm: Any) -> None:
    clean, poisoned = normal(dtype, 1000), np.isin(np.arange(1000) // 100, (1, 4, 6, 9))
    array = clean.copy()
    array[[150, 499, 600, 601, 999]] = [np.nan, np.inf, -np.inf, np.inf, -np.nan]
    for bits, rounding in itertools.product((1, 4, 8), ROUNDINGS):
        codec = QSGD(bits=bits, bucket_size=100, norm=norm, rounding=rounding)
        expected = checks.array_of(checks.stream_of(clean, codec))
        expected[poisoned] = np.nan
        checks.check_same_bits(checks.array_of(checks.stream_of(array, codec)), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_incomplete_bucket_is_kept_where_it_is_skipped(dtype: str) -> None:
    array = normal(dtype, 1051)
    array[1010:1013] = [np.nan, -0.0, np.inf]
    for norm, rounding in itertools.product(NORMS, ROUNDINGS):
        codec = QSGD(bits=3, bucket_size=100, norm=norm, rounding=rounding, skip_incomplete=True)
        decoded = checks.array_of(checks.check_codec(array, codec))
        checks.check_same_bits(decoded[1000:], array[1000:])
        checks.check_same_bits(decoded[:1000], checks.array_of(checks.stream_of(array[:1000], codec)))
        checks.check_same_bits(checks.array_of(checks.check_codec(array[-99:], codec)), array[-99:])


@pytest.mark.parametrize(
    ("fill", "expected"),
    [(0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"), (0xFFFFFFFF, "408f276d 41c83b0e a20bc7c6 6d5451fd")],
)
def test_philox_gives_the_known_answers(fill: int, expected: str) -> None:
    assert " ".join(f"{int(word):08x}" for word in philox([np.array(fill)] * 4, (fill, fill))) == expected


def dither(count: int, seed: int, real: Any) -> Array:
    """The dither of each element (FORMAT.md, section 5)."""
    word = random_words(count, seed)
    bits = 32 if real == np.float64 else 24
    centred: Array = ((word >> np.uint64(32 - bits)).astype(np.float64) + 0.5) * 2.0**-bits - 0.5
    return centred.astype(real)


def expected_codes(array: Array, found: Written, codec: QSGD, seed: int) -> Array:
    """Every code, from the numbers that were written (FORMAT.md, section 5)."""
    real = real_of(array.dtype)
    shift = dither(array.size, seed, real) if codec.needs_seed else np.zeros(array.size, real)
    offset = real(0 if codec.norm == "minmax" else steps(codec) / 2)
    size = distance(found, codec).astype(real)
    power = np.where(size < np.finfo(real).tiny, real(2.0**64), real(1))
    factor = np.divide(real(1), size * power, out=np.zeros_like(size), where=size != 0)
    place: Array = (array.astype(real) - found.low) * power * factor + (offset + shift)
    return np.rint(place).clip(0, steps(codec)).astype(np.uint8)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_code_is_predicted(dtype: str, norm: Any, rounding: Any) -> None:
    seed = 0xFEDCBA9876543210
    for bits, bucket_size, scale in itertools.product(range(1, 9), (100, 512), (1, 1e-39)):
        array = normal(dtype, scale=scale)
        codec = QSGD(bits=bits, bucket_size=bucket_size, norm=norm, rounding=rounding)
        found = written(checks.stream_of(array, codec, seed=seed), codec)
        np.testing.assert_array_equal(found.codes, expected_codes(array, found, codec, seed))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("norm", "bits"), [("minmax", 1), ("minmax", 4), ("linf", 1), ("linf", 3), ("l2", 4)])
def test_stochastic_is_unbiased(norm: Any, bits: int, dtype: str) -> None:
    array, seeds, codec = normal(dtype, 2000), 400, QSGD(bits=bits, norm=norm, rounding="stochastic")
    size = distance(written(checks.stream_of(array, codec), codec), codec)
    total, squares = np.zeros(array.size), np.zeros(array.size)
    for seed in range(seeds):
        error = (checks.array_of(checks.stream_of(array, codec, seed=seed)).astype(float) - array.astype(float)) / size
        total += error
        squares += error**2
    # In units of a level's distance; a coin that nearly always falls alike is left to the sum over all elements.
    variance = squares / seeds
    fair = variance > 0.03
    assert fair.sum() > 500
    assert np.all(np.abs(total[fair]) <= 4.5 * np.sqrt(seeds * variance[fair]))
    assert abs(total.sum()) <= 4.5 * np.sqrt(squares.sum())


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("size", [16, 512, 4096])
def test_l2_keeps_the_variance_bound_of_the_paper(size: int, bits: int) -> None:
    codec, levels = QSGD(bits=bits, bucket_size=size, norm="l2", rounding="stochastic"), 2 ** (bits - 1) - 1
    bound = min(size / levels**2, np.sqrt(size) / levels)
    spike = np.eye(1, size, 3, np.float32)[0]
    for array in (normal("float32", size), np.ones(size, np.float32), spike + normal("float32", size, 0.01)):
        x = array.astype(np.float64)
        decoded = [checks.array_of(checks.stream_of(array, codec, seed=seed)) for seed in range(100)]
        assert np.mean([np.sum((y - x) ** 2) for y in decoded]) <= bound * np.sum(x**2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_seeds_decide_the_bytes_and_nothing_else_does(dtype: str) -> None:
    array, codec = normal(dtype), QSGD(bits=2, bucket_size=100, rounding="stochastic")
    assert len({checks.stream_of(array, codec, seed=seed) for seed in (0, 1, 2**32, 2**64 - 1)}) == 4
    checks.check_same_bytes(array, codec, checks.stream_of(array, codec))
    for seed in (np.uint64(5), np.int8(5), np.array(5)):
        assert checks.stream_of(array, codec, seed=seed) == checks.stream_of(array, codec, seed=5)
    assert checks.stream_of(array, QSGD(), seed=1) == checks.stream_of(array, QSGD())


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (31,), (33,), (2, 3, 5), (4097,), (COUNT,)])
def test_every_shape_comes_back(shape: tuple[int, ...], device: checks.Host) -> None:
    for dtype in FLOATS:
        array = normal(dtype, int(np.prod(shape))).reshape(shape)
        checks.check_codec(array, QSGD(bits=5), device)
        checks.check_codec(array, QSGD(bits=3, bucket_size=16, norm="linf", rounding="stochastic"), device)
        checks.check_codec(array, QSGD(bits=8, bucket_size=17, norm="l2", skip_incomplete=True), device)


def test_other_layouts_and_byte_orders_give_the_same_bytes() -> None:
    codec = QSGD(rounding="stochastic")
    for dtype in ("float16", "float32", "float64"):
        array = normal(dtype, 60 * 80).reshape(60, 80)
        padded = np.zeros((120, 83), array.dtype)
        padded[::2, 3:] = array
        for other in (np.asfortranarray(array), padded[::2, 3:], array.astype(array.dtype.newbyteorder(">"))):
            assert checks.stream_of(other, codec) == checks.stream_of(array, codec)
        assert checks.stream_of(array[::-1, ::-1], codec) == checks.stream_of(array[::-1, ::-1].copy(), codec)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_payload_is_as_long_as_the_format_says(dtype: str) -> None:
    for bits, bucket_size, norm, skip in itertools.product((1, 3, 8), (16, 100, 5000), NORMS, (False, True)):
        codec = QSGD(bits=bits, bucket_size=bucket_size, norm=norm, skip_incomplete=skip)
        settings = reference_buckets.settings_of(codec.config())
        for count in (0, 1, 15, 16, 99, 100, 513, 4096, 10_001):
            array = np.zeros(count, numpy_dtype(dtype))
            spec = arrcomp.compress(array, codec).spec
            checks.check_capacity(checks.stream_of(array, codec), array)
            assert spec.capacity == reference_buckets.layout_of(settings, count, array.dtype.itemsize).nbytes
            terms = _core.capacity_terms(codec.id, codec.core_parameters(), spec.dtype.id)
            sums = [b * -(-(-(-count // i) * m) // o) if i else b for i, m, o, b in terms]
            assert not terms or sum(sums) == spec.capacity


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_errors_are_those_of_the_definition(kind: str, dtype: str) -> None:
    array = getattr(np.random.default_rng(5), kind)(0, 0.02, 100 * 512).astype(numpy_dtype(dtype))
    x = array.astype(np.float64).reshape(100, 512)
    for bits in (2, 4, 8):
        low, unit = x.min(1, keepdims=True), np.ptp(x, axis=1, keepdims=True) / (2**bits - 1)
        plain = (low + unit * np.floor((x - low) / unit + 0.5)).astype(array.dtype).astype(np.float64)
        decoded = checks.array_of(checks.stream_of(array, QSGD(bits=bits))).astype(np.float64).reshape(x.shape)
        assert np.linalg.norm(decoded - x) == pytest.approx(np.linalg.norm(plain - x), rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bits": 0}, ValueError, "^bits: expected an integer from 1 to 8, got 0"),
        ({"bits": 9}, ValueError, "^bits: expected an integer from 1 to 8, got 9"),
        ({"bits": 1.5}, TypeError, r"^bits: expected an integer from 1 to 8, got 1\.5 \(float\)"),
        ({"bits": True}, TypeError, r"^bits: expected an integer from 1 to 8, got True \(bool\)"),
        ({"bucket_size": 15}, ValueError, "^bucket_size: expected an integer from 16 to 1099511627776, got 15"),
        ({"bucket_size": 2**40 + 1}, ValueError, "^bucket_size: expected an integer .*, got 1099511627777"),
        ({"bucket_size": 512.0}, TypeError, r"^bucket_size: expected an integer .*, got 512\.0 \(float\)"),
        ({"norm": "L3"}, ValueError, "^norm: expected 'minmax' or 'l2' or 'linf', got 'L3'"),
        ({"norm": 2}, TypeError, r"^norm: expected 'minmax' or 'l2' or 'linf', got 2 \(int\)"),
        ({"rounding": "up"}, ValueError, "^rounding: expected 'nearest' or 'stochastic', got 'up'"),
        ({"skip_incomplete": 1}, TypeError, r"^skip_incomplete: expected True or False, got 1 \(int\)"),
        ({"coding": "elias"}, ValueError, "^coding: expected 'packed' or 'entropy', got 'elias'"),
        ({"coding": None}, TypeError, "^coding: expected 'packed' or 'entropy', got None"),
    ],
)
def test_wrong_parameters_are_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        QSGD(**arguments)


@pytest.mark.parametrize(
    ("seed", "error"),
    [(None, TypeError), (-1, ValueError), (2**64, ValueError), (1.5, TypeError), (True, TypeError), ("7", TypeError)],
)
def test_wrong_seeds_are_named(seed: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^seed: expected an integer"):
        arrcomp.compress(normal("float32", 100), QSGD(rounding="stochastic"), seed=seed)


@pytest.mark.parametrize("dtype", FLOATS)
def test_any_payload_of_the_right_length_is_read_as_the_format_says(dtype: str) -> None:
    rng = np.random.default_rng(9)
    for bits, norm, skip in itertools.product(range(1, 9), NORMS, (False, True)):
        codec = QSGD(bits=bits, bucket_size=16, norm=norm, skip_incomplete=skip)
        stream = checks.stream_of(normal(dtype, 777), codec)
        start, end = checks.payload_span(stream)
        stream = checks.seal(stream[:start] + rng.bytes(end - start))
        checks.check_reference(stream, checks.array_of(stream))
