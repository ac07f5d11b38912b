"""CuPy for the tests: on a GPU where there is one, else the double of `fake_cupy`; and what is asked of the core."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import checks
import fake_cupy
from arrcomp import QSGD, ErrorBounded, _core

X = np.random.default_rng(11).normal(0, 1, (300, 40)).astype(np.float32)
CODEC = ErrorBounded(rel=1e-3)
RANDOM = QSGD(rounding="stochastic")


def has_gpu() -> bool:
    """Whether CuPy and the core can both use a GPU here."""
    try:
        import cupy  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return False
    return _core.cuda_device_count() > 0 and cupy.cuda.is_available()


@pytest.fixture
def cupy() -> Iterator[Any]:
    """CuPy, or its double."""
    if has_gpu():
        yield sys.modules["cupy"]
        return
    with contextlib.suppress(ImportError):  # PyTorch, while it is imported, asks a CuPy that is there for all its parts
        import torch  # noqa: F401
    with fake_cupy.installed() as module:
        yield module


@pytest.fixture
def double(cupy: Any) -> Any:
    """The double of CuPy."""
    if cupy is not fake_cupy:
        pytest.skip("shown on the double alone")
    return cupy


class Calls:
    """The core's CUDA functions, called through and recorded: positional arguments by name of the function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.encode = self._spy(monkeypatch, "cuda_encode")
        self.decode = self._spy(monkeypatch, "cuda_decode")

    def _spy(self, monkeypatch: pytest.MonkeyPatch, name: str) -> list[tuple[Any, ...]]:
        function: Callable[..., None] = getattr(_core, name)
        calls: list[tuple[Any, ...]] = []

        def spy(*arguments: Any) -> None:
            calls.append(arguments)
            function(*arguments)

        monkeypatch.setattr(_core, name, spy)
        return calls


ARRAYS, SEED, STREAM, DEVICE = 3, 5, -2, -1  # places of arguments


@pytest.fixture
def calls(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What the core is asked."""
    return Calls(monkeypatch)


def counted(cupy: Any, function: Callable[[], Any]) -> tuple[Any, list[int]]:
    """What a function returns, and the sizes of the allocations that it makes."""
    sizes: list[int] = []

    class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc,name-defined,unused-ignore]
        name = "counting"

        def malloc_preprocess(self, **arguments: Any) -> None:
            if arguments["size"]:
                sizes.append(arguments["size"])

    with Hook():
        result = function()
    return result, sizes


def corrupted(stream: bytes) -> bytes:
    """A stream whose checksum is right and whose payload is not."""
    start, end = checks.payload_span(stream)
    return checks.seal(stream[:start] + b"\xff" * (end - start))


def other_device(cupy: Any) -> Any:
    """A second device."""
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one device")
    return cupy.cuda.Device(1)
