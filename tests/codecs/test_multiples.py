"""Floats that are multiples of one number, from 0 or an offset on: a predictor codes the integers that count it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import checks
import reference_reader
from arrcomp import ErrorBounded, Lossless
from checks import FLOATS, Array, numpy_dtype
from predicted_fields import (
    ALWAYS,
    KINDS,
    PREDICTORS,
    SHAPES,
    STEPS,
    exact_nbytes,
    field,
    multiples,
    nbytes_of,
    prediction_of,
)

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

PREDICTING = ("auto", *ALWAYS)  # without "columns", which looks for no multiples


@pytest.mark.parametrize("predictor", PREDICTING)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_multiples_are_found(name: str, kind: str, predictor: Any) -> None:
    x = multiples(name, kind, 20, 30, 40)
    codec = Lossless(predictor=predictor)
    checks.check_codec(x, codec)
    found = prediction_of(x, codec).multiples
    assert found is not None
    arithmetic = numpy_dtype(name).type
    multiplier, divisor = KINDS[kind]
    if not (name == "float32" and kind.startswith("times")):  # in float32 a quotient may be the same numbers
        assert found == (float(arithmetic(multiplier)), float(divisor), 0.0, 0)
    assert nbytes_of(x, codec) < 0.8 * nbytes_of(x, Lossless())
    assert exact_nbytes(x, codec) == 0


@pytest.mark.parametrize("shape", [(20, 30, 40), (600,)], ids=str)
@pytest.mark.parametrize("predictor", PREDICTING)
@pytest.mark.parametrize("kind", STEPS)
def test_a_step_is_found(kind: str, predictor: Any, shape: tuple[int, ...]) -> None:
    codec = Lossless(predictor=predictor)
    x = multiples("float64", kind, *shape)
    checks.check_codec(x, codec)
    found = prediction_of(x, codec).multiples
    assert found is not None
    multiplier, divisor = STEPS[kind]
    assert found[0] / found[1] == pytest.approx(multiplier / divisor, rel=1e-14)
    assert exact_nbytes(x, codec) == 0
    few = np.asarray(np.round(x / multiplier * divisor / 10) * multiplier / divisor, np.float32)
    checks.check_codec(few, codec)
    assert predictor == "auto" or prediction_of(few, codec).multiples is not None


@pytest.mark.parametrize("predictor", PREDICTING)
@pytest.mark.parametrize("kind", [*KINDS, *STEPS])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_a_bound_of_less_than_half_a_step_keeps_multiples_without_loss(name: str, kind: str, predictor: Any) -> None:
    if name == "float32" and kind in STEPS:
        pytest.skip("not all steps are found in so few bits")
    x = multiples(name, kind, 20, 30, 40)
    multiplier, divisor = (KINDS | STEPS)[kind]
    codec = ErrorBounded(abs=0.49 * multiplier / divisor, predictor=predictor)
    checks.check_same_bits(checks.array_of(checks.check_codec(x, codec)), x)
    assert prediction_of(x, codec).multiples is not None
    assert nbytes_of(x, codec) <= 1.01 * nbytes_of(x, Lossless(predictor=predictor))


@pytest.mark.parametrize("predictor", PREDICTING)
def test_a_wider_bound_does_not(predictor: Any) -> None:
    x = multiples("float32", "2 decimal places", 20, 30, 40)
    codec = ErrorBounded(abs=0.006, predictor=predictor)
    checks.check_codec(x, codec)
    assert prediction_of(x, codec).multiples is None
    assert nbytes_of(x, codec) < nbytes_of(x, Lossless(predictor=predictor))


@pytest.mark.parametrize("predictor", PREDICTING)
def test_within_a_bound_multiples_have_few_others_among_them(predictor: Any) -> None:
    x = multiples("float32", "2 decimal places", 20, 30, 40)
    x[3, 4:9] = np.nan
    x[5, 5, 5] = 1e30
    codec = ErrorBounded(abs=0.001, predictor=predictor)
    checks.check_same_bits(checks.array_of(checks.check_codec(x, codec)), x)
    assert prediction_of(x, codec).multiples is not None
    x.ravel()[::50] += np.float32(np.pi)
    checks.check_codec(x, codec)
    assert prediction_of(x, codec).multiples is None


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_multiples_of_few_bits_are_kept(name: str, kind: str, predictor: Any) -> None:
    for shape in ((700,), (23, 31), (9, 10, 11)):
        checks.check_codec(multiples(name, kind, *shape), Lossless(predictor=predictor))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_multiples_of_any_shape_are_kept(name: str, predictor: Any, shape: tuple[int, ...]) -> None:
    for kind in ("3 decimal places", "times 1 / 255", "of 2 ^ -3"):
        checks.check_codec(multiples(name, kind, *shape), Lossless(predictor=predictor))


@pytest.mark.parametrize("predictor", PREDICTING)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_other_numbers_among_multiples_are_kept(name: str, predictor: Any) -> None:
    """Those that are no multiples, that are no numbers, and that are too large for an integer."""
    x = multiples(name, "2 decimal places", 9, 20, 30)
    codec = Lossless(predictor=predictor)
    for one_in in (2000, 30, 3, 2):
        changed = x.copy()
        changed.ravel()[5::one_in] *= np.pi
        checks.check_codec(changed, codec)
        assert predictor == "auto" or one_in < 30 or prediction_of(changed, codec).multiples is not None
    changed = x.copy()
    changed[3, 4:9] = np.nan
    changed.ravel()[1::97] = -0.0
    for number, value in enumerate((np.inf, -np.inf, 1e30, -1e30, 1e7, 2.0**31, 2.0**52, 1e-30, np.finfo(name).max)):
        changed.ravel()[11 + number :: 301] = value
    checks.check_codec(changed, codec)
    assert predictor == "auto" or prediction_of(changed, codec).multiples is not None


@pytest.mark.parametrize("kind", ["noise", "a smooth field", "zeros", "few numbers"])
@pytest.mark.parametrize("name", FLOATS)
def test_what_is_no_multiple_has_none(name: str, kind: str) -> None:
    x = {
        "noise": np.random.default_rng(3).normal(0, 1, (30, 40)),
        "a smooth field": field("float64", 30, 40),
        "zeros": np.zeros((30, 40)),
        "few numbers": np.where(np.arange(1200) % 100 == 0, 0.25, 0.0).reshape(30, 40),
    }[kind].astype(numpy_dtype(name))
    for predictor in ALWAYS:
        found = reference_reader.describe_prediction(checks.stream_of(x, Lossless(predictor=predictor)))
        assert found is None or found.multiples is None


def test_random_multiples_are_not_predicted_from_each_other() -> None:
    """As counts are not. Without a predictor, chunks find those of one tenth themselves, but not any step."""
    integers = np.random.default_rng(4).integers(1, 60_000, (60, 70))
    tenths = checks.stream_of(integers / 10, Lossless(predictor="auto"))
    assert reference_reader.describe_prediction(tenths) is None
    steps = integers * 0.0173
    found = prediction_of(steps, Lossless(predictor="auto"))
    assert (found.multiples, found.differences, found.steps) == ((0.0173, 1.0, 0.0, 0), 0, ())
    assert nbytes_of(steps, Lossless(predictor="auto")) < 0.4 * nbytes_of(steps, Lossless())


def test_few_different_numbers_need_no_multiples() -> None:
    """As labels: the dictionary of the plain codec serves, without a predictor's fields."""
    x = np.random.default_rng(4).choice([0.1, 0.7, 2.3], (60, 70))
    assert nbytes_of(x, Lossless(predictor="auto")) < nbytes_of(x, Lossless()) + 32


