"""Piecewise linear activations of `torch.nn` that save 1 bit per value, with exact gradients; and `Stepwise`.

Each is a subclass of PyTorch's module of the same name, with its arguments. `_few_bit` describes the modes.
"""

from collections.abc import Callable

from torch import Tensor, nn

from ..._arguments import wrong_type
from ...activations import StepFunction
from .. import functional
from .._few_bit import checked_steps
from ._few_bit import FewBit


class ReLU(FewBit, nn.ReLU):
    """`torch.nn.ReLU`, saving 1 bit per value."""

    _function = "relu"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        self._choose()


class ReLU6(FewBit, nn.ReLU6):
    """`torch.nn.ReLU6`, saving 1 bit per value."""

    _function = "relu6"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        self._choose()


class LeakyReLU(FewBit, nn.LeakyReLU):
    """`torch.nn.LeakyReLU`, saving 1 bit per value."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(negative_slope, inplace)
        self._choose()

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "leaky_relu", (self.negative_slope,)


class Threshold(FewBit, nn.Threshold):
    """`torch.nn.Threshold`, saving 1 bit per value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold, value, inplace)
        self._choose()

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "threshold", (self.threshold, self.value)


class Hardsigmoid(FewBit, nn.Hardsigmoid):
    """`torch.nn.Hardsigmoid`, saving 1 bit per value."""

    _function = "hardsigmoid"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        self._choose()


class Hardtanh(FewBit, nn.Hardtanh):
    """`torch.nn.Hardtanh`, saving 1 bit per value."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(min_val, max_val, inplace)
        self._choose()

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "hardtanh", (self.min_val, self.max_val)


class Hardshrink(FewBit, nn.Hardshrink):
    """`torch.nn.Hardshrink`, saving 1 bit per value; lambd is 0 or above."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd)
        self._choose()

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "hardshrink", (self.lambd,)


class Softshrink(FewBit, nn.Softshrink):
    """`torch.nn.Softshrink`, saving 1 bit per value; lambd is 0 or above."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd)
        self._choose()

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "softshrink", (self.lambd,)


class Stepwise(nn.Module):
    """Your own elementwise function, saving `steps.bits` per value in training: `arrcomp.torch.functional.stepwise`.

    Args:
        function: an elementwise function. No gradients flow to other tensors that it uses.
        steps: its derivative, for instance from `arrcomp.activations.fit`; exact for a piecewise linear function.

    Raises:
        TypeError: an argument has a wrong type.
    """

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
