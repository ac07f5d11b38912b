"""What the layers of a model are called, told by their parameters."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from torch import Tensor
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.weak import WeakTensorKeyDictionary

from ...._arguments import type_name


class ModelLayer(NamedTuple):
    """One parameter of a model.

    Attributes:
        name: as the model has it; without a model, its number.
        number: its place among the model's parameters; without a model, among those of the first step.
    """

    name: str
    number: int


class ModelLayers:
    """The layers of one model.

    Parameters are told by what they are, not by where they are: DistributedDataParallel puts them into other buckets
    after the first step.

    Attributes:
        named: whether their names are a model's.
    """

    def __init__(self) -> None:
        self.named = False
        self._known: Any = WeakTensorKeyDictionary()  # ModelLayer of each parameter
        self._complete = False

    @property
    def names(self) -> list[str]:
        """Names of the layers known so far."""
        return [layer.name for layer in self._known.values()]

    def register(self, model: Any) -> None:
        """Take the names of a model, in place of what was known.

        Raises:
            TypeError: it is no model.
        """
        if not isinstance(model, Module):
            raise TypeError(f"model is a {type_name(model)}; a torch.nn.Module is allowed")
        inner = model.module if isinstance(model, DistributedDataParallel) else model
        self._known = WeakTensorKeyDictionary()
        for number, (name, parameter) in enumerate(inner.named_parameters()):
            self._known[parameter] = ModelLayer(name, number)
        self.named = self._complete = True

    def of(self, parameters: Sequence[Tensor]) -> list[ModelLayer]:
        """The layers of parameters.

        Raises:
            ValueError: one is not of the model.
        """
        for x in parameters:
            if x not in self._known:
                self._add(x)
        return [self._known[x] for x in parameters]

    def close(self) -> None:
        """Say that all layers have been seen."""
        self._complete = True

    def _add(self, parameter: Tensor) -> None:
        if self._complete:
            of = "the registered model" if self.named else "the model of the first step"
            shape = list(parameter.shape)
            raise ValueError(f"a parameter of shape {shape} is not of {of}; a QuantizedState for each model is allowed")
        number = len(self._known)
        self._known[parameter] = ModelLayer(str(number), number)


def check_names(what: str, names: Iterable[str], layers: ModelLayers) -> None:
    """Raise ValueError unless all names are those of a registered model's layers."""
    unknown = sorted(set(names) - set(layers.names))
    if unknown:
        raise ValueError(
            f"{what} of {unknown[0]!r}: the model has no such parameter; the state of this model is allowed"
        )
