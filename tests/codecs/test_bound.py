"""ErrorBounded: no finite value ever comes back further away than the bound, and everything else bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
import reference_reader
from arrcomp import ErrorBounded
from checks import FLOATS, Array, numpy_dtype

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

COUNT = 4096 + 321
BOUNDS = [1e-30, 1e-10, 1e-4, 2.0**-10, 1e-3, 0.3, 1.0, 1e4, 1e30]


def _patterns(rng: np.random.Generator, name: str) -> Array:
    dtype = numpy_dtype(name)
    return rng.integers(0, 256, COUNT * dtype.itemsize, dtype=np.uint8).view(dtype)


def _subnormals(rng: np.random.Generator, name: str) -> Array:
    dtype = numpy_dtype(name)
    bits = rng.integers(0, 40, COUNT).astype(f"u{dtype.itemsize}")
    return bits.view(dtype)


def _normal(scale: float, offset: float = 0.0) -> Callable[[np.random.Generator, str], Array]:
    def make(rng: np.random.Generator, name: str) -> Array:
        with np.errstate(over="ignore"):
            found: Array = (offset + rng.normal(0, scale, COUNT)).astype(numpy_dtype(name))
        return found

    return make


def _function(of: Callable[[Array, np.random.Generator], Array]) -> Callable[[np.random.Generator, str], Array]:
    def make(rng: np.random.Generator, name: str) -> Array:
        found: Array = of(np.arange(COUNT, dtype=np.float64), rng).astype(numpy_dtype(name))
        return found

    return make


DATA: dict[str, Callable[[np.random.Generator, str], Array]] = {
    "bit patterns": _patterns,
    "subnormals": _subnormals,
    "weights": _normal(0.02),
    "around 300": _normal(4.0, 300.0),
    "around 101325": _normal(500.0, 101325.0),
    "huge": _normal(1e30),
    "tiny": _normal(1e-38),
    "smooth": _function(lambda i, rng: 3 * np.sin(i / 200) + 0.001 * rng.normal(0, 1, i.size)),
    "ramp": _function(lambda i, rng: i / 64),
    "sparse": _function(lambda i, rng: rng.normal(0, 1, i.size) * (rng.random(i.size) < 0.03)),
    "activations": _function(lambda i, rng: np.maximum(rng.normal(0, 1, i.size), 0)),
    "heavy tails": _function(lambda i, rng: np.clip(rng.standard_cauchy(i.size), -1e4, 1e4)),
    "zeros": _function(lambda i, rng: 0 * i),
    "negative zeros": _function(lambda i, rng: -0.0 * i),
    "constant": _function(lambda i, rng: 0 * i + 1.7),
    "two constants": _function(lambda i, rng: np.where(i < 4096, -5.0, 60000.0)),
}


def check(array: Array, codec: ErrorBounded, device: checks.Host) -> bytes:
    """Bound, capacity and the independent reader; threads and instruction sets are test_conformance's."""
    stream = checks.stream_of(array, codec, device)
    decoded = checks.array_of(stream, device)
    assert decoded.shape == array.shape
    assert decoded.dtype == array.dtype
    checks.check_bound(array, decoded, codec)
    checks.check_reference(stream, decoded)
    checks.check_capacity(stream, array)
    return stream


@pytest.mark.parametrize("speed", ["default", "fast"])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", FLOATS)
def test_absolute_bound_holds(name: str, data: str, speed: Any, device: checks.Host) -> None:
    array = DATA[data](np.random.default_rng(0), name)
    for bound in BOUNDS:
        check(array, ErrorBounded(abs=bound, speed=speed), device)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", FLOATS)
def test_relative_bound_holds(name: str, data: str, device: checks.Host) -> None:
    array = DATA[data](np.random.default_rng(1), name)
    for bound in (1e-7, 1e-3, 0.25, 3.0):
        check(array, ErrorBounded(rel=bound), device)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", FLOATS)
