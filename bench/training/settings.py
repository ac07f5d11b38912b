"""What a run is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from arrcomp._arguments import check_choice, checked_integer, checked_real
from arrcomp.codecs import Codec
from training.data import DATASETS, MODELS, DataSet, Model, Tokens

OPTIMIZERS: Mapping[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
_RATES = {"sgd": 0.05, "adam": 1e-3, "adamw": 1e-3}
_ABOVE_ZERO = "a finite number above 0"


@dataclass(frozen=True)
class Settings:
    """One run, checked when it is made.

    Args:
        dataset: a name in `DATASETS`.
        model: a name in `MODELS`, of a model that takes the data set.
        task: of the data set, where it has several.
        folder: where the data set's files are.
        download: whether to fetch them from a network where they are not there.
        codecs: same as in `Compression`.
        master_weights: same as in `Compression`.
        optimizer: "sgd" (with `momentum`), "adam" or "adamw"; None for sgd with images and adamw with tokens.
        lr: the learning rate; None for 0.05 with sgd, else 0.001. It falls to 0 along half a cosine.
        milestones: epochs after which the rate is multiplied by `gamma`, in place of the cosine.
        gamma: as above.
        momentum: of sgd, 0 or more and below 1.
        weight_decay: 0 or more.
        epochs: passes over the training part.
        batch: inputs a step.
        seed: of weights, of the order of the inputs, and of stochastic rounding.
        measure_every: bytes are counted in one step of so many.
        accelerator: as of Lightning's Trainer: "auto", "cpu", "gpu".

    Raises:
        UnknownNameError: there is no such model, data set, task.
        TypeError, ValueError: a setting is not allowed, or not with the others.
    """

    dataset: str
    model: str
    task: str | None = None
    folder: Path = Path("data")
    download: bool = False
    codecs: Mapping[str, Codec | None] = field(default_factory=dict)
    master_weights: bool = False
    optimizer: str | None = None
    lr: float | None = None
    milestones: tuple[int, ...] = ()
    gamma: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    epochs: int = 20
    batch: int = 32
    seed: int = 0
    measure_every: int = 1
    accelerator: str = "auto"

    def __post_init__(self) -> None:
        self._check_model()
        if self.optimizer is None:
            object.__setattr__(self, "optimizer", "adamw" if self.model_class.kind == Tokens.kind else "sgd")
        check_choice("optimizer", self.optimizer, tuple(OPTIMIZERS))
        rate = _RATES[str(self.optimizer)] if self.lr is None else self.lr
        object.__setattr__(self, "lr", checked_real("lr", rate, _ABOVE_ZERO))
        object.__setattr__(self, "gamma", checked_real("gamma", self.gamma, _ABOVE_ZERO))
        for name, most in (("momentum", 1.0), ("weight_decay", float("inf"))):
            value = getattr(self, name)
            if not 0 <= value < most:
                raise ValueError(f"{name}: expected a number from 0 to below {most}, got {value!r}")
        for name in ("epochs", "batch", "measure_every"):
            checked_integer(name, getattr(self, name), 1, 1 << 40)
        checked_integer("seed", self.seed, 0, (1 << 32) - 1)
        for epoch in self.milestones:
            checked_integer("milestones", epoch, 1, self.epochs)
        if self.master_weights and "weights" not in self.codecs:
            raise ValueError("master_weights: expected False, as weights are not among the structures, got True")

    @property
    def model_class(self) -> type[Model]:
        """The model's class."""
        return MODELS.find(self.model)

    @property
    def dataset_class(self) -> type[DataSet]:
        """The data set's class."""
        return DATASETS.find(self.dataset)

    def optimizer_of(self, model: nn.Module) -> torch.optim.Optimizer:
        """A new optimizer of a model's parameters."""
        options: dict[str, Any] = {"lr": self.lr, "weight_decay": self.weight_decay}
        if self.optimizer == "sgd":
            options["momentum"] = self.momentum
        return OPTIMIZERS[str(self.optimizer)](model.parameters(), **options)

    def _check_model(self) -> None:
        """Model, data set and task fit each other."""
        dataset = self.dataset_class
        kind = self.model_class.kind
        if kind not in dataset.kinds:
            fitting = ", ".join(model.name for model in MODELS if model.kind in dataset.kinds)
            has = " and ".join(dataset.kinds)
            raise ValueError(f"model {self.model} takes {kind}, data set {self.dataset} has {has}; models: {fitting}")
        if dataset.tasks and self.task not in dataset.tasks:
            tasks = ", ".join(dataset.tasks)
            raise ValueError(f"task: expected one of data set {self.dataset}'s ({tasks}), got {self.task!r}")
        if self.task is not None and not dataset.tasks:
            raise ValueError(f"task: expected None, as data set {self.dataset} has no tasks, got {self.task!r}")
