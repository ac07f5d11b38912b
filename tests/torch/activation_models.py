"""Small models with their gradients, for tests of what autograd keeps."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import nn


class Block(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """A residual block of a ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x: Any) -> Any:
        y = torch.relu_(self.norms[0](self.first(x)))
        return torch.relu(self.norms[1](self.second(y)) + x)


def residual_network() -> Any:
    stem = (nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2))
    return nn.Sequential(*stem, Block(8), Block(8), nn.Dropout(0.2), nn.Flatten(), nn.Linear(8 * 8 * 8, 10))


def encoder() -> Any:
    return nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")


def gradients(model: Any, x: Any, context: Any = None, autocast: bool = False) -> list[Any]:
    """Gradients of a loss by all parameters, after a forward pass in a context."""
    torch.manual_seed(1)
    model.zero_grad()
    with context or contextlib.nullcontext(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        y = model(x)
        loss = (y.float() * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum()
    loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def same(these: list[Any], those: list[Any]) -> bool:
    return len(these) == len(those) > 0 and all(map(torch.equal, these, those))
