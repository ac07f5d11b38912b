"""How well a model does."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor


def accuracy(outputs: Tensor, labels: Tensor) -> float:
    """Share of inputs whose class has the largest output."""
    return (outputs.argmax(1) == labels).double().mean().item()


def matthews(outputs: Tensor, labels: Tensor) -> float:
    """Correlation of predicted and true classes, of which there are two; 0 where one of them never occurs."""
    return pearson(outputs.argmax(1), labels)


def pearson(outputs: Tensor, labels: Tensor) -> float:
    """Correlation of numbers; 0 where either does not vary."""
    rows = torch.stack([outputs.reshape(-1).double(), labels.double()])
    centred = rows - rows.mean(1, keepdim=True)
    norms = centred.square().sum(1).prod().sqrt()
    return (centred.prod(0).sum() / norms).item() if norms > 0 else 0.0


METRICS: Mapping[str, Callable[[Tensor, Tensor], float]] = {
    "accuracy": accuracy,
    "matthews": matthews,
    "pearson": pearson,
}
