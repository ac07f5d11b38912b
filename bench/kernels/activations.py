"""Times the CUDA kernels of few-bit activations beside PyTorch's own, forward and backward; part of gpu.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from arrcomp import _core, _dtypes
from arrcomp._arrays import host
from arrcomp.activations import steps_of
from kernels.device import Gpu

CASES = (("relu", 1), ("gelu", 3), ("gelu", 8), ("silu", 3), ("mish", 3))
TYPES = (np.float32, ml_dtypes.bfloat16)


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
        place = (source, values, packed, self.elements, self.memory.stream(), self.memory.index)
        _core.cuda_activate(self.function, (), self.steps, self.dtype_id, *place)

    def backward(self) -> None:
        """Enqueue the gradient, of the values in place of what would come from the layer above."""
        packed, values, gradient = (self.memory.pointer(b) for b in (self.packed, self.values, self.gradient))
        place = (packed, values, gradient, self.elements, self.memory.stream(), self.memory.index)
        _core.cuda_step_grad(self.steps, self.dtype_id, *place)

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
            if not np.array_equal(self.memory.to_host(buffer), host.numpy_bytes(wanted)):
                return f"{name} are not the CPU's"
        return None


def measure_activations(gpu: Gpu, nbytes: int, count: int) -> Iterator[dict[str, Any]]:
    """A line for each function and type: `count` arrays of so many bytes, in turn."""
    for dtype in TYPES:
        x = np.random.default_rng(0).standard_normal(nbytes // np.dtype(dtype).itemsize, np.float32).astype(dtype)
        for function, bits in CASES:
            slots = [Slot(gpu, function, bits, x) for _ in range(count)]
            line: dict[str, Any] = {"label": f"{function}, {bits} bits, {np.dtype(dtype).name}", "nbytes": x.nbytes}
            wrong = slots[0].differs(x)
            if wrong is not None:
                yield line | {"wrong": wrong}
                continue
            kept = _core.step_bytes(slots[0].steps, x.size)
            for name in ("forward", "backward"):
                timing = gpu.time([getattr(slot, name) for slot in slots])
                line[name] = timing | {"moved": (2 * x.nbytes + kept) / timing["seconds"]}
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


def print_activations(lines: list[dict[str, Any]], copy: float) -> None:
    """A table; `copy` is the copy's bytes per second."""
    print(f"\n{'activations':<32} {'forward us':>11}{'% copy':>8} {'backward us':>12}{'% copy':>8} {'PyTorch us':>11}")
    for line in lines:
        if "wrong" in line:
            print(f"{line['label']:<32} WRONG: {line['wrong']}")
            continue
        halves = [(line[name]["seconds"] * 1e6, 100 * line[name]["moved"] / copy) for name in ("forward", "backward")]
        peer = f"{line['pytorch']['seconds'] * 1e6:11.1f}" if "pytorch" in line else f"{'-':>11}"
        (forward, forward_share), (backward, backward_share) = halves
        print(f"{line['label']:<32} {forward:11.1f}{forward_share:7.1f}% {backward:12.1f}{backward_share:7.1f}% {peer}")
