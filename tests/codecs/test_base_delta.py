"""BaseDelta: bit for bit, at predicted sizes, and with dropped bits against integer arithmetic."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
import reference_reader
from arrcomp import BaseDelta
from arrcomp._cli.guarantees import compare
from checks import DTYPES, FLOATS, Array, bits_of, numpy_dtype
from reference_philox import philox
from small_streams import resized

from ..arrays.test_conformance import mixture
from .test_lossless import SHAPES, narrow, patchworks, random_bits, special_floats

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

ROUNDINGS: tuple[Any, ...] = ("nearest", "stochastic", "truncate")
MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52, "complex64": 23, "complex128": 52}
DROPS = [(name, drop) for name, most in MANTISSA.items() for drop in (1, most // 2, most - 1, most)]
LOSSLESS = [BaseDelta(), BaseDelta(bases=2), BaseDelta(bases=2, delta_bits=(3, 8, 16, 24))]
HEAD = 24  # bytes of a payload before its only group


def describe(array: Array, codec: arrcomp.Codec) -> list[Any]:
    """What the writer chose for each chunk."""
    return reference_reader.describe_lines(checks.stream_of(array, codec))


# --- nothing is lost


@pytest.mark.parametrize("shape", [*SHAPES, (63,), (64,), (65,), (96,), (97,)], ids=str)
@pytest.mark.parametrize("name", DTYPES)
def test_random_bits_come_back(name: str, shape: tuple[int, ...], device: checks.Host) -> None:
    array, codec = random_bits(name, shape), BaseDelta(bases=2)
    stream = checks.stream_of(array, codec, device)
    decoded = checks.array_of(stream, device)
    checks.check_same_bits(decoded, array)
    checks.check_reference(stream, decoded)
    checks.check_capacity(stream, array)


@pytest.mark.parametrize("codec", LOSSLESS, ids=repr)
@pytest.mark.parametrize("name", DTYPES)
def test_narrow_values_come_back(name: str, codec: BaseDelta, device: checks.Host) -> None:
    for count in (1, 33, 4097, 3 * 4096 + 5):
        checks.check_codec(narrow(name, (count,)), codec, device)


@pytest.mark.parametrize("name", FLOATS)
def test_special_floats_come_back(name: str, device: checks.Host) -> None:
    checks.check_codec(special_floats(name), BaseDelta(bases=2), device)


@pytest.mark.parametrize("count", [2**18 - 1, 2**18 + 1, 2**20 - 1, 2**20 + 1])
@pytest.mark.parametrize("name", ["int8", "bfloat16", "float32"])
def test_sizes_around_the_groups_limit(name: str, count: int, device: checks.Host) -> None:
    array = narrow(name, (count,))
    stream = checks.stream_of(array, BaseDelta(), device)
    checks.check_same_bits(checks.array_of(stream, device), array)
    checks.check_capacity(stream, array)


@pytest.mark.parametrize("codec", [BaseDelta(), BaseDelta(drop_bits=5)], ids=repr)
def test_every_layout_gives_the_bytes_of_the_array_in_c_order(codec: BaseDelta) -> None:
    array = narrow("float32", (70, 80))
    expected = checks.stream_of(array, codec)
    frozen = array.copy()
    frozen.flags.writeable = False
    shifted = np.zeros(array.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(array.shape)
    shifted[:] = array
    strided = np.zeros((140, 240), np.float32)[::2, ::3]
    strided[:] = array
    for other in (
        np.asfortranarray(array),
        frozen,
        shifted,
        strided,
        array.astype(">f4"),
        array[::-1, ::-1][::-1, ::-1],
    ):
        assert checks.stream_of(other, codec) == expected


@given(patchworks(), st.sampled_from(LOSSLESS))
def test_any_array_comes_back(array: Array, codec: BaseDelta) -> None:
    stream = checks.stream_of(array, codec)
    decoded = checks.array_of(stream)
    checks.check_same_bits(decoded, array)
    checks.check_reference(stream, decoded)
    checks.check_capacity(stream, array)


# --- predicted sizes, of one chunk of 64 lines


def bytes_of(array: Array, **parameters: Any) -> int:
    """Bytes of a chunk."""
    codec = BaseDelta(**parameters)
    start, end = checks.payload_span(checks.check_codec(array, codec))
    return end - start - HEAD


def packed(bits: float, rows: int = 128) -> int:
    """Bytes of so many rows of 32 words, of so many bits each."""
    return math.ceil(bits * rows / 16) * 64 if bits * rows % 32 <= 16 else math.ceil(bits * rows / 32) * 128


def spread(low: int, high: int, dtype: str = "int32") -> Array:
    """4096 integers, with the smallest and the largest in every line."""
    array = np.random.default_rng(0).integers(low, high, 4096, endpoint=True, dtype=numpy_dtype(dtype))
    array[::64], array[1::64] = low, high
    return array


def test_zeros_take_a_head() -> None:
    for dtype in ("int32", "float64", "bool", "uint8"):
        assert bytes_of(np.zeros(4096, dtype)) == 4


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "int64", "float64"])
def test_a_repeated_word_takes_a_tag_and_a_base(dtype: str) -> None:
    assert bytes_of(np.full(4096, 7, dtype)) == 4 + 64 + 64 * np.dtype(dtype).itemsize
    assert bytes_of(np.full(64, 7, dtype)) == 4 + 4 + max(np.dtype(dtype).itemsize, 4)


@pytest.mark.parametrize(("width", "dtype"), [(1, "int32"), (4, "uint32"), (12, "int32"), (6, "int64"), (3, "uint16")])
def test_a_base_and_small_deltas(width: int, dtype: str) -> None:
    base = 10_001
    array = spread(base, base + 2**width - 1, dtype)
    bases = 64 * array.itemsize
    assert bytes_of(array) == 4 + 64 + bases + packed(width)
    for line in describe(array, BaseDelta())[0].lines:
        assert line == (1, width, 2)


def test_the_widths_of_64_bit_words_are_even() -> None:
    assert bytes_of(spread(10**12 + 1, 10**12 + 32, "int64")) == 4 + 64 + 512 + packed(6)


def test_deltas_are_signed() -> None:
    assert bytes_of(spread(-8, 7)) == 4 + 64 + packed(4)
    assert bytes_of(spread(-(2**31), -(2**31) + 15)) == 4 + 64 + 256 + packed(4)
    assert bytes_of(spread(-9, 6, "int64") + 10**15) == 4 + 64 + 512 + packed(4)


def test_immediates_take_a_bit_a_word() -> None:
    array = np.where(np.arange(4096) % 3 == 0, spread(-8, 7), spread(10**6, 10**6 + 15))
    array[array == 0] = 1
    array[:64:3] = -8
    assert {(line.mode, line.width) for line in describe(array, BaseDelta())[0].lines} <= {(2, 4), (2, 3)}
    assert bytes_of(array) <= 4 + 64 + 256 + packed(5)


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_two_clusters_take_two_bases(dtype: str) -> None:
    high = 3 * 10**9
    array = np.where(np.arange(4096) % 2 == 0, spread(10**6, 10**6 + 15, dtype), spread(high, high + 15, dtype))
    array[0::64], array[2::64] = 10**6, 10**6 + 15
    array[1::64], array[3::64] = high, high + 15
    assert bytes_of(array, bases=2) == 4 + 64 + 2 * 64 * array.itemsize + packed(5)
    # With one base, the smaller ones are deltas of 21 bits from zero.
    near_zero = 22 if dtype == "uint64" else 21
    assert bytes_of(array, bases=1) == 4 + 64 + 64 * array.itemsize + packed(near_zero + 1)


def test_three_clusters_take_zero_and_two_bases() -> None:
    array = np.choose(np.arange(4096) % 3, [spread(-8, -1), spread(10**6, 10**6 + 15), spread(10**9, 10**9 + 15)])
    array[0::64], array[64::64] = -8, -8
    codes = {line.mode for line in describe(array, BaseDelta(bases=2))[0].lines}
    assert codes == {4}
    assert bytes_of(array, bases=2) <= 4 + 64 + 512 + packed(6)


def test_zeros_between_clusters_cost_a_bit() -> None:
    array = spread(10**6 + 1, 10**6 + 16)
    array[np.arange(4096) % 64 >= 32] = 0
    words = 2048
    masks, tags, bases = 16 + 64 * 8, words // 64, words // 64 * 4
    assert bytes_of(array) == 4 + masks + tags + bases + packed(4, words // 32)


def test_zero_lines_cost_a_bit() -> None:
    array = spread(10**6 + 1, 10**6 + 16)
    array[640:] = 0
    assert bytes_of(array) == 4 + 16 + 12 + 10 * 4 + packed(4, 20)


def test_random_words_cost_four_bytes_a_chunk() -> None:
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        array = random_bits(dtype, (4096,)) | np.asarray(1, dtype)
        assert bytes_of(array) == 4 + array.nbytes
        assert bytes_of(array, bases=2) == 4 + array.nbytes


def test_low_bits_that_are_zero_are_not_stored() -> None:
    assert bytes_of(spread(0, 15) * 2**20) == 4 + 64 + 256 + packed(4)
    rounded = np.random.default_rng(1).normal(0, 1, 4096).astype(ml_dtypes.bfloat16).astype(np.float32)
    assert describe(rounded, BaseDelta())[0].shift == 16
    assert bytes_of(rounded) < packed(16)


def test_signs_do_not_part_floats() -> None:
    array = np.random.default_rng(2).uniform(1, 2, 4096).astype(np.float32)
    signed = np.where(np.arange(4096) % 2 == 0, array, -array)
    assert describe(signed, BaseDelta())[0].sign_last
    assert bytes_of(signed) == 4 + 64 + 256 + packed(24)
    assert bytes_of(array) == bytes_of(-array) <= 4 + 64 + 256 + packed(23)


def test_only_the_widths_that_are_allowed_are_used() -> None:
    array = spread(10**6, 10**6 + 15)
    assert bytes_of(array, delta_bits=(8, 16)) == 4 + 64 + 256 + packed(8)
    assert bytes_of(array, delta_bits=(3, 20)) == 4 + 64 + 256 + packed(20)
    assert bytes_of(array, delta_bits=(3, 32)) == 4 + array.nbytes
    assert bytes_of(spread(10**12, 10**12 + 100, "int64"), delta_bits=(9,)) == 4 + 64 + 512 + packed(10)
    assert bytes_of(np.full(4096, 9), delta_bits=(32,)) == 4 + 64 + 512


def test_every_mode_is_reached_by_mixed_data() -> None:
    found: Counter[Any] = Counter()
    for name in DTYPES:
        array = np.concatenate([mixture(name), np.zeros(9000, numpy_dtype(name)), random_bits(name, (9000,))])
        for chunk in describe(array, BaseDelta(bases=2)):
            found.update([chunk.kind, *(line.mode for line in chunk.lines)])
            found.update(["signs", "masks"][i] for i, used in enumerate((chunk.sign_last, chunk.masked)) if used)
    assert set(found) >= {"raw", "lines", "zero", "signs", "masks", 0, 1, 2, 3, 4, 7}


# --- dropped bits


def rounded_bits(array: Array, codec: BaseDelta, seed: int = checks.SEED) -> Array:
    """The bits that must come back, by integer arithmetic."""
    name = "bfloat16" if array.dtype == ml_dtypes.bfloat16 else array.dtype.name
    bits, mantissa = bits_of(array).astype(np.uint64), MANTISSA[name]
    width = bits_of(array).itemsize * 8
    unit = np.uint64(1) << np.uint64(codec.drop_bits)
    sign = bits & np.uint64(1 << (width - 1))
    magnitude = bits ^ sign
    infinity = np.uint64(((1 << (width - 1)) - 1) >> mantissa << mantissa)
    down, rest = magnitude // unit, magnitude % unit
    if codec.rounding == "nearest":
        up = (2 * rest > unit) | ((2 * rest == unit) & (down % 2 == 1))
    elif codec.rounding == "truncate":
        up = np.zeros(bits.shape, bool)
    else:
        up = rest + random_numbers(bits.size, codec.drop_bits, seed) >= unit
    found = (down + up) * unit
    found = np.where((magnitude < infinity) & (found >= infinity), down * unit, found)
    quiet = down * unit | np.uint64(1 << (mantissa - 1))
    found = np.where(magnitude > infinity, quiet, np.where(magnitude == infinity, infinity, found))
    return (sign | found).astype(bits_of(array).dtype)


def random_numbers(count: int, bits: int, seed: int) -> Array:
    """The number below 2^bits of each element (FORMAT.md, section 6.4)."""
    i = np.arange(count, dtype=np.uint64)
    counter = np.uint64(32) * (i // np.uint64(128)) + i % np.uint64(32)
    words = philox([counter, counter >> np.uint64(32), counter * 0, counter * 0], (seed % 2**32, seed >> 32))
    word = np.choose((i // np.uint64(32) % np.uint64(4)).astype(np.intp), words)
    found: Array = word >> np.uint64(32 - bits) if bits <= 32 else word << np.uint64(bits - 32)
    return found


def lossy_input(name: str) -> Array:
    """Ordinary, subnormal and special numbers; the last before and after each power of two; ties."""
    part = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    specials = special_floats(part)
    row = np.dtype(f"u{specials.itemsize}")
    width, mantissa = specials.itemsize * 8, MANTISSA[part]
    rng = np.random.default_rng(3)
    edges = (rng.integers(0, 1 << (width - 1 - mantissa), 1000) << mantissa) + rng.integers(-2, 3, 1000)
    ties = rng.integers(0, 1 << min(width - 1, 62), 1000) >> (mantissa // 2) << (mantissa // 2)
    patterns = np.concatenate([edges, ties]) & ((1 << (width - 1)) - 1)
    found = np.concatenate([specials, patterns.astype(row).view(specials.dtype), random_bits(part, (2000,))])
    return found[: found.size // 2 * 2].view(numpy_dtype(name))


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(("name", "drop"), DROPS)
def test_every_rounded_bit_is_predicted(name: str, drop: int, rounding: Any, device: checks.Host) -> None:
    array, codec = lossy_input(name), BaseDelta(drop_bits=drop, rounding=rounding)
    decoded = checks.array_of(checks.check_codec(array, codec, device))
    np.testing.assert_array_equal(bits_of(decoded), rounded_bits(array, codec))


@pytest.mark.parametrize("drop", [1, 31, 32, 33, 45])
def test_random_numbers_of_more_than_32_bits(drop: int) -> None:
    array, codec = lossy_input("float64"), BaseDelta(drop_bits=drop, rounding="stochastic")
    for seed in (0, 1 << 40, 2**64 - 1):
        decoded = checks.array_of(checks.stream_of(array, codec, seed=seed))
        np.testing.assert_array_equal(bits_of(decoded), rounded_bits(array, codec, seed))


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", FLOATS)
def test_errors_stay_below_a_place(name: str, rounding: Any) -> None:
    array = lossy_input(name)
    with np.errstate(invalid="ignore"):
        finite = array[np.isfinite(array.astype(np.float64))]
    most: Any = ml_dtypes.finfo(array.dtype)
    for drop in (1, MANTISSA[name]):
        codec = BaseDelta(drop_bits=drop, rounding=rounding)
        decoded = checks.array_of(checks.stream_of(finite, codec)).astype(np.float64)
        assert np.isfinite(decoded).all()
        largest = Fraction(2) ** (int(most.maxexp) - 1) * (2 - Fraction(1, 2 ** (MANTISSA[name] - drop)))
        for x, y in zip(map(Fraction, finite.astype(np.float64)), map(Fraction, decoded), strict=True):
            exponent = max(math.frexp(abs(float(x)))[1] - 1, int(most.minexp))
            place = Fraction(2) ** (exponent - MANTISSA[name] + drop)
            error = abs(x - y)
            if rounding == "nearest" and abs(x) <= largest:
                assert error <= place / 2
            else:
                assert error < place
            assert rounding != "truncate" or abs(y) <= abs(x)


def test_classes_do_not_change() -> None:
    for name, most in MANTISSA.items():
        array = lossy_input(name)
        parts = array.view(array.real.dtype) if name.startswith("complex") else array
        for drop, rounding in ((1, "nearest"), (most, "nearest"), (most, "stochastic"), (most, "truncate")):
            codec = BaseDelta(drop_bits=drop, rounding=rounding)  # type: ignore[arg-type]
            decoded = checks.array_of(checks.stream_of(array, codec)).view(parts.dtype)
            with np.errstate(invalid="ignore"):
                for classify in (np.isnan, np.isposinf, np.isneginf, np.signbit):
                    x, y = parts.astype(np.float64), decoded.astype(np.float64)
                    np.testing.assert_array_equal(classify(x), classify(y))


@pytest.mark.parametrize("name", FLOATS)
def test_stochastic_rounding_is_unbiased(name: str) -> None:
    drop, seeds = MANTISSA[name] - 2, 400
    values = np.random.default_rng(5).uniform(1, 2, 500) * np.where(np.arange(500) % 2, 1, -1)
    array, place = values.astype(numpy_dtype(name)), 2.0 ** (drop - MANTISSA[name])
    codec = BaseDelta(drop_bits=drop, rounding="stochastic")
    errors = np.stack(
        [checks.array_of(checks.stream_of(array, codec, seed=seed)).astype(float) for seed in range(seeds)]
    )
    errors = (errors - array.astype(float)) / place
    # The chance to be rounded up is what is dropped, as a part of the place.
    up = np.abs(array.astype(float)) / place % 1
    deviation = np.sqrt(up * (1 - up) / seeds)
    clear = deviation > 0.01
    assert clear.sum() > 250
    assert np.quantile(np.abs(errors.mean(axis=0)[clear]) / deviation[clear], 0.99) < 4
    assert np.all(errors[:, up == 0] == 0)
    assert abs(errors.mean()) <= 4 * np.sqrt((up * (1 - up)).sum() / seeds) / array.size


def test_seeds_differ_and_repeat() -> None:
    array = np.random.default_rng(6).normal(0, 1, 5000)
    codec = BaseDelta(drop_bits=40, rounding="stochastic")
    streams = [checks.stream_of(array, codec, seed=seed) for seed in (1, 2, 1)]
    assert streams[0] == streams[2] != streams[1]
    with pytest.raises(TypeError, match=r"^seed: expected an integer, or a.*got None"):
        arrcomp.compress(array, codec)


def test_a_seed_is_needed_only_where_bits_are_dropped_at_random() -> None:
    assert BaseDelta(drop_bits=1, rounding="stochastic").needs_seed
    assert not BaseDelta(rounding="stochastic").needs_seed
    assert not BaseDelta(drop_bits=1).needs_seed


def test_dropping_bits_makes_streams_smaller() -> None:
    array = np.random.default_rng(7).normal(0, 0.02, 40_000).astype(np.float32)
    sizes = [arrcomp.compress(array, BaseDelta(drop_bits=drop)).nbytes for drop in (0, 8, 16, 20)]
    for (before, after), bits in zip(itertools.pairwise(sizes), (8, 8, 4), strict=True):
        assert before - after > 0.95 * bits * array.size / 8


# --- what other writers may choose


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        pytest.param(bytes([1 | 8, 0, 0, 0]) + bytes(16), 0, id="no line is live"),
        pytest.param(bytes([1, 3, 0, 0, 1 << 5, 0, 0, 0, 7, 0, 0, 0xFF]), 56 - 2**27, id="high bits of a base"),
        pytest.param(bytes([1, 0, 0, 0, 4 << 5, 0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0]) + b"\xff" * 16, 9, id="selector 3"),
        pytest.param(bytes([1 | 4, 0, 0, 0, 7 << 5, 0, 0, 0]) + b"\1\0\0\0" * 64, -(2**31), id="signs of integers"),
    ],
)
def test_legal_chunks_of_other_writers_are_read(chunk: bytes, expected: int) -> None:
    zeros = checks.stream_of(np.zeros(64, np.int32), BaseDelta())
    start, _ = checks.payload_span(zeros)
    payload = bytearray(zeros[start : start + HEAD]) + chunk
    payload[16:20] = (len(chunk) // 4).to_bytes(4, "little")
    stream = resized(zeros, bytes(payload))
    decoded = checks.array_of(stream)
    checks.check_reference(stream, decoded)
    assert set(decoded.tolist()) == {expected}


# --- what is refused


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"bases": 0}, ValueError, "^bases: expected an integer from 1 to 2, got 0"),
        ({"bases": 3}, ValueError, "^bases: expected an integer from 1 to 2, got 3"),
        ({"bases": 1.0}, TypeError, r"^bases: expected an integer from 1 to 2, got 1\.0 \(float\)"),
        ({"bases": True}, TypeError, r"^bases: expected an integer from 1 to 2, got True \(bool\)"),
        ({"delta_bits": 8}, TypeError, r"^delta_bits: expected a tuple of widths, or None, got 8 \(int\)"),
        ({"delta_bits": "8"}, TypeError, r"^delta_bits: expected a tuple of widths, or None, got '8' \(str\)"),
        ({"delta_bits": ()}, ValueError, "^delta_bits: expected at least one width, or None for all, got none"),
        ({"delta_bits": (8, 0)}, ValueError, r"^delta_bits\[1\]: expected an integer from 1 to 64, got 0"),
        ({"delta_bits": (65,)}, ValueError, r"^delta_bits\[0\]: expected an integer from 1 to 64, got 65"),
        ({"delta_bits": (8.0,)}, TypeError, r"^delta_bits\[0\]: expected an integer from 1 to 64, got 8\.0 \(float\)"),
        ({"drop_bits": -1}, ValueError, "^drop_bits: expected an integer from 0 to 52, got -1"),
        ({"drop_bits": 53}, ValueError, "^drop_bits: expected an integer from 0 to 52, got 53"),
        ({"drop_bits": None}, TypeError, "^drop_bits: expected an integer from 0 to 52, got None"),
        ({"rounding": "up"}, ValueError, "^rounding: expected 'nearest' or 'stochastic' or 'truncate', got 'up'"),
        ({"rounding": 0}, TypeError, r"^rounding: expected 'nearest' or 'stochastic' or 'truncate', got 0 \(int\)"),
    ],
    ids=str,
)
def test_other_parameters_are_refused(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BaseDelta(**parameters)


def test_widths_are_a_sorted_tuple() -> None:
    assert BaseDelta(delta_bits=[24, 8, 8, np.int8(16)]).delta_bits == (8, 16, 24)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", MANTISSA)
def test_no_more_bits_are_dropped_than_there_are(name: str) -> None:
    array, most = np.zeros(3, numpy_dtype(name)), MANTISSA[name]
    arrcomp.compress(array, BaseDelta(drop_bits=most))
    if most == 52:
        return
    with pytest.raises(ValueError, match=f"^drop_bits: expected 0 to .*, got {most + 1}"):
        arrcomp.compress(array, BaseDelta(drop_bits=most + 1))


@pytest.mark.parametrize("name", [name for name in DTYPES if name not in MANTISSA])
def test_bits_of_other_types_are_not_dropped(name: str) -> None:
    with pytest.raises(TypeError, match=f"^dtype: expected float16, .* .*, got {name}; drop_bits=0 takes every"):
        arrcomp.compress(np.zeros(3, numpy_dtype(name)), BaseDelta(drop_bits=1))


# --- what `verify` says of it


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", MANTISSA)
def test_verify_allows_what_is_promised_and_no_more(name: str, rounding: Any) -> None:
    array, ordinary = lossy_input(name), np.random.default_rng(9).normal(0, 1, 600).astype(numpy_dtype(name))
    for drop in (1, MANTISSA[name] - 1):
        codec = BaseDelta(drop_bits=drop, rounding=rounding)
        assert compare(array, checks.array_of(checks.stream_of(array, codec)), codec).holds
        decoded = bits_of(checks.array_of(checks.stream_of(ordinary, codec)))
        changed = decoded + np.asarray(2 << drop, decoded.dtype) * (decoded != 0)
        assert compare(ordinary, changed.view(ordinary.dtype), codec).violations == np.count_nonzero(decoded)


def test_verify_knows_classes_and_signs() -> None:
    x, codec = np.array([1, np.inf, -np.inf, np.nan, 0], np.float32), BaseDelta(drop_bits=3)
    assert compare(x, x, codec).holds
    for i, value in enumerate([np.nan, np.nan, np.inf, 0, -0.0]):
        y = x.copy()
        y[i] = value
        assert compare(x, y, codec).violations == 1
