"""What few-bit activations take and keep, beside PyTorch's own: a minute, on one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as torch_functional

from arrcomp.torch import functional
from harness.section import Found, Section
from harness.tables import table
from harness.timing import median_seconds
from training.kept import kept_nbytes
from training.words import bits_text

ELEMENTS = 4_194_304
CASES = (("relu", 1), ("gelu", 3), ("gelu", 8), ("silu", 3), ("mish", 3), ("softplus", 3), ("elu", 3), ("tanh", 3))
TYPES = (torch.float32, torch.bfloat16)
_HOW = f"""\
Forward and backward passes of a single activation of {ELEMENTS:,} values, N(0, 1). Times are medians on one thread,
next to those of PyTorch's own activation and of a copy of the same array in the same run. Bits kept are those of the
tensors that autograd saves. PyTorch's CPU kernels use fused multiply-adds. arrcomp's do not, so that every machine
gives the same bits."""
_GPU = "On a GPU: not yet measured; `bench/gpu.py` times these kernels."


def passes(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[float, float, int]:
    """Seconds of the forward pass and of the backward pass, and the bytes kept between them."""
    x = x.detach().requires_grad_()
    y, gradient = function(x), torch.ones_like(x)

    def backward() -> None:
        x.grad = None
        torch.autograd.backward(y, gradient, retain_graph=True)

    backward()
    kept = kept_nbytes(lambda: function(x))
    return median_seconds(lambda: function(x)), median_seconds(backward), kept


def figures_of(name: str, bits: int, x: Tensor) -> dict[str, float]:
    """Milliseconds, and bits that a value keeps."""
    options = {} if name == "relu" else {"bits": bits}
    ours = passes(lambda t: getattr(functional, name)(t, **options), x)
    own = passes(getattr(torch_functional, name, None) or getattr(torch, name), x)
    target = torch.empty_like(x)
    return {
        "forward": 1e3 * ours[0],
        "forward, PyTorch": 1e3 * own[0],
        "backward": 1e3 * ours[1],
        "backward, PyTorch": 1e3 * own[1],
        "copy": 1e3 * median_seconds(lambda: target.copy_(x)),
        "both, x PyTorch": sum(own[:2]) / sum(ours[:2]),
        "kept": 8 * ours[2] / x.numel(),
        "kept, PyTorch": 8 * own[2] / x.numel(),
    }


def measured(quick: bool = False) -> dict[str, Any]:
    """Figures of each dtype, function and number of bits."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found: dict[str, Any] = {}
    for dtype in TYPES:
        x = torch.randn(ELEMENTS >> 6 if quick else ELEMENTS).to(dtype)
        by_function = found.setdefault(str(dtype).removeprefix("torch."), {})
        for name, bits in CASES:
            by_function.setdefault(name, {})[bits_text(bits)] = figures_of(name, bits, x)
    return found


def text(found: Found) -> str:
    """What was measured, as text."""
    rows = [
        [name, dtype, bits.split()[0], *(f"{value:.2f}" for value in figures.values())]
        for dtype, functions in found.items()
        for name, by_bits in functions.items()
        for bits, figures in by_bits.items()
    ]
    times = ("forward ms", "PyTorch", "backward ms", "PyTorch", "copy ms", "both, x PyTorch")
    head = ("<function", "<dtype", "bits", *times, "kept bits", "PyTorch")
    return f"{_HOW}\n\n{table(head, rows)}\n\n{_GPU}"


SECTION = Section(
    "Few-bit activations",
    measured,
    text,
    levels=("setting", "subject", "method", "metric"),
    units={
        **dict.fromkeys(("forward", "forward, PyTorch", "backward", "backward, PyTorch", "copy"), "ms"),
        "kept": "bit",
        "kept, PyTorch": "bit",
    },
    versions=("arrcomp", "torch"),
)
