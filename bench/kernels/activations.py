"""Times the CUDA kernels of few-bit activations beside PyTorch's own, forward and backward; part of gpu.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from arrcomp import _core, _dtypes
from arrcomp._arrays.numpy import numpy_bytes
from arrcomp.activations import steps_of
from kernels.device import Gpu

CASES = (("relu", 1), ("gelu", 3), ("gelu", 8), ("silu", 3), ("mish", 3))
TYPES = (np.float32, ml_dtypes.bfloat16)
ARRAYS = 8


class Slot:
    """An array on the device with room for its values, what is kept of it, and its gradient."""

    def __init__(self, gpu: Gpu, function: str, bits: int, x: NDArray[Any]) -> None:
        self.memory, self.function = gpu.framework, function
        self.steps = steps_of(function, (), bits).core_parameters()
        self.dtype_id, self.elements = _dtypes.by_numpy(x.dtype).id, x.size
        self.source, self.values = gpu.put(x), self.memory.empty(x.nbytes)
        self.gradient = self.memory.empty(x.nbytes)
        self.packed = self.memory.empty(_core.step_bytes(self.steps, x.size))

    def forward(self) -> None:
        """Enqueue the function and what is kept for its gradient."""
        source, values, packed = (self.memory.pointer(b) for b in (self.source, self.values, self.packed))
        place = (source, values, packed, self.elements)
        self.memory.calls.activate(self.function, self.steps, self.dtype_id, place)

    def backward(self) -> None:
        """Enqueue the gradient, of the values in place of what would come from the layer above."""
        packed, values, gradient = (self.memory.pointer(b) for b in (self.packed, self.values, self.gradient))
        self.memory.calls.step_grad(self.steps, self.dtype_id, (packed, values, gradient, self.elements))

    def differs(self, x: NDArray[Any]) -> str | None:
        """Compute both; what is not the CPU's, if anything."""
        self.forward()
        self.backward()
        values, gradient = np.empty_like(x), np.empty_like(x)
        packed = np.empty(_core.step_bytes(self.steps, x.size), np.uint8)
        at = [array.ctypes.data for array in (x, values, packed, gradient)]
        _core.activate_at(self.function, (), self.steps, self.dtype_id, *at[:3], x.size, 0)
        _core.step_grad_at(self.steps, self.dtype_id, at[2], at[1], at[3], x.size, 0)
        found = {"values": self.values, "packed steps": self.packed, "gradient": self.gradient}
        for (name, buffer), wanted in zip(found.items(), (values, packed, gradient), strict=True):
            if not np.array_equal(self.memory.to_host(buffer), numpy_bytes(wanted)):
                return f"{name} are not the CPU's"
        return None


def measure_activations(gpu: Gpu, nbytes: int) -> Iterator[dict[str, Any]]:
    """A line for each function and type: 8 arrays of so many bytes, in turn."""
    for dtype in TYPES:
        x = np.random.default_rng(0).standard_normal(nbytes // np.dtype(dtype).itemsize, np.float32).astype(dtype)
        for function, bits in CASES:
            slots = [Slot(gpu, function, bits, x) for _ in range(ARRAYS)]
            what = f"{function}, {bits} bits, {np.dtype(dtype).name}"
            line: dict[str, Any] = {"kind": "activation", "what": what, "nbytes": x.nbytes}
            wrong = slots[0].differs(x)
            if wrong is not None:
                yield line | {"wrong": wrong}
                continue
            kept = _core.step_bytes(slots[0].steps, x.size)
            for half in ("forward", "backward"):
                work = [getattr(slot, half) for slot in slots]
                timing = gpu.time(work)
                line[half] = timing | {"moved": (2 * x.nbytes + kept) / timing["seconds"]}
                line[half]["kernels"] = gpu.kernels(work)
            yield line | _of_pytorch(gpu, function, slots)


def _of_pytorch(gpu: Gpu, function: str, slots: list[Slot]) -> dict[str, Any]:
    """PyTorch's own forward pass of the same arrays, where the framework is PyTorch."""
    try:
        import torch
    except ImportError:
        return {}
    if not isinstance(slots[0].source, torch.Tensor):
        return {}
    kinds = {12: torch.float32, 11: torch.bfloat16}
    own: Callable[[Any], Any] = getattr(torch.nn.functional, function)
    xs = [slot.source.view(kinds[slot.dtype_id]) for slot in slots]
    return {"pytorch": gpu.time([lambda x=x: own(x) for x in xs])}
