"""What a data set is to the training harness."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torch import Tensor

from .inputs import Inputs
from .registry import Registry

Part = tuple[Tensor, Tensor]


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
        metric: what is reported, of `metrics.METRICS`.
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
