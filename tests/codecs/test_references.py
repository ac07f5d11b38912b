"""Every codec has a reader that shares no code with it, or a reference in float64 in its own tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
import reference_reader

KINDS = list(arrcomp.available_codecs().values())


def float64_reference(kind: type[arrcomp.Codec]) -> Callable[[Any, Any], Any]:
    """The function of this name in tests/codecs/test_NAME.py: an array in float64 and the codec -> what comes back."""
    path = Path(__file__).with_name(f"test_{kind.name.replace('-', '_')}.py")
    assert path.exists(), f"{kind.name}: expected a module in tests/independent/reference_reader or {path.name}"
    spec = importlib.util.spec_from_file_location(f"{path.stem}_of_references", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[Any, Any], Any] = module.float64_reference
    return function


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_codec_is_held_to_something_independent(kind: type[arrcomp.Codec]) -> None:
    if kind.id in reference_reader.CODECS:
        assert reference_reader.CODECS[kind.id] == kind.name
        return
    reference = float64_reference(kind)
    x = np.random.default_rng(0).normal(0, 1, 10_000)
    for codec in kind.examples():
        for dtype in (np.float32, np.float64):
            array = x.astype(dtype)
            decoded = checks.array_of(checks.stream_of(array, codec)).astype(np.float64)
            expected = reference(array.astype(np.float64), codec)
            near = np.abs(decoded - expected) <= 1e-6 * np.abs(expected).max()
            assert near.mean() > 0.999, codec  # a tie may fall the other way
