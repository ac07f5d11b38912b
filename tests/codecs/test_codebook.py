"""Codebooks: against plain NumPy, code by code; published tables; parameters."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import pickle
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import arrcomp
import checks
import reference_buckets
import reference_codebook
from arrcomp import Codebook, _core
from arrcomp._cli import guarantees
from checks import FLOATS, Array, numpy_dtype

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

SCALINGS: tuple[Any, ...] = (None, "absmax", "tensor")
COUNT = 2 * 4096 + 77


def real_of(dtype: np.dtype[Any]) -> Any:
    """The arithmetic type."""
    return np.float64 if dtype.itemsize == 8 else np.float32


def normal(name: str, count: int = COUNT, scale: float = 1.0) -> Array:
    """Normal values, the same whatever their type."""
    found: Array = np.random.default_rng(11).normal(0, scale, count).astype(numpy_dtype(name))
    return found


def uneven(levels: int, scaling: Any = None, bucket_size: int = 64) -> Codebook:
    """Borders that crowd at 0, and levels in no order."""
    rng = np.random.default_rng(levels)
    borders = np.linspace(-1, 1, levels + 1)[1:-1] ** 3
    return Codebook(list(borders), list(rng.normal(size=levels)), scaling=scaling, bucket_size=bucket_size)


class Written(NamedTuple):
    """What a stream holds: for each element its bucket's scale, and its code."""

    scales: Array
    codes: Array
    decoded: Array


