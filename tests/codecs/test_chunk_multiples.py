"""Chunks of floats that are multiples of one number, without a predictor (FORMAT.md, section 3.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import arrcomp
import checks
import reference_reader
from arrcomp import ErrorBounded, Lossless
from checks import Array

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

DTYPES = ("float32", "float64")
# The kinds by their numbers in FORMAT.md, and what makes integers such multiples.
POWERS = {kind: (1.0, 2.0 ** (kind - 1)) for kind in range(1, 14)}
QUOTIENTS = {kind: (1.0, 10.0 ** (kind - 13)) for kind in range(14, 23)}
PRODUCTS = {kind: (1 / 10.0 ** (kind - 22), 1.0) for kind in range(23, 29)}
PARTS = {29: (1.0, 255.0), 30: (1 / 255, 1.0), 31: (1.0, 65535.0), 32: (1 / 65535, 1.0)}
KINDS = POWERS | QUOTIENTS | PRODUCTS | PARTS


def multiples_of(kind: int, integers: Array, dtype: str) -> Array:
    """Integers times the multiplier, or by the divisor, in the arithmetic of the dtype."""
    number = np.dtype(dtype).type
    multiplier, divisor = KINDS[kind]
    counted = integers.astype(dtype)
    return counted * number(multiplier) if divisor == 1 else counted / number(divisor)


def odd_integers(size: int, most: int, seed: int = 0) -> Array:
    """Integers of either sign that have no factor 2 or 5: their multiples are of no coarser kind."""
    integers = np.random.default_rng(seed).integers(-most // 10, most // 10, size) * 10
    return integers + np.random.default_rng(seed + 1).choice([1, 3, 7, 9], size)


def kinds_of(array: Array, codec: arrcomp.Codec | None = None) -> set[int | str]:
    """Of a stream's chunks: the kind of multiples, or what else they are coded as. The stream is checked."""
    stream = checks.stream_of(array, codec or Lossless())
    checks.check_same_bits(checks.array_of(stream), array)
    checks.check_reference(stream, array)
    return {chunk.multiples or chunk.kind for chunk in reference_reader.describe(stream)}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_found(kind: int, dtype: str) -> None:
    array = multiples_of(kind, odd_integers(9000, 200_000), dtype)
    found = kinds_of(array)
    may_be_another = kind not in POWERS | QUOTIENTS and (dtype == "float32" or kind > 30)
    if may_be_another:  # most such numbers are those of a quotient too
        assert found <= set(KINDS)
        return
    assert found == {kind}
    assert len(checks.stream_of(array, Lossless())) < 19.1 * array.size / 8 + 200


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("speed", ["default", "fast"])
def test_they_take_as_much_as_their_integers(dtype: str, speed: Literal["default", "fast"]) -> None:
    rng = np.random.default_rng(1)
    for integers in (rng.integers(0, 40_000, 1 << 16), np.cumsum(rng.integers(-30, 30, 1 << 16))):
        codec = Lossless(speed=speed)
        nbytes = len(checks.stream_of(integers.astype(f"i{np.dtype(dtype).itemsize}"), codec))
        assert len(checks.stream_of((integers / 100).astype(dtype), codec)) < 1.01 * nbytes + 16 * 4


@pytest.mark.parametrize("elements", [33, 100, 1000, 4095, 4096, 4096 + 31, 8192 - 31])
def test_any_number_of_elements(elements: int) -> None:
    array = multiples_of(15, odd_integers(elements, 9000), "float32")
    assert kinds_of(array) == {15}


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_of_both_signs_and_smooth_ones(dtype: str) -> None:
    i = np.arange(9000)
    array = np.round(np.sin(i / 1000), 2).astype(dtype)
    assert np.signbit(array[array == 0]).any()
    assert not np.signbit(array[array == 0]).all()
    stream = checks.stream_of(array, Lossless())
    chunks = reference_reader.describe(stream)
    assert {(chunk.multiples, chunk.predictor, chunk.exceptions) for chunk in chunks} == {(15, True, 0)}
    assert kinds_of(array) == {15}


