"""A linear layer, as a function, that keeps a random projection of its input for the backward pass, not the input."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .._arguments import checked_integer, type_name
from .._methods.projections import KINDS, Projection
from .._methods.seeds import MAX_SEED
from ._adapter import seed_arguments
from ._projections import random_projection, random_sketch

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


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
    """``x @ weight.T + bias``, with a weight gradient that is random and right on average.

    For the backward pass a projection of `x` is kept, of fewer rows, and a seed, with which the projection is drawn
    again. The gradients of `x` and `bias` are exact. With the default "rows" the weight gradient is that of a sample of
    the rows, whose noise is that of so much smaller a batch. Where no weight gradient is asked for, nothing random
    happens, and nothing is kept but the weight, for the gradient of `x`.

    Usable in `torch.compile(fullgraph=True)`, autocast, activation checkpointing and CUDA graphs; nothing waits for a
    device.

    Args:
        x: [..., in_features], floating-point. All of its dimensions but the last are the batch, of as many rows as
            their product.
        weight: [out_features, in_features], of the same dtype, except in autocast.
        bias: [out_features], likewise; or None.
        projection: "rows" (a sample of rows, evenly spread: no slower than a plain layer), "dct" or "dft" (a sample of
            rows of a fast transform: less noise where few rows matter), "rademacher" or "gaussian" (dense matrices:
            slow). See `arrcomp._methods.projections`.
        proj_dim_ratio: rows of the projection by rows of the batch, above 0, at most 1; None for 0.5, if there is no
            `proj_dim` either. At 1 the layer is exact.
        proj_dim: this number of rows, instead of a ratio.
        proj_dim_min: the fewest rows that the ratio gives; a batch of no more rows is kept, and exact.
        proj_dim_max: the most rows that the ratio gives.
        seed: an integer from 0 to 2^64 - 1, or a tensor of one integer on the device of `x`, which is another in every
            step; None to draw one from the default generator of that device, which `torch.manual_seed` sets. A drawn
            one differs between the processes of a group that have the same generators.

    Returns:
        [..., out_features].

    Raises:
        TypeError: an argument is of a wrong type, or `x` is not floating-point.
        ValueError: a number is out of its range, sizes contradict each other, or `proj_dim` is more than the batch.
        RuntimeError: in the backward pass of a backward pass: there are no second derivatives.

    >>> import torch
    >>> x, weight = torch.randn(64, 8), torch.randn(4, 8, requires_grad=True)
    >>> randomized_linear(x, weight, proj_dim_ratio=0.25).sum().backward()
    >>> weight.grad.shape
    torch.Size([4, 8])
    """
    how = Projection(projection, proj_dim_ratio, proj_dim, proj_dim_min, proj_dim_max)
    if not isinstance(x, Tensor):
        raise TypeError(f"x is a {type_name(x)}; a torch.Tensor is allowed")
    return applied(x, weight, bias, how, None if seed is None else _seed_tensor(seed, x))


class _RandomizedLinear(torch.autograd.Function):
    """A linear layer whose weight gradient is calculated from kept rows, S x."""

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
            of_input = None if weight is None else gradient @ weight
            projected = random_projection(rows, seed, context.kind, kept.shape[0], True)
            of_bias = rows.sum(0) if context.needs_input_grad[2] else None
            gradients = [of_input, projected.t() @ kept, of_bias]
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            gradients = [made if made is None else _LAST.apply(made, gradient, weight) for made in gradients]
        return *gradients, None, None, None


class _Last(torch.autograd.Function):
    """A gradient, of which there are no derivatives by what it depends on."""

    @staticmethod
    def forward(made: Tensor, *inputs: Tensor | None) -> Tensor:
        return made.view_as(made)

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        raise RuntimeError(
            "randomized_linear has no second derivatives: its weight gradient is an estimate. Where they are needed, "
            "torch.nn.functional.linear is allowed (a RandomizedLinear in eval(), or a torch.nn.Linear in its place)"
        )


# PyTorch leaves it without types.
_LAST: Any = _Last
_LINEAR: Any = _RandomizedLinear


def applied(x: Tensor, weight: Tensor, bias: Tensor | None, how: Projection, seed: Tensor | None) -> Tensor:
    """`randomized_linear` with its arguments checked but for `x`, and the seed on its device, or None to draw one."""
    _check_input(x, weight)
    dim = how.rows_of(rows := math.prod(x.shape[:-1]))
    if dim == rows or not is_recording(weight):
        return functional.linear(x, weight, bias)
    x, weight, bias = _in_autocast(x, weight, bias)
    batch = x.detach().reshape(rows, -1)
    if seed is None:
        kept, seed = random_sketch(batch, weight.detach(), how.kind, dim)
    else:
        kept = random_projection(batch, seed, how.kind, dim)
    made: Tensor = _LINEAR.apply(x, weight, bias, kept, seed, how.kind)
    return made


def is_recording(weight: Tensor) -> bool:
    """Whether a gradient of the weight may be asked for."""
    return torch.is_grad_enabled() and weight.requires_grad


def _in_autocast(*tensors: Tensor | None) -> list[Any]:
    """The tensors as autocast has them where a linear layer is called."""
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
    """The seed, if it is one.

    Raises:
        TypeError, ValueError: it is not.
    """
    return None if seed is None else checked_integer("seed", seed, 0, MAX_SEED)


def _check_input(x: Tensor, weight: Tensor) -> None:
    if x.dtype not in _FLOATS:
        allowed = ", ".join(str(dtype).removeprefix("torch.") for dtype in _FLOATS)
        raise TypeError(f"x has dtype {str(x.dtype).removeprefix('torch.')}; {allowed} are allowed")
    if x.dim() == 0 or weight.dim() != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"x has the shape {list(x.shape)} and weight {list(weight.shape)}; [..., in_features] and "
            "[out_features, in_features] are allowed"
        )
