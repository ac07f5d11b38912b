"""What tests of PyTorch's RandomizedLinear share."""

from __future__ import annotations

from typing import Any

import torch

ROWS, IN, OUT = 60, 7, 5

# Splits forward from backward as the default backend does, and takes no time to generate code.
QUICK = "aot_eager_decomp_partition"


def tensor(*shape: int, dtype: Any = torch.float64, seed: int = 3) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def row_drawn(gradient: Any, x: Any, y: Any) -> int:
    """Which row a gradient was calculated from, with one row of projection; fails if it was from none."""
    expected = len(x) * torch.einsum("no,ni->noi", y, x)
    (found,) = torch.nonzero((expected - gradient).abs().amax((1, 2)) < 1e-3 * expected.abs().amax()).flatten()
    return int(found)


def compiled_by(backend: str | None, function: Any, **options: Any) -> Any:
    """A function as it is, or compiled anew."""
    torch._dynamo.reset()
    return function if backend is None else torch.compile(function, fullgraph=True, backend=backend, **options)


def kept_by(function: Any, *arguments: Any) -> list[Any]:
    kept: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: (kept.append(x), x)[1], lambda x: x):  # type: ignore[func-returns-value]
        function(*arguments)
    return kept


def steps(layer: Any, count: int = 6) -> Any:
    """Weight gradients of several steps with the same data."""
    x, made = tensor(ROWS, IN), []
    for _ in range(count):
        layer.zero_grad()
        layer(x).sum().backward()
        made.append(layer.weight.grad.clone())
    return torch.stack(made)
