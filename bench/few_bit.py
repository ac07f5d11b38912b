"""Times few-bit activations beside PyTorch's own, and counts what each keeps: writes FEW_BIT.md beside this file.

`python bench/few_bit.py` takes a minute, on one thread; `--output` names another folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as torch_functional

import arrcomp
from arrcomp.torch import functional
from conditions import machine_found, version
from measure import median_seconds
from text_table import table

ELEMENTS = 4_194_304
CASES = (("relu", 1), ("gelu", 3), ("gelu", 8), ("silu", 3), ("mish", 3), ("softplus", 3), ("elu", 3), ("tanh", 3))
TYPES = (torch.float32, torch.bfloat16)
_HEAD = """\
# Few-bit activations, measured

Written by `python bench/few_bit.py`. Forward and backward passes of a single activation, medians, beside PyTorch's own
in the same run on one thread, and beside a copy of the same array. Bytes kept are those of the tensors that autograd
saves. PyTorch's CPU kernels use fused multiply-adds; these do not, so that every machine gives the same bits."""
_GPU = "\n## GPU\n\nNot yet measured: `bench/gpu.py` times these kernels on one."


def kept_bytes(call: Callable[[], Any]) -> int:
    """Bytes of the different tensors that autograd saves in a call."""
    kept: dict[int, int] = {}

    def note(x: Tensor) -> Tensor:
        kept[x.data_ptr()] = x.nbytes
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        call()
    return sum(kept.values())


def passes(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[float, float, int]:
    """Seconds of the forward pass and of the backward pass, and the bytes kept between them."""
    x = x.detach().requires_grad_()
    y, gradient = function(x), torch.ones_like(x)

    def backward() -> None:
        x.grad = None
        torch.autograd.backward(y, gradient, retain_graph=True)

    backward()
    kept = kept_bytes(lambda: function(x))
    return median_seconds(lambda: function(x)), median_seconds(backward), kept


def line(name: str, bits: int, x: Tensor) -> tuple[str, ...]:
    """A row of the table."""
    options = {} if name == "relu" else {"bits": bits}
    ours = passes(lambda t: getattr(functional, name)(t, **options), x)
    own = passes(getattr(torch_functional, name, None) or getattr(torch, name), x)
    target = torch.empty_like(x)
    copy = median_seconds(lambda: target.copy_(x))
    return (
        name,
        str(x.dtype).removeprefix("torch."),
        str(bits),
        *(f"{seconds * 1e3:.2f}" for seconds in (ours[0], own[0], ours[1], own[1], copy)),
        f"{sum(own[:2]) / sum(ours[:2]):.2f}",
        f"{8 * ours[2] / x.numel():.2f}",
        f"{8 * own[2] / x.numel():.2f}",
    )


def page(lines: list[tuple[str, ...]]) -> str:
    """FEW_BIT.md."""
    times = ("forward ms", "PyTorch", "backward ms", "PyTorch", "copy ms", "both, x PyTorch")
    head = ("<function", "<dtype", "bits", *times, "kept bits", "PyTorch")
    found = machine_found()
    machine = f"{found['processor']}, one thread, {found['instruction sets'].split(',')[0]}"
    versions = f"PyTorch {version('torch')}, arrcomp {arrcomp.__version__}, {datetime.now(UTC).date()}"
    intro = f"{ELEMENTS:,} values, N(0, 1). {machine}; {versions}."
    return "\n".join([_HEAD, "", intro, "", table(head, lines), _GPU, ""])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description="Times few-bit activations beside PyTorch's own.")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="folder (default: beside this file)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    lines = []
    for dtype in TYPES:
        x = torch.randn(ELEMENTS).to(dtype)
        lines += [line(name, bits, x) for name, bits in CASES]
    (options.output / "FEW_BIT.md").write_text(page(lines))


if __name__ == "__main__":
    main()
