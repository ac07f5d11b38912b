"""Activation functions as PyTorch operators: `torch.ops.arrcomp.activate` and `step_grad`, and their derivatives.

`activate` computes an activation function, and in the same pass the packed step indices of its inputs, which are saved
for the backward pass. `step_grad` is that backward pass: it multiplies gradients by the levels of the steps.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import _core
from ._kernels import MEMORY, Floats
from ._library import define, register_autograd, register_vmap
from ._tensors import dtype_of, name_of

_WORD_ROWS = 16  # rows of 32 values: the packed indices are padded to a multiple of this


def packed_bytes(elements: int, bits: int) -> int:
    """Bytes of packed indices of `bits` bits; `elements` may be a compiler's symbol."""
    rows = -(-elements // 32)
    return -(-(rows * bits) // _WORD_ROWS) * _WORD_ROWS * 4


def _empty_packed(x: Tensor, steps: Floats) -> Tensor:
    return x.new_empty((packed_bytes(x.numel(), int(steps[1])),), dtype=torch.uint8)


def _run(on_host: Callable[..., None], on_cuda: Callable[..., None], x: Tensor, work: Any, threads: int) -> None:
    """Call one of the core's two functions, by the device of x."""
    where = MEMORY.stream(x)
    if where is None:
        on_host(*work, threads or torch.get_num_threads())
    else:
        index, stream = where
        on_cuda(*work, stream, index)


def _activate(x: Tensor, function: str, parameters: Floats, steps: Floats, threads: int = 0) -> tuple[Tensor, Tensor]:
    source = x.contiguous()
    values = torch.empty_like(source) if function else source.new_empty((0,))
    packed = _empty_packed(source, steps)
    pointers = (source.data_ptr(), values.data_ptr() if function else 0, packed.data_ptr(), source.numel())
    work = (function, parameters, steps, dtype_of(x).id, *pointers)
    _run(_core.activate_at, _core.cuda_activate, x, work, threads)
    return values, packed


@define(
    "activate(Tensor x, str function, float[] parameters, float[] steps, int threads=0) -> (Tensor, Tensor)", _activate
)
def activate_op(x: Tensor, function: str, parameters: Floats, steps: Floats, threads: int = 0) -> Any:
    """The function's values (of x's shape; empty if the function is ""), and the packed step indices, uint8.

    `steps` are a StepFunction's `core_parameters()`; `threads` is 0 for PyTorch's number of threads.
    """
    return x.new_empty(x.shape if function else (0,)), _empty_packed(x, steps)


def _step_grad(gradient: Tensor, packed: Tensor, steps: Floats, threads: int = 0) -> Tensor:
    source = gradient.contiguous()
    needed = packed_bytes(source.numel(), int(steps[1]))
    if packed.dtype != torch.uint8 or packed.numel() != needed or packed.device != source.device:
        got = f"{name_of(packed.dtype)}[{packed.numel()}] on {packed.device}"
        raise ValueError(f"packed: expected uint8[{needed}] on {source.device}, got {got}")
    packed = packed.contiguous()
    target = torch.empty_like(source)
    pointers = (packed.data_ptr(), source.data_ptr(), target.data_ptr(), source.numel())
    work = (steps, dtype_of(source).id, *pointers)
    _run(_core.step_grad_at, _core.cuda_step_grad, source, work, threads)
    return target


@define("step_grad(Tensor gradient, Tensor packed, float[] steps, int threads=0) -> Tensor", _step_grad)
def step_grad_op(gradient: Tensor, packed: Tensor, steps: Floats, threads: int = 0) -> Any:
    """Gradients times the levels of the steps whose indices `activate` packed."""
    return gradient.new_empty(gradient.shape)


def save_packed(ctx: Any, packed: Tensor, rest: tuple[Any, ...]) -> None:
    """Save the packed indices, an output, and the steps (and threads) for `grad_from_packed`."""
    ctx.mark_non_differentiable(packed)
    ctx.set_materialize_grads(False)  # otherwise autograd would allocate a gradient of the packed indices
    _save(ctx, packed, rest)


def _save(ctx: Any, packed: Tensor, rest: tuple[Any, ...]) -> None:
    ctx.save_for_backward(packed)
    ctx.rest = rest  # steps, and threads if given


def grad_from_packed(ctx: Any, gradient: Tensor | None) -> Tensor | None:
    """The gradient times the levels of the saved indices."""
    return None if gradient is None else step_grad_op(gradient, ctx.saved_tensors[0], *ctx.rest)


def _items(x: Tensor, dimension: int | None, size: int) -> tuple[Tensor, ...]:
    return (x,) * size if dimension is None else x.movedim(dimension, 0).unbind()


def _activate_batched(
    info: Any, dimensions: tuple[Any, ...], x: Tensor, *rest: Any
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    values, packed = zip(*[activate_op(item, *rest) for item in _items(x, dimensions[0], info.batch_size)], strict=True)
    return (torch.stack(values), torch.stack(packed)), (0, 0)


def _step_grad_batched(
    info: Any, dimensions: tuple[Any, ...], gradient: Tensor, packed: Tensor, *rest: Any
) -> tuple[Tensor, int]:
    both = zip(*[_items(x, dimensions[i], info.batch_size) for i, x in enumerate((gradient, packed))], strict=True)
    return torch.stack([step_grad_op(*items, *rest) for items in both]), 0


register_autograd(
    "activate",
    lambda ctx, gradient, *_: (grad_from_packed(ctx, gradient), None, None, None, None),
    lambda ctx, inputs, output: save_packed(ctx, output[1], inputs[3:]),
)
register_autograd(
    "step_grad",
    lambda ctx, gradient: (grad_from_packed(ctx, gradient), None, None, None),
    lambda ctx, inputs, output: _save(ctx, inputs[1], inputs[2:]),
)
register_vmap("activate", _activate_batched)
register_vmap("step_grad", _step_grad_batched)
