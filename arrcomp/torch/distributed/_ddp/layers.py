"""Names of a model's layers, found by their parameters."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.weak import WeakTensorKeyDictionary

from ...._arguments import wrong_type


class ModelLayer(NamedTuple):
    """One parameter of a model: its name, and its index among the model's parameters.

    Without a model, the index is that among the parameters of the first step, and the name is the index.
    """

    name: str
    number: int


class ModelLayers:
    """The layers of one model; `named` if their names are those of a model.

    They are found by their parameters' identity, since DistributedDataParallel rebuilds its buckets after the first
    step.
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
        """Use the names of a model, and forget all others."""
        if not isinstance(model, Module):
            raise wrong_type("model", "a torch.nn.Module", model)
        inner = model.module if isinstance(model, DistributedDataParallel) else model
        self._known = WeakTensorKeyDictionary()
        for number, (name, parameter) in enumerate(inner.named_parameters()):
            self._known[parameter] = ModelLayer(name, number)
        self.named = self._complete = True

    def of(self, parameters: Sequence[Tensor]) -> list[ModelLayer]:
        """The layers of parameters, which must be in the model."""
        for x in parameters:
            if x not in self._known:
                self._add(x)
        return [self._known[x] for x in parameters]

    def close(self) -> None:
        """Refuse parameters that are unknown so far."""
        self._complete = True

    def _add(self, parameter: Tensor) -> None:
        if self._complete:
            known = "the registered model" if self.named else "the first step"
            raise ValueError(
                f"state: expected parameters of {known}, got another one of shape {list(parameter.shape)}; each model "
                "needs its own QuantizedState"
            )
        number = len(self._known)
        self._known[parameter] = ModelLayer(str(number), number)
