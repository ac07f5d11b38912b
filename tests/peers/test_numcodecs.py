"""numcodecs' tests of its compressors, as its package has them, on arrcomp's codec in place of theirs."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import arrcomp

common = pytest.importorskip("numcodecs.tests.common")

from arrcomp.stores.numcodecs import Arrcomp

pytestmark = pytest.mark.peers

CODECS = [
    Arrcomp(codec)
    for kind in arrcomp.available_codecs().values()
    for codec in kind.examples()
    if codec.takes_numpy(np.uint8)
]
MODULES = ("bz2", "gzip", "lz4", "lzma", "zlib", "zstd")
# What arrcomp refuses and other compressors do not: `out` must have exactly the array's bytes.
REFUSED = {"test_out_too_large": "^out: expected 36 bytes, got 40"}
LIMITS = {"test_max_buffer_size"}  # of other compressors; arrcomp has none


def functions_of_codecs() -> list[Any]:
    """The functions of numcodecs' modules that go through the module's `codecs`."""
    found = []
    for name in MODULES:
        module = importlib.import_module(f"numcodecs.tests.test_{name}")
        for function in vars(module).values():
            of_codecs = inspect.isfunction(function) and "codecs" in function.__code__.co_names
            if of_codecs and function.__name__ not in LIMITS:
                assert not inspect.signature(function).parameters, f"{name}, {function.__name__}: new fixtures"
                found.append(pytest.param(module, function, id=f"{name}-{function.__name__}"))
    return found


def test_the_tests_of_numcodecs_are_found() -> None:
    names = {param.values[1].__name__ for param in functions_of_codecs()}
    assert {*REFUSED, "test_encode_decode", "test_backwards_compatibility", "test_err_encode_non_contiguous"} <= names
    assert len(CODECS) >= 2


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize(("module", "function"), functions_of_codecs())
def test_what_numcodecs_tests_does_not_hold(
    module: ModuleType, function: Callable[[], None], codec: Arrcomp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "codecs", [codec])
    monkeypatch.chdir(tmp_path)  # streams are written below the current folder, and read again
    if function.__name__ in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[function.__name__]):
            function()
    else:
        function()


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_what_numcodecs_checks_of_a_codec_does_not_hold(codec: Arrcomp) -> None:
    common.check_config(codec)
    common.check_err_encode_object_buffer(codec)
    common.check_err_decode_object_buffer(codec)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(1000, dtype=">i4"),
        np.arange(24, dtype=">f8").reshape(2, 3, 4, order="F"),
        np.array([("a", 1.5), ("b", 2.5)], [("name", "U3"), ("value", ">f4")]),
        np.array(["", "é", "abc"]),
        np.array([b"x", b"\0y"]),
        np.arange(12, dtype="u1").view("V3"),
    ],
    ids=lambda x: str(x.dtype),
)
def test_a_dtype_that_numcodecs_tests_leave_out_is_not_kept(x: np.ndarray[Any, Any]) -> None:
    common.check_encode_decode(x, Arrcomp())