def among_others(chunks: int, part: int, rng: np.random.Generator, dtype: str) -> tuple[Array, Array]:
    """Decimals, one in `part` of them replaced by any number, and the places of these."""
    array = multiples_of(15, odd_integers(chunks * 4096, 9000), dtype)
    others = rng.choice(array.size, array.size // part, replace=False)
    array[others] = rng.normal(0, 50, len(others))
    return array, others


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_few_others_are_exceptions(dtype: str) -> None:
    array, others = among_others(5, 50, np.random.default_rng(2), dtype)
    array[others[:7]] = [np.nan, np.inf, -np.inf, 1e30, -1e30, 5e-324, -np.nan]
    chunks = reference_reader.describe(checks.stream_of(array, Lossless()))
    assert {chunk.multiples for chunk in chunks} == {15}
    assert 0.98 * len(others) < sum(chunk.exceptions for chunk in chunks) <= len(others)
    assert kinds_of(array) == {15}


@pytest.mark.parametrize("share", [0.02, 0.4, 0.9])
@pytest.mark.parametrize("fill", [np.nan, 1e20], ids=str)
@pytest.mark.parametrize("run", [1, 50])
def test_missing_elements_are_left_out(fill: float, share: float, run: int) -> None:
    array = multiples_of(15, odd_integers(3 * 4096, 9000), "float64")
    missing = np.repeat(np.random.default_rng(3).random(len(array) // run + 1) < share, run)[: len(array)]
    present = int((~missing).sum())
    array[missing] = fill
    assert kinds_of(array) == {15}
    nbytes = len(checks.stream_of(array, Lossless()))
    exceptions = 0.02 * 80 if share == 0.02 else 0
    assert nbytes < (14.4 * present + (1.1 + exceptions) * array.size) / 8 + 300


def test_too_many_others_leave_the_chunk_as_it_is() -> None:
    rng = np.random.default_rng(4)
    array = multiples_of(15, odd_integers(4096, 9000), "float64")
    array[:2048:2] = rng.normal(0, 50, 1024)
    assert kinds_of(array) == {"exponent"}
    array[::2] = rng.choice([1e20, np.nan], 2048)  # two fills: one is left out, the others are too many
    kinds_of(array)


@pytest.mark.parametrize("fill", [None, np.nan])
def test_what_the_sample_did_not_tell(fill: float | None) -> None:
    """Most rows are looked at by nobody before the elements are counted."""
    rng = np.random.default_rng(4)
    for rows in ([1], [2], [3], [1, 2, 3], [5], [7]):
        array = multiples_of(15, odd_integers(3 * 4096, 9000), "float64").reshape(-1, 32)
        others = np.isin(np.arange(len(array)) % 8, rows)
        array[others] = rng.normal(0, 50, (int(others.sum()), 32))
        if fill is not None:
            array[others, ::2] = fill
        kinds_of(array.ravel())


def test_few_far_apart_have_a_dictionary() -> None:
    prices = np.random.default_rng(5).integers(0, 1 << 40, 30) / 100
    assert kinds_of(np.random.default_rng(6).choice(prices, 20_000)) == {"dictionary"}


def test_chunks_of_a_group_have_kinds_of_their_own() -> None:
    """And a dictionary is shared across a chunk of multiples."""
    few = np.random.default_rng(7).normal(size=20)
    parts = [
        np.random.default_rng(8).choice(few, 4096),
        multiples_of(15, odd_integers(4096, 9000), "float64"),
        np.random.default_rng(9).choice(few, 4096),
        multiples_of(29, odd_integers(4096, 9000), "float64"),
    ]
    array = np.concatenate([*parts, np.zeros((1 << 20) - 4 * 4096)])
    stream = checks.stream_of(array, Lossless())
    chunks = reference_reader.describe(stream)[:4]
    assert [chunk.multiples or chunk.kind for chunk in chunks] == ["dictionary", 15, "dictionary", 29]
    checks.check_same_bits(checks.array_of(stream), array)


@pytest.mark.parametrize(
    "array",
    [
        np.random.default_rng(10).normal(size=9000).astype(np.float32),
        np.random.default_rng(10).normal(0, 1e6, size=9000).astype(np.float32),
        np.random.default_rng(10).normal(size=9000),
        np.random.default_rng(10).normal(0, 1e12, size=9000),
        np.random.default_rng(11).integers(0, 2**32, 9000, np.uint32).view(np.float32),
        np.round(np.random.default_rng(12).normal(0, 1e5, 9000), 4).astype(np.float32),
        np.zeros(9000, np.float32),
        np.full(9000, np.nan),
        np.random.default_rng(13).integers(0, 100, 9000),
        (np.random.default_rng(14).integers(0, 2000, 9000) / 100).astype(np.float16),
    ],
    ids=[
        "float32",
        "large float32",
        "float64",
        "large float64",
        "any bits",
        "all digits",
        "zeros",
        "nan",
        "integers",
        "float16",
    ],
)
def test_others_have_none(array: Array) -> None:
    assert not kinds_of(array) & set(KINDS)


def test_dropped_bits_are_those_of_elements() -> None:
    array = multiples_of(15, odd_integers(9000, 9000), "float32")
    stream = checks.stream_of(array, ErrorBounded(pointwise=1e-2))
    checks.check_reference(stream, checks.array_of(stream))
    np.testing.assert_allclose(checks.array_of(stream), array, rtol=1e-2)


def test_complex_parts() -> None:
    array = multiples_of(15, odd_integers(9000, 9000), "float32").view(np.complex64)
    assert kinds_of(array) == {15}


def bounded_kinds_of(array: Array, codec: ErrorBounded) -> set[int | str]:
    """As kinds_of, of elements that may change within the bound."""
    stream = checks.check_codec(array, codec)
    return {chunk.multiples or chunk.kind for chunk in reference_reader.describe(stream)}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [1, 4, 15, 16, 24, 29, 31])
def test_they_are_kept_within_a_bound_that_is_finer(kind: int, dtype: str) -> None:
    array = multiples_of(kind, odd_integers(9000, 40_000), dtype)
    multiplier, divisor = KINDS[kind]
    for share in (0.3, 0.01, 1e-4):
        codec = ErrorBounded(abs=share * multiplier / divisor)
        assert kinds_of(array, codec) == kinds_of(array)
        nbytes, lossless = len(checks.stream_of(array, codec)), len(checks.stream_of(array, Lossless()))
        assert nbytes <= lossless + 32  # the configuration is longer
    assert bounded_kinds_of(array, ErrorBounded(abs=0.6 * multiplier / divisor)) == {"quantized"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_within_a_bound_each_chunk_has_its_own(dtype: str) -> None:
    rng = np.random.default_rng(15)
    parts = [odd_integers(4096, 9000), rng.normal(0, 50, 4096), odd_integers(4096, 9000) / 100, np.zeros(4096)]
    array = np.concatenate([*parts, np.zeros((1 << 20) - 4 * 4096)]).astype(dtype)
    chunks = reference_reader.describe(checks.check_codec(array, ErrorBounded(abs=1e-3)))[:4]
    assert [chunk.multiples or chunk.kind for chunk in chunks] == [1, "quantized", 15, "quantized"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_within_a_bound_few_may_be_others(dtype: str) -> None:
    """So many that they cost less than multiples save."""
    rng = np.random.default_rng(16)
    array, _ = among_others(20, 200, rng, dtype)
    for bound, kinds in ((1e-4, {15}), (3e-3, {"quantized"})):
        assert bounded_kinds_of(array, ErrorBounded(abs=bound)) == kinds
    array[rng.random(array.size) < 0.3] = np.nan  # these are left out
    assert bounded_kinds_of(array, ErrorBounded(abs=1e-4)) == {15}
    array[rng.choice(array.size, array.size // 5, replace=False)] *= 1 + rng.random()
    assert bounded_kinds_of(array, ErrorBounded(abs=1e-4)) == {"quantized"}


def test_within_a_bound_few_different_ones_have_a_dictionary() -> None:
    prices = np.random.default_rng(5).integers(0, 1 << 40, 30) / 100
    array = np.random.default_rng(6).choice(prices, 20_000)
    assert kinds_of(array, ErrorBounded(abs=1e-4)) == {"dictionary"}


def test_within_a_bound_none_are_looked_for_at_full_speed() -> None:
    array = multiples_of(15, odd_integers(9000, 9000), "float32")
    assert bounded_kinds_of(array, ErrorBounded(abs=1e-4, speed="fast")) == {"quantized"}


@pytest.mark.parametrize("elements", [1, 31, 32, 33, 4096 + 31])
def test_within_a_bound_of_any_number_of_elements(elements: int) -> None:
    array = multiples_of(15, odd_integers(elements, 9000), "float32")
    assert bounded_kinds_of(array, ErrorBounded(abs=1e-4)) <= {15, "quantized", "exponent", "integer"}


@pytest.mark.parametrize("threads", [1, 2])
def test_a_part_is_decoded_alone(tmp_path: Path, threads: int) -> None:
    array = multiples_of(16, odd_integers((1 << 18) + 5000, 9000), "float64")
    stream = arrcomp.compress(array, Lossless(), threads=threads).to_bytes()
    assert stream == checks.stream_of(array, Lossless())
    (tmp_path / "x.arrcomp").write_bytes(stream)
    with arrcomp.open_file(tmp_path / "x.arrcomp") as file:
        for first, end in ((0, 1), (4095, 4097), (100_000, 130_001), (array.size - 7, array.size)):
            np.testing.assert_array_equal(file.slice("arr_0")[first:end], array[first:end])
