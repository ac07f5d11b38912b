"""Codecs: what their parameters may be, and the one mapping to plain JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
from arrcomp import QSGD, S2FP8, BaseDelta, Codebook, ErrorBounded, FloatFormat, Lossless, SmaQ, UnknownCodecError
from instances import and_unlisted

BOUNDS = ("abs", "rel", "pointwise")
EXAMPLES = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]
EXAMPLES.append(S2FP8(bucket_size=100, rounding="stochastic"))
EXAMPLES.append(FloatFormat("e3m4", scaling="bucket", bucket_size=100, rounding="stochastic"))
EXAMPLES.append(FloatFormat("mxfp6", scale_rule="ceil"))
EXAMPLES.append(FloatFormat("fp16", overflow="infinity"))
EXAMPLES.append(QSGD(bits=3, bucket_size=100, norm="l2", rounding="stochastic", skip_incomplete=True, coding="entropy"))
EXAMPLES.append(SmaQ(4, 9, block_size=None, statistics="given", mean=1, std=2, rounding="truncate", min_size=0))
EXAMPLES.append(BaseDelta(bases=2, delta_bits=(8, 16, 24), drop_bits=3, rounding="stochastic"))

REALS_ONLY = [
    codec
    for codec in and_unlisted(
        [ErrorBounded(abs=1), QSGD(), SmaQ(rounding="nearest"), FloatFormat("bf16"), S2FP8(), Codebook.nf4()]
    )
    if codec.dtypes is not None and not codec.needs_seed
]


def test_the_registry_lists_every_codec_once() -> None:
    first: list[type[arrcomp.Codec]] = [Lossless, ErrorBounded, QSGD, SmaQ, FloatFormat, S2FP8, BaseDelta, Codebook]
    kinds = list(arrcomp.available_codecs().values())
    assert kinds[: len(first)] == first
    assert kinds == sorted(kinds, key=lambda kind: kind.id)
    assert list(arrcomp.available_codecs()) == [kind.name for kind in kinds]
    public = {name for name in vars(arrcomp.codecs)["__all__"] if name[0].isupper()}
    assert public == {"Codec", *(kind.__name__ for kind in kinds)}
    assert len({kind.id for kind in arrcomp.available_codecs().values()}) == len(arrcomp.available_codecs())


@pytest.mark.parametrize("codec", EXAMPLES, ids=repr)
def test_configurations_come_back_through_json(codec: arrcomp.Codec) -> None:
    config = json.loads(json.dumps(codec.config()))
    assert arrcomp.codec_from_config(config) == codec


@pytest.mark.parametrize("codec", EXAMPLES, ids=repr)
def test_codecs_are_values(codec: arrcomp.Codec) -> None:
    twin = dataclasses.replace(codec)
    assert twin == codec
    assert hash(twin) == hash(codec)
    assert pickle.loads(pickle.dumps(codec)) == codec  # noqa: S301
    assert eval(repr(codec), vars(arrcomp)) == codec  # noqa: S307
    with pytest.raises(dataclasses.FrozenInstanceError):
        codec.speed = "fast"  # type: ignore[attr-defined]


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_every_finite_bound_above_zero_is_kept_exactly(bound: float) -> None:
    codec = ErrorBounded(abs=bound)
    assert codec.abs == bound
    assert arrcomp.codec_from_config(json.loads(json.dumps(codec.config()))) == codec


@pytest.mark.parametrize("value", [1, np.float32(0.5), np.float64(0.5), np.int8(1), np.float16(0.5), Fraction(1, 2)])
def test_real_numbers_are_stored_as_floats(value: Any) -> None:
    codec = ErrorBounded(abs=value)
    assert type(codec.abs) is float
    assert codec.abs == float(value)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize(
    "value", [0, 0.0, -0.0, -1, -1e-9, math.nan, math.inf, -math.inf, 10**400, Fraction(1, 10**400)]
)
def test_bounds_that_are_not_finite_and_above_zero_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: expected a .*number above 0.*, got "):
        ErrorBounded(**{name: value})


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("value", [True, False, np.True_, "1e-3", b"1", 1j, [1e-3], np.array(1e-3), np.array([1e-3])])
def test_bounds_that_are_no_real_numbers_are_refused(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: expected a .*number above 0.*, got "):
        ErrorBounded(**{name: value})


@pytest.mark.parametrize("value", [1, 1.0, 2, 1e300])
def test_pointwise_stays_below_one(value: float) -> None:
    with pytest.raises(ValueError, match=r"^pointwise: expected a number above 0 and below 1, got "):
        ErrorBounded(pointwise=value)
    ErrorBounded(pointwise=math.nextafter(1, 0))


@pytest.mark.parametrize(
    "bounds", [{}, {"abs": 1, "rel": 1}, {"abs": 1, "pointwise": 0.1}, {"rel": 1, "pointwise": 0.1}]
)
def test_exactly_one_bound_is_taken(bounds: dict[str, float]) -> None:
    with pytest.raises(TypeError, match="exactly one of abs, rel and pointwise"):
        ErrorBounded(**bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [lambda speed: ErrorBounded(abs=1, speed=speed), lambda speed: Lossless(speed=speed)])
def test_speed_is_one_of_two(kind: Any) -> None:
    kind("default"), kind("fast")
    with pytest.raises(ValueError, match=r"^speed: expected 'default' or 'fast', got 'faster'"):
        kind("faster")
    for value in (None, 1, b"fast"):
        with pytest.raises(TypeError, match=r"^speed: expected 'default' or 'fast', got "):
            kind(value)


def test_bounds_are_given_by_name() -> None:
    with pytest.raises(TypeError):
        ErrorBounded(1e-3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({}, ValueError, r"^config\['codec'\]: expected lossless,.*got None"),
        ({"codec": 3}, ValueError, r"^config\['codec'\]: expected lossless,.*got 3"),
        ({"codec": "zip"}, UnknownCodecError, r"^config\['codec'\]: expected lossless,.*got 'zip'"),
        (
            {"codec": "lossless", "abs": 1},
            ValueError,
            r"^config: expected parameters of lossless \(speed, predictor\), got 'abs'",
        ),
        ({"codec": "error-bounded", "abs": "x"}, TypeError, r"^abs: expected a finite number above 0, got 'x' \(str\)"),
        ({"codec": "s2fp8", "bucket_size": 8}, ValueError, "^bucket_size: expected an integer .*, got 8"),
        ({"codec": "qsgd", "bits": 9}, ValueError, "^bits: expected an integer from 1 to 8, got 9"),
        ({"codec": "float-format", "format": "fp7"}, ValueError, "^format: expected fp8_e4m3, fp8_e5m2,.*got 'fp7'"),
        ({"codec": "float-format"}, TypeError, "format"),
        ({"codec": "qsgd", "seed": 1}, ValueError, r"^config: expected parameters of qsgd \(bits,.*got 'seed'"),
        ({"codec": "base-delta", "bases": 3}, ValueError, "^bases: expected an integer from 1 to 2, got 3"),
        ({"codec": "error-bounded", "abs": 1, "id": 1}, ValueError, r"^config: expected parameters of .*, got 'id'"),
        ([("codec", "lossless")], TypeError, "^config: expected a mapping, got list"),
        ("lossless", TypeError, r"^config: expected a mapping, got 'lossless' \(str\)"),
    ],
)
def test_wrong_configurations_say_what_is_allowed(config: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrcomp.codec_from_config(config)


def test_a_codec_that_is_none_is_refused() -> None:
    for codec in ("lossless", 1e-3, {"codec": "lossless"}):
        with pytest.raises(TypeError, match=r"^codec: expected a codec such as .*, got "):
            arrcomp.compress(np.zeros(3), codec)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda: arrcomp.compress(np.zeros(3), QSGD),  # type: ignore[arg-type]
        lambda: arrcomp.compress_many([np.zeros(3)], QSGD),  # type: ignore[arg-type]
        lambda: arrcomp.Rule(QSGD),  # type: ignore[arg-type]
        lambda: arrcomp.model_rules(QSGD),  # type: ignore[arg-type]
        lambda: arrcomp.save_file({}, "x.safetensors", QSGD),  # type: ignore[arg-type]
    ],
)
def test_a_class_in_place_of_a_codec_is_named(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"^codec: expected an instance such as QSGD\(bits=8\), got the class QSGD$"):
        call()


def test_what_has_an_obvious_meaning_needs_no_keyword() -> None:
    assert QSGD(3) == QSGD(bits=3)
    assert SmaQ(5) == SmaQ(main_bits=5)
    assert FloatFormat("fp8") == FloatFormat("fp8_e4m3")
    assert FloatFormat("float16") == FloatFormat("fp16")
    assert FloatFormat("bfloat16") == FloatFormat("bf16")
    assert FloatFormat("fp4", scaling="tensor") == FloatFormat("fp4_e2m1", scaling="tensor")
    with pytest.raises(ValueError, match=r"^format: expected 'fp6_e3m2' or 'fp6_e2m3', got 'fp6'$"):
        FloatFormat("fp6")


@pytest.mark.parametrize(
    ("kind", "positional", "named", "message"),
    [
        (ErrorBounded, (1e-3,), {}, "a keyword, got 0.001; write ErrorBounded(abs=0.001) or ErrorBounded(rel=0.001)"),
        (ErrorBounded, (np.ones(3),), {}, "a keyword, got numpy.ndarray; write ErrorBounded(abs=...) or ErrorBounded("),
        (QSGD, (4, 512), {}, "a keyword, got 512; write QSGD(4, bucket_size=512)"),
        (SmaQ, (4, 6, 2.0), {}, "a keyword, got 2.0; write SmaQ(4, 6, main_threshold=2.0)"),
        (S2FP8, (64,), {}, "a keyword, got 64; write S2FP8(bucket_size=64)"),
        (Lossless, ("fast",), {}, "a keyword, got 'fast'; write Lossless(speed='fast')"),
        (Lossless, ("fast",), {"speed": "fast"}, "a keyword, got 'fast'"),
        (FloatFormat, (), {}, "format, got none; an example is FloatFormat("),
        (Codebook, (), {}, "borders and levels, got none; an example is Codebook."),
        (Codebook, ([0],), {}, "levels, got none; an example is Codebook."),
        (QSGD, (), {"bit": 4}, "parameters bits, bucket_size, norm, rounding, skip_incomplete, coding, got 'bit'"),
        (QSGD, (4,), {"bits": 4}, "bits once, got it twice"),
    ],
)
def test_wrong_arguments_say_what_to_write(
    kind: Any, positional: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match="^" + re.escape(f"{kind.__name__}: expected {message}")):
        kind(*positional, **named)


def test_what_is_printed_has_bits_bounds_and_formats() -> None:
    assert repr(QSGD()) == "QSGD(bits=4)"
    assert repr(QSGD(bucket_size=1024)) == "QSGD(bits=4, bucket_size=1024)"
    assert repr(ErrorBounded(rel=1e-3)) == "ErrorBounded(rel=0.001)"
    assert repr(FloatFormat("fp8")) == "FloatFormat(format='fp8_e4m3')"
    assert repr(Codebook.nf4()) == "Codebook.nf4(bucket_size=64)"


@pytest.mark.parametrize("dtype", ["int32", "bool", "uint8", "float8_e4m3fn", "int4"])
@pytest.mark.parametrize("codec", REALS_ONLY, ids=repr)
def test_codecs_for_floats_name_the_dtypes_they_take(codec: arrcomp.Codec, dtype: str) -> None:
    import ml_dtypes

    x, kind = np.zeros(3, getattr(ml_dtypes, dtype, dtype)), type(codec).__name__
    with pytest.raises(TypeError, match=f"^dtype: expected float16, bfloat16, .* for {kind}, got {dtype};"):
        arrcomp.compress(x, codec)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_arrays_are_for_lossless_alone(dtype: Any) -> None:
    for codec in REALS_ONLY:
        with pytest.raises(TypeError, match="real and imaginary parts"):
            arrcomp.compress(np.zeros(3, dtype), codec)
    arrcomp.compress(np.zeros(3, dtype))


def test_the_default_codec_loses_nothing() -> None:
    assert arrcomp.compress(np.zeros(3)).codec == Lossless()
