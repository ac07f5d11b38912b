"""Predicted arrays: every law of their codecs holds with any predictor, and smooth fields take fewer bytes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
import reference_reader
from arrcomp import Codec, ErrorBounded, Lossless
from checks import FLOATS, Array, numpy_dtype
from predicted_fields import (
    ALWAYS,
    PREDICTORS,
    SHAPES,
    codecs_of,
    exact_nbytes,
    field,
    is_predicted,
    nbytes_of,
    prediction_of,
)

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

LEAST_PREDICTED = 512  # elements


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
