"""S2FP8: against the paper's formulas in plain float64, value by value, and over many seeds."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import arrcomp
import checks
import reference_buckets
from arrcomp import S2FP8, _core
from arrcomp._cli.guarantees import compare
from checks import FLOATS, Array, numpy_dtype

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

ROUNDINGS: tuple[Any, ...] = ("nearest", "stochastic")
BUCKET_SIZES = (None, 16, 17, 100, 512, 4096, 5000, 20_000)
COUNT = 3 * 4096 + 5
E5M2 = np.arange(124, dtype=np.uint8).view(ml_dtypes.float8_e5m2).astype(np.float64)
MIDDLES = (E5M2[1:] + E5M2[:-1]) / 2


def normal(name: str, count: int = COUNT, scale: float = 1.0) -> Array:
    """Normal values, the same whatever their type."""
    found: Array = np.random.default_rng(11).normal(0, scale, count).astype(numpy_dtype(name))
    return found


class Written(NamedTuple):
    """What a stream holds: for each element its bucket's alpha and largest, and its code."""

    alpha: Array
    largest: Array
    codes: Array
    decoded: Array


def written(stream: bytes, codec: S2FP8) -> Written:
    """A stream taken apart as FORMAT.md says; numbers in float64."""
    decoded, payload = checks.array_of(stream).reshape(-1), stream[slice(*checks.payload_span(stream))]
    size, real = codec.bucket_size or max(decoded.size, 1), np.float64 if decoded.itemsize == 8 else np.float32
    buckets = -(-decoded.size // size)
    numbers = np.frombuffer(payload, real, 2 * buckets).reshape(buckets, 2).astype(np.float64)
    codes_at = 2 * buckets * np.dtype(real).itemsize
    codes = reference_buckets.read_codes(payload[codes_at:], decoded.size, 8)
    each = numbers[np.arange(decoded.size) // size]
    return Written(each[:, 0], each[:, 1], codes, decoded)


def paper(x: Array, keep_nearer: bool = False) -> Array:
    """The formulas of arXiv:2001.05674, section 3, in float64, zeros left out.

    Args:
        x: one bucket.
        keep_nearer: values whose squeezed magnitude rounds to 0, but that are nearer to the least one, become it.
    """
    magnitude = np.abs(x[x != 0].astype(np.float64))
    logarithm = np.log2(magnitude)
    alpha = 15 / (logarithm.max() - logarithm.mean())
    beta = -alpha * logarithm.mean()
    y = np.exp2(beta + alpha * logarithm)
    stored = y.astype(ml_dtypes.float8_e5m2).astype(np.float64)
    if keep_nearer:
        stored[(stored == 0) & (2 * magnitude >= np.exp2((-16 - beta) / alpha))] = 2.0**-16
    found = np.zeros(x.size)
    logarithm = np.log2(stored, out=np.full_like(stored, -np.inf), where=stored > 0)
    found[x != 0] = np.exp2((logarithm - beta) / alpha)
    return np.copysign(found, x.astype(np.float64))


def relative_error(y: Array, x: Array) -> float:
    """|y - x| / |x| in the L2 norm; values of all sizes."""
    scale = np.abs(x).max()
    return float(np.linalg.norm((y - x) / scale) / np.linalg.norm(x / scale))


DATA = {
    "gaussian": lambda rng: rng.normal(0, 1, 30_000),
    "laplace": lambda rng: rng.laplace(0, 1, 30_000),
    "lognormal": lambda rng: rng.choice([-1, 1], 30_000) * np.exp(rng.normal(0, 2, 30_000)),
    "gradients": lambda rng: rng.normal(0, 1, (300, 100)) * np.exp(rng.normal(-3, 2, (300, 1))),
    "uniform": lambda rng: rng.uniform(-1, 1, 30_000),
    "second moments": lambda rng: rng.normal(0, 1, 30_000) ** 2,
}


@pytest.mark.parametrize("zeros", [0, 0.001, 0.9])
@pytest.mark.parametrize("kind", DATA)
def test_errors_are_those_of_the_paper_or_smaller(kind: str, zeros: float) -> None:
    rng = np.random.default_rng(5)
    values = DATA[kind](rng).reshape(-1)
    values[rng.random(values.size) < zeros] = 0
    for dtype, scale in [
        *(("float32", scale) for scale in (1e-30, 1e-8, 1, 1e8, 1e30)),
        ("float64", 1e-30), ("float64", 1e30), ("float64", 1e-290), ("float64", 1e290), ("bfloat16", 1e-25),
    ]:  # fmt: skip
        x = (values * scale).astype(numpy_dtype(dtype))
        wide = x.astype(np.float64)
        decoded = checks.array_of(checks.stream_of(x, S2FP8())).astype(np.float64)
        error = relative_error(decoded, wide)
        assert error == pytest.approx(relative_error(paper(wide, keep_nearer=True), wide), rel=0.02)
        assert error <= 1.02 * relative_error(paper(wide), wide)
        assert not decoded[wide == 0].any()
        if kind != "lognormal" and scale == 1:
            plain = x.astype(ml_dtypes.float8_e5m2).astype(np.float64)
            assert error < 0.75 * relative_error(plain, wide)


def expected_alpha(x: Array) -> float:
    """Alpha of a bucket, in float64."""
    logarithm = np.log2(np.abs(x[x != 0].astype(np.float64)))
    return 15 / max(logarithm.max() - logarithm.mean(), 2.0**-20)


@pytest.mark.parametrize("dtype", FLOATS)
def test_alpha_and_the_largest_are_those_of_each_bucket(dtype: str) -> None:
    for bucket_size, scale in itertools.product(BUCKET_SIZES, (1.0, 1e-6)):
        x, codec = normal(dtype, scale=scale), S2FP8(bucket_size=bucket_size)
        x[::7] = 0
        found, size = written(checks.stream_of(x, codec), codec), bucket_size or x.size
        for start in range(0, x.size, size):
            bucket = x[start : start + size]
            assert found.largest[start] == np.abs(bucket.astype(np.float64)).max()
            assert found.alpha[start] == pytest.approx(expected_alpha(bucket), rel=1e-5)


def squeezed(x: Array, found: Written) -> Array:
    """The squeezed magnitude of each value in float64, from the numbers that were written."""
    with np.errstate(divide="ignore"):
        return np.exp2(15 + found.alpha * (np.log2(np.abs(x.astype(np.float64))) - np.log2(found.largest)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("octaves", [200, 60, 10, 4, 2.9])
def test_logarithms_and_powers_are_within_1e_5_over_a_dense_sweep(octaves: float, dtype: str) -> None:
    top = 2.0**100 * 1.37  # so that the mantissa of the largest is none of the sweep's ends
    x = (top * np.exp2(-np.linspace(0, octaves, 1_000_001))).astype(dtype)
    found = written(checks.stream_of(x, S2FP8()), S2FP8())
    assert found.alpha[0] == pytest.approx(30 / octaves, rel=1e-3)
    y, tolerance = squeezed(x, found), 1e-5
    # Encoded: no value has a code whose interval it is more than the tolerance away from.
    code = found.codes.astype(np.intp)
    assert np.all(y * (1 - tolerance) <= np.append(MIDDLES, np.inf)[code])
    least = np.append([0], MIDDLES)[code]
    assert np.all((y * (1 + tolerance) >= least) | (code == 1))
    # Decoded: a code's value, as the formula has it; far from the largest, rounding adds to the error.
    kept = code > 0
    expected = found.largest[kept] * np.exp2((np.log2(E5M2[code[kept]]) - 15) / found.alpha[kept])
    decoded, tolerance = found.decoded[kept].astype(np.float64), 2e-5 if octaves > 100 else 1e-5
    np.testing.assert_allclose(decoded, expected, rtol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("octaves", [6, 30, 90])
def test_what_squeezes_to_less_than_the_least_goes_where_it_is_nearer(octaves: float, dtype: str) -> None:
    # A few smaller values than the squeezed format reaches to, among many that it is fitted to.
    x = (3.0 * np.exp2(-np.linspace(0, octaves, 100_001))).astype(dtype)
    x[::10] = x[-1] * np.linspace(0.3, 1.5, 10_001)
    x[5::10] = x[-1] * np.exp2(np.linspace(-octaves, 0, 10_000))
    found = written(checks.stream_of(x, S2FP8()), S2FP8())
    least = float(found.decoded[found.codes == 1][0])
    assert np.all(x[found.codes == 0] <= least / 2 * (1 + 1e-5))
    assert np.all(x[found.codes == 1] >= least / 2 * (1 - 1e-5))
    assert (found.codes == 0).sum() > 100


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_value_keeps_the_promise(dtype: str, rounding: Any) -> None:
    for bucket_size, scale in itertools.product(BUCKET_SIZES, (1.0, 1e-6, 1e-3)):
        codec, x = S2FP8(bucket_size=bucket_size, rounding=rounding), normal(dtype, scale=scale)
        x[5000::3] = 0
        x[100:103] = np.nan, np.inf, -np.inf
        assert compare(x, checks.array_of(checks.stream_of(x, codec)), codec).holds, codec


def constants(dtype: str) -> list[float]:
    """Values of a type that are hard to keep."""
    limits: Any = ml_dtypes.finfo(numpy_dtype(dtype))
    tiny, least, largest = (float(v) for v in (limits.tiny, limits.smallest_subnormal, limits.max))
    return [0.0, -0.0, 1 / 3, -1.1, 1e4 + 0.7, tiny, -tiny, least, -3 * least, largest, -largest, largest / 3]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_constant_magnitudes_are_exact(dtype: str, rounding: Any) -> None:
    array = np.repeat(np.array(constants(dtype)).astype(numpy_dtype(dtype)), 100)
    array[::3] *= -1
    array[::7] = 0
    decoded = checks.array_of(checks.check_codec(array, S2FP8(bucket_size=100, rounding=rounding)))
    checks.check_same_bits(decoded, array)
    for value in np.split(array, 12):
        checks.check_same_bits(checks.array_of(checks.stream_of(value, S2FP8(rounding=rounding))), value)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_nearly_constant_magnitudes_stay_near(dtype: str, rounding: Any) -> None:
    limits: Any = ml_dtypes.finfo(numpy_dtype(dtype))
    eps = float(limits.eps)
    for share, scale in itertools.product((0.01, 0.5, 0.99), (1.0, 1.4142, 1.9999)):
        large = np.random.default_rng(2).random(3000) < share
        array = (scale * np.where(large, 1 + eps, 1)).astype(numpy_dtype(dtype))
        decoded = checks.array_of(checks.stream_of(array, S2FP8(rounding=rounding))).astype(np.float64)
        assert np.all(decoded <= array.max().astype(np.float64))
        # With most of them large, and alpha at its limit or above, the others may vanish.
        if share < 0.9:
            np.testing.assert_allclose(decoded, array.astype(np.float64), rtol=2 * eps + 2e-6)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_keep_their_bits(dtype: str, rounding: Any) -> None:
    array = np.zeros(1000, numpy_dtype(dtype))
    array[::3] = -0.0
    checks.check_same_bits(checks.array_of(checks.stream_of(array, S2FP8(rounding=rounding))), array)
    for bucket_size, scale in itertools.product((None, 100), (1e-7, 1.0, 1e4)):
        codec, mixed = S2FP8(bucket_size=bucket_size, rounding=rounding), array.copy()
        mixed[500:600] = normal(dtype, 100, scale)
        zero = mixed == 0
        decoded = checks.array_of(checks.stream_of(mixed, codec))
        checks.check_same_bits(decoded[zero], mixed[zero])


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_values_of_all_sizes_come_back_finite_and_no_larger(dtype: str, rounding: Any) -> None:
    rng, kind = np.random.default_rng(3), numpy_dtype(dtype)
    bits = rng.integers(0, 256, 9000 * kind.itemsize, dtype=np.uint8).view(kind)
    limits: Any = ml_dtypes.finfo(kind)
    with np.errstate(all="ignore"):
        values = bits[np.isfinite(bits.astype(np.float64))]
        values[:2] = -limits.max, limits.smallest_subnormal
        subnormal = (values * limits.tiny).astype(kind)
    for array, bucket_size in itertools.product((values, subnormal, values[:1000]), (None, 16, 512)):
        codec = S2FP8(bucket_size=bucket_size, rounding=rounding)
        decoded = checks.array_of(checks.check_codec(array, codec)).astype(np.float64)
        assert np.isfinite(decoded).all()
        assert np.abs(decoded).max() == np.abs(array.astype(np.float64)).max()
        assert np.array_equal(np.signbit(decoded), np.signbit(array))
        if array is not subnormal:
            assert compare(array, checks.array_of(checks.stream_of(array, codec)), codec).holds


@pytest.mark.parametrize("scale", [1e-38, 1e-41, 3e-44])
def test_subnormal_numbers_are_squeezed_like_others(scale: float) -> None:
    x = normal("float32", scale=scale)
    x[::5] = 0
    found = written(checks.stream_of(x, S2FP8()), S2FP8())
    assert found.alpha[0] == pytest.approx(expected_alpha(x), rel=1e-5)
    error = np.abs(found.decoded.astype(np.float64) - x)
    assert np.all(error <= np.abs(x) * (np.exp2(0.2 / found.alpha) - 1) + float(found.decoded[found.codes == 1].max()))


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_not_finite_makes_its_bucket_nan_and_no_other(dtype: str) -> None:
    clean, poisoned = normal(dtype, 1000), np.isin(np.arange(1000) // 100, (1, 4, 6, 9))
    clean[::9] = 0
    array = clean.copy()
    array[[150, 499, 600, 601, 999]] = [np.nan, np.inf, -np.inf, np.inf, -np.nan]
    for rounding in ROUNDINGS:
        codec = S2FP8(bucket_size=100, rounding=rounding)
        expected = checks.array_of(checks.stream_of(clean, codec))
        expected[poisoned] = np.nan
        checks.check_same_bits(checks.array_of(checks.check_codec(array, codec)), expected)
        whole = checks.array_of(checks.check_codec(array, S2FP8(rounding=rounding)))
        checks.check_same_bits(whole, np.full(1000, np.nan, array.dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_stochastic_is_unbiased_in_what_is_squeezed(dtype: str) -> None:
    codec, seeds = S2FP8(rounding="stochastic"), 400
    array = normal(dtype, 3000)
    found = written(checks.stream_of(array, codec), codec)
    y = squeezed(array, found)
    place = np.searchsorted(E5M2, y, side="right") - 1
    inside = (array != 0) & (place < 120)
    step = (E5M2[place + 1] - E5M2[place])[inside]
    total, squares = np.zeros(step.size), np.zeros(step.size)
    for seed in range(seeds):
        codes = written(checks.stream_of(array, codec, seed=seed), codec).codes & 127
        near = np.abs(y - E5M2[codes]) <= 1e-5 * y
        assert np.all((codes == place) | (codes == place + 1) | near)
        error = (E5M2[codes] - y)[inside] / step
        total += error
        squares += error**2
    variance = squares / seeds
    fair = variance > 0.03  # a coin that nearly always falls alike is left to the sum over all elements
    assert fair.sum() > 500
    assert np.all(np.abs(total[fair]) <= 4.5 * np.sqrt(seeds * variance[fair]))
    assert abs(total.sum()) <= 4.5 * np.sqrt(squares.sum())


@pytest.mark.parametrize("dtype", FLOATS)
def test_seeds_decide_the_bytes_and_nothing_else_does(dtype: str) -> None:
    array, codec = normal(dtype), S2FP8(bucket_size=100, rounding="stochastic")
    assert len({checks.stream_of(array, codec, seed=seed) for seed in (0, 1, 2**32, 2**64 - 1)}) == 4
    checks.check_same_bytes(array, codec, checks.stream_of(array, codec))
    assert checks.stream_of(array, S2FP8(), seed=1) == checks.stream_of(array, S2FP8())


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (31,), (33,), (2, 3, 5), (4097,), (COUNT,)])
def test_every_shape_comes_back(shape: tuple[int, ...], device: checks.Host) -> None:
    for dtype in FLOATS:
        array = normal(dtype, int(np.prod(shape))).reshape(shape)
        checks.check_codec(array, S2FP8(), device)
        checks.check_codec(array, S2FP8(bucket_size=16, rounding="stochastic"), device)
        checks.check_codec(array, S2FP8(bucket_size=4100), device)


def test_other_layouts_and_byte_orders_give_the_same_bytes() -> None:
    for dtype, codec in itertools.product(("float16", "float32", "float64"), (S2FP8(), S2FP8(bucket_size=17))):
        array = normal(dtype, 60 * 80).reshape(60, 80)
        padded = np.zeros((120, 83), array.dtype)
        padded[::2, 3:] = array
        locked = array.copy()
        locked.flags.writeable = False
        swapped = array.astype(array.dtype.newbyteorder(">"))
        for other in (np.asfortranarray(array), padded[::2, 3:], swapped, locked):
            assert checks.stream_of(other, codec) == checks.stream_of(array, codec)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_payload_is_as_long_as_the_format_says(dtype: str) -> None:
    for bucket_size, count in itertools.product((None, 16, 100, 5000), (0, 1, 15, 16, 99, 100, 513, 4096, 10_001)):
        array, codec = np.zeros(count, numpy_dtype(dtype)), S2FP8(bucket_size=bucket_size)
        spec = arrcomp.compress(array, codec).spec
        checks.check_capacity(checks.stream_of(array, codec), array)
        buckets, rows = -(-count // (bucket_size or max(count, 1))), -(-count // 32)
        assert spec.capacity == buckets * 2 * (8 if dtype == "float64" else 4) + 64 * -(-rows // 2)
        terms = _core.capacity_terms(codec.id, codec.core_parameters(), spec.dtype.id)
        assert sum(b * -(-(-(-count // i) * m) // o) if i else b for i, m, o, b in terms) == spec.capacity


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bucket_size": 15}, ValueError, "^bucket_size: expected an integer from 16 to 1099511627776, got 15"),
        ({"bucket_size": 0}, ValueError, "^bucket_size: expected an integer from 16 to 1099511627776, got 0"),
        ({"bucket_size": 2**40 + 1}, ValueError, "^bucket_size: expected an integer .*, got 1099511627777"),
        ({"bucket_size": 512.0}, TypeError, r"^bucket_size: expected an integer .*, got 512\.0 \(float\)"),
        ({"bucket_size": True}, TypeError, r"^bucket_size: expected an integer .*, got True \(bool\)"),
        ({"rounding": "up"}, ValueError, "^rounding: expected 'nearest' or 'stochastic', got 'up'"),
        ({"rounding": None}, TypeError, "^rounding: expected 'nearest' or 'stochastic', got None"),
    ],
)
def test_wrong_parameters_are_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        S2FP8(**arguments)


@pytest.mark.parametrize("seed", [None, -1, 2**64, 1.5])
def test_wrong_seeds_are_named(seed: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^seed: expected an integer"):
        arrcomp.compress(normal("float32", 100), S2FP8(rounding="stochastic"), seed=seed)


@pytest.mark.parametrize("dtype", FLOATS)
def test_any_payload_of_the_right_length_is_read_as_the_format_says(dtype: str) -> None:
    rng, codec = np.random.default_rng(9), S2FP8(bucket_size=16)
    stream = checks.stream_of(normal(dtype, 777), codec)
    start, end = checks.payload_span(stream)
    hard = np.array([0, -0.0, 1, -3, np.inf, -np.inf, np.nan, 1e-30, 1e30, 0.01], np.float64)
    for _ in range(20):
        payload = bytearray(rng.bytes(end - start))
        real = np.dtype(np.float64 if dtype == "float64" else np.float32)
        some = rng.choice(hard, 60).astype(real).tobytes()
        payload[: len(some)] = some
        altered = checks.seal(stream[:start] + bytes(payload))
        expected = checks.array_of(altered)
        checks.check_reference(altered, expected)
        for name in _core.instruction_sets():
            with checks.using_instruction_set(name):
                checks.check_same_bits(checks.array_of(altered), expected)


def beside_borders(numbers: Written) -> Array:
    """float32 values up to 1024 units on either side of each border between two codes; a row a border."""
    alpha, largest = numbers.alpha[0], numbers.largest[0]
    middles = MIDDLES[MIDDLES < 2**15]  # which the largest value becomes
    borders = (2.0 ** ((np.log2(middles) - 15) / alpha) * largest).astype(np.float32)
    return (borders.view(np.int32)[:, None] + np.arange(-1024, 1025, 8, dtype=np.int32)).view(np.float32)


# The spread is that of the values' logarithms to base 2: the smaller it is, the larger is alpha.
@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0, 16.0, 60.0])
def test_codes_beside_their_borders_do_not_depend_on_the_instruction_set(spread: float) -> None:
    codec = S2FP8()
    x = (2.0 ** np.random.default_rng(8).uniform(-spread, 0, 1 << 20)).astype(np.float32)
    for _ in range(6):  # what is put in moves alpha, less and less
        found = beside_borders(written(checks.stream_of(x, codec), codec))
        x[: found.size] = found.reshape(-1)
    stream = checks.stream_of(x, codec)
    codes = written(stream, codec).codes[: found.size].reshape(found.shape)
    assert np.mean(codes[:, 0] < codes[:, -1]) > 0.5, "most rows must have a border in them"
    checks.check_same_bytes(x, codec, stream)
