"""Activations as of `torch.nn` that are linear in pieces: they keep 1 bit of each value, and gradients are exact.

Each is a subclass of PyTorch's module of that name, with its arguments; see `activations` for the modes. And
`Stepwise`, which takes any function and any steps.
"""

from collections.abc import Callable

from torch import Tensor, nn

from ...activations import StepFunction
from .. import functional
from .._few_bit import checked_steps
from ._few_bit import FewBit


class ReLU(FewBit, nn.ReLU):
    """`torch.nn.ReLU`, keeping 1 bit for each value."""

    _function = "relu"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        self._choose()


class ReLU6(FewBit, nn.ReLU6):
    """`torch.nn.ReLU6`, keeping 1 bit for each value."""

    _function = "relu6"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        self._choose()


class LeakyReLU(FewBit, nn.LeakyReLU):
    """`torch.nn.LeakyReLU`, keeping 1 bit for each value."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(negative_slope, inplace)
        self._choose()

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "leaky_relu", (self.negative_slope,)


class Threshold(FewBit, nn.Threshold):
    """`torch.nn.Threshold`, keeping 1 bit for each value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold, value, inplace)
        self._choose()

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "threshold", (self.threshold, self.value)


class Hardsigmoid(FewBit, nn.Hardsigmoid):
    """`torch.nn.Hardsigmoid`, keeping 1 bit for each value."""

    _function = "hardsigmoid"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        self._choose()


class Hardtanh(FewBit, nn.Hardtanh):
    """`torch.nn.Hardtanh`, keeping 1 bit for each value."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(min_val, max_val, inplace)
        self._choose()

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "hardtanh", (self.min_val, self.max_val)


class Hardshrink(FewBit, nn.Hardshrink):
    """`torch.nn.Hardshrink`, keeping 1 bit for each value; lambd is 0 or above."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd)
        self._choose()

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "hardshrink", (self.lambd,)


class Softshrink(FewBit, nn.Softshrink):
    """`torch.nn.Softshrink`, keeping 1 bit for each value; lambd is 0 or above."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd)
        self._choose()

    def _named(self) -> tuple[str, tuple[float, ...]]:
        return "softshrink", (self.lambd,)


class Stepwise(nn.Module):
    """A function of your own, keeping `steps.bits` for each value in training (`arrcomp.torch.functional.stepwise`).

    Args:
        function: gives each value from the one at its place alone; no gradients flow to what else it uses.
        steps: its derivative, as `arrcomp.activations.fit` finds it; for a function that is linear in pieces, exactly.

    Raises:
        TypeError: an argument is of another type.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], steps: StepFunction) -> None:
        super().__init__()
        if not callable(function):
            raise TypeError(f"function is a {type(function).__name__}; a function of tensors is allowed")
        self.function = function
        self.steps = checked_steps(steps)

    def forward(self, x: Tensor) -> Tensor:
        """The function of x, of any shape."""
        return functional.stepwise(x, self.function, self.steps) if self.training else self.function(x)

    def extra_repr(self) -> str:
        return f"{getattr(self.function, '__name__', self.function)}, bits={self.steps.bits}"
