"""Activation functions as PyTorch operators: `torch.ops.arrcomp.activate` and `times_steps`, and their derivatives.

`activate` gives an activation function's values, and in the same pass what is kept for backward: the packed numbers of
the steps in which the inputs lie. `times_steps` is that backward: gradients times the levels of the steps.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _core
from ._kernels import MEMORY
from ._library import define, register_autograd, register_vmap
from ._tensors import dtype_of

_WORD_ROWS = 16  # rows of 32 values whose single bits fill the least that is written


def packed_bytes(elements: int, bits: int) -> int:
    """Bytes of so many numbers of steps, `bits` each; `elements` may be a compiler's symbol."""
    rows = -(-elements // 32)
    return -(-(rows * bits) // _WORD_ROWS) * _WORD_ROWS * 4


def _room(x: Tensor, bits: int) -> Tensor:
    return x.new_empty((packed_bytes(x.numel(), bits),), dtype=torch.uint8)


def _activate_kernel(
    x: Tensor, function: str, parameters: Sequence[float], steps: Sequence[float], threads: int = 0
) -> tuple[Tensor, Tensor]:
    source = x.contiguous()
    values = torch.empty_like(source) if function else source.new_empty((0,))
    packed = _room(source, int(steps[1]))
    places = (source.data_ptr(), values.data_ptr() if function else 0, packed.data_ptr(), source.numel())
    work = (function, parameters, steps, dtype_of(x).id)
    where = MEMORY.stream(x)
    if where is None:
        _core.activate_at(*work, *places, threads or torch.get_num_threads())
    else:
        index, stream = where
        _core.cuda_activate(*work, *places, stream, index)
    return values, packed


def _activate_fake(
    x: Tensor, function: str, parameters: Sequence[float], steps: Sequence[float], threads: int = 0
) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape if function else (0,)), _room(x, int(steps[1]))


def _times_steps_kernel(gradient: Tensor, packed: Tensor, steps: Sequence[float], threads: int = 0) -> Tensor:
    source = gradient.contiguous()
    needed = packed_bytes(source.numel(), int(steps[1]))
    if packed.dtype != torch.uint8 or packed.numel() != needed or packed.device != source.device:
        raise ValueError(
            f"packed has {packed.dtype}[{packed.numel()}] on {packed.device}; uint8[{needed}] on {source.device} is "
            f"allowed"
        )
    packed = packed.contiguous()
    target = torch.empty_like(source)
    places = (packed.data_ptr(), source.data_ptr(), target.data_ptr(), source.numel())
    work = (steps, dtype_of(source).id)
    where = MEMORY.stream(source)
    if where is None:
        _core.step_grad_at(*work, *places, threads or torch.get_num_threads())
    else:
        index, stream = where
        _core.cuda_step_grad(*work, *places, stream, index)
    return target


def _times_steps_fake(gradient: Tensor, packed: Tensor, steps: Sequence[float], threads: int = 0) -> Tensor:
    return gradient.new_empty(gradient.shape)


# The function's values (of x's shape; none if the function is ""), and what is kept for their gradient, uint8[packed
# bytes]. `steps` are a StepFunction's core_parameters(); `threads` is 0 for as many as PyTorch uses.
activate_op = define(
    "activate(Tensor x, str function, float[] parameters, float[] steps, int threads=0) -> (Tensor, Tensor)",
    _activate_kernel,
    _activate_fake,
)

# Gradients times the levels of steps, whose numbers `activate` has packed.
times_steps_op = define(
    "times_steps(Tensor gradient, Tensor packed, float[] steps, int threads=0) -> Tensor",
    _times_steps_kernel,
    _times_steps_fake,
)


def keep_made(ctx: Any, packed: Tensor, rest: tuple[Any, ...]) -> None:
    """Keep packed numbers that were made, and the steps (and threads), for `product`."""
    ctx.mark_non_differentiable(packed)
    ctx.set_materialize_grads(False)  # else there would be one of the packed numbers
    _keep(ctx, packed, rest)


def _keep(ctx: Any, packed: Tensor, rest: tuple[Any, ...]) -> None:
    ctx.save_for_backward(packed)
    ctx.rest = rest  # steps, and threads if they are given


def product(ctx: Any, gradient: Tensor | None) -> Tensor | None:
    """The gradient times the levels of what was kept."""
    return None if gradient is None else times_steps_op(gradient, ctx.saved_tensors[0], *ctx.rest)


def _keep_packed(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    keep_made(ctx, output[1], inputs[3:])


def _keep_given(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _keep(ctx, inputs[1], inputs[2:])


def _activate_backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    return product(ctx, gradient), None, None, None, None


def _times_steps_backward(ctx: Any, gradient: Tensor | None) -> tuple[Tensor | None, ...]:
    return product(ctx, gradient), None, None, None


def _items(x: Tensor, dimension: int | None, size: int) -> tuple[Tensor, ...]:
    return (x,) * size if dimension is None else x.movedim(dimension, 0).unbind()


def _activate_batched(
    info: Any, dimensions: tuple[Any, ...], x: Tensor, *rest: Any
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    values, packed = zip(*[activate_op(item, *rest) for item in _items(x, dimensions[0], info.batch_size)], strict=True)
    return (torch.stack(values), torch.stack(packed)), (0, 0)


def _times_steps_batched(
    info: Any, dimensions: tuple[Any, ...], gradient: Tensor, packed: Tensor, *rest: Any
) -> tuple[Tensor, int]:
    items = zip(
        _items(gradient, dimensions[0], info.batch_size), _items(packed, dimensions[1], info.batch_size), strict=True
    )
    return torch.stack([times_steps_op(*item, *rest) for item in items]), 0


register_autograd("activate", _activate_backward, _keep_packed)
register_autograd("times_steps", _times_steps_backward, _keep_given)
register_vmap("activate", _activate_batched)
register_vmap("times_steps", _times_steps_batched)
