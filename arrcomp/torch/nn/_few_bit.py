"""Activations of `torch.nn` that save few bits per value for the backward pass.

Each is a subclass of PyTorch's module of the same name, with its arguments. In training it calls the function of that
name in `arrcomp.torch.functional`. In evaluation mode (`module.eval()`) it is PyTorch's own, with exact gradients.
Under `torch.no_grad` nothing is saved in either mode.

Activations with a continuous derivative take `bits` (of each index, 1 to 8) or your own `steps` (a `StepFunction`).
Steps are chosen at construction; for other parameters than the defaults they are fitted then: half a second for 3
bits, seconds for 8. There are no weights or buffers, so state dicts do not change.

Arguments of a wrong type raise TypeError, those out of range ValueError.
"""

from typing import TypeVar

from torch import Tensor, nn

from ...activations import StepFunction
from .. import functional
from .._few_bit import few_bit_activation, is_recorded, select_steps

_Self = TypeVar("_Self", bound="FewBit")


class FewBit(nn.Module):
    """Base class of these activations; subclasses inherit from it first, and from PyTorch's module second.

    Attributes:
        steps: the approximation of the derivative.
    """

    steps: StepFunction
    _function: str  # name of an activation without parameters

    @classmethod
    def of(cls: type[_Self], module: nn.Module, bits: int) -> _Self:
        """The few-bit form of a PyTorch module, with its parameters, mode, hooks and other attributes."""
        made = cls.__new__(cls)
        made.__dict__.update(module.__dict__)
        made._choose(bits, None)
        return made

    def _choose(self, bits: int = 3, steps: StepFunction | None = None) -> None:
        self.steps = select_steps(*self._named(), bits, steps)

    def _named(self) -> tuple[str, tuple[float, ...]]:
        """The function's name and its parameters."""
        return self._function, ()

    def forward(self, x: Tensor) -> Tensor:
        """The activation of x, of any shape."""
        if not self.training or not is_recorded(x):
            plain: Tensor = super().forward(x)
            return plain
        return few_bit_activation(x, *self._named(), self.steps.core_parameters(), getattr(self, "inplace", False))

    def extra_repr(self) -> str:
        return ", ".join(part for part in (super().extra_repr(), f"bits={self.steps.bits}") if part)


class GELU(FewBit, nn.GELU):
    """`torch.nn.GELU`, saving `bits` per value."""

    def __init__(self, approximate: str = "none", *, bits: int = 3, steps: StepFunction | None = None) -> None:
        super().__init__(approximate)
        self._choose(bits, steps)

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return functional.gelu_name(self.approximate), ()


class ELU(FewBit, nn.ELU):
    """`torch.nn.ELU`, saving `bits` per value."""

    def __init__(
        self, alpha: float = 1.0, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None
    ) -> None:
        super().__init__(alpha, inplace)
        self._choose(bits, steps)

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "elu", (self.alpha,)


class CELU(FewBit, nn.CELU):
    """`torch.nn.CELU`, saving `bits` per value; alpha is above 0."""

    def __init__(
        self, alpha: float = 1.0, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None
    ) -> None:
        super().__init__(alpha, inplace)
        self._choose(bits, steps)

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "celu", (self.alpha,)


class Softplus(FewBit, nn.Softplus):
    """`torch.nn.Softplus`, saving `bits` per value; beta is above 0."""

    def __init__(
        self, beta: float = 1.0, threshold: float = 20.0, *, bits: int = 3, steps: StepFunction | None = None
    ) -> None:
        super().__init__(beta, threshold)
        self._choose(bits, steps)

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "softplus", (self.beta, self.threshold)


class _WithoutParameters(FewBit):
    """Activations whose only PyTorch argument is `inplace`."""

    def __init__(self, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> None:
        super().__init__(inplace)
        self._choose(bits, steps)


class SiLU(_WithoutParameters, nn.SiLU):
    """`torch.nn.SiLU`, saving `bits` per value."""

    _function = "silu"


class Mish(_WithoutParameters, nn.Mish):
    """`torch.nn.Mish`, saving `bits` per value."""

    _function = "mish"


class SELU(_WithoutParameters, nn.SELU):
    """`torch.nn.SELU`, saving `bits` per value."""

    _function = "selu"


class Hardswish(_WithoutParameters, nn.Hardswish):
    """`torch.nn.Hardswish`, saving `bits` per value."""

    _function = "hardswish"


class _WithoutArguments(FewBit):
    """Activations without PyTorch arguments."""

    def __init__(self, *, bits: int = 3, steps: StepFunction | None = None) -> None:
        super().__init__()
        self._choose(bits, steps)


class Sigmoid(_WithoutArguments, nn.Sigmoid):
    """`torch.nn.Sigmoid`, saving `bits` per value."""

    _function = "sigmoid"


class Tanh(_WithoutArguments, nn.Tanh):
    """`torch.nn.Tanh`, saving `bits` per value."""

    _function = "tanh"


class Softsign(_WithoutArguments, nn.Softsign):
    """`torch.nn.Softsign`, saving `bits` per value."""

    _function = "softsign"


class LogSigmoid(_WithoutArguments, nn.LogSigmoid):
    """`torch.nn.LogSigmoid`, saving `bits` per value."""

    _function = "logsigmoid"


class Tanhshrink(_WithoutArguments, nn.Tanhshrink):
    """`torch.nn.Tanhshrink`, saving `bits` per value."""

    _function = "tanhshrink"
