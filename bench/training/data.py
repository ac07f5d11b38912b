"""What a data set and a model are to the training harness, and how well a model does."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from arrcomp.torch.training._codecs import Registry


@dataclass(frozen=True)
class Images:
    """Pictures: float32 tensors of shape (batch, channels, height, width).

    Attributes:
        outputs: numbers that the model gives for each: one for each class, or 1 where it is a number that is asked for.
    """

    kind: ClassVar[str] = "images"

    channels: int
    height: int
    width: int
    outputs: int


@dataclass(frozen=True)
class Tokens:
    """Texts: int64 tensors of shape (batch, length) with numbers below `vocabulary`.

    Attributes:
        outputs: same as in `Images`.
        padding: the number that fills short texts up; None where all have one length.
        separator: the number after each of two texts; None where there is one text.
    """

    kind: ClassVar[str] = "tokens"

    vocabulary: int
    length: int
    outputs: int
    padding: int | None = None
    separator: int | None = None


Inputs = Images | Tokens
Part = tuple[Tensor, Tensor]


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


def unchanged(x: Tensor, training: bool) -> Tensor:
    """Inputs as they are."""
    return x


@dataclass(frozen=True)
class Data:
    """A data set in memory.

    Attributes:
        inputs: what a model takes.
        train: inputs and labels: int64 numbers of classes, or float32 numbers where one is asked for.
        test: the same, for testing.
        metric: what is reported, of `METRICS`.
        prepare: turns a batch of inputs into what a model takes, given whether it trains.
    """

    inputs: Inputs
    train: Part
    test: Part
    metric: str = "accuracy"
    prepare: Callable[[Tensor, bool], Tensor] = unchanged


class DataSet(ABC):
    """Base of data sets, which runs name: one class each, decorated with `@DATASETS.add`.

    Attributes:
        name: in `Settings`.
        kinds: of inputs that it has, "images" and "tokens"; a model takes one of them.
        tasks: of which one must be chosen; none for most.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    tasks: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def load(cls, kind: str, folder: Path, *, task: str | None = None, download: bool = False) -> Data:
        """The data set.

        Args:
            kind: one of `kinds`.
            folder: where its files are.
            task: one of `tasks`, if there are any.
            download: whether it may be fetched from a network where its files are not there.

        Raises:
            DataNotFoundError: its files are not there.
            ImportError: a package that it needs is not installed.
            ValueError: its files are not what they should be.
        """


DATASETS: Registry[DataSet] = Registry("data set")


class Model(ABC):
    """Base of models, which runs name: one class each, decorated with `@MODELS.add`.

    Attributes:
        name: in `Settings`.
        kind: of the inputs that it takes, "images" or "tokens".
    """

    name: ClassVar[str]
    kind: ClassVar[str]

    @classmethod
    @abstractmethod
    def build(cls, inputs: Any) -> nn.Module:
        """The model for `Images` or `Tokens`, with new weights: it gives floats of shape (batch, inputs.outputs)."""


MODELS: Registry[Model] = Registry("model")
