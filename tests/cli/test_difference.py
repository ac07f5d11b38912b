"""What `arrcomp diff` says of two arrays is what the formulas say, and nothing that differs counts as the same."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import checks
from arrcomp._cli.difference import Difference, Tolerance, difference, together

EXACT = Tolerance()
SHAPES = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=40)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    shape, dtype = draw(SHAPES), draw(st.sampled_from([np.float32, np.float64]))
    arrays = hnp.arrays(dtype, shape, elements=st.floats(-1e6, 1e6, width=32))
    return draw(arrays), draw(arrays)


@given(pairs())
def test_figures_are_those_of_the_formulas(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    a, b = (x.astype(np.float64) for x in pair)
    found = difference(*pair, EXACT)
    error = np.abs(a - b)
    assert found.values == a.size
    assert found.largest_error == error.max(initial=0)
    assert found.same == (pair[0].tobytes() == pair[1].tobytes())
    extent = a.max() - a.min() if a.size else 0.0
    if error.any() and a.any():
        assert math.isclose(found.relative_error, np.linalg.norm(error) / np.linalg.norm(a), rel_tol=1e-9)
    if error.any() and extent:
        assert math.isclose(found.relative_to_range, error.max() / extent)
        assert math.isclose(found.psnr, 20 * math.log10(extent / math.sqrt(np.mean(error**2))), abs_tol=1e-6)


@given(pairs(), st.floats(0, 1e6))
def test_a_tolerance_counts_what_is_farther(pair: tuple[NDArray[Any], NDArray[Any]], bound: float) -> None:
    a, b = (x.astype(np.float64) for x in pair)
    assert difference(*pair, Tolerance(absolute=bound)).differing == int((np.abs(a - b) > bound).sum())
    extent = float(a.max() - a.min()) if a.size else 0.0
    shares = difference(*pair, Tolerance(relative=0.25))
    assert shares.differing == int((np.abs(a - b) > 0.25 * extent).sum())


@pytest.mark.parametrize("name", checks.DTYPES)
def test_every_dtype_can_be_compared(name: str) -> None:
    a = checks.sample(name)
    assert difference(a, a.copy(), EXACT).same
    b = a.copy()
    b.reshape(-1).view(np.uint8)[: a.itemsize] ^= 1
    assert difference(a, b, EXACT).differing >= 1


def test_integers_of_64_bits_are_told_apart_exactly() -> None:
    for dtype in (np.int64, np.uint64):
        limits = np.iinfo(dtype)
        a, b = np.array([limits.max, limits.min], dtype), np.array([limits.max - 1, limits.max], dtype)
        found = difference(a, b, Tolerance(absolute=1))
        assert (found.differing, found.largest_error) == (1, float(int(limits.max) - int(limits.min)))
        assert difference(a[:1], b[:1], EXACT).largest_error == 1


def test_what_is_not_finite_must_be_the_same() -> None:
    a = np.array([np.nan, np.inf, -np.inf, 1, np.nan, 0.0])
    b = np.array([np.nan, np.inf, np.inf, np.nan, 1, -0.0])
    assert difference(a, b, Tolerance(absolute=100)).differing == 3
    assert difference(a, b, EXACT).differing == 4
    b = a.copy()
    b.view(np.uint64)[0] |= 1
    assert difference(a, b, EXACT).differing == 1
    assert difference(a, b, Tolerance(absolute=0)).same
    assert difference(a, a, EXACT).largest_error == 0


def test_other_shapes_and_dtypes_are_differences() -> None:
    a = np.ones((3, 4), np.float32)
    assert difference(a, a.reshape(4, 3), Tolerance(absolute=9)).obstacle == "shape (3, 4) and (4, 3)"
    assert difference(a, a.reshape(4, 3), Tolerance(absolute=9)).differing == 12
    assert difference(a, a.reshape(4, 3), EXACT).largest_error == np.inf  # which tables leave out
    assert difference(np.ones(0), np.ones((0, 1)), EXACT).differing == 1
    half = a.astype(ml_dtypes.bfloat16)
    assert difference(a, half, EXACT).obstacle == "dtype float32 and bfloat16"
    assert difference(a, half, EXACT).differing == 12
    assert difference(a, half, Tolerance(absolute=0)).same


@pytest.mark.parametrize("name", ["int16", "uint64", "float32", "complex128"])
def test_byte_order_is_no_difference(name: str) -> None:
    a = checks.sample(name)
    swapped = a.astype(a.dtype.newbyteorder())
    for pair in ((a, swapped), (swapped, a), (swapped, swapped)):
        assert difference(*pair, EXACT) == difference(a, a, EXACT)
        assert difference(*pair, Tolerance(absolute=0)).same
    other = np.zeros(a.shape, np.dtype(np.int32).newbyteorder())
    assert difference(swapped, other, EXACT).obstacle == f"dtype {name} and int32"


def test_large_values_do_not_overflow() -> None:
    found = difference(np.array([1e308, -1e308]), np.array([-1e308, 1e308]), EXACT)
    assert found.differing == 2
    assert found.largest_error == math.inf
    assert math.isinf(found.relative_error) or math.isnan(found.relative_error)


def test_several_pairs_are_added_up() -> None:
    found = together(
        [difference(np.array([3.0, 4.0]), np.array([3.0, 3.0]), EXACT), difference(np.zeros(2), np.zeros(2), EXACT)]
    )
    assert (found.values, found.differing, found.largest_error) == (4, 1, 1.0)
    assert found.relative_error == 0.2
    assert math.isnan(found.psnr)
    assert together([]) == Difference(0, 0, extent=found.extent)


def test_complex_values_are_compared_with_real_ones() -> None:
    a, b = np.array([1 + 0j, 2 + 1j]), np.array([1, 2], np.int16)
    for x, y in ((a, b), (b, a)):
        found = difference(x, y, Tolerance(absolute=0.5))
        assert (found.values, found.differing, found.largest_error) == (4, 1, 1.0)
        assert found.obstacle == f"dtype {x.dtype} and {y.dtype}"


def test_complex_values_are_compared_part_by_part() -> None:
    found = difference(np.array([1 + 2j]), np.array([1 + 2.5j]), EXACT)
    assert (found.values, found.differing, found.largest_error) == (2, 1, 0.5)
