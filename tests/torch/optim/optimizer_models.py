"""Parameters, gradients and optimizers for tests."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn, optim

from arrcomp import Compressed, Lossless
from arrcomp.torch.optim import CompressedOptimizer


def pair(size: int = 5000) -> list[Any]:
    """Two parameters, always the same."""
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(size)) for _ in range(2)]


def set_gradients(parameters: list[Any], step: int) -> None:
    """Give parameters the gradients of a step."""
    for number, p in enumerate(parameters):
        p.grad = torch.sin(torch.arange(p.numel()) * (number + 1.0) + step).view_as(p).to(p.dtype)


def adam(parameters: Any, **options: Any) -> Any:
    """PyTorch's Adam."""
    return optim.Adam(parameters, lr=0.01, **options)


def lossless(optimizer: Any, **options: Any) -> CompressedOptimizer:
    """An optimizer whose state keeps every bit."""
    return CompressedOptimizer(optimizer, Lossless(), **{"min_size": 0, **options})


def equal(one: list[Any], other: list[Any]) -> bool:
    """Whether parameters are the same to the bit."""
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def compressed_keys(optimizer: Any, parameter: Any) -> set[str]:
    """The keys of a parameter's state that are compressed."""
    return {key for key, value in optimizer.state[parameter].items() if isinstance(value, Compressed)}