# Of what files pack into 16 bits: the least and the greatest number.
PACKED: dict[str, tuple[float, float]] = {
    "kelvin": (186.7, 313.9),
    "pascal": (95013.1, 104871.3),
    "wind, of either sign": (-31.7, 47.3),
    "below 0": (-19.1, -3.7),
}


def packed(name: str, kind: str, *shape: int, unpacked_in: str = "") -> Array:
    """A smooth field as it is unpacked from 16 bits with a scale_factor and an add_offset."""
    least, greatest = PACKED[kind]
    x = field("float64", *shape, noise=0.01)
    k = np.round((x - x.min()) / (x.max() - x.min()) * 65534 - 32767)
    arithmetic: Any = np.dtype(unpacked_in or name).type
    scale, offset = arithmetic((greatest - least) / 65534), arithmetic((greatest + least) / 2)
    return np.asarray(k.astype(arithmetic) * scale + offset, name)


@pytest.mark.parametrize("predictor", PREDICTING)
@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize(
    ("name", "unpacked_in"), [("float32", "float32"), ("float32", "float64"), ("float64", "float64")]
)
def test_unpacked_data_is_packed_again(name: str, kind: str, unpacked_in: str, predictor: Any) -> None:
    x = packed(name, kind, 20, 30, 40, unpacked_in=unpacked_in)
    codec = Lossless(predictor=predictor)
    checks.check_codec(x, codec)
    found = prediction_of(x, codec).multiples
    assert found is not None
    assert found.offset != 0
    least, greatest = PACKED[kind]
    assert found.multiplier == pytest.approx((greatest - least) / 65534, rel=1e-6)
    assert found.divisor == 1
    assert nbytes_of(x, codec) < (0.45 if name == "float64" else 0.8) * nbytes_of(x, Lossless())


@pytest.mark.parametrize("predictor", PREDICTING)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_groups_that_are_far_apart_are_packed_again(name: str, predictor: Any) -> None:
    x = packed(name, "kelvin", 2, 30, 40)
    step = (PACKED["kelvin"][1] - PACKED["kelvin"][0]) / 65534
    x[1] += x.dtype.type(np.round(45 / step) * step)
    codec = Lossless(predictor=predictor)
    checks.check_codec(x, codec)
    found = prediction_of(x, codec).multiples
    assert found is not None
    assert found.multiplier == pytest.approx(step, rel=1e-5)


@pytest.mark.parametrize("predictor", PREDICTING)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_other_numbers_among_unpacked_data_are_kept(name: str, predictor: Any) -> None:
    x = packed(name, "kelvin", 9, 20, 30)
    codec = Lossless(predictor=predictor)
    x.ravel()[5::97] *= np.pi
    x[3, 4:9] = np.nan
    for number, value in enumerate((0.0, -0.0, np.inf, -np.inf, 1e30, -1e-30, np.finfo(name).max, -np.finfo(name).max)):
        x.ravel()[11 + number :: 301] = value
    checks.check_codec(x, codec)
    assert predictor == "auto" or prediction_of(x, codec).multiples is not None


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_unpacked_data_of_any_shape_is_kept(name: str, predictor: Any, shape: tuple[int, ...]) -> None:
    checks.check_codec(packed(name, "wind, of either sign", *shape), Lossless(predictor=predictor))
