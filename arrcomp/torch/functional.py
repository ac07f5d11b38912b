"""Activations as of `torch.nn.functional` that keep few bits of their input for the backward pass.

The values are PyTorch's, but for rounding. The gradient is the incoming one times a level, one of few that stand for
the derivative, and kept is the level's index: `bits` for each value, packed. Functions that are linear in pieces have
exact derivatives with 1 bit. Where nothing is recorded (`torch.no_grad`, inputs that need no gradient, forward mode)
nothing is kept, and PyTorch's own functions do the work.

All take float16, bfloat16, float32 and float64, of any shape, and these arguments besides PyTorch's:

- bits: of each index, 1 to 8. The steps are the best for normal inputs (`arrcomp.activations.steps_of`); for other
  parameters than the default ones they are fitted in the first call, in half a second for 3 bits, seconds for 8.
- steps: a `arrcomp.activations.StepFunction` of your own, instead of those for `bits`.

With `inplace` the input gets the values, as in PyTorch, after they have been calculated elsewhere.

Arguments of a wrong type raise TypeError, those out of range ValueError. Second derivatives with respect to the input
are 0, as those of steps are.

Beside them is `randomized_linear`, which keeps few rows of its input.

Reference: G. Novikov et al., "Few-bit backward", arXiv:2202.00441.
"""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as plain
from torch import Tensor

from .._arguments import check_choice
from ..activations import StepFunction
from ._few_bit import activated, activated_by, checked_steps, is_recorded, numbers_of
from ._randomized_linear import randomized_linear as randomized_linear


def gelu(x: Tensor, approximate: str = "none", *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.gelu`, keeping `bits` for each value; approximate: "none" or "tanh"."""
    function = gelu_name(approximate)
    return _few_bit(lambda x: plain.gelu(x, approximate=approximate), x, function, (), bits, steps)


def silu(x: Tensor, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.silu`, keeping `bits` for each value."""
    return _few_bit(plain.silu, x, "silu", (), bits, steps, inplace)


def mish(x: Tensor, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.mish`, keeping `bits` for each value."""
    return _few_bit(plain.mish, x, "mish", (), bits, steps, inplace)


def sigmoid(x: Tensor, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.sigmoid`, keeping `bits` for each value."""
    return _few_bit(plain.sigmoid, x, "sigmoid", (), bits, steps)


def tanh(x: Tensor, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.tanh`, keeping `bits` for each value."""
    return _few_bit(plain.tanh, x, "tanh", (), bits, steps)


def softplus(
    x: Tensor, beta: float = 1.0, threshold: float = 20.0, *, bits: int = 3, steps: StepFunction | None = None
) -> Tensor:
    """`torch.nn.functional.softplus`, keeping `bits` for each value; beta is above 0."""
    return _few_bit(plain.softplus, x, "softplus", (beta, threshold), bits, steps)


def softsign(x: Tensor, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.softsign`, keeping `bits` for each value."""
    return _few_bit(plain.softsign, x, "softsign", (), bits, steps)


def elu(
    x: Tensor, alpha: float = 1.0, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None
) -> Tensor:
    """`torch.nn.functional.elu`, keeping `bits` for each value."""
    return _few_bit(plain.elu, x, "elu", (alpha,), bits, steps, inplace)


def celu(
    x: Tensor, alpha: float = 1.0, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None
) -> Tensor:
    """`torch.nn.functional.celu`, keeping `bits` for each value; alpha is above 0."""
    return _few_bit(plain.celu, x, "celu", (alpha,), bits, steps, inplace)


def selu(x: Tensor, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.selu`, keeping `bits` for each value."""
    return _few_bit(plain.selu, x, "selu", (), bits, steps, inplace)


def logsigmoid(x: Tensor, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.logsigmoid`, keeping `bits` for each value."""
    return _few_bit(plain.logsigmoid, x, "logsigmoid", (), bits, steps)


def hardswish(x: Tensor, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.hardswish`, keeping `bits` for each value."""
    return _few_bit(plain.hardswish, x, "hardswish", (), bits, steps, inplace)


def tanhshrink(x: Tensor, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.tanhshrink`, keeping `bits` for each value."""
    return _few_bit(plain.tanhshrink, x, "tanhshrink", (), bits, steps)


def relu(x: Tensor, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.relu`, keeping 1 bit for each value."""
    return _few_bit(plain.relu, x, "relu", inplace=inplace)


def relu6(x: Tensor, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.relu6`, keeping 1 bit for each value."""
    return _few_bit(plain.relu6, x, "relu6", inplace=inplace)


def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.leaky_relu`, keeping 1 bit for each value."""
    return _few_bit(plain.leaky_relu, x, "leaky_relu", (negative_slope,), inplace=inplace)


def threshold(x: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.threshold`, keeping 1 bit for each value."""
    return _few_bit(plain.threshold, x, "threshold", (threshold, value), inplace=inplace)


def hardsigmoid(x: Tensor, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.hardsigmoid`, keeping 1 bit for each value."""
    return _few_bit(plain.hardsigmoid, x, "hardsigmoid", inplace=inplace)


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.hardtanh`, keeping 1 bit for each value; max_val is above min_val."""
    return _few_bit(plain.hardtanh, x, "hardtanh", (min_val, max_val), inplace=inplace)


def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """`torch.nn.functional.hardshrink`, keeping 1 bit for each value; lambd is 0 or above."""
    return _few_bit(plain.hardshrink, x, "hardshrink", (lambd,))


def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """`torch.nn.functional.softshrink`, keeping 1 bit for each value; lambd is 0 or above."""
    return _few_bit(plain.softshrink, x, "softshrink", (lambd,))


def stepwise(x: Tensor, function: Callable[[Tensor], Tensor], steps: StepFunction) -> Tensor:
    """A function of your own, keeping `steps.bits` for each value.

    Args:
        x: the input.
        function: gives each value from the one at its place alone; no gradients flow to what else it uses.
        steps: its derivative, as `arrcomp.activations.fit` finds it; for a function that is linear in pieces, exactly.

    Raises:
        TypeError: an argument is of another type, or the function gives something else than a tensor.
        ValueError: the function gives another shape, or no floats.
    """
    parameters = checked_steps(steps).core_parameters()
    return activated_by(x, function, parameters) if is_recorded(x) else function(x)


def gelu_name(approximate: str) -> str:
    """The name of this kind of gelu.

    Raises:
        TypeError, ValueError: there is none.
    """
    check_choice("approximate", approximate, ("none", "tanh"))
    return "gelu" if approximate == "none" else "gelu_tanh"


def _few_bit(
    plain_function: Callable[..., Tensor],
    x: Tensor,
    function: str,
    parameters: tuple[Any, ...] = (),
    bits: int = 3,
    steps: StepFunction | None = None,
    inplace: bool | None = None,
) -> Tensor:
    """PyTorch's own function where nothing is recorded, else the one that keeps steps; `inplace` if it takes that."""
    values, chosen = numbers_of(function, parameters, bits, steps)
    if not is_recorded(x):
        return plain_function(x, *parameters, *([] if inplace is None else [inplace]))
    return activated(x, function, values, chosen, bool(inplace))
