"""Predicted arrays: every law of their codecs holds with any predictor, and smooth fields take fewer bytes."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import arrcomp
import checks
import reference_reader
from arrcomp import Codec, ErrorBounded, Lossless, _core
from checks import FLOATS, Array, numpy_dtype
from predicted_fields import (
    ALWAYS,
    PREDICTORS,
    SHAPES,
    behind_steps,
    codecs_of,
    exact_nbytes,
    field,
    is_predicted,
    multiples,
    nbytes_of,
    prediction_of,
)

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

LEAST_PREDICTED = 512  # elements
NAMED = (*ALWAYS, "columns")


# ---- shapes


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("name", FLOATS)
def test_every_value_is_kept(name: str, predictor: Any, shape: tuple[int, ...]) -> None:
    x = field(name, *shape)
    for codec in codecs_of(predictor):
        stream = checks.check_codec(x, codec)
        if x.size < LEAST_PREDICTED:
            assert not is_predicted(stream)
        elif predictor in ALWAYS and isinstance(codec, ErrorBounded) and name.startswith("float"):
            assert is_predicted(stream)


@pytest.mark.parametrize("codec", codecs_of("interpolation")[:4] + codecs_of("lorenzo")[:4], ids=repr)
@pytest.mark.parametrize("name", FLOATS)
def test_noise_is_kept(name: str, codec: Codec) -> None:
    checks.check_codec(field(name, 11, 13, 17, noise=0.3), codec)


LONG_SHAPES = [(2, 10_001), (5, 3001), (3001, 5), (3, 2, 2500), (70_001,), (40, 41, 43), (11, 130, 129)]


@pytest.mark.parametrize("shape", LONG_SHAPES, ids=str)  # one thread takes the last's rows in two parts
@pytest.mark.parametrize("predictor", ALWAYS)
def test_long_lines_and_many_groups(predictor: Any, shape: tuple[int, ...]) -> None:
    for name, codec in (
        ("float32", ErrorBounded(abs=1e-3, predictor=predictor)),
        ("bfloat16", Lossless(predictor=predictor)),
    ):
        checks.check_codec(field(name, *shape, noise=0.01), codec)


@pytest.mark.parametrize("elements", [1 << 16, 1 << 18, pytest.param(1 << 20, marks=pytest.mark.full)])
@pytest.mark.parametrize("predictor", ALWAYS)
def test_groups_of_more_chunks(predictor: Any, elements: int) -> None:
    for size in (elements - 256, elements + 256):
        x = field("float32", size // 256, 256, noise=0.001)
        x[5, 7] = np.nan
        checks.check_codec(x, ErrorBounded(abs=1e-2, predictor=predictor))


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((600,), (1, 1, 1, 600)),
        ((1, 600, 1), (1, 1, 1, 600)),
        ((20, 30), (1, 1, 20, 30)),
        ((1, 8, 1, 9, 10), (1, 8, 9, 10)),
        ((2, 3, 5, 4, 7), (2, 3, 5, 4, 7)),
        ((2, 2, 1, 2, 3, 5, 7), (4, 2, 3, 5, 7)),
    ],
    ids=str,
)
def test_the_axes_are_those_of_the_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    for predictor in ALWAYS:
        codec = ErrorBounded(abs=1e-3, predictor=predictor)
        assert prediction_of(field("float32", *shape), codec).sizes == axes


def test_a_lorenzo_predictor_has_no_steps_and_interpolation_has() -> None:
    x = field("float32", 40, 50)
    for predictor, has_steps in (("interpolation", True), ("lorenzo", False)):
        codec = ErrorBounded(abs=1e-3, predictor=predictor)  # type: ignore[arg-type]
        found = prediction_of(x, codec)
        assert bool(found.steps) == has_steps
        assert found.differences


@given(st.data())
def test_any_arrays(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=5)))
    last = data.draw(st.integers(1, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    name = data.draw(st.sampled_from(FLOATS))
    x = field(name, *shape[:4], 16 * last % 97 + 8, noise=data.draw(st.sampled_from([0, 1e-3, 1])))
    scale = data.draw(st.sampled_from([1e-6, 1, 1e3]))
    with np.errstate(over="ignore"):
        x = (x.astype(np.float64) * scale).astype(x.dtype)
    x[rng.random(x.shape) < data.draw(st.sampled_from([0, 0.01, 0.5]))] = data.draw(
        st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 7.0])
    )
    predictor = data.draw(st.sampled_from(PREDICTORS))
    bound = data.draw(st.sampled_from([1e-7, 1e-3, 0.1, 10]))
    fill = data.draw(st.sampled_from([None, 7.0, 0.0]))
    checks.check_codec(x, ErrorBounded(abs=bound * scale, predictor=predictor, fill_value=fill))
    checks.check_codec(x, Lossless(predictor=predictor))


# ---- elements that stand for no value

GAPS_SHAPE = (9, 14, 40)


def _gaps() -> dict[str, NDArray[np.bool_]]:
    rng = np.random.default_rng(5)
    i, j, k = np.meshgrid(*map(np.arange, GAPS_SHAPE), indexing="ij")
    return {
        "a block": (i > 2) & (i < 6) & (j < 9) & (k > 20),
        "starts of lines": k < (i + j) % 36,
        "ends of lines": k > 39 - (i + j) % 36,
        "whole lines": (i + j) % 3 == 0,
        "whole slices": i % 4 == 0,
        "the first slice": i == 0,
        "even places": k % 2 == 0,
        "odd places": (i + j + k) % 2 == 1,
        "scattered": rng.random(GAPS_SHAPE) < 0.03,
        "most": rng.random(GAPS_SHAPE) < 0.97,
        "all": np.ones(GAPS_SHAPE, bool),
        "all but one": (i + j + k) > 0,
    }


GAPS = _gaps()


@pytest.mark.parametrize("fill", [math.nan, math.inf, -math.inf, -9984.0, 0.0, -0.0])
@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("name", FLOATS)
def test_gaps_are_kept_bit_for_bit(name: str, predictor: Any, gaps: str, fill: float) -> None:
    x = field(name, *GAPS_SHAPE)
    x[GAPS[gaps]] = fill
    fill_value = fill if math.isfinite(fill) else None
    for speed in ("default", "fast"):
        checks.check_codec(x, ErrorBounded(abs=0.05, predictor=predictor, fill_value=fill_value, speed=speed))
    checks.check_codec(x, ErrorBounded(rel=1e-2, predictor=predictor, fill_value=fill_value))
    checks.check_codec(x, Lossless(predictor=predictor))


@pytest.mark.parametrize("fill", [math.nan, -9999.0])
@pytest.mark.parametrize("gaps", ["a block", "whole lines", "starts of lines"])
def test_a_field_with_gaps_is_still_predicted(gaps: str, fill: float) -> None:
    x = field("float32", *GAPS_SHAPE)
    x[GAPS[gaps]] = fill
    codec = ErrorBounded(abs=1e-3, fill_value=None if math.isnan(fill) else fill)
    predicted = dataclasses.replace(codec, predictor="auto")
    assert nbytes_of(x, predicted) < 0.95 * nbytes_of(x, codec)


def test_few_states_where_codes_take_few_bits() -> None:
    x = field("float32", 200, 400)
    codec = ErrorBounded(abs=1e-2, predictor="interpolation")
    payload = arrcomp.compress(x, codec).host_payload()
    assert _chunks_per_group(payload) == 16
    checks.check_codec(x, codec)
    noise = field("float32", 200, 400, noise=1.0)
    assert _chunks_per_group(arrcomp.compress(noise, codec).host_payload()) == 8


def _chunks_per_group(payload: NDArray[np.uint8]) -> int:
    """Of the codes of a predicted array."""
    codes_at = behind_steps(payload.tobytes())
    return int(payload[codes_at + 8 : codes_at + 12].view(np.uint32)[0])


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("name", FLOATS)
def test_special_values_are_kept_bit_for_bit(name: str, predictor: Any) -> None:
    dtype = numpy_dtype(name)
    x = field(name, 20, 30)
    words = x.view(f"u{dtype.itemsize}")
    infinity = int(np.array(math.inf, dtype).view(words.dtype))
    sign = 1 << (8 * dtype.itemsize - 1)
    patterns = [infinity, infinity | sign, infinity + 1, infinity + 5, (infinity | sign) + 7, 2 * infinity % sign - 1]
    patterns += [0, sign, 2, 3, sign | 1, sign | 2, infinity - 1, (infinity - 1) | sign]
    for number, pattern in enumerate(patterns):
        words.ravel()[11 + number :: 41] = pattern % (2 * sign)
    for codec in codecs_of(predictor, 0.05):
        checks.check_codec(x, codec)


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("name", FLOATS)
def test_any_bits_are_kept(name: str, predictor: Any) -> None:
    dtype = numpy_dtype(name)
    words = np.random.default_rng(6).integers(0, 2 ** (8 * dtype.itemsize), (4, 9, 50), dtype=f"u{dtype.itemsize}")
    for codec in codecs_of(predictor, 0.05):
        if not isinstance(codec, ErrorBounded) or codec.rel is None or name != "float64":
            checks.check_codec(words.view(dtype), codec)


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("name", FLOATS)
def test_the_least_number_is_kept_beside_gaps(name: str, predictor: Any) -> None:
    # In the array of exact elements it stands for one that is absent.
    dtype = numpy_dtype(name)
    x = field(name, 20, 30)
    x[3:6, 4:9] = np.nan
    least = np.ones(1, f"u{dtype.itemsize}").view(dtype)[0]
    x[7, 3::4] = least
    for codec in (*codecs_of(predictor, 0.05), ErrorBounded(abs=0.05, predictor=predictor, fill_value=float(least))):
        checks.check_codec(x, codec)


# ---- extremes


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -2.75, math.nan, math.inf])
@pytest.mark.parametrize("name", FLOATS)
def test_constant_fields(name: str, value: float, predictor: Any) -> None:
    x = np.full((30, 40), value, numpy_dtype(name))
    for codec in codecs_of(predictor):
        checks.check_codec(x, codec)


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("name", FLOATS)
def test_values_near_the_largest(name: str, predictor: Any) -> None:
    largest = checks.largest_finite(numpy_dtype(name))
    smooth = field("float64", 25, 30) / 3.1
    signs = np.where(np.arange(750).reshape(25, 30) % 3 == 0, -1.0, 1.0)
    for values in (smooth, np.sign(smooth), signs, np.abs(smooth), np.where(signs < 0, smooth, signs)):
        x = (values * largest).astype(numpy_dtype(name))
        assert np.isfinite(x.astype(np.float64)).all()
        for codec in (
            ErrorBounded(abs=largest / 1e3, predictor=predictor),
            ErrorBounded(abs=largest / 2, predictor=predictor),
            ErrorBounded(abs=largest, predictor=predictor),
            ErrorBounded(rel=1e-2, predictor=predictor),
            Lossless(predictor=predictor),
        ):
            checks.check_codec(x, codec)


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("bound", [1e38, 3.4e38, 1e39, 1e300, 1.7e308])
@pytest.mark.parametrize("name", FLOATS)
def test_huge_bounds(name: str, bound: float, predictor: Any) -> None:
    checks.check_codec(field(name, 25, 30), ErrorBounded(abs=bound, predictor=predictor))


@pytest.mark.parametrize("predictor", ALWAYS)
@pytest.mark.parametrize("bound", [5e-324, 1e-310, 2.0**-1001, 2.0**-1000, 2.0**-126, 2.0**-111, 2.0**-110, 1e-30])
@pytest.mark.parametrize("name", FLOATS)
def test_tiny_bounds(name: str, bound: float, predictor: Any) -> None:
    with np.errstate(under="ignore"):
        small = (field("float64", 25, 30) * (bound * 64)).astype(numpy_dtype(name))
    least = 2.0 ** (-1000 if name == "float64" else -110)
    for x in (field(name, 25, 30), small):
        stream = checks.check_codec(x, ErrorBounded(abs=bound, predictor=predictor))
        assert is_predicted(stream) == (bound >= least)


@pytest.mark.parametrize("predictor", ALWAYS)
@pytest.mark.parametrize("name", FLOATS)
def test_bounds_near_the_rounding_of_values(name: str, predictor: Any) -> None:
    x = 100 + field(name, 25, 30).astype(np.float64)
    digits = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[name]
    for exponent in range(6 - digits - 3, 6 - digits + 5):
        for factor in (1, 0.999, 1.001, 1.37):
            bound = factor * 2.0**exponent
            checks.check_codec(x.astype(numpy_dtype(name)), ErrorBounded(abs=bound, predictor=predictor))


@pytest.mark.parametrize("predictor", ALWAYS)
@pytest.mark.parametrize("name", FLOATS)
def test_subnormal_values(name: str, predictor: Any) -> None:
    dtype = numpy_dtype(name)
    words = np.random.default_rng(7).integers(0, 100, (25, 30)).cumsum(axis=1).astype(f"u{dtype.itemsize}") % 1000
    x = words.view(dtype)
    checks.check_codec(x, Lossless(predictor=predictor))
    checks.check_codec(x, ErrorBounded(abs=1e-7, predictor=predictor))


# ---- bytes


@pytest.mark.parametrize("predictor", ["auto", "interpolation"])
@pytest.mark.parametrize("shape", [(200, 210), (40, 41, 42)], ids=str)
@pytest.mark.parametrize(
    ("name", "bound"), [("float32", 1e-3), ("float64", 1e-5), ("float16", 1e-2), ("bfloat16", 0.03)]
)
def test_a_smooth_field_takes_half_the_bytes(name: str, bound: float, shape: tuple[int, ...], predictor: Any) -> None:
    x = field(name, *shape)
    assert nbytes_of(x, ErrorBounded(abs=bound, predictor=predictor)) * 2 <= nbytes_of(x, ErrorBounded(abs=bound))


@pytest.mark.parametrize("predictor", ["auto", "lorenzo"])
def test_a_smooth_field_without_loss_takes_fewer_bytes(predictor: Any) -> None:
    x = field("float32", 200, 210)
    assert nbytes_of(x, Lossless(predictor=predictor)) < 0.95 * nbytes_of(x, Lossless())


def _plain_arrays(name: str, size: int) -> dict[str, Array]:
    rng = np.random.default_rng(8)
    dtype = numpy_dtype(name)
    noise = rng.normal(0, 1, (size // 30, 30))
    bits = rng.integers(0, checks.bits_of(np.array(math.inf, dtype))[0], noise.shape, f"u{dtype.itemsize}").view(dtype)
    return {
        "noise": noise.astype(dtype),
        "weights": (noise * 0.02).astype(dtype),
        "constant": np.full(noise.shape, 1.5, dtype),
        "sparse": (noise * (rng.random(noise.shape) < 0.03)).astype(dtype),
        "steps": np.rint(noise).astype(dtype),
        "bits": bits,
        "gaps": np.where(rng.random(noise.shape) < 0.5, dtype.type(math.nan), noise.astype(dtype)),
    }


@pytest.mark.parametrize("size", [600, 6000, 90_000])
@pytest.mark.parametrize("kind", _plain_arrays("float32", 600))
@pytest.mark.parametrize("name", FLOATS)
def test_auto_costs_little_where_prediction_is_of_no_use(name: str, kind: str, size: int) -> None:
    x = _plain_arrays(name, size)[kind]
    codecs: list[Any] = [
        ErrorBounded(abs=1e-3),
        ErrorBounded(rel=1e-3),
        ErrorBounded(abs=0.1, speed="fast"),
        Lossless(),
    ]
    for codec in codecs:
        configured = 24  # bytes of its name in the configuration, with padding
        assert nbytes_of(x, dataclasses.replace(codec, predictor="auto")) <= 1.03 * nbytes_of(x, codec) + configured


def layers() -> Array:
    """Layers of ground with wavy borders: shape (520, 780)."""
    rng = np.random.default_rng(0)
    x, y = np.arange(780) / 780, np.arange(520)[:, None]
    speeds = np.full((520, 780), 1500.0)
    for depth in np.sort(rng.random(12)) * 520:
        wave = 8 * np.sin(2 * np.pi * (x * rng.integers(1, 3) + rng.random()))
        speeds += (y > depth + wave) * rng.uniform(50, 200)
    return speeds.astype(np.float32)


@pytest.mark.parametrize("bound", [5.0, 30.0])
def test_auto_takes_the_shortest_way_of_a_plane(bound: float) -> None:
    x = layers()
    ways = {way: nbytes_of(x, ErrorBounded(abs=bound, predictor=way)) for way in (None, *PREDICTORS)}
    auto = ways.pop("auto")
    assert auto <= 1.03 * min(ways.values()), ways


@pytest.mark.parametrize("predictor", ALWAYS)
def test_rounding_leaves_no_element_to_be_kept_exactly(predictor: Any) -> None:
    x = field("float32", 40, 64, 64) + np.float32(300)  # 150,000 steps: each rounds to a part of a step
    assert exact_nbytes(x, ErrorBounded(abs=1e-3, predictor=predictor)) == 0


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_pointwise_bounds_and_other_dtypes_are_not_predicted(predictor: Any) -> None:
    pairs: list[tuple[Array, Any]] = [
        ((100 * field("float64", 30, 40)).astype(numpy_dtype(name)), Lossless())
        for name in ("float8_e4m3fn", "complex64", "complex128")
    ]
    if predictor in ALWAYS:  # the others may code by columns
        pairs.append((field("float32", 30, 40), ErrorBounded(pointwise=1e-2)))
    for x, codec in pairs:
        plain, with_predictor = (
            checks.stream_of(x, c) for c in (codec, dataclasses.replace(codec, predictor=predictor))
        )
        start, end = checks.payload_span(plain)
        other_start, other_end = checks.payload_span(with_predictor)
        assert plain[start:end] == with_predictor[other_start:other_end]
        checks.check_codec(x, dataclasses.replace(codec, predictor=predictor))


def test_none_is_as_before() -> None:
    x = field("float32", 30, 40)
    assert not is_predicted(checks.stream_of(x, ErrorBounded(abs=1e-3)))
    assert checks.stream_of(x, ErrorBounded(abs=1e-3, predictor=None)) == checks.stream_of(x, ErrorBounded(abs=1e-3))
    assert "predictor" not in ErrorBounded(abs=1e-3).config()


# ---- other ways to give arrays, and to take them


@pytest.mark.parametrize("codec", [ErrorBounded(abs=1e-3, predictor="interpolation"), Lossless(predictor="lorenzo")])
def test_arrays_of_another_order(codec: Codec) -> None:
    whole = field("float32", 20, 30, 40)
    for x in (
        whole.T,
        whole[:, ::2],
        whole[::-1, :, ::3],
        np.asfortranarray(whole),
        whole.transpose(1, 0, 2),
        whole[3],
    ):
        assert checks.stream_of(x, codec) == checks.stream_of(np.ascontiguousarray(x), codec)
        checks.check_promise(x, checks.array_of(checks.stream_of(x, codec)), codec)


@pytest.mark.parametrize("kind", [None, "2 decimal places"])
@pytest.mark.parametrize("codec", [codec for predictor in NAMED for codec in codecs_of(predictor)[::3]], ids=repr)
def test_a_part_has_the_elements_of_the_whole(codec: Codec, kind: str | None) -> None:
    x = field("float32", 70, 11, 13) if kind is None else multiples("float32", kind, 70, 11, 13)
    x[4, 3:] = np.nan
    x[:, :, 3::4] = np.nan  # the same on all lines
    c = arrcomp.compress(x, codec)
    whole = checks.bits_of(arrcomp.decompress(c))
    payload, size = c.host_payload(), x.size
    coding = (c.codec.id, c.codec.core_parameters(), c.spec.dtype.id)
    for first, count in [
        (0, 0),
        (0, 1),
        (0, size),
        (size - 1, 1),
        (5, 4096),
        (4095, 2),
        (1000, size - 1001),
        (size, 0),
    ]:
        for threads in (1, 3):
            out = np.full(4 * count, 0xA5, np.uint8)
            _core.decode_range(*coding, payload, size, first, out, threads)
            assert (out.view(np.uint32) == whole[first : first + count]).all(), (first, count)
        room = np.full(payload.size, 0xA5, np.uint8)
        for begin, end in _core.directory_ranges(*coding, payload.size, size):
            room[begin:end] = payload[begin:end]
        for begin, end in _core.payload_ranges(*coding, room, size, first, 4 * count):
            room[begin:end] = payload[begin:end]
        if count:
            out = np.empty(4 * count, np.uint8)
            _core.decode_range(*coding, room, size, first, out, 1)
            assert (out.view(np.uint32) == whole[first : first + count]).all(), (first, count)


@given(
    shape=st.one_of(
        st.lists(st.integers(1, 40), min_size=1, max_size=4), st.lists(st.integers(2, 9), min_size=5, max_size=5)
    ).filter(lambda shape: 512 <= math.prod(shape) <= 30_000),
    codec=st.sampled_from([codec for predictor in NAMED for codec in codecs_of(predictor)]),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    has_gaps=st.booleans(),
)
def test_any_part_of_any_shape(shape: list[int], codec: Codec, ends: tuple[float, float], has_gaps: bool) -> None:
    x = field("float32", *shape)
    if has_gaps:
        x.reshape(-1)[5::7] = np.nan
    c = arrcomp.compress(x, codec)
    first, end = sorted(int(part * x.size) for part in ends)
    out = np.full(4 * (end - first), 0xA5, np.uint8)
    coding = (c.codec.id, c.codec.core_parameters(), c.spec.dtype.id)
    _core.decode_range(*coding, c.host_payload(), x.size, first, out, 2)
    assert (out.view(np.uint32) == checks.bits_of(arrcomp.decompress(c))[first:end]).all()


def test_a_part_needs_no_codes_of_rows_far_from_it() -> None:
    x = field("float32", 900, 20, 20, noise=0.01)
    c = arrcomp.compress(x, ErrorBounded(abs=1e-3, predictor="interpolation"))
    payload, size = c.host_payload().copy(), x.size
    payload[-128:] = 0xFF  # states of the last group: codes of the last rows
    coding = (c.codec.id, c.codec.core_parameters(), c.spec.dtype.id)
    out = np.empty(4 * 40_000, np.uint8)
    _core.decode_range(*coding, payload, size, 50_000, out, 1)
    assert (out.view(np.uint32) == checks.bits_of(arrcomp.decompress(c))[50_000:90_000]).all()
    with pytest.raises(arrcomp.errors.CorruptStreamError):
        _core.decode_range(*coding, payload, size, size - 40_000, out, 1)


@pytest.mark.parametrize("predictor", ALWAYS)
def test_slices_of_arrays_in_files(tmp_path: Path, predictor: Any) -> None:
    x = {"a": field("float32", 30, 40, 7), "b": field("float64", 50, 60)}
    arrcomp.save_file(x, tmp_path / "x.safetensors", ErrorBounded(abs=1e-3, predictor=predictor))
    with arrcomp.open_file(tmp_path / "x.safetensors") as file:
        for name in x:
            whole = file.load(name)
            for index in (3, slice(5, 9), (slice(4, 20, 3), 5), (..., 2), (slice(None, None, -2),)):
                checks.check_same_bits(np.asarray(file.slice(name)[index]), np.asarray(whole[index]))


def test_many_arrays_of_different_shapes() -> None:
    codec = ErrorBounded(abs=1e-3, predictor="interpolation")
    shapes = [(20, 30), (600,), (1,), (), (0, 5), (30, 20), (3, 4, 5, 10), (20, 30), (70, 80), (511,)]
    arrays = [field("float32", *shape) if shape else np.float32(1.5) * np.ones(()) for shape in shapes]
    arrays = [x.astype(np.float32) for x in arrays]
    arrays += [field("float64", 25, 30), field("float16", 25, 30)]
    many = arrcomp.compress_many(arrays, codec)
    for c, x in zip(many, arrays, strict=True):
        assert c.to_bytes() == checks.stream_of(x, codec)
    for y, c in zip(arrcomp.decompress_many(many), many, strict=True):
        checks.check_same_bits(y, np.asarray(arrcomp.decompress(c)))


# ---- the parameter


@pytest.mark.parametrize("kind", [Lossless, lambda **options: ErrorBounded(abs=1.0, **options)])
@pytest.mark.parametrize(
    ("value", "error", "got"),
    [
        ("best", ValueError, "'best'"),
        ("", ValueError, "''"),
        ("Auto", ValueError, "'Auto'"),
        (1, TypeError, "int"),
        (True, TypeError, "bool"),
        (["auto"], TypeError, "list"),
    ],
)
def test_wrong_predictors(kind: Any, value: Any, error: type[Exception], got: str) -> None:
    expected = "None or 'auto' or 'interpolation' or 'lorenzo' or 'columns'"
    with pytest.raises(error, match=f"^predictor: expected {expected}, got .*{got}"):
        kind(predictor=value)


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_the_configuration_has_it(predictor: Any) -> None:
    x = field("float32", 30, 40)
    for codec in (ErrorBounded(rel=1e-3, predictor=predictor), Lossless(predictor=predictor)):
        assert codec.config()["predictor"] == predictor
        assert f"predictor={predictor!r}" in repr(codec)
        assert arrcomp.codec_from_config(codec.config()) == codec
        assert arrcomp.from_bytes(checks.stream_of(x, codec)).codec == codec
        assert codec != dataclasses.replace(codec, predictor=None)


@pytest.mark.parametrize("value", ["best", 1, True, ["auto"]])
def test_wrong_predictors_in_configurations(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="predictor: expected"):
        arrcomp.codec_from_config(Lossless().config() | {"predictor": value})


# ---- payloads


@pytest.mark.parametrize("zstd_level", [1, 9])
def test_a_predicted_payload_in_a_frame(zstd_level: int) -> None:
    pytest.importorskip("zstandard")
    x = np.tile(field("float32", 20, 30), (30, 1))
    x[::7, ::5] = np.nan
    c = arrcomp.compress(x, Lossless(predictor="lorenzo", speed="fast"))
    framed = c.to_bytes(zstd_level=zstd_level)
    checks.check_same_bits(checks.array_of(framed), x)
    checks.check_reference(framed, x)
    assert checks.is_framed(framed)


def test_a_predicted_array_needs_a_predictor_in_its_configuration() -> None:
    x = field("float32", 30, 40)
    stream = checks.stream_of(x, ErrorBounded(abs=1e-3, predictor="lorenzo"))
    plain = checks.stream_of(x, ErrorBounded(abs=1e-3))
    start, end = checks.payload_span(stream)
    head = bytearray(plain[: checks.payload_span(plain)[0]])
    head[16:24] = (end - start).to_bytes(8, "little")
    other = checks.seal(bytes(head) + stream[start:end])
    with pytest.raises(arrcomp.errors.CorruptStreamError, match="S, chunks per group"):
        checks.array_of(other)
    with pytest.raises(ValueError, match="a predictor for a predicted array"):
        reference_reader.read_stream(other)


@pytest.mark.slow
def test_an_axis_of_more_values_than_samples_reach() -> None:
    x = np.zeros(6 * 2**23 + 5, np.float32)
    x[::1000] = 1
    y = arrcomp.decompress(arrcomp.compress(x, ErrorBounded(abs=0.1, predictor="interpolation")))
    assert np.abs(y - x).max() <= 0.1
