"""Predicted arrays of gaps, special values and numbers near the limits of their dtype are kept as all others are."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import ErrorBounded, Lossless
from checks import FLOATS, numpy_dtype
from predicted_fields import ALWAYS, PREDICTORS, behind_steps, codecs_of, field, is_predicted, nbytes_of

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]


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
