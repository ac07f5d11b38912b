"""What a model is to the training harness."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import nn

from .registry import Registry


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
        """The model with new weights, which gives float tensors of shape (batch, inputs.outputs).

        Args:
            inputs: `Images` or `Tokens`, by `kind`.
        """


MODELS: Registry[Model] = Registry("model")
