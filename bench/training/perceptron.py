"""A small model on scikit-learn's digits, for what takes many runs."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

Halves = tuple[Tensor, Tensor, Tensor, Tensor]


def halves() -> Halves:
    """Pictures and what they show, for training, and for testing."""
    x, y = load_digits(return_X_y=True)
    parts = train_test_split(x, y, test_size=0.5, random_state=0, stratify=y)
    trained, tested, labels, tested_labels = (torch.from_numpy(part) for part in parts)
    return trained.float() / 16, labels, tested.float() / 16, tested_labels


def perceptron(seed: int, width: int) -> nn.Module:
    """Two hidden layers; the weights follow from a seed."""
    torch.manual_seed(seed)
    hidden = [nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(width, 10))


def percent(model: nn.Module, x: Tensor, labels: Tensor) -> float:
    """Accuracy."""
    with torch.no_grad():
        return 100 * (model(x).argmax(1) == labels).float().mean().item()
