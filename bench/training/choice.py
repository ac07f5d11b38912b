"""Settings of runs on the models and data sets of this folder."""

from __future__ import annotations

from typing import Any

from training import datasets, models  # noqa: F401 - which add theirs
from training.data import DATASETS
from training.settings import Settings

_SMALL = {"images": "resnet8", "tokens": "bert-tiny"}


def settings_for(dataset: str = "digits", model: str | None = None, **options: Any) -> Settings:
    """Settings; without a model, of a small one that takes the data set.

    Raises:
        UnknownNameError, TypeError, ValueError: same as in `Settings`.
    """
    chosen = _SMALL[DATASETS.find(dataset).kinds[0]] if model is None else model
    return Settings(dataset, chosen, **options)
