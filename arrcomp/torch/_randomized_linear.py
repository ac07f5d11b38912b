"""A linear layer (as a function) that saves a random projection of its input for the backward pass."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .._arguments import checked_integer
from .._methods.projections import KINDS, Projection
from .._methods.seeds import MAX_SEED
from ._adapter import seed_arguments
from ._library import is_batched, not_batched
from ._projections import random_projection, random_sketch
from ._tensors import check_floating, check_tensor


def randomized_linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    projection: str = KINDS[0],
    proj_dim_ratio: float | None = None,
    proj_dim: int | None = None,
    proj_dim_min: int | None = None,
    proj_dim_max: int | None = None,
    seed: int | Tensor | None = None,
) -> Tensor:
    """``x @ weight.T + bias``, with an unbiased random estimate of the weight gradient.

    A projection of `x` with fewer rows, and the seed that redraws it, are saved for the backward pass. The gradients of
    `x` and `bias` are exact. With the default "rows", the weight gradient is that of a sample of the rows: as noisy as
    that of a smaller batch. If the weight needs no gradient, nothing is random, and only the weight is saved, for the
    gradient of `x`.

    Asynchronous; usable in `torch.compile(fullgraph=True)`, autocast, activation checkpointing and CUDA graphs.

    Args:
        x: [..., in_features], floating-point. All dimensions but the last form the rows of the batch.
        weight: [out_features, in_features], of the same dtype (except in autocast).
        bias: [out_features], of the same dtype; or None.
        projection: "rows" (an evenly spread sample of rows: as fast as a plain layer), "dct" or "dft" (a sample of rows
            of a fast transform: less noise if few rows matter), "rademacher" or "gaussian" (dense matrices: slow). See
            `arrcomp._methods.projections`.
        proj_dim_ratio: rows of the projection divided by rows of the batch, above 0 and at most 1; None for 0.5 (if
            `proj_dim` is None). At 1 the layer is exact.
        proj_dim: number of rows, instead of a ratio.
        proj_dim_min: the least number of rows with a ratio. A smaller batch is saved whole, and is exact.
        proj_dim_max: the largest number of rows with a ratio.
        seed: an integer from 0 to 2^64 - 1, or a tensor of one integer on the device of `x`; it must change in every
            step. None draws one from the device's default generator (`torch.manual_seed`), different on each rank.

    Returns:
        [..., out_features].

    Raises:
        TypeError: an argument has a wrong type, or `x` is not floating-point.
        ValueError: a number is out of range, shapes do not match, or `proj_dim` exceeds the rows of the batch.
        RuntimeError: for second derivatives, which do not exist.

    >>> import torch
    >>> x, weight = torch.randn(64, 8), torch.randn(4, 8, requires_grad=True)
    >>> randomized_linear(x, weight, proj_dim_ratio=0.25).sum().backward()
    >>> weight.grad.shape
    torch.Size([4, 8])
    """
    settings = Projection(projection, proj_dim_ratio, proj_dim, proj_dim_min, proj_dim_max)
    check_tensor("x", x)
    check_tensor("weight", weight)
    if bias is not None:
        check_tensor("bias", bias)
    return apply_linear(x, weight, bias, settings, None if seed is None else _seed_tensor(seed, x))


class _RandomizedLinear(torch.autograd.Function):
    """A linear layer whose weight gradient is computed from the projection `kept`, S x."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, kept: Tensor, seed: Tensor, kind: str) -> Tensor:
        return functional.linear(x, weight, bias)

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, weight, _, kept, seed, context.kind = inputs
        context.save_for_backward(weight if context.needs_input_grad[0] else None, kept, seed)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        weight, kept, seed = context.saved_tensors
        with torch.no_grad():
            rows = gradient.reshape(-1, gradient.shape[-1])
            x_grad = None if weight is None else gradient @ weight
            projected = random_projection(rows, seed, context.kind, kept.shape[0], True)
            bias_grad = rows.sum(0) if context.needs_input_grad[2] else None
            grads = [x_grad, projected.t() @ kept, bias_grad]
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            grads = [grad if grad is None else _NO_SECOND.apply(grad, gradient, weight) for grad in grads]
        return *grads, None, None, None


class _NoSecondDerivative(torch.autograd.Function):
    """The identity on a gradient, whose own derivative raises."""

    @staticmethod
    def forward(grad: Tensor, *inputs: Tensor | None) -> Tensor:
        return grad.view_as(grad)

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        raise RuntimeError(
            "randomized_linear has no second derivatives, as its weight gradient is an estimate. Use "
            "torch.nn.functional.linear instead (a torch.nn.Linear, or a RandomizedLinear in eval())"
        )


# PyTorch has no types for it.
_NO_SECOND: Any = _NoSecondDerivative
_LINEAR: Any = _RandomizedLinear


def apply_linear(x: Tensor, weight: Tensor, bias: Tensor | None, projection: Projection, seed: Tensor | None) -> Tensor:
    """`randomized_linear` with checked settings, and the seed on the device, or None to draw one."""
    _check_input(x, weight)
    dim = projection.rows_of(rows := math.prod(x.shape[:-1]))
    if dim == rows or not is_recording(weight):
        return functional.linear(x, weight, bias)
    if any(map(is_batched, (x, weight, bias, seed))):
        raise not_batched("randomized_linear", "x may have any number of dimensions, which need no torch.vmap")
    x, weight, bias = _in_autocast(x, weight, bias)
    batch = x.detach().reshape(rows, -1)
    if seed is None:
        kept, seed = random_sketch(batch, weight.detach(), projection.kind, dim)
    else:
        kept = random_projection(batch, seed, projection.kind, dim)
    y: Tensor = _LINEAR.apply(x, weight, bias, kept, seed, projection.kind)
    return y


def is_recording(weight: Tensor) -> bool:
    """Whether autograd will compute a gradient of the weight."""
    return torch.is_grad_enabled() and weight.requires_grad


def _in_autocast(*tensors: Tensor | None) -> list[Any]:
    """The tensors, cast as autocast casts them for a linear layer."""
    kind = next(x.device.type for x in tensors if x is not None)
    if not torch.is_autocast_enabled(kind):
        return list(tensors)
    dtype = torch.get_autocast_dtype(kind)
    return [x if x is None or x.dtype == torch.float64 else x.to(dtype) for x in tensors]


def _seed_tensor(seed: Any, x: Tensor) -> Tensor:
    number, tensor = seed_arguments(seed if isinstance(seed, Tensor) else checked_seed(seed), x)
    if tensor is not None:
        return tensor.reshape(())
    return torch.full((), number, dtype=torch.int64, device=x.device)


def checked_seed(seed: Any) -> int | None:
    """An integer seed, or None; else TypeError or ValueError."""
    return None if seed is None else checked_integer("seed", seed, 0, MAX_SEED)


def _check_input(x: Tensor, weight: Tensor) -> None:
    check_floating("x", x)
    if x.dim() == 0 or weight.dim() != 2 or x.shape[-1] != weight.shape[1]:
        expected = "[..., in_features] and [out_features, in_features]"
        raise ValueError(f"x and weight: expected shapes {expected}, got {list(x.shape)} and {list(weight.shape)}")
