"""Callers may have set another floating-point environment: the bytes stay the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import QSGD, Codebook, ErrorBounded

CODECS: list[arrcomp.Codec] = [
    ErrorBounded(abs=1e-39),
    ErrorBounded(pointwise=1e-2),
    QSGD(bits=8),
    QSGD(norm="l2"),
    Codebook.dynamic8(),
    Codebook([-1e-39, 0.0, 2e-39], [-2e-39, -1e-45, 1e-39, 3e-39]),
]


@pytest.fixture
def flushed() -> Iterator[None]:
    """Inside, the processor takes subnormal numbers for zeros."""
    torch = pytest.importorskip("torch")
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush subnormal numbers")
    yield
    torch.set_flush_denormal(False)


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_flushing_subnormal_numbers_changes_nothing(
    codec: arrcomp.Codec, dtype: str, request: pytest.FixtureRequest
) -> None:
    unit = np.random.default_rng(0).normal(0, 1, 200_000)
    array = (unit * (1e-309 if dtype == "float64" else 1e-39)).astype(checks.numpy_dtype(dtype))
    compressed = arrcomp.compress(array, codec)
    decoded = arrcomp.decompress(compressed)
    request.getfixturevalue("flushed")
    assert arrcomp.compress(array, codec, threads=2).to_bytes() == compressed.to_bytes()
    checks.check_same_bits(arrcomp.decompress(compressed, threads=2), decoded)
    assert np.array(1e-310) * 1 == 0  # the caller's environment is as it was
