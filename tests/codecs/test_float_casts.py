"""FloatFormat without scales: codes against ml_dtypes, PyTorch and exact integers; and what its arguments may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import FloatFormat
from checks import FLOATS, numpy_dtype

from .small_floats import (
    FEWER,
    OTHERS,
    OVERFLOWS,
    ROUNDINGS,
    SWEEPS,
    TWINS,
    check_codes,
    codes_of,
    expected_codes,
)

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm]


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


@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2", "fp8_e4m3fnuz", "fp8_e5m2fnuz", "bf16", "fp16"])
def test_codes_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    array = SWEEPS["float32"]
    codec = FloatFormat(name, overflow="infinity")
    cast = torch.from_numpy(array).to(getattr(torch, TWINS[name]))
    expected = cast.view(torch.uint8 if cast.element_size() == 1 else torch.int16).numpy()
    found = codes_of(checks.stream_of(array, codec), codec, array.size, 4).astype(expected.dtype)
    same = found == expected
    if not codec.numbers.has_infinity:  # PyTorch's versions differ in what these make of what is too large
        same |= np.abs(array) > codec.numbers.largest
    assert same[~np.isnan(array)].all(), array[~same][:5]


@pytest.mark.parametrize("overflow", OVERFLOWS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*TWINS, *OTHERS])
def test_every_code_is_the_nearest(name: str, dtype: str, overflow: Any) -> None:
    array = FEWER[dtype]
    if name == "fp32" and array.dtype.itemsize == 2:
        return
    codec = FloatFormat(name, overflow=overflow)
    check_codes(array, codec, expected_codes(array, codec))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*TWINS, *OTHERS])
def test_every_code_of_stochastic_rounding_is_predicted(name: str, dtype: str) -> None:
    array = FEWER[dtype]
    if name == "fp32" and array.dtype.itemsize == 2:
        return
    for overflow in OVERFLOWS:
        codec = FloatFormat(name, rounding="stochastic", overflow=overflow)
        check_codes(array, codec, expected_codes(array, codec))


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
    array = np.array([65504, -65504, 65376, 1.0, np.inf], np.float16)
    kept = checks.array_of(checks.check_codec(array, FloatFormat("bf16")))
    np.testing.assert_array_equal(kept, np.array([65504, -65504, 65280, 1, np.inf], np.float16))
    lost = checks.array_of(checks.check_codec(array, FloatFormat("bf16", overflow="infinity")))
    np.testing.assert_array_equal(lost, np.array([np.inf, -np.inf, 65280, 1, np.inf], np.float16))


def test_fp32_is_exact_for_float32() -> None:
    array = SWEEPS["float32"][::64]
    for rounding in ROUNDINGS:
        decoded = checks.array_of(checks.stream_of(array, FloatFormat("fp32", rounding=rounding)))
        np.testing.assert_array_equal(decoded, array)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mxfp8", "mxfp8_e4m3"),
        ("mxfp6", "mxfp6_e2m3"),
        ("e5m10", "fp16"),
        ("e8m7", "bf16"),
        ("e5m2", "fp8_e5m2"),
        ("e4m3", "e4m3"),
    ],
)
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
        ({"format": 8}, TypeError, r"^format: expected fp8_e4m3, fp8_e5m2,.*got 8 \(int\)"),
        ({"format": "fp7"}, ValueError, "^format: expected fp8_e4m3, fp8_e5m2,.*got 'fp7'"),
        ({"format": "e1m3"}, ValueError, "^format: expected fp8_e4m3, fp8_e5m2,.*got 'e1m3'"),
        ({"format": "e9m3"}, ValueError, "^format: expected fp8_e4m3, fp8_e5m2,.*got 'e9m3'"),
        ({"format": "e4m0"}, ValueError, "^format: expected fp8_e4m3, fp8_e5m2,.*got 'e4m0'"),
        ({"format": "e8m8"}, ValueError, "^format: expected fp8_e4m3, fp8_e5m2,.*got 'e8m8'"),
        ({"format": "e5m10 "}, ValueError, "^format: expected fp8_e4m3, fp8_e5m2,.*got 'e5m10 '"),
        ({"format": "fp4_e2m1"}, ValueError, "^scaling: expected 'tensor' or 'bucket' with.*got None"),
        ({"format": "fp6_e3m2"}, ValueError, "has no NaN"),
        ({"format": "fp16", "scaling": "row"}, ValueError, "^scaling: expected 'tensor' or 'bucket', got 'row'"),
        ({"format": "fp16", "scaling": 3}, TypeError, r"^scaling: expected 'tensor' or 'bucket', got 3 \(int\)"),
        ({"format": "fp16", "bucket_size": 512}, ValueError, "^bucket_size: expected None with scaling=None, got 512"),
        (
            {"format": "fp16", "scaling": "tensor", "bucket_size": 512},
            ValueError,
            "^bucket_size: expected None with .*got 512",
        ),
        (
            {"format": "fp16", "scaling": "bucket", "bucket_size": 15},
            ValueError,
            "^bucket_size: expected an integer .*got 15",
        ),
        (
            {"format": "fp16", "scaling": "bucket", "bucket_size": 2**40 + 1},
            ValueError,
            "^bucket_size: expected an integer .*got 1099511627777",
        ),
        (
            {"format": "fp16", "scaling": "bucket", "bucket_size": 16.5},
            TypeError,
            r"^bucket_size: expected an integer .*got 16\.5 \(float\)",
        ),
        (
            {"format": "mxfp4", "scaling": "bucket"},
            ValueError,
            "^scaling: expected None with format='mxfp4',.*got 'bucket'",
        ),
        ({"format": "nvfp4", "bucket_size": 16}, ValueError, "^bucket_size: expected None with.*got 16"),
        ({"format": "mxfp4", "scale_rule": "up"}, ValueError, "^scale_rule: expected 'floor' or 'ceil', got 'up'"),
        (
            {"format": "nvfp4", "scale_rule": "ceil"},
            ValueError,
            "^scale_rule: expected None with format='",
        ),
        (
            {"format": "fp16", "scale_rule": "ceil"},
            ValueError,
            "^scale_rule: expected None with format='",
        ),
        ({"format": "fp16", "rounding": "up"}, ValueError, "^rounding: expected 'nearest' or 'stochastic', got 'up'"),
        ({"format": "fp16", "overflow": "wrap"}, ValueError, "^overflow: expected 'saturate' or .*, got 'wrap'"),
        (
            {"format": "mxfp8", "overflow": "infinity"},
            ValueError,
            "^overflow: expected 'saturate' with format='mxfp8_e4m3', which has scales, got 'infinity'",
        ),
        (
            {"format": "fp16", "scaling": "tensor", "overflow": "infinity"},
            ValueError,
            "^overflow: expected 'saturate' with .*got 'infinity'",
        ),
    ],
    ids=str,
)
def test_wrong_arguments_say_what_is_allowed(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        FloatFormat(**arguments)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_fp32_is_wider_than_16_bits(dtype: str) -> None:
    with pytest.raises(TypeError, match=f"^dtype: expected float32 or float64 for format='fp32', got {dtype}"):
        arrcomp.compress(np.zeros(3, numpy_dtype(dtype)), FloatFormat("fp32"))
