"""Activations that save a few bits per value for the backward pass; shared by `functional` and `nn`.

The derivative is a level of a `StepFunction`, whose packed index is saved. The second derivative is 0.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._arguments import wrong_type
from ..activations import StepFunction, activation, steps_of
from ._few_bit_ops import activate_op, grad_from_packed, save_packed
from ._kernels import Floats
from ._ops import needs_function
from ._tensors import FLOATS, check_floating, check_tensor, constant_result, constants

Function = Callable[[Tensor], Tensor]


class _FewBit(torch.autograd.Function):
    """A function or activation with `torch.func` derivatives, which `torch.library` operators cannot have."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, function: str | Function, parameters: Floats, steps: Floats) -> tuple[Tensor, Tensor]:
        values, packed = activate_op(x, function if isinstance(function, str) else "", parameters, steps)
        return values if isinstance(function, str) else _checked(function(x), x), packed

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        save_packed(context, output[1], inputs[-1:])

    @staticmethod
    def backward(context: Any, gradient: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
        return grad_from_packed(context, gradient), None, None, None


_apply: Any = _FewBit.apply


def few_bit_activation(x: Tensor, function: str, parameters: Floats, steps: Floats, inplace: bool = False) -> Tensor:
    """An activation of `arrcomp.activations.ACTIVATIONS` that saves only the packed indices of its steps.

    `steps` are `core_parameters()` of the step function. `inplace` also writes the result to x, and returns x.
    """
    operator = _apply if needs_function(x) else activate_op
    check_floating("x", x)
    order = _order(x)
    y: Tensor = operator(_permuted(x, order), function, constants(parameters), constants(steps))[0]
    y = _permuted(y, _inverse(order))
    return x.copy_(y) if inplace else y


def few_bit_function(x: Tensor, function: Function, steps: Floats) -> Tensor:
    """Same as `few_bit_activation`, for a user's function."""
    check_floating("x", x)
    y: Tensor = _apply(x, function, (), constants(steps))[0]
    return y


def check_not_bits(name: str, value: object, kind: Any, expected: str) -> None:
    """Raise TypeError if PyTorch's first argument is a number: in FewBit that is the number of bits."""
    if isinstance(value, int) and not isinstance(value, kind):
        raise TypeError(f"{wrong_type(name, expected, value)}; pass the number of bits by name, bits={value}")


def is_recorded(x: Any) -> bool:
    """Whether autograd records the call with the argument `x`. TypeError if that is no tensor."""
    check_tensor("x", x)
    return torch.is_grad_enabled() and x.requires_grad


def select_steps(
    function: str, parameters: tuple[Any, ...], bits: int = 3, steps: StepFunction | None = None
) -> StepFunction:
    """`steps`, or those of the activation if None."""
    values = activation(function).checked(parameters)
    return steps_of(function, values, bits) if steps is None else checked_steps(steps)


def checked_steps(steps: object) -> StepFunction:
    """`steps`, if it is a StepFunction; else TypeError."""
    if not isinstance(steps, StepFunction):
        raise wrong_type("steps", "a StepFunction", steps)
    return steps


# Compilers cannot trace caches.


@constant_result
def _cached_parameters(function: str, parameters: tuple[Any, ...], bits: int) -> tuple[Floats, Floats]:
    values = activation(function).checked(parameters)
    return values, steps_of(function, values, bits).core_parameters()


@constant_result
def _cached_values(function: str, parameters: tuple[Any, ...]) -> Floats:
    return activation(function).checked(parameters)


def step_parameters(
    function: str, parameters: tuple[Any, ...], bits: int, steps: StepFunction | None
) -> tuple[Floats, Floats]:
    """The checked parameters, and `core_parameters()` of `select_steps`. Works in compiled code."""
    given = tuple(constants(parameters))
    if steps is None:
        return _cached_parameters(function, given, bits)
    return _cached_values(function, given), checked_steps(steps).core_parameters()


def _order(x: Tensor) -> tuple[int, ...] | None:
    """The dimensions in memory order, if x is in a channels-last format; else None.

    The result gets the format of x, so that neither it nor the gradient is copied.
    """
    layouts = {4: torch.channels_last, 5: torch.channels_last_3d}
    if x.dim() not in layouts or x.is_contiguous() or not x.is_contiguous(memory_format=layouts[x.dim()]):
        return None
    return (0, *range(2, x.dim()), 1)


def _inverse(order: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if order is None else (0, len(order) - 1, *range(1, len(order) - 1))


def _permuted(x: Tensor, order: tuple[int, ...] | None) -> Tensor:
    return x if order is None else x.permute(order)


def _checked(y: object, x: Tensor) -> Tensor:
    if not isinstance(y, Tensor):
        raise wrong_type("function(x)", "a tensor", y)
    if y.shape != x.shape or y.dtype not in FLOATS:  # autocast may have chosen another dtype
        got = f"{y.dtype} of shape {tuple(y.shape)}"
        raise ValueError(f"function(x): expected floats of shape {tuple(x.shape)}, got {got}")
    return y
