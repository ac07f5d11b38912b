"""`jax.export` of functions with arrcomp's custom calls, as the page on JAX shows it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import _core

jax = pytest.importorskip("jax")

from jax import export, lax

import arrcomp.jax

PAGE = Path(__file__).parents[2] / "docs" / "use" / "jax.md"
X = np.random.default_rng(5).normal(0, 1, (4, 512)).astype(np.float32)
CHECKS = [export.DisabledSafetyCheck.custom_call(name) for name in _core.xla_handlers()]
BOUNDED = arrcomp.ErrorBounded(abs=1e-3)


def function(x: Any) -> Any:
    """Calls of many kinds."""
    slope = jax.grad(lambda x: (arrcomp.jax.roundtrip(x, BOUNDED) ** 2 + arrcomp.jax.nn.gelu(x)).sum())
    return arrcomp.jax.decompress(arrcomp.jax.compress(x)), slope(x), lax.sin(x)


def test_the_page_leaves_a_custom_call_out() -> None:
    (names,) = re.findall(r"^names = \[(.*)\]$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {f"arrcomp_{name}" for name in re.findall(r'"(\w+)"', names)} == set(_core.xla_handlers())


def test_an_exported_function_computes_something_else() -> None:
    with pytest.raises(ValueError, match="arrcomp_"):
        export.export(jax.jit(function))(X)
    exported = export.export(jax.jit(function), disabled_checks=CHECKS)(X)
    for found, expected in zip(exported.call(X), jax.jit(function)(X), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.full  # flatbuffers is part of test-full alone
def test_another_process_cannot_call_an_exported_function(tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers")
    exported = export.export(jax.jit(function), disabled_checks=CHECKS)(X)
    (tmp_path / "exported").write_bytes(exported.serialize())
    np.save(tmp_path / "x.npy", X)
    program = (
        "import jax, numpy as np, arrcomp.jax\nfrom jax import export\n"
        "call = export.deserialize(bytearray(open('exported', 'rb').read())).call\n"
        "np.save('found.npy', np.stack(call(np.load('x.npy'))))"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    expected = np.stack([np.asarray(part) for part in jax.jit(function)(X)])
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), expected)
