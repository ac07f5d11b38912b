"""What a call costs: `compress` and `decompress` of 1 KiB against each framework's own smallest operation, `x + 1`.

Microseconds on the host's clock, medians over samples of calls that take turns in one run. On the CPU a call's work is
in it; on CUDA calls only enqueue. `python bench/overhead.py` prints the table; results.py puts it into RESULTS.md.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import arrcomp
from arrcomp import _core

Call = Callable[[], Any]

CODEC = arrcomp.ErrorBounded(abs=1e-3)
SAMPLES, CALLS = 15, 300


def calls_of(x: Any, finish: Callable[[Any], Any]) -> dict[str, Call]:
    """The calls to compare; `finish` waits for what a framework does behind the caller's back."""
    c = arrcomp.compress(x, CODEC)
    return {
        "x + 1": lambda: finish(x + 1),
        "compress": lambda: finish(arrcomp.compress(x, CODEC).payload.buffer),
        "compress, lossless": lambda: finish(arrcomp.compress(x).payload.buffer),
        "decompress": lambda: finish(arrcomp.decompress(c)),
    }


def _nothing(x: Any) -> None:
    """Nobody works behind the caller's back."""


def frameworks(x: np.ndarray[Any, Any]) -> Iterator[tuple[str, dict[str, Call], Call]]:
    """Name, calls, and what waits for the device between samples."""
    yield "NumPy", calls_of(x, _nothing), lambda: None
    on_gpu = _core.cuda_device_count() > 0
    if importlib.util.find_spec("torch"):
        import torch

        yield "PyTorch", calls_of(torch.from_numpy(x), _nothing), lambda: None
        if on_gpu and torch.cuda.is_available():
            yield "PyTorch, CUDA", calls_of(torch.from_numpy(x).cuda(), _nothing), torch.cuda.synchronize
    if importlib.util.find_spec("jax"):
        import jax

        def wait(y: Any) -> Any:
            return y.block_until_ready()

        yield "JAX", calls_of(jax.device_put(x, jax.devices("cpu")[0]), wait), lambda: None
    if on_gpu and importlib.util.find_spec("cupy"):
        import cupy  # type: ignore[import-not-found,unused-ignore]

        yield "CuPy, CUDA", calls_of(cupy.asarray(x), _nothing), cupy.cuda.runtime.deviceSynchronize


def microseconds(calls: dict[str, Call], settle: Call) -> dict[str, float]:
    """Median time of each call."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(SAMPLES + 2):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            samples[name].append((time.perf_counter() - start) / CALLS * 1e6)
            settle()
    return {name: statistics.median(values[2:]) for name, values in samples.items()}


def measured() -> dict[str, dict[str, float]]:
    """Microseconds of each call, by framework."""
    x = np.random.default_rng(0).normal(0, 0.02, 256).astype(np.float32)
    return {name: microseconds(calls, settle) for name, calls, settle in frameworks(x)}


def main() -> int:
    """Measure and print."""
    found = measured()
    table = Table("1 KiB, microseconds", *next(iter(found.values())))
    for name, times in found.items():
        table.add_row(name, *(f"{value:.1f}" for value in times.values()))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
