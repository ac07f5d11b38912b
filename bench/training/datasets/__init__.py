"""Data sets that the training benchmarks know by name."""

from . import cifar, digits, glue, imdb  # noqa: F401 - which add themselves