def test_pointwise_bound_holds(name: str, data: str, device: checks.Host) -> None:
    array = DATA[data](np.random.default_rng(2), name)
    for bound in (0.5, 0.3, 0.25, 1e-2, 1e-3, 1e-6):
        check(array, ErrorBounded(pointwise=bound), device)


@pytest.mark.parametrize("bound", [0.25, 0.1, 2.0**-7, 1e-3])
@pytest.mark.parametrize("name", FLOATS)
def test_values_on_half_steps(name: str, bound: float, device: checks.Host) -> None:
    dtype = numpy_dtype(name)
    steps = np.arange(-3000, 3000) * bound
    ties = steps.astype(dtype)
    up, down = np.nextafter(steps.astype(np.float32), np.float32(9e9)), np.nextafter(steps.astype(np.float32), -9e9)
    for array in (ties, up.astype(dtype), down.astype(dtype)):
        check(array, ErrorBounded(abs=bound), device)


@pytest.mark.parametrize("unit", [0.1, 0.01, 1e-3, 1.0, 0.25])
@pytest.mark.parametrize("times", [1, 2, 5, 10])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_decimals_on_half_steps_are_no_exceptions(name: str, times: int, unit: float, device: checks.Host) -> None:
    array = (np.random.default_rng(18).integers(-400, 4000, COUNT) * unit).astype(name)
    stream = check(array, ErrorBounded(abs=times * unit), device)
    assert [(chunk.kind, chunk.exceptions) for chunk in reference_reader.describe(stream)] == [("quantized", 0)] * 2


@pytest.mark.parametrize("bound", [0.5, 0.25, 3.0, 100.0])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_multiples_of_two_bounds_of_few_bits_come_back_exactly(name: str, bound: float, device: checks.Host) -> None:
    array = (np.random.default_rng(19).integers(-4000, 4000, COUNT) * 2 * bound).astype(name)
    checks.check_same_bits(checks.array_of(check(array, ErrorBounded(abs=bound), device), device), array)


@pytest.mark.parametrize("name", FLOATS)
def test_bounds_below_the_spacing_keep_every_value(name: str, device: checks.Host) -> None:
    array = DATA["around 300"](np.random.default_rng(3), name)
    for bound in (1e-16, 5e-324, 2.3e-308):
        codec = ErrorBounded(abs=bound)
        decoded = checks.array_of(check(array, codec, device), device)
        checks.check_same_bits(decoded, array)


@pytest.mark.parametrize("name", FLOATS)
def test_bounds_above_every_value(name: str, device: checks.Host) -> None:
    array = DATA["bit patterns"](np.random.default_rng(4), name)
    for bound in (65504.0, 3.0e38, 3.5e38, 1e300, 1.7e308):
        check(array, ErrorBounded(abs=bound), device)


@pytest.mark.parametrize("name", FLOATS)
def test_relative_bound_of_a_constant_or_of_nothing_finite_keeps_every_bit(name: str, device: checks.Host) -> None:
    dtype = numpy_dtype(name)
    nan, infinity = np.full(5000, np.nan).astype(dtype), np.full(5000, -np.inf).astype(dtype)
    constant = np.full(5000, 0.1).astype(dtype)
    partly = np.where(np.arange(5000) % 7 == 0, nan, constant)
    zeros = np.where(np.arange(5000) % 3 == 0, np.array(-0.0, dtype), np.array(0.0, dtype))
    for array in (nan, infinity, constant, partly, zeros, constant[:1], constant[:0]):
        decoded = checks.array_of(check(array, ErrorBounded(rel=1e-3), device), device)
        checks.check_same_bits(decoded, array)


@pytest.mark.parametrize("name", FLOATS)
def test_relative_bound_of_the_widest_range(name: str, device: checks.Host) -> None:
    array = DATA["weights"](np.random.default_rng(5), name)
    largest = checks.largest_finite(array.dtype)
    array[5:4000:5] *= largest / 5
    array[5], array[4000] = largest, -largest
    for bound in (1e-12, 1e-3, 0.5, 2.0):
        check(array, ErrorBounded(rel=bound), device)