def written(stream: bytes, codec: Codebook) -> Written:
    """A stream taken apart as FORMAT.md says."""
    decoded, payload = checks.array_of(stream).reshape(-1), stream[slice(*checks.payload_span(stream))]
    tables = reference_codebook.tables_of(codec.config())
    layout = reference_codebook.layout_of(tables, decoded.size, decoded.dtype.itemsize)
    numbers = np.frombuffer(payload, layout.number, layout.buckets)
    codes = reference_buckets.read_codes(payload[layout.codes_at :], decoded.size, tables.bits)
    return Written(numbers[np.arange(decoded.size) // layout.bucket_size], codes, decoded)


def expected_scales(array: Array, codec: Codebook) -> Array:
    """What is to be written for each element's bucket."""
    real = real_of(array.dtype)
    size = array.size if codec.scaling == "tensor" else codec.bucket_size
    found = []
    for bucket in np.split(array.astype(real), range(size, array.size, size)):
        number = np.abs(bucket).max() if np.isfinite(bucket).all() else real(np.nan)
        found.append(np.full(bucket.size, number if codec.scaling else np.isnan(number)))
    return np.concatenate(found)


def expected_codes(array: Array, codec: Codebook) -> Array:
    """The number of borders below each value (FORMAT.md, section 5.5), by NumPy's own search."""
    real, x = real_of(array.dtype), array.astype(real_of(array.dtype))
    s = expected_scales(array, codec) if codec.scaling else np.ones(array.size, real)
    limits = np.finfo(real)
    p = np.where(s < limits.tiny, real(2.0**64), np.where(s > limits.max / real(4), real(0.25), real(1)))
    with np.errstate(all="ignore"):
        v = (x * p) * np.where(s == 0, real(0), real(1) / (s * p))
    found: Array = np.searchsorted(np.array(codec.borders, np.float32).astype(real), v, side="left")
    size = array.size if codec.scaling == "tensor" else codec.bucket_size
    for start in range(0, array.size, size):
        if not np.isfinite(x[start : start + size]).all():
            found[start : start + size] = 0
    return found


def check_codes(array: Array, codec: Codebook) -> Written:
    """Scales, codes and values are the definition's."""
    found = written(checks.stream_of(array, codec), codec)
    scales = expected_scales(array, codec)
    np.testing.assert_array_equal(found.scales, scales)
    np.testing.assert_array_equal(found.codes, expected_codes(array, codec))
    real = real_of(array.dtype)
    levels = np.array(codec.levels, np.float32).astype(real)[found.codes]
    limits: Any = ml_dtypes.finfo(array.dtype)
    with np.errstate(all="ignore"):
        y = levels * (scales if codec.scaling else np.where(scales, np.nan, 1).astype(real))
        y = np.clip(y, -real(limits.max), real(limits.max)).astype(array.dtype)
    np.testing.assert_array_equal(found.decoded.astype(np.float64), y.astype(np.float64))
    return found


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_code_is_predicted(dtype: str, scaling: Any) -> None:
    array = normal(dtype, scale=0.5)
    for levels in (2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 64, 100, 128, 129, 255, 256):
        for bucket_size in (16, 64, 100, 5000):
            check_codes(array, uneven(levels, scaling, bucket_size))
    check_codes(array, Codebook.nf4())
    check_codes(array, Codebook.dynamic8())


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_value_on_a_border_belongs_to_the_interval_below(dtype: str) -> None:
    # Borders that every dtype has, between them both neighbours of each.
    borders = np.sort(np.concatenate([np.arange(-31, 32) / 8, 2.0 ** -np.arange(4, 14)]))
    codec = Codebook(borders, np.arange(borders.size + 1) / 64)  # type: ignore[arg-type]
    x = borders.astype(numpy_dtype(dtype))
    beside = [np.nextafter(x, np.array(side, x.dtype)) for side in (-np.inf, np.inf)]
    codes = [check_codes(part, codec).codes for part in (beside[0], x, beside[1])]
    np.testing.assert_array_equal(codes[0], np.arange(borders.size))
    np.testing.assert_array_equal(codes[1], np.arange(borders.size))
    np.testing.assert_array_equal(codes[2], np.arange(borders.size) + 1)
    zeros = np.array([0.0, -0.0], x.dtype)
    assert len(set(check_codes(zeros, codec).codes.tolist())) == 1


LONG = {
    "published": Codebook.dynamic8().borders,
    "above 0": Codebook.dynamic8(signed=False).borders,
    "below 0": tuple(-x for x in reversed(Codebook.dynamic8(signed=False).borders)),
    "with 0": tuple((np.arange(-30, 32) / 31.0).tolist()),
    "near and far": tuple(np.sort(np.concatenate([10.0 ** np.arange(-30, 30), -(2.0 ** np.arange(-149, -100))]))),
    "neighbours": tuple((1 + np.arange(40) * 2.0**-23).tolist()),
}


@pytest.mark.parametrize("scaling", [None, "absmax"])
@pytest.mark.parametrize("borders", LONG.values(), ids=LONG)
def test_long_arrays_have_the_same_codes(borders: Any, scaling: Any) -> None:
    # Long enough for tables that take time to make.
    codec = Codebook(borders, np.linspace(-1, 1, len(borders) + 1).tolist(), scaling=scaling)
    at = np.array(borders, np.float32)
    near = [at, np.nextafter(at, np.float32(-np.inf)), np.nextafter(at, np.float32(np.inf))]
    special = np.array([0.0, -0.0, 1, -1, 1e-45, -1e-45, 1e-38, 3e38, -3e38], np.float32)
    array = np.random.default_rng(3).choice(np.concatenate([*near, special]), 6 * 4096 + 77)
    if scaling:  # most are not divided
        array = np.where(np.abs(array) < 1, array, np.float32(0.5))
        array[::64] = 1
    array[5000], array[9000] = -np.nan, np.inf
    check_codes(array, codec)


@pytest.mark.parametrize("name", ["nf4", "dynamic8"])
def test_named_tables_give_the_nearest_level(name: str) -> None:
    codec = getattr(Codebook, name)()
    array = normal("float32", 64_000)
    array[::7] *= np.float32(1e-4)
    found = written(checks.stream_of(array, codec), codec)
    levels = np.array(codec.levels, np.float32).astype(np.float64)
    unit = array.astype(np.float64) / found.scales
    error = np.abs(unit[:, None] - levels)
    assert np.all(np.abs(unit - levels[found.codes]) <= error.min(axis=1) + 1e-7)


def test_the_named_tables_are_the_published_ones() -> None:
    nf4 = Codebook.nf4()
    assert (nf4.bits, nf4.bucket_size, nf4.scaling) == (4, 64, "absmax")
    assert np.all(np.diff(nf4.levels) > 0)
    assert nf4.levels[0] == -1
    assert nf4.levels[7] == 0
    assert nf4.levels[15] == 1
    dynamic = Codebook.dynamic8()
    assert (dynamic.bits, dynamic.bucket_size, len(dynamic.levels)) == (8, 256, 256)
    # As published code makes them: for each decade the middles of equal parts.
    expected = [0.0, 1.0]
    for i in range(7):
        edges = np.linspace(0.1, 1, 2**i + 1)
        middles = 10.0 ** (i - 6) * (edges[1:] + edges[:-1]) / 2
        expected += [*middles, *-middles]
    np.testing.assert_allclose(dynamic.levels, np.sort(expected), rtol=1e-7)


def test_the_unsigned_table_is_the_published_one_but_for_values_next_to_0() -> None:
    unsigned = Codebook.dynamic8(signed=False)
    assert (unsigned.bits, unsigned.bucket_size, len(unsigned.levels)) == (8, 256, 256)
    expected = [0.0, 1.0]
    for i in range(7):
        edges = np.linspace(0.1, 1, 2 ** (i + 1) + 1)
        expected += [*(10.0 ** (i - 6) * (edges[1:] + edges[:-1]) / 2)]
    np.testing.assert_allclose(unsigned.levels, np.sort(expected), rtol=1e-7)
    assert unsigned.borders[0] == 0
    levels = np.array(unsigned.levels)
    np.testing.assert_allclose(unsigned.borders[1:], (levels[1:-1] + levels[2:]) / 2, rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nothing_above_0_becomes_0_in_the_unsigned_table(dtype: str) -> None:
    array = np.geomspace(1e-7, 1, 6000).astype(numpy_dtype(dtype))
    array[::5] = 0
    decoded = check_codes(array, Codebook.dynamic8(6000, signed=False)).decoded
    np.testing.assert_array_equal(decoded == 0, array == 0)
    assert np.all(checks.array_of(checks.stream_of(-array, Codebook.dynamic8(signed=False))) == 0)


@pytest.mark.parametrize("name", ["nf4", "dynamic8"])
def test_the_errors_on_normal_values_are_the_known_ones(name: str) -> None:
    array = np.random.default_rng(0).normal(size=1 << 18).astype(np.float32)
    decoded = checks.array_of(checks.stream_of(array, getattr(Codebook, name)()))
    error = np.linalg.norm(decoded - array) / np.linalg.norm(array)
    assert error == pytest.approx({"nf4": 0.0919, "dynamic8": 0.01085}[name], rel=0.01)


@pytest.mark.parametrize("dtype", FLOATS)
def test_buckets_of_zeros_come_back_as_zeros(dtype: str) -> None:
    array = np.zeros(1000, numpy_dtype(dtype))
    array[::3] = -0.0
    for codec in (Codebook.nf4(), Codebook.dynamic8(), uneven(5, "absmax"), uneven(5, "tensor")):
        assert np.all(checks.array_of(checks.stream_of(array, codec)) == 0)
    assert np.all(checks.array_of(checks.stream_of(array, Codebook([0.5], [0.0, 1.0]))) == 0)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("special", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_bucket_that_is_not_finite_comes_back_nan(dtype: str, special: float, scaling: Any) -> None:
    for levels, bucket_size in itertools.product((3, 16, 256), (16, 100, 5000)):
        array = normal(dtype)
        array[4099] = special
        codec = uneven(levels, scaling, bucket_size)
        decoded = check_codes(array, codec).decoded
        start, size = (0, COUNT) if scaling == "tensor" else (4099 // bucket_size * bucket_size, bucket_size)
        expected = np.zeros(COUNT, bool)
        expected[start : start + size] = True
        np.testing.assert_array_equal(np.isnan(decoded), expected)
        assert len(set(checks.bits_of(decoded[expected]).tolist())) == 1


@pytest.mark.parametrize("scaling", ["absmax", "tensor"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_huge_and_subnormal_buckets_neither_overflow_nor_vanish(dtype: str, scaling: Any) -> None:
    limits: Any = ml_dtypes.finfo(numpy_dtype(dtype))
    for scale in (float(limits.max), float(limits.max) / 3, float(limits.tiny), 40 * float(limits.smallest_subnormal)):
        unit = np.random.default_rng(3).uniform(-1, 1, 3000)
        unit[::64] = 1
        array = (unit * scale).astype(numpy_dtype(dtype))
        for codec in (Codebook.nf4(), dataclasses.replace(Codebook.dynamic8(), scaling=scaling)):
            found = check_codes(array, codec)
            decoded, x = found.decoded.astype(np.float64) / scale, array.astype(np.float64) / scale
            assert np.all(np.isfinite(decoded))
            assert np.abs(decoded - x).max() < 0.2
        beyond = Codebook([0.0], [-3.0, 3.0], scaling=scaling)
        assert np.all(np.isfinite(check_codes(array, beyond).decoded.astype(np.float64)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_borders_and_levels_of_any_size_are_kept(dtype: str) -> None:
    tiny, least, largest = 2.0**-126, 2.0**-149, float(np.finfo(np.float32).max)
    borders = [-largest, -1.0, -tiny, -least, 0.0, least, tiny, 1.0, largest]
    codec = Codebook(borders, [-largest, -1, -tiny, -least, 0, least, tiny, 1, 2, largest])
    with np.errstate(all="ignore"):
        x = np.concatenate([np.array(borders), normal("float64", 100, 1e-38), normal("float64", 100)])
        array = x.astype(numpy_dtype(dtype))
        array = array[np.isfinite(array.astype(np.float64))]
    check_codes(array, codec)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (31,), (33,), (2, 3, 5), (4097,), (COUNT,)])
def test_every_shape_comes_back(shape: tuple[int, ...], device: checks.Host) -> None:
    for dtype in FLOATS:
        array = normal(dtype, int(np.prod(shape))).reshape(shape)
        checks.check_codec(array, Codebook.nf4(), device)
        checks.check_codec(array, Codebook.dynamic8(100), device)
        for scaling in SCALINGS:
            checks.check_codec(array, uneven(5, scaling, 17), device)


def test_other_layouts_and_byte_orders_give_the_same_bytes() -> None:
    for dtype in ("float16", "float32", "float64"):
        array = normal(dtype, 60 * 80).reshape(60, 80)
        padded = np.zeros((120, 83), array.dtype)
        padded[::2, 3:] = array
        locked = array.copy()
        locked.setflags(write=False)
        expected = checks.stream_of(array, Codebook.nf4())
        swapped = array.astype(array.dtype.newbyteorder(">"))
        for other in (np.asfortranarray(array), padded[::2, 3:], swapped, locked):
            assert checks.stream_of(other, Codebook.nf4()) == expected


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_payload_is_as_long_as_the_format_says(dtype: str) -> None:
    for levels, bucket_size, scaling in itertools.product((2, 5, 256), (16, 100, 5000), SCALINGS):
        codec = uneven(levels, scaling, bucket_size)
        tables = reference_codebook.tables_of(codec.config())
        for count in (0, 1, 15, 16, 99, 513, 4096, 10_001):
            array = np.zeros(count, numpy_dtype(dtype))
            spec = arrcomp.compress(array, codec).spec
            checks.check_capacity(checks.stream_of(array, codec), array)
            assert spec.capacity == reference_codebook.layout_of(tables, count, array.dtype.itemsize).nbytes
            terms = _core.capacity_terms(codec.id, codec.core_parameters(), spec.dtype.id)
            assert sum(b * -(-(-(-count // i) * m) // o) if i else b for i, m, o, b in terms) == spec.capacity


@pytest.mark.parametrize("dtype", FLOATS)
def test_any_payload_of_the_right_length_is_read_as_the_format_says(dtype: str) -> None:
    rng = np.random.default_rng(9)
    for levels, scaling in itertools.product((2, 3, 7, 16, 33, 100, 256), SCALINGS):
        stream = checks.stream_of(normal(dtype, 777), uneven(levels, scaling, 16))
        start, end = checks.payload_span(stream)
        stream = checks.seal(stream[:start] + rng.bytes(end - start))
        checks.check_reference(stream, checks.array_of(stream))


def test_verify_sees_a_wrong_level() -> None:
    for codec in (Codebook.nf4(), Codebook.dynamic8(), uneven(5), uneven(100, "tensor")):
        for dtype in FLOATS:
            array = normal(dtype)
            array[300] = np.nan
            decoded = checks.array_of(checks.stream_of(array, codec))
            assert guarantees.compare(array, decoded, codec).holds
            for index in (0, 300) if codec.scaling != "tensor" else (300,):
                wrong = decoded.copy()
                wrong[index] = 1.5
                assert guarantees.compare(array, wrong, codec).violations == 1


def test_tables_may_be_lists_and_arrays_and_are_float32() -> None:
    codec = Codebook((0.1, 0.5), (0, 1, 2))
    assert codec.borders == (0.1, 0.5)
    assert codec.levels == (0.0, 1.0, 2.0)
    for kind in (list, np.array, lambda numbers: np.array(numbers, np.float32)):
        twin = Codebook(kind([0.1, 0.5]), kind([0, 1, 2]))  # type: ignore[arg-type]
        assert twin == codec
        assert hash(twin) == hash(codec)
    assert Codebook([0.1 + 1e-12, 0.5], [-0.0, 1, 2]) == codec
    assert codec.core_parameters() is codec.core_parameters()


@pytest.mark.parametrize(
    "codec",
    [Codebook.nf4(), Codebook.dynamic8(1000), Codebook.dynamic8(signed=False), uneven(7), uneven(256, "tensor")],
    ids=str,
)
def test_codebooks_are_values(codec: Codebook) -> None:
    assert arrcomp.codec_from_config(json.loads(json.dumps(codec.config()))) == codec
    assert eval(repr(codec), {"Codebook": Codebook}) == codec  # noqa: S307
    again = pickle.loads(pickle.dumps(codec))  # noqa: S301
    assert again == codec
    assert hash(again) == hash(codec)
    other = dataclasses.replace(codec, bucket_size=777)
    assert other != codec
    assert other.core_parameters() != codec.core_parameters()


def test_configurations_name_published_tables() -> None:
    assert Codebook.nf4().config() == {"codec": "codebook", "scaling": "absmax", "bucket_size": 64, "table": "nf4"}
    assert arrcomp.codec_from_config({"codec": "codebook", "table": "dynamic8"}).config()["table"] == "dynamic8"
    for config in ({"table": "nf5"}, {"table": "nf4", "levels": [1, 2]}, {"levels": [1, 2]}, {"bucket_size": 64}):
        with pytest.raises(ValueError, match=r"table|levels|borders"):
            arrcomp.codec_from_config({"codec": "codebook", **config})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], [1]), ValueError, "^levels: expected 2 to 256 numbers, got 1"),
        ((range(256), range(257)), ValueError, "^levels: expected 2 to 256 numbers, got 257"),
        (([1], [1, 2, 3]), ValueError, "^borders: expected 2 numbers, one fewer than levels, got 1"),
        (([2, 1], [1, 2, 3]), ValueError, r"^borders: expected ascending numbers, got 2\.0 before 1\.0 \(in float32\)"),
        (
            ([1, 1 + 1e-9], [1, 2, 3]),
            ValueError,
            r"^borders: expected ascending numbers, got 1\.0 before 1\.0 \(in float32\)",
        ),
        (([math.nan], [1, 2]), ValueError, "^borders: expected finite numbers in the range of float32, got nan"),
        (([1], [1, math.inf]), ValueError, "^levels: expected finite numbers in the range of float32, got inf"),
        (([1], [1, 1e39]), ValueError, r"^levels: expected finite numbers in the range of float32, got 1e\+39"),
        ((1, [1, 2]), TypeError, r"^borders: expected a list of numbers, got 1 \(int\)"),
        (("1", [1, 2]), TypeError, r"^borders: expected a list of numbers, got '1' \(str\)"),
        (([[1]], [1, 2]), TypeError, "^borders: expected a list of numbers, got list"),
        (([1], ["a", "b"]), TypeError, "^levels: expected numbers, got <U1"),
        (([1], [True, 2]), TypeError, "^levels: expected numbers, got True"),
    ],
)
def test_wrong_tables_are_named(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Codebook(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"scaling": "max"}, ValueError, "^scaling: expected 'absmax' or 'tensor', got 'max'"),
        ({"scaling": 1}, TypeError, r"^scaling: expected 'absmax' or 'tensor', got 1 \(int\)"),
        ({"bucket_size": 15}, ValueError, "^bucket_size: expected an integer from 16 to 1099511627776, got 15"),
        ({"bucket_size": 64.0}, TypeError, r"^bucket_size: expected an integer .*, got 64\.0 \(float\)"),
    ],
)
def test_wrong_parameters_are_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    for make in (lambda **given: Codebook([0], [0, 1], **given), lambda **given: Codebook.fit([1, 2], 1, **given)):
        with pytest.raises(error, match=message):
            make(**arguments)


def test_midpoints_of_neighbouring_numbers_still_ascend() -> None:
    x = np.float32(1) + np.arange(6, dtype=np.float32) * np.float32(2**-23)
    codec = Codebook.fit(x, 3)
    np.testing.assert_array_equal(np.array(codec.levels, np.float32), x)
    np.testing.assert_array_equal(checks.array_of(checks.stream_of(x, codec)), x)
    with pytest.raises(ValueError, match=r"^samples: expected different numbers in float32, got equal ones"):
        Codebook.fit([1, 1 + 1e-12], 3)
