"""Activations that keep few bits of their input for the backward pass: what functional forms and modules share.

Their derivative is a level of a `StepFunction`, and kept is the packed index of it. Its own derivative is 0.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..activations import StepFunction, activation, steps_of
from ._few_bit_ops import activate_op, keep_made, product
from ._ops import needs_function
from ._tensors import constant_result, constants

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

Numbers = Sequence[float]


class _FewBit(torch.autograd.Function):
    """The operator with the derivatives that operators of `torch.library` cannot have: `torch.func`'s."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, function: str, parameters: Numbers, steps: Numbers) -> tuple[Tensor, Tensor]:
        made: tuple[Tensor, Tensor] = activate_op(x, function, parameters, steps)
        return made

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        keep_made(context, output[1], inputs[-1:])

    @staticmethod
    def backward(context: Any, gradient: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
        return product(context, gradient), None, None, None


class _FewBitOfFunction(torch.autograd.Function):
    """A function of the user's, with steps for its derivative."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, function: Callable[[Tensor], Tensor], steps: Numbers) -> tuple[Tensor, Tensor]:
        packed: Tensor = activate_op(x, "", (), steps)[1]
        return _checked(function(x), x), packed

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        keep_made(context, output[1], inputs[-1:])

    @staticmethod
    def backward(context: Any, gradient: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
        return product(context, gradient), None, None


_apply: Any = _FewBit.apply
_apply_function: Any = _FewBitOfFunction.apply


def activated(x: Tensor, function: str, parameters: Numbers, steps: Numbers, inplace: bool = False) -> Tensor:
    """The activation of x, which keeps the packed indices of its steps alone.

    Args:
        x: float16, bfloat16, float32 or float64, of any shape.
        function: the activation's name, as `arrcomp.activations.ACTIVATIONS` has it.
        parameters: the activation's.
        steps: `core_parameters()` of the steps.
        inplace: x gets the values, too, and is what is given back.

    Raises:
        TypeError: x has another dtype.
    """
    operator = _apply if needs_function(x) else activate_op
    order = _order(_checked_input(x))
    y: Tensor = operator(_permuted(x, order), function, constants(parameters), constants(steps))[0]
    y = _permuted(y, _inverse(order))
    return x.copy_(y) if inplace else y


def activated_by(x: Tensor, function: Callable[[Tensor], Tensor], steps: Numbers) -> Tensor:
    """As `activated`, of a function of the user's.

    Raises:
        TypeError: x has another dtype, or the function gives something else than a tensor.
        ValueError: the function gives another shape, or no floats.
    """
    y: Tensor = _apply_function(_checked_input(x), function, constants(steps))[0]
    return y


def is_recorded(x: Tensor) -> bool:
    """Whether a backward pass may come, for which something has to be kept."""
    return torch.is_grad_enabled() and x.requires_grad


def chosen_steps(
    function: str, parameters: tuple[Any, ...], bits: int = 3, steps: StepFunction | None = None
) -> StepFunction:
    """The user's own steps, or those of the activation.

    Raises:
        TypeError, ValueError: an argument is not allowed.
    """
    values = activation(function).checked(parameters)
    return steps_of(function, values, bits) if steps is None else checked_steps(steps)


def checked_steps(steps: object) -> StepFunction:
    """The steps, if they are.

    Raises:
        TypeError: they are not.
    """
    if not isinstance(steps, StepFunction):
        raise TypeError(f"steps is a {type(steps).__name__}; a StepFunction is allowed")
    return steps


# Compilers do not follow caches.


@constant_result
def _numbers(function: str, parameters: tuple[Any, ...], bits: int) -> tuple[Numbers, Numbers]:
    values = activation(function).checked(parameters)
    return values, steps_of(function, values, bits).core_parameters()


@constant_result
def _values(function: str, parameters: tuple[Any, ...]) -> Numbers:
    return activation(function).checked(parameters)


def numbers_of(
    function: str, parameters: tuple[Any, ...], bits: int, steps: StepFunction | None
) -> tuple[Numbers, Numbers]:
    """The parameters, checked, and `core_parameters()` of `chosen_steps`; in compiled code, too."""
    given = tuple(constants(parameters))
    if steps is None:
        return _numbers(function, given, bits)
    return _values(function, given), checked_steps(steps).core_parameters()


def _order(x: Tensor) -> tuple[int, ...] | None:
    """The dimensions in the order in which x lies in memory, if channels are last; None if it need not be kept.

    Results then lie as inputs do, and neither they nor gradients are copied into another order.
    """
    layouts = {4: torch.channels_last, 5: torch.channels_last_3d}
    if x.dim() not in layouts or x.is_contiguous() or not x.is_contiguous(memory_format=layouts[x.dim()]):
        return None
    return (0, *range(2, x.dim()), 1)


def _inverse(order: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if order is None else (0, len(order) - 1, *range(1, len(order) - 1))


def _permuted(x: Tensor, order: tuple[int, ...] | None) -> Tensor:
    return x if order is None else x.permute(order)


def _checked_input(x: Tensor) -> Tensor:
    if x.dtype not in DTYPES:
        raise TypeError(f"dtype {x.dtype}: few-bit activations take float16, bfloat16, float32 and float64")
    return x


def _checked(y: object, x: Tensor) -> Tensor:
    if not isinstance(y, Tensor):
        raise TypeError(f"function gives a {type(y).__name__}; a tensor is allowed")
    if y.shape != x.shape or y.dtype not in DTYPES:  # autocast may have chosen another dtype than x has
        raise ValueError(
            f"function gives shape {tuple(y.shape)} of {y.dtype} for {tuple(x.shape)} of {x.dtype}; floats of the same "
            "shape are allowed, as each value has its own derivative"
        )
    return y
