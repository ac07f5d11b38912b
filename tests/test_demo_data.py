"""The demonstration's arrays: made anew alike, and as real as they claim."""

import numpy as np
import pytest

from arrcomp.demo_data import DESCRIPTIONS, demo_arrays

DTYPES = {
    "trained_weights_bfloat16": "bfloat16",
    "relu_mask": "bool",
    "token_counts": "int32",
}


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    return demo_arrays()


def test_two_calls_make_the_same_arrays(arrays: dict[str, np.ndarray]) -> None:
    for name, again in demo_arrays().items():
        np.testing.assert_array_equal(arrays[name].view(np.uint8), again.view(np.uint8), err_msg=name)


def test_every_array_has_a_description_its_dtype_and_finite_values(arrays: dict[str, np.ndarray]) -> None:
    assert DESCRIPTIONS.keys() == arrays.keys()
    for name, array in arrays.items():
        assert array.dtype.name == DTYPES.get(name, "float32"), name
        assert np.isfinite(array.astype(np.float64)).all(), name
        assert array.size >= 1 << 19, name


def test_weights_do_not_repeat(arrays: dict[str, np.ndarray]) -> None:
    weights = arrays["trained_weights"].reshape(-1)
    assert np.unique(weights).size > 0.8 * weights.size


def test_sparse_arrays_have_zeros_in_runs(arrays: dict[str, np.ndarray]) -> None:
    zeros = arrays["embedding_gradients"].reshape(-1) == 0
    assert 0.5 < zeros.mean() < 0.99
    # Rows of tokens that did not occur are zero as a whole, so most zeros have a zero after them.
    assert zeros[1:][zeros[:-1]].mean() > 0.9
    assert 0.2 < (arrays["activations"] == 0).mean() < 0.8
