"""Models that the training benchmarks know by name."""

from . import encoder, inception, transformers  # noqa: F401 - which add themselves
