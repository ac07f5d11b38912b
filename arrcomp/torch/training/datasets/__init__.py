"""Data sets that the training harness knows by name."""

from . import cifar, digits, glue, imdb  # noqa: F401 - which add themselves
from .base import DATASETS, Data, DataSet

__all__ = ["DATASETS", "Data", "DataSet"]
