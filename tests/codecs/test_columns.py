"""Arrays by columns: tables take fewer bytes, all that is promised holds, and "auto" knows when it pays."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
import reference_reader
from arrcomp import Codec, ErrorBounded, Lossless
from checks import Array
from predicted_fields import field, nbytes_of, prediction_of, table

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

DTYPES = ("bool", "int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float32", "float64")
LONGEST_BAND = 16384  # rows of less than 16 columns
BAND = 4096
LOSSLESS = Lossless(predictor="columns")
SHAPES: list[tuple[int, ...]] = [
    *((600, 1, 3), (16, 32), (17, 33), (300, 31), (40, 65), (4097, 2), (BAND + 1, 16), (2 * BAND, 17)),
    *((LONGEST_BAND + 5, 3), (40, 41, 5), (9, 60, 4, 3), (2, 1030, 16), (3, 1025, 5, 4), (2, 2, 2, 50, 7)),
]


def columns_of(x: Array, codec: Codec) -> tuple[int, int]:
    """How many axes an array's columns have, 0 if it is not by columns, and the rows of a band."""
    found = reference_reader.describe_prediction(checks.stream_of(x, codec))
    return (found.column_axes, found.band) if found else (0, 0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", DTYPES)
def test_every_element_is_kept(name: str, shape: tuple[int, ...]) -> None:
    x = table(name, *shape)
    codecs: list[Codec] = [LOSSLESS, Lossless(predictor="columns", speed="fast")]
    if np.issubdtype(x.dtype, np.floating):
        codecs += [ErrorBounded(abs=1e-3, predictor="columns"), ErrorBounded(rel=1e-3, predictor="columns")]
    for codec in codecs:
        checks.check_codec(x, codec)
        assert columns_of(x, codec)[0] > 0


@pytest.mark.parametrize(
    ("shape", "band"),
    [
        ((600, 3), 600),
        ((LONGEST_BAND + 1, 15), LONGEST_BAND),
        ((LONGEST_BAND + 1, 16), BAND),
        ((3, 1023, 16), 3069),
        ((3, 1024, 16), 1024),
        ((2, BAND + 1, 16), BAND),
        ((3, 1024, 15), 3072),
    ],
    ids=str,
)
def test_bands_hold_a_chunk_a_group_or_a_matrix(shape: tuple[int, ...], band: int) -> None:
    found = columns_of(table("int16", *shape), LOSSLESS)
    assert found in {(1, band), (2, min(shape[0], band))}
    assert found == (1, band) or len(shape) == 3


def test_the_axes_of_columns_are_the_last_or_the_last_two() -> None:
    columns_alike = np.repeat(table("int32", 2000, 4), 3, axis=1).reshape(2000, 4, 3)  # channels of four points
    assert columns_of(columns_alike, LOSSLESS)[0] == 2
    assert columns_of(np.ascontiguousarray(columns_alike.transpose(0, 2, 1)).reshape(100, 60, 4), LOSSLESS)[0] == 1


@pytest.mark.parametrize("shape", [(512,), (511, 1), (15, 40), (100, 5)], ids=str)
def test_what_has_no_columns_or_is_small_is_coded_as_it_is(shape: tuple[int, ...]) -> None:
    x = table("float32", *shape)
    for codec in (LOSSLESS, ErrorBounded(abs=1e-3, predictor="columns")):
        checks.check_codec(x, codec)
        assert columns_of(x, codec) == (0, 0)


@pytest.mark.parametrize("predictor", ["columns", "auto"])
@pytest.mark.parametrize("shape", [(BAND + 100, 17), (20_000, 12)], ids=str)
def test_pointwise_bounds_are_kept_by_columns(shape: tuple[int, ...], predictor: Any) -> None:
    x = table("float32", *shape)
    codec = ErrorBounded(pointwise=1e-3, predictor=predictor)
    checks.check_codec(x, codec)
    assert columns_of(x, codec)[0] == 1
    assert nbytes_of(x, codec) < 0.95 * nbytes_of(x, ErrorBounded(pointwise=1e-3))


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("gaps", [np.nan, np.inf, -999.0])
def test_gaps_are_kept(name: str, gaps: float) -> None:
    x = table(name, 3000, 6)
    x[::7, 2] = gaps
    x[100:900, 4] = gaps
    bounded = ErrorBounded(abs=1e-2, predictor="columns", fill_value=-999.0)
    for codec in (bounded, dataclasses.replace(bounded, abs=None, rel=1e-3)):
        checks.check_codec(x, codec)
        assert columns_of(x, codec)[0] == 1


@given(st.data())
def test_any_matrix(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 300), st.integers(1, 70)))
    name = data.draw(st.sampled_from(DTYPES))
    x = table(name, *shape, seed=data.draw(st.integers(0, 2**32)))
    codec: Codec = data.draw(st.sampled_from([LOSSLESS, Lossless(predictor="auto")]))
    checks.check_codec(x, codec)


