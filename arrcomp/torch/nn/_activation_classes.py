"""Which classes of activations have a few-bit form, and a report of the activations of a model."""

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..._arguments import wrong_type
from ...activations import StepFunction, fit
from ...codecs._codebook_fit import Array
from . import _few_bit
from ._few_bit import FewBit, Stepwise

Swap = Callable[[nn.Module], nn.Module]
FewBitForm = Callable[[nn.Module, int], nn.Module]  # of a module, with this many bits

# Each few-bit class by PyTorch's of the same name.
REPLACEMENTS: dict[type[nn.Module], type[FewBit]] = {
    getattr(nn, name): kind
    for name, kind in vars(_few_bit).items()
    if hasattr(nn, name) and isinstance(kind, type) and issubclass(kind, FewBit)
}


def quick_gelu(x: Tensor) -> Tensor:
    """The QuickGELU of CLIP: x sigmoid(1.702 x)."""
    return x * torch.sigmoid(1.702 * x)


@functools.cache
def _quick_gelu_steps(bits: int) -> StepFunction:
    def values(x: Array) -> Array:
        y: Array = x * np.exp(-np.logaddexp(0, -1.702 * x))
        return y

    return fit(values, bits, parity="odd")


# Classes of `transformers.activations` by name, as transformers may not be installed. All of the tanh forms of GELU
# are one function: they differ in rounding alone. Missing are functions that have no few-bit form here (ReLU squared,
# Laplace, clipped GELU, xIELU, square root of softplus), and LinearActivation, which saves nothing.
_TRANSFORMERS: dict[str, Callable[[int], nn.Module]] = {
    "GELUActivation": lambda bits: _few_bit.GELU(bits=bits),
    **dict.fromkeys(
        ("NewGELUActivation", "FastGELUActivation", "AccurateGELUActivation", "GELUTanh", "PytorchGELUTanh"),
        lambda bits: _few_bit.GELU("tanh", bits=bits),
    ),
    "QuickGELUActivation": lambda bits: Stepwise(quick_gelu, _quick_gelu_steps(bits)),
    "SiLUActivation": lambda bits: _few_bit.SiLU(bits=bits),
    "MishActivation": lambda bits: _few_bit.Mish(bits=bits),
}
_MODULE_ATTRIBUTES = tuple(vars(nn.Module()))  # mode and hooks
# How classes of activations are called elsewhere.
_ACTIVATION_NAME = re.compile(r"activation$|gelu|silu|swish|relu|mish|snake|sigmoid|tanh|softplus|elu$", re.IGNORECASE)


def few_bit_form(kind: type[nn.Module]) -> FewBitForm | None:
    """The function that makes the few-bit form of a module of this class; None if it has none."""
    if kind in REPLACEMENTS:
        return REPLACEMENTS[kind].of
    known = kind.__module__ == "transformers.activations" and _TRANSFORMERS.get(kind.__qualname__)
    return functools.partial(_of_transformers, known) if known else None


def known_classes() -> str:
    """The classes that have few-bit forms, for messages."""
    names = ", ".join(sorted(kind.__name__ for kind in REPLACEMENTS))
    return f"{names} of torch.nn, or {', '.join(sorted(_TRANSFORMERS))} of transformers"


@dataclass(frozen=True)
class ActivationReport:
    """The activations of a model: numbers of modules, by the names of their classes.

    Attributes:
        converted: those that save few bits, under the names that they had before `convert`.
        left: those that are as they were.
        formless: classes in `left` for which there is no few-bit form; `types` of `convert` takes one.
    """

    converted: Mapping[str, int]
    left: Mapping[str, int]
    formless: frozenset[str]

    def __str__(self) -> str:
        left = {f"{name} (no few-bit form)" if name in self.formless else name: n for name, n in self.left.items()}
        return f"converted: {counted(self.converted)}; left: {counted(left)}"


def activation_report(model: nn.Module) -> ActivationReport:
    """Count the activations of a model that save few bits, and those that do not.

    An activation is a module without children whose class is an elementwise activation of `torch.nn`, or is called
    like one: GELUActivation, Snake1d, MySwish. Functions that `forward` calls are not modules, and not counted.

    Args:
        model: any module; it is not changed.

    Raises:
        TypeError: it is not a module.

    >>> from arrcomp.torch.nn import convert
    >>> print(activation_report(convert(nn.Sequential(nn.Linear(2, 3), nn.GELU(), nn.Linear(3, 3), nn.ReLU()))))
    converted: 1 GELU, 1 ReLU; left: none
    """
    if not isinstance(model, nn.Module):
        raise wrong_type("model", "a torch.nn.Module", model)
    converted, left, formless = Counter[str](), Counter[str](), set[str]()
    for module in model.modules():
        if isinstance(module, FewBit | Stepwise):
            converted[module.converted_from or type(module).__name__] += 1
        elif is_activation(module):
            left[type(module).__name__] += 1
            if few_bit_form(type(module)) is None:
                formless.add(type(module).__name__)
    return ActivationReport(dict(converted), dict(left), frozenset(formless))


def is_activation(module: nn.Module) -> bool:
    """Whether a module looks like an activation that saves its input."""
    kind = type(module)
    if kind.__name__ == "LinearActivation" or next(module.children(), None) is not None:
        return False
    return isinstance(module, (*REPLACEMENTS, nn.PReLU, nn.RReLU)) or bool(_ACTIVATION_NAME.search(kind.__name__))


def counted(names: Mapping[str, int]) -> str:
    """Numbers of classes, as text."""
    return ", ".join(f"{count} {name}" for name, count in names.items()) or "none"


def _of_transformers(make: Callable[[int], nn.Module], module: nn.Module, bits: int) -> nn.Module:
    made = make(bits)
    made.__dict__.update({name: module.__dict__[name] for name in _MODULE_ATTRIBUTES})
    return made
