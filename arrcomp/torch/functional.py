"""Activations of `torch.nn.functional` that save few bits per value for the backward pass, and `randomized_linear`.

The values are PyTorch's, up to rounding. The derivative is approximated by a step function, and only the packed index
of its level is saved: `bits` per value. Piecewise linear functions have exact derivatives with 1 bit. Where autograd
does not record (`torch.no_grad`, inputs that need no gradient, forward mode), PyTorch's own functions are called.

All take float16, bfloat16, float32 and float64, of any shape, and two arguments besides PyTorch's:

- bits: of each index, 1 to 8. The steps are optimal for normally distributed inputs (`arrcomp.activations.steps_of`).
  For other parameters than the defaults, the first call fits them: half a second for 3 bits, seconds for 8.
- steps: your own `arrcomp.activations.StepFunction`, instead of those for `bits`.

With `inplace` the input gets the values, as in PyTorch; they are computed in a temporary tensor.

Arguments of a wrong type raise TypeError, those out of range ValueError. Second derivatives with respect to the input
are 0.

Reference: G. Novikov et al., "Few-bit backward", arXiv:2202.00441.
"""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as plain
from torch import Tensor

from .._arguments import check_choice
from ..activations import StepFunction
from ._few_bit import check_not_bits, checked_steps, few_bit_activation, few_bit_function, is_recorded, step_parameters
from ._randomized_linear import randomized_linear

__all__ = [
    "celu",
    "elu",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "randomized_linear",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "stepwise",
    "tanh",
    "tanhshrink",
    "threshold",
]


def gelu(x: Tensor, approximate: str = "none", *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.gelu`, saving `bits` per value; approximate: "none" or "tanh"."""
    function = gelu_name(approximate)
    return _few_bit(lambda x: plain.gelu(x, approximate=approximate), x, function, (), bits, steps)


def silu(x: Tensor, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.silu`, saving `bits` per value."""
    return _few_bit(plain.silu, x, "silu", (), bits, steps, inplace)


def mish(x: Tensor, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.mish`, saving `bits` per value."""
    return _few_bit(plain.mish, x, "mish", (), bits, steps, inplace)


def sigmoid(x: Tensor, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.sigmoid`, saving `bits` per value."""
    return _few_bit(plain.sigmoid, x, "sigmoid", (), bits, steps)


def tanh(x: Tensor, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.tanh`, saving `bits` per value."""
    return _few_bit(plain.tanh, x, "tanh", (), bits, steps)


def softplus(
    x: Tensor, beta: float = 1.0, threshold: float = 20.0, *, bits: int = 3, steps: StepFunction | None = None
) -> Tensor:
    """`torch.nn.functional.softplus`, saving `bits` per value; beta is above 0."""
    return _few_bit(plain.softplus, x, "softplus", (beta, threshold), bits, steps)


def softsign(x: Tensor, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.softsign`, saving `bits` per value."""
    return _few_bit(plain.softsign, x, "softsign", (), bits, steps)


def elu(
    x: Tensor, alpha: float = 1.0, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None
) -> Tensor:
    """`torch.nn.functional.elu`, saving `bits` per value."""
    return _few_bit(plain.elu, x, "elu", (alpha,), bits, steps, inplace)


def celu(
    x: Tensor, alpha: float = 1.0, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None
) -> Tensor:
    """`torch.nn.functional.celu`, saving `bits` per value; alpha is above 0."""
    return _few_bit(plain.celu, x, "celu", (alpha,), bits, steps, inplace)


def selu(x: Tensor, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.selu`, saving `bits` per value."""
    return _few_bit(plain.selu, x, "selu", (), bits, steps, inplace)


def logsigmoid(x: Tensor, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.logsigmoid`, saving `bits` per value."""
    return _few_bit(plain.logsigmoid, x, "logsigmoid", (), bits, steps)


def hardswish(x: Tensor, inplace: bool = False, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.hardswish`, saving `bits` per value."""
    return _few_bit(plain.hardswish, x, "hardswish", (), bits, steps, inplace)


def tanhshrink(x: Tensor, *, bits: int = 3, steps: StepFunction | None = None) -> Tensor:
    """`torch.nn.functional.tanhshrink`, saving `bits` per value."""
    return _few_bit(plain.tanhshrink, x, "tanhshrink", (), bits, steps)


def relu(x: Tensor, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.relu`, saving 1 bit per value."""
    return _few_bit(plain.relu, x, "relu", inplace=inplace)


def relu6(x: Tensor, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.relu6`, saving 1 bit per value."""
    return _few_bit(plain.relu6, x, "relu6", inplace=inplace)


def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.leaky_relu`, saving 1 bit per value."""
    return _few_bit(plain.leaky_relu, x, "leaky_relu", (negative_slope,), inplace=inplace)


def threshold(x: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.threshold`, saving 1 bit per value."""
    return _few_bit(plain.threshold, x, "threshold", (threshold, value), inplace=inplace)


def hardsigmoid(x: Tensor, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.hardsigmoid`, saving 1 bit per value."""
    return _few_bit(plain.hardsigmoid, x, "hardsigmoid", inplace=inplace)


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.hardtanh`, saving 1 bit per value; max_val is above min_val."""
    return _few_bit(plain.hardtanh, x, "hardtanh", (min_val, max_val), inplace=inplace)


def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """`torch.nn.functional.hardshrink`, saving 1 bit per value; lambd is 0 or above."""
    return _few_bit(plain.hardshrink, x, "hardshrink", (lambd,))


def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """`torch.nn.functional.softshrink`, saving 1 bit per value; lambd is 0 or above."""
    return _few_bit(plain.softshrink, x, "softshrink", (lambd,))


def stepwise(x: Tensor, function: Callable[[Tensor], Tensor], steps: StepFunction) -> Tensor:
    """Your own elementwise function, saving `steps.bits` per value.

    Args:
        x: the input.
        function: an elementwise function. No gradients flow to other tensors that it uses.
        steps: its derivative, for instance from `arrcomp.activations.fit`; exact for a piecewise linear function.

    Raises:
        TypeError: an argument has a wrong type, or the function does not return a tensor.
        ValueError: the function changes the shape, or does not return floats.
    """
    parameters = checked_steps(steps).core_parameters()
    return few_bit_function(x, function, parameters) if is_recorded(x) else function(x)


def gelu_name(approximate: str) -> str:
    """The activation's name for gelu's argument `approximate`.

    Raises:
        TypeError, ValueError: the argument is invalid.
    """
    check_not_bits("approximate", approximate, str, "'none' or 'tanh'")
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
    """The few-bit activation if autograd records, else PyTorch's; `inplace` is None if PyTorch's does not take it."""
    check_not_bits("inplace", inplace, bool | None, "True or False")
    values, chosen = step_parameters(function, parameters, bits, steps)
    if not is_recorded(x):
        return plain_function(x, *parameters, *([] if inplace is None else [inplace]))
    return few_bit_activation(x, function, values, chosen, bool(inplace))
