"""Activations as of `torch.nn` that keep few bits of their input for the backward pass.

Each is a subclass of PyTorch's module of that name, with its arguments, and in training gives what the function of that
name in `arrcomp.torch.functional` does. In evaluation mode (`module.eval()`) it is PyTorch's own, whose gradient is
exact, and under `torch.no_grad` nothing is kept in either mode.

Those whose derivative is continuous take `bits` (of each index, 1 to 8) or `steps` (a `StepFunction` of your own
instead). Their steps are chosen at construction; for other parameters than the default ones they are fitted then, in
half a second for 3 bits, seconds for 8. There are no weights or buffers: state dicts are those of PyTorch's modules.

Arguments of a wrong type raise TypeError, those out of range ValueError.
"""

from typing import TypeVar

from torch import Tensor, nn

from ...activations import StepFunction
from .. import functional
from .._few_bit import activated, chosen_steps, is_recorded

_Self = TypeVar("_Self", bound="FewBit")


class FewBit(nn.Module):
    """What the activations of this package share; they inherit from it first, and from PyTorch's module second.

    Attributes:
        steps: what stands for the derivative.
    """

    steps: StepFunction
    _function: str  # of those without parameters

    @classmethod
    def of(cls: type[_Self], module: nn.Module, bits: int) -> _Self:
        """The same as PyTorch's module, with its parameters, mode, hooks and whatever else was put into it."""
        made = cls.__new__(cls)
        made.__dict__.update(module.__dict__)
        made._choose(bits, None)
        return made

    def _choose(self, bits: int = 3, steps: StepFunction | None = None) -> None:
        self.steps = chosen_steps(*self._named(), bits, steps)

    def _named(self) -> tuple[str, tuple[float, ...]]:
        """The function's name and its parameters."""
        return self._function, ()

    def forward(self, x: Tensor) -> Tensor:
        """The activation of x, of any shape."""
        if not self.training or not is_recorded(x):
            plain: Tensor = super().forward(x)
            return plain
        return activated(x, *self._named(), self.steps.core_parameters(), getattr(self, "inplace", False))

    def extra_repr(self) -> str:
        return ", ".join(part for part in (super().extra_repr(), f"bits={self.steps.bits}") if part)


class GELU(FewBit, nn.GELU):
    """`torch.nn.GELU`, keeping `bits` for each value."""

    def __init__(self, approximate: str = "none", *, bits: int = 3, steps: StepFunction | None = None) -> None:
        super().__init__(approximate)
        self._choose(bits, steps)

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return functional.gelu_name(self.approximate), ()


class ELU(FewBit, nn.ELU):
    """`torch.nn.ELU`, keeping `bits` for each value."""

    def __init__(
        self, alpha: float = 1.0, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None
    ) -> None:
        super().__init__(alpha, inplace)
        self._choose(bits, steps)

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "elu", (self.alpha,)


class CELU(FewBit, nn.CELU):
    """`torch.nn.CELU`, keeping `bits` for each value; alpha is above 0."""

    def __init__(
        self, alpha: float = 1.0, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None
    ) -> None:
        super().__init__(alpha, inplace)
        self._choose(bits, steps)

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "celu", (self.alpha,)


class Softplus(FewBit, nn.Softplus):
    """`torch.nn.Softplus`, keeping `bits` for each value; beta is above 0."""

    def __init__(
        self, beta: float = 1.0, threshold: float = 20.0, *, bits: int = 3, steps: StepFunction | None = None
    ) -> None:
        super().__init__(beta, threshold)
        self._choose(bits, steps)

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "softplus", (self.beta, self.threshold)


class _WithoutParameters(FewBit):
    """Those whose only argument of PyTorch's is `inplace`."""

    def __init__(self, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> None:
        super().__init__(inplace)
        self._choose(bits, steps)


class SiLU(_WithoutParameters, nn.SiLU):
    """`torch.nn.SiLU`, keeping `bits` for each value."""

    _function = "silu"


class Mish(_WithoutParameters, nn.Mish):
    """`torch.nn.Mish`, keeping `bits` for each value."""

    _function = "mish"


class SELU(_WithoutParameters, nn.SELU):
    """`torch.nn.SELU`, keeping `bits` for each value."""

    _function = "selu"


class Hardswish(_WithoutParameters, nn.Hardswish):
    """`torch.nn.Hardswish`, keeping `bits` for each value."""

    _function = "hardswish"


class _WithoutArguments(FewBit):
    """Those to which PyTorch gives no arguments."""

    def __init__(self, *, bits: int = 3, steps: StepFunction | None = None) -> None:
        super().__init__()
        self._choose(bits, steps)


class Sigmoid(_WithoutArguments, nn.Sigmoid):
    """`torch.nn.Sigmoid`, keeping `bits` for each value."""

    _function = "sigmoid"


class Tanh(_WithoutArguments, nn.Tanh):
    """`torch.nn.Tanh`, keeping `bits` for each value."""

    _function = "tanh"


class Softsign(_WithoutArguments, nn.Softsign):
    """`torch.nn.Softsign`, keeping `bits` for each value."""

    _function = "softsign"


class LogSigmoid(_WithoutArguments, nn.LogSigmoid):
    """`torch.nn.LogSigmoid`, keeping `bits` for each value."""

    _function = "logsigmoid"


class Tanhshrink(_WithoutArguments, nn.Tanhshrink):
    """`torch.nn.Tanhshrink`, keeping `bits` for each value."""

    _function = "tanhshrink"