def test_relative_bound_is_not_rounded_up(device: checks.Host) -> None:
    # In float64, 0.1 * 3 is above the exact product; a value that lies there on a half step must not come back as 0.
    array = np.array([0.0, 3.0, *(k * 0.1 * 3 for k in range(1, 10))])
    check(array, ErrorBounded(rel=0.1), device)
    rng = np.random.default_rng(6)
    for rel, largest in rng.uniform(0.01, 0.5, (300, 2)):
        steps = np.arange(1 / rel, dtype=np.float64) * (rel * largest)
        check(np.append(np.clip(steps, 0, largest), [0.0, largest]), ErrorBounded(rel=rel), device)


@pytest.mark.parametrize("name", FLOATS)
def test_pointwise_bound_near_overflow(name: str, device: checks.Host) -> None:
    dtype = numpy_dtype(name)
    largest = np.array([checks.largest_finite(dtype)], dtype)
    below = largest.view(f"u{dtype.itemsize}") - np.arange(600).astype(f"u{dtype.itemsize}")
    array = below.view(dtype)
    for bound in (0.5, 0.1, 1e-2, 1e-6):
        check(np.concatenate([array, -array]), ErrorBounded(pointwise=bound), device)


@st.composite
def float_arrays(draw: st.DrawFn) -> Array:
    """Stretches of noise of any scale and offset, constants, zeros, ramps and random bits, up to 9000 values."""
    name = draw(st.sampled_from(FLOATS))
    dtype = numpy_dtype(name)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pieces = [np.zeros(0, dtype)]
    for kind in draw(st.lists(st.sampled_from(["noise", "constant", "zeros", "ramp", "bits"]), max_size=4)):
        count = draw(st.sampled_from([1, 7, 64, 500, 2048]))
        scale, offset = (draw(st.floats(-1e5, 1e5, width=32)) for _ in range(2))
        if kind == "bits":
            pieces.append(rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype))
            continue
        values = {
            "noise": offset + scale * rng.normal(0, 1, count),
            "constant": np.full(count, offset),
            "zeros": np.zeros(count),
            "ramp": offset + scale * np.arange(count) / 64,
        }[kind]
        with np.errstate(all="ignore"):
            pieces.append(values.astype(dtype))
    return np.concatenate(pieces)


def bounds(largest: float) -> st.SearchStrategy[float]:
    """Bounds of every magnitude, powers of two and others."""
    powers = st.integers(-60, 20).map(lambda e: 2.0**e)
    return st.one_of(powers, st.floats(1e-30, 1e30), st.floats(1e-6, 1.0)).filter(lambda bound: bound < largest)


@given(float_arrays(), bounds(1e30), st.sampled_from(["default", "fast"]))
def test_absolute_bound_holds_for_any_array(array: Array, bound: float, speed: Any) -> None:
    check(array, ErrorBounded(abs=bound, speed=speed), checks.HOST)


@given(float_arrays(), bounds(10.0))
def test_relative_bound_holds_for_any_array(array: Array, bound: float) -> None:
    check(array, ErrorBounded(rel=bound), checks.HOST)


@given(float_arrays(), bounds(1.0))
def test_pointwise_bound_holds_for_any_array(array: Array, bound: float) -> None:
    check(array, ErrorBounded(pointwise=bound), checks.HOST)


def test_the_empty_and_the_single_value(device: checks.Host) -> None:
    for name in FLOATS:
        for shape in ((), (0,), (1,), (1, 1), (2, 0, 3)):
            check(np.full(shape, 0.3).astype(numpy_dtype(name)), ErrorBounded(abs=0.01), device)


def test_codec_is_checked_before_any_work() -> None:
    with pytest.raises(TypeError, match="int32"):
        arrcomp.compress(np.zeros(3, np.int32), ErrorBounded(abs=0.1))
