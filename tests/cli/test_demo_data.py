"""The demonstration's arrays are what their descriptions say, and the same each time."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from arrcomp import _dtypes
from arrcomp._cli.demo_data import DESCRIPTIONS, FEW_STEPS, demo_arrays

pytestmark = pytest.mark.full  # the arrays take seconds, and a network is trained for them

DTYPES = {"trained_weights_bfloat16": ml_dtypes.bfloat16, "relu_mask": np.bool_, "token_counts": np.int32}
FLOATS = [name for name in DESCRIPTIONS if name not in ("relu_mask", "token_counts")]

Arrays = dict[str, NDArray[Any]]


@pytest.fixture(scope="module")
def arrays() -> Arrays:
    return demo_arrays()


def test_every_array_has_a_description(arrays: Arrays) -> None:
    assert list(arrays) == list(DESCRIPTIONS)
    assert all(text.strip() and "\n" not in text for text in DESCRIPTIONS.values())


def test_the_same_seed_gives_the_same_bytes_and_another_one_others() -> None:
    arrays, again, other = (demo_arrays(seed, steps=2) for seed in (0, 0, 1))
    for name, array in arrays.items():
        assert array.tobytes() == again[name].tobytes()
        assert array.tobytes() != other[name].tobytes()


def test_negative_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^seed: expected a non-negative integer, got -1"):
        demo_arrays(seed=-1)


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_dtypes_and_layout_are_those_announced(arrays: Arrays, name: str) -> None:
    array = arrays[name]
    assert array.dtype == DTYPES.get(name, np.float32)
    assert array.flags.c_contiguous
    assert 1_000_000 <= array.size <= 2_200_000
    assert _dtypes.by_numpy(array.dtype).name == array.dtype.name


@pytest.mark.parametrize("name", FLOATS)
def test_values_are_finite_and_vary(arrays: Arrays, name: str) -> None:
    values = arrays[name].astype(np.float64)
    assert np.isfinite(values).all()
    assert values.std() > 0


@pytest.mark.parametrize(("name", "least", "most"), [("gradients", 0.1, 0.5), ("embedding_gradients", 0.5, 0.95)])
def test_gradients_have_zeros_where_inputs_have(arrays: Arrays, name: str, least: float, most: float) -> None:
    assert least < np.mean(arrays[name] == 0) < most


def test_embedding_gradients_are_zero_in_whole_rows(arrays: Arrays) -> None:
    zero_rows = (arrays["embedding_gradients"] == 0).all(axis=1)
    assert np.mean(zero_rows) == pytest.approx(np.mean(arrays["embedding_gradients"] == 0), abs=0.01)


def test_the_second_moment_is_not_negative(arrays: Arrays) -> None:
    assert arrays["adam_second_moment"].min() >= 0


def test_activations_are_the_positive_part(arrays: Arrays) -> None:
    np.testing.assert_array_equal(arrays["activations"], np.maximum(arrays["pre_activations"], 0))
    np.testing.assert_array_equal(arrays["relu_mask"], arrays["pre_activations"] > 0)


def test_bfloat16_weights_are_the_rounded_ones(arrays: Arrays) -> None:
    np.testing.assert_array_equal(
        arrays["trained_weights_bfloat16"], arrays["trained_weights"].astype(ml_dtypes.bfloat16)
    )


def test_gaussian_weights_have_their_distribution(arrays: Arrays) -> None:
    weights = arrays["gaussian_weights"].astype(np.float64)
    assert weights.mean() == pytest.approx(0, abs=1e-4)
    assert weights.std() == pytest.approx(0.02, rel=0.01)


def test_every_document_has_its_length(arrays: Arrays) -> None:
    np.testing.assert_array_equal(arrays["token_counts"].sum(axis=1), 512)


def test_the_field_is_smooth(arrays: Arrays) -> None:
    field = arrays["smooth_field"].astype(np.float64)
    assert all(np.diff(field, axis=axis).std() < 0.2 * field.std() for axis in range(3))


def test_few_steps_give_the_same_kinds_of_arrays(arrays: Arrays) -> None:
    few = demo_arrays(steps=FEW_STEPS)
    assert {name: (x.dtype, x.shape) for name, x in few.items()} == {
        name: (x.dtype, x.shape) for name, x in arrays.items()
    }
    for name in ("gradients", "adam_first_moment", "adam_second_moment", "activations"):
        assert np.mean(few[name] != 0) > 0.1, name
    np.testing.assert_array_equal(few["smooth_field"], arrays["smooth_field"])
