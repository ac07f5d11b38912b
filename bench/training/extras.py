"""Compression that saves memory while a model trains, beside what is simulated."""

import contextlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from arrcomp._arguments import checked_integer, checked_real
from arrcomp.codecs import Codec
from arrcomp.torch._saved_activations import compressed_activations
from arrcomp.torch.nn import convert, convert_linear
from arrcomp.torch.optim import CompressedOptimizer
from training.settings import Settings


@dataclass(frozen=True)
class Extras:
    """Parts of `arrcomp.torch` that a run uses for real.

    Args:
        activation_bits: activations keep so many bits for the backward pass, 1 to 8 (`arrcomp.torch.nn.convert`).
        randomized_linear: linear layers keep this share of their inputs' rows, above 0 and at most 1
            (`arrcomp.torch.nn.convert_linear`).
        optimizer_state: "8bit" to keep the optimizer's state in 8 bits (`arrcomp.torch.CompressedOptimizer`).
        saved_activations: a codec for what is saved for the backward pass (`arrcomp.torch.compressed_activations`).

    Raises:
        TypeError, ValueError: one is not allowed.
    """

    activation_bits: int | None = None
    randomized_linear: float | None = None
    optimizer_state: str | None = None
    saved_activations: Codec | None = None

    def __post_init__(self) -> None:
        if self.activation_bits is not None:
            checked_integer("activation_bits", self.activation_bits, 1, 8)
        if self.randomized_linear is not None:
            ratio = checked_real("randomized_linear", self.randomized_linear, "a number above 0 and at most 1")
            if ratio > 1:
                raise ValueError(f"randomized_linear: expected a number above 0 and at most 1, got {ratio!r}")
        if self.optimizer_state not in (None, "8bit"):
            raise ValueError(f"optimizer_state: expected '8bit', got {self.optimizer_state!r}")

    def check(self, settings: Settings) -> None:
        """Raise ValueError where a run would compress the optimizer's state twice."""
        simulated = [name for name, codec in settings.codecs.items() if codec and name.startswith("optimizer")]
        if self.optimizer_state is not None and simulated:
            hint = "leave the optimizer out of the structures, as weights,gradients,forward,backward"
            left = f"it leaves nothing to compress for {simulated[0]}; {hint}"
            raise ValueError(f"optimizer_state={self.optimizer_state!r}: {left}")

    def converted(self, model: nn.Module) -> nn.Module:
        """The model with other activations and linear layers."""
        if self.activation_bits is not None:
            model = convert(model, bits=self.activation_bits)
        if self.randomized_linear is not None:
            model = convert_linear(model, proj_dim_ratio=self.randomized_linear)
        return model

    def wrap(self, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """The optimizer with its state compressed."""
        return optimizer if self.optimizer_state is None else CompressedOptimizer.eight_bit(optimizer)

    def saved(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which what is saved for the backward pass is compressed."""
        codec = self.saved_activations
        return contextlib.nullcontext() if codec is None else compressed_activations(codec)
