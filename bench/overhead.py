"""What a call costs: `compress` and `decompress` of small arrays against each framework's own operation, `x + 1`.

Microseconds on the host's clock, the least of samples of calls that take turns in one run. On the CPU a call's work is
in it; on CUDA calls only enqueue. `python bench/overhead.py` prints the table; results.py puts it into RESULTS.md.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import arrcomp
from arrcomp import _core
from harness.tables import table
from harness.timing import Call, by_turns
from scaling import size_name

OWN = "x + 1"
CODEC = arrcomp.ErrorBounded(abs=1e-3)
SAMPLES, CALLS = 100, 50
_ABOUT = """\
Eager calls on the CPU, with all cores, on float32 arrays. The time includes the work itself. Each figure is the
smallest of {samples} samples; the calls take turns. The codec is `ErrorBounded(abs=1e-3)` unless stated otherwise.
`python bench/overhead.py` prints only this table."""
SIZES = tuple(1 << size for size in range(10, 21, 2))  # bytes


def calls_of(x: Any, finish: Callable[[Any], Any]) -> dict[str, Call]:
    """The calls to compare; `finish` waits for what a framework does behind the caller's back."""
    c = arrcomp.compress(x, CODEC)
    return {
        OWN: lambda: finish(x + 1),
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
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else the others have no memory on the GPU
        import jax

        def wait(y: Any) -> Any:
            return y.block_until_ready()

        yield "JAX", calls_of(jax.device_put(x, jax.devices("cpu")[0]), wait), lambda: None
    if on_gpu and importlib.util.find_spec("cupy"):
        import cupy  # type: ignore[import-not-found,unused-ignore]

        yield "CuPy, CUDA", calls_of(cupy.asarray(x), _nothing), cupy.cuda.runtime.deviceSynchronize


def microseconds(calls: dict[str, Call], settle: Call, count: int = CALLS) -> dict[str, float]:
    """Least mean time of each call, over samples of so many: what it costs where nothing interrupts it."""
    samples = by_turns(calls, SAMPLES, count=count, settle=settle)
    return {name: 1e6 * min(values) for name, values in samples.items()}


def measured(sizes: Sequence[int] = SIZES) -> dict[str, dict[str, dict[str, float]]]:
    """Microseconds of each call, by framework, call and bytes of the array."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for nbytes in sizes:
        x = np.random.default_rng(0).normal(0, 0.02, nbytes // 4).astype(np.float32)
        count = max(CALLS * SIZES[0] // nbytes, 5)
        for name, calls, settle in frameworks(x):
            for call, value in microseconds(calls, settle, count).items():
                found.setdefault(name, {}).setdefault(call, {})[str(nbytes)] = value
    return found


def beyond(times: dict[str, dict[str, float]], call: str, nbytes: int = SIZES[0]) -> float:
    """How much longer a call of a framework takes than its own operation."""
    return times[call][str(nbytes)] - times[OWN][str(nbytes)]


def section(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """What was measured, as text."""
    sizes = [size_name(int(nbytes).bit_length() - 1) for nbytes in next(iter(found.values()))[OWN]]
    rows = [
        [
            name,
            call,
            *(f"{value:.1f}" for value in by_size.values()),
            f"{beyond(times, call):.1f}" if call != OWN else "",
        ]
        for name, times in found.items()
        for call, by_size in times.items()
    ]
    return (
        _ABOUT.format(samples=SAMPLES)
        + "\n\n"
        + table(["<", "<microseconds", *sizes, f"beyond {OWN} at {sizes[0]}"], rows)
    )


def main() -> int:
    """Measure and print."""
    print(section(measured()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
