"""Activations of `torch.nn` that save few bits per value for the backward pass; and `Stepwise`.

Each is a subclass of PyTorch's module of the same name, with its arguments. In training it calls the function of that
name in `arrcomp.torch.functional`. In evaluation mode (`module.eval()`) it is PyTorch's own, with exact gradients.
Under `torch.no_grad` nothing is saved in either mode.

Activations with a continuous derivative take `bits` (of each index, 1 to 8) or your own `steps` (a `StepFunction`).
Steps are chosen at construction; for other parameters than the defaults they are fitted then: half a second for 3
bits, seconds for 8. Piecewise linear activations save 1 bit, and their gradients are exact. There are no weights or
buffers, so state dicts do not change.

Arguments of a wrong type raise TypeError, those out of range ValueError.
"""

from collections.abc import Callable
from typing import TypeVar

from torch import Tensor, nn

from ..._arguments import wrong_type
from ...activations import StepFunction
from .. import functional
from .._few_bit import check_not_bits, checked_steps, few_bit_activation, is_recorded, select_steps

_Self = TypeVar("_Self", bound="FewBit")


class FewBit(nn.Module):
    """Base class of these activations; subclasses inherit from it first, and from PyTorch's module second.

    Attributes:
        steps: the approximation of the derivative.
        converted_from: the class that `convert` replaced; empty if it did not make this module.
    """

    steps: StepFunction
    converted_from = ""
    _function = ""
    _parameters_of: tuple[str, ...] = ()

    def __init_subclass__(cls, function: str | None = None, parameters: tuple[str, ...] | None = None) -> None:
        """A subclass with the name of its function, and the attributes that are the function's parameters."""
        super().__init_subclass__()
        cls._function = cls._function if function is None else function
        cls._parameters_of = cls._parameters_of if parameters is None else parameters

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
        return self._function, tuple([getattr(self, name) for name in self._parameters_of])

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


class _WithAlpha(FewBit, parameters=("alpha",)):
    """Activations whose PyTorch arguments are `alpha` and `inplace`."""

    def __init__(
        self, alpha: float = 1.0, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None
    ) -> None:
        super().__init__(alpha, inplace)
        self._choose(bits, steps)


class ELU(_WithAlpha, nn.ELU, function="elu"):
    """`torch.nn.ELU`, saving `bits` per value."""


class CELU(_WithAlpha, nn.CELU, function="celu"):
    """`torch.nn.CELU`, saving `bits` per value; alpha is above 0."""


class Softplus(FewBit, nn.Softplus, function="softplus", parameters=("beta", "threshold")):
    """`torch.nn.Softplus`, saving `bits` per value; beta is above 0."""

    def __init__(
        self, beta: float = 1.0, threshold: float = 20.0, *, bits: int = 3, steps: StepFunction | None = None
    ) -> None:
        super().__init__(beta, threshold)
        self._choose(bits, steps)


class _WithoutParameters(FewBit):
    """Activations whose only PyTorch argument is `inplace`."""

    def __init__(self, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> None:
        check_not_bits("inplace", inplace, bool, "True or False")
        super().__init__(inplace)
        self._choose(bits, steps)


class SiLU(_WithoutParameters, nn.SiLU, function="silu"):
    """`torch.nn.SiLU`, saving `bits` per value."""


class Mish(_WithoutParameters, nn.Mish, function="mish"):
    """`torch.nn.Mish`, saving `bits` per value."""


class SELU(_WithoutParameters, nn.SELU, function="selu"):
    """`torch.nn.SELU`, saving `bits` per value."""


class Hardswish(_WithoutParameters, nn.Hardswish, function="hardswish"):
    """`torch.nn.Hardswish`, saving `bits` per value."""


class _WithoutArguments(FewBit):
    """Activations without PyTorch arguments."""

    def __init__(self, *, bits: int = 3, steps: StepFunction | None = None) -> None:
        super().__init__()
        self._choose(bits, steps)


class Sigmoid(_WithoutArguments, nn.Sigmoid, function="sigmoid"):
    """`torch.nn.Sigmoid`, saving `bits` per value."""


class Tanh(_WithoutArguments, nn.Tanh, function="tanh"):
    """`torch.nn.Tanh`, saving `bits` per value."""


class Softsign(_WithoutArguments, nn.Softsign, function="softsign"):
    """`torch.nn.Softsign`, saving `bits` per value."""


class LogSigmoid(_WithoutArguments, nn.LogSigmoid, function="logsigmoid"):
    """`torch.nn.LogSigmoid`, saving `bits` per value."""


class Tanhshrink(_WithoutArguments, nn.Tanhshrink, function="tanhshrink"):
    """`torch.nn.Tanhshrink`, saving `bits` per value."""


class _Piecewise(FewBit):
    """Piecewise linear activations whose only PyTorch argument is `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        self._choose()


class ReLU(_Piecewise, nn.ReLU, function="relu"):
    """`torch.nn.ReLU`, saving 1 bit per value."""


class ReLU6(_Piecewise, nn.ReLU6, function="relu6"):
    """`torch.nn.ReLU6`, saving 1 bit per value."""


class Hardsigmoid(_Piecewise, nn.Hardsigmoid, function="hardsigmoid"):
    """`torch.nn.Hardsigmoid`, saving 1 bit per value."""


class LeakyReLU(FewBit, nn.LeakyReLU, function="leaky_relu", parameters=("negative_slope",)):
    """`torch.nn.LeakyReLU`, saving 1 bit per value."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(negative_slope, inplace)
        self._choose()


class Threshold(FewBit, nn.Threshold, function="threshold", parameters=("threshold", "value")):
    """`torch.nn.Threshold`, saving 1 bit per value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold, value, inplace)
        self._choose()


class Hardtanh(FewBit, nn.Hardtanh, function="hardtanh", parameters=("min_val", "max_val")):
    """`torch.nn.Hardtanh`, saving 1 bit per value."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(min_val, max_val, inplace)
        self._choose()


class _Shrink(FewBit, parameters=("lambd",)):
    """Piecewise linear activations whose PyTorch argument is `lambd`."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd)
        self._choose()


class Hardshrink(_Shrink, nn.Hardshrink, function="hardshrink"):
    """`torch.nn.Hardshrink`, saving 1 bit per value; lambd is 0 or above."""


class Softshrink(_Shrink, nn.Softshrink, function="softshrink"):
    """`torch.nn.Softshrink`, saving 1 bit per value; lambd is 0 or above."""


class Stepwise(nn.Module):
    """Your own elementwise function, saving `steps.bits` per value in training.

    Arguments are those of `arrcomp.torch.functional.stepwise`.
    """

    converted_from = ""

    def __init__(self, function: Callable[[Tensor], Tensor], steps: StepFunction) -> None:
        super().__init__()
        if not callable(function):
            raise wrong_type("function", "a function of a tensor", function)
        self.function = function
        self.steps = checked_steps(steps)

    def forward(self, x: Tensor) -> Tensor:
        """The function of x, of any shape."""
        return functional.stepwise(x, self.function, self.steps) if self.training else self.function(x)

    def extra_repr(self) -> str:
        return f"{getattr(self.function, '__name__', self.function)}, bits={self.steps.bits}"
