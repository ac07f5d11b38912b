"""Models that the training harness knows by name."""

from . import bert, encoder, inception, resnet  # noqa: F401 - which add themselves
from .base import MODELS, Model

__all__ = ["MODELS", "Model"]