# ---- what it is worth


@pytest.mark.parametrize(
    ("name", "least"), [("int32", 1.2), ("uint16", 1.2), ("float32", 1.04), ("float64", 1.02), ("bfloat16", 1.1)]
)
def test_a_table_takes_fewer_bytes(name: str, least: float) -> None:
    x = table(name, 20_000, 12)
    plain, columns, auto = (nbytes_of(x, Lossless(predictor=p)) for p in (None, "columns", "auto"))
    assert plain > least * columns
    assert auto <= columns * 1.01


def test_a_table_with_a_bound_takes_far_fewer_bytes() -> None:
    x = table("float32", 20_000, 12)
    plain, columns, auto = (nbytes_of(x, ErrorBounded(abs=1e-2, predictor=p)) for p in (None, "columns", "auto"))
    assert plain > 1.4 * columns
    assert auto <= columns * 1.01


def test_a_feature_that_is_often_zero_has_a_column_of_its_own() -> None:
    rng = np.random.default_rng(3)
    shares = np.linspace(0, 1, 64) ** 2
    mask = rng.random((4096, 64)) < shares
    entropy = float(np.mean([-p * np.log2(p) - (1 - p) * np.log2(1 - p) for p in shares[1:-1]])) / 8
    assert nbytes_of(mask, LOSSLESS) < 1.15 * entropy * mask.size < nbytes_of(mask, Lossless())
    assert columns_of(mask, Lossless(predictor="auto"))[0] == 1


@pytest.mark.parametrize("size", [2000, 9000])  # all of it is tried, and boxes
def test_auto_leaves_rows_as_they_are_where_each_is_alike(size: int) -> None:
    x = np.ascontiguousarray(table("float32", size, 90).T)
    codec = ErrorBounded(abs=1e-2, predictor="auto")
    assert columns_of(x, codec) == (0, 0)
    assert nbytes_of(x, codec) <= 1.002 * nbytes_of(x, ErrorBounded(abs=1e-2)) + 100


def test_auto_still_predicts_fields() -> None:
    codec = ErrorBounded(abs=1e-3, predictor="auto")
    for shape in ((200, 300), (40, 50, 60)):
        assert prediction_of(field("float32", *shape), codec).column_axes == 0


@pytest.mark.parametrize("share", [0.05, 0.01])
def test_rows_among_zeros_are_not_torn_apart(share: float) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(0, 1, (8192, 128)).astype(np.float32)
    x[rng.random(8192) >= share] = 0
    codecs: list[Any] = [ErrorBounded(abs=1e-2, predictor=p) for p in (None, "auto")]
    plain, auto = (nbytes_of(x, codec) for codec in codecs)
    assert auto <= 1.01 * plain


# ---- parts


@pytest.mark.parametrize("shape", [(9000, 17), (20_000, 3), (3, 1030, 20)], ids=str)
@pytest.mark.parametrize("name", ["uint8", "float64"])
def test_any_part(name: str, shape: tuple[int, ...]) -> None:
    x = table(name, *shape)
    c = arrcomp.compress(x, LOSSLESS)
    for index in (0, -1, slice(4000, 4200), slice(0, 5), slice(8190, 8200), (Ellipsis, 1)):
        checks.check_same_bits(np.asarray(arrcomp.decompress(c))[index], np.asarray(x[index]))


def test_a_part_needs_no_bytes_of_other_bands() -> None:
    x = table("float32", 3 * BAND, 16)
    c = arrcomp.compress(x, LOSSLESS)
    payload = c.host_payload().copy()
    payload[-128:] = 0xFF  # states of the last band's last group
    coding = (c.codec.id, c.codec.core_parameters(), c.spec.dtype.id)
    out = np.empty(4 * 16 * 100, np.uint8)
    arrcomp._core.decode_range(*coding, payload, x.size, 16 * 5000, out, 1)
    assert (out.view(np.float32).reshape(100, 16) == x[5000:5100]).all()
    with pytest.raises(arrcomp.errors.CorruptStreamError):
        arrcomp._core.decode_range(*coding, payload, x.size, 16 * 9000, out, 1)
