"""Linear layers that keep a random projection of their input for the backward pass, in place of the input."""

import copy
import math
import re
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ... import arrays, seeds
from ...codecs.base import check_flag, checked_integer
from ...projections import KINDS, Projection
from ..adapter import seed_arguments
from ..projections import random_projection, random_sketch
from ..seeds import counted, signed
from .convert import map_modules

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SEEDS = 1 << 64


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
            slow). See `arrcomp.projections`.
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
        raise TypeError(f"x is a {arrays.type_name(x)}; a torch.Tensor is allowed")
    return _applied(x, weight, bias, how, None if seed is None else _seed_tensor(seed, x))


class RandomizedLinear(nn.Linear):
    """A linear layer that keeps a random projection of its input for the backward pass: `randomized_linear`.

    Parameters, initialization and `state_dict` are those of `torch.nn.Linear`. In evaluation (`eval()`) it is one.

    Args:
        in_features: size of the input's last dimension.
        out_features: size of the output's last dimension.
        bias: whether there is one.
        projection: as of `randomized_linear`, and so are the sizes.
        proj_dim_ratio: see there.
        proj_dim: see there.
        proj_dim_min: see there.
        proj_dim_max: see there.
        seed: None to draw a seed in each step from PyTorch's default generator. An integer from 0 to 2^64 - 1 makes
            the seeds independent of it: they follow from this one, the number of the call, which starts at 0 in every
            process, and the process' rank. (In compiled code, no such layer can be in an activation checkpoint.)
        device: of the parameters.
        dtype: of the parameters.

    Raises:
        TypeError, ValueError: as `randomized_linear`.

    >>> layer = RandomizedLinear(512, 256, proj_dim_ratio=0.2)
    >>> layer(torch.randn(100, 512)).sum().backward()
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        projection: str = KINDS[0],
        proj_dim_ratio: float | None = None,
        proj_dim: int | None = None,
        proj_dim_min: int | None = None,
        proj_dim_max: int | None = None,
        seed: int | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        how = Projection(projection, proj_dim_ratio, proj_dim, proj_dim_min, proj_dim_max)
        check_flag("bias", bias)
        _checked_seed(seed)
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self._randomize(how, seed)

    @classmethod
    def from_linear(cls, linear: nn.Linear, how: Projection, seed: int | None = None) -> "RandomizedLinear":
        """A layer with the parameters, hooks and mode of another, all of them shared."""
        made = cls.__new__(cls)
        parts = {name: copy.copy(part) if isinstance(part, dict) else part for name, part in vars(linear).items()}
        vars(made).update(parts)
        made._randomize(how, seed)
        return made

    def _randomize(self, how: Projection, seed: int | None) -> None:
        self.projection, self.seed = how, seed
        # Not in the state_dict, which is that of a plain layer.
        calls = None if seed is None else torch.zeros((), dtype=torch.int64, device=self.weight.device)
        self.register_buffer("calls", calls, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        return _applied(x, self.weight, self.bias, self.projection, self._next_seed())

    def _next_seed(self) -> Tensor | None:
        if self.seed is None or not _is_recording(self.weight):
            return None
        seed: Tensor = counted(self.calls, signed(self.seed))
        return seed

    def extra_repr(self) -> str:
        shown = self.projection.arguments() | ({} if self.seed is None else {"seed": self.seed})
        return ", ".join([super().extra_repr(), *(f"{name}={value!r}" for name, value in shown.items())])


def convert_linear(
    model: nn.Module,
    *,
    projection: str = KINDS[0],
    proj_dim_ratio: float | None = None,
    proj_dim: int | None = None,
    proj_dim_min: int | None = None,
    proj_dim_max: int | None = None,
    seed: int | None = None,
    pattern: str | re.Pattern[str] | None = None,
) -> nn.Module:
    """Put a `RandomizedLinear` in the place of each `torch.nn.Linear` of a model, which is altered.

    Parameters are the same objects as before, so that optimizers, hooks and tied weights stay as they are, and so does
    the `state_dict`. Subclasses of `torch.nn.Linear` stay: what holds them may read their weight without calling them,
    as `torch.nn.MultiheadAttention` does.

    Args:
        model: the model, or a single layer.
        projection: as of `randomized_linear`, and so are the sizes.
        proj_dim_ratio: see there.
        proj_dim: see there.
        proj_dim_min: see there.
        proj_dim_max: see there.
        seed: as of `RandomizedLinear`; each layer gets one of its own that follows from this one.
        pattern: which paths, as of `map_modules`; None for all.

    Returns:
        `model`; the new layer if it is a single one.

    Raises:
        TypeError: an argument is of a wrong type.
        ValueError: there is nothing to convert; or a number is not allowed.

    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    >>> convert_linear(model, proj_dim_ratio=0.2, pattern="0")[0]
    RandomizedLinear(in_features=64, out_features=64, bias=True, projection='rows', proj_dim_ratio=0.2)
    """
    how = Projection(projection, proj_dim_ratio, proj_dim, proj_dim_min, proj_dim_max)
    _checked_seed(seed)
    found: list[str] = []

    def converted(module: nn.Module, path: str) -> nn.Module:
        if type(module) is not nn.Linear:
            return module
        found.append(path)
        own = None if seed is None else seeds.derived(seed, len(found))
        return RandomizedLinear.from_linear(module, how, own)

    made = map_modules(model, converted, pattern)
    if not found:
        raise ValueError(_nothing_found(model, pattern))
    return made


def _nothing_found(model: nn.Module, pattern: str | re.Pattern[str] | None) -> str:
    paths = [path or "the model itself" for path, module in model.named_modules() if type(module) is nn.Linear]
    if paths:
        return f"pattern={pattern!r} fits none of the model's torch.nn.Linear layers; they are {_some(paths)}"
    kinds = sorted({type(module).__name__ for module in model.modules()})
    return (
        f"model has no torch.nn.Linear to convert; it has {_some(kinds)}; a model with one at least is allowed "
        "(subclasses stay as they are: call randomized_linear in them)"
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


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


def _applied(x: Tensor, weight: Tensor, bias: Tensor | None, how: Projection, seed: Tensor | None) -> Tensor:
    _check_input(x, weight)
    dim = how.rows_of(rows := math.prod(x.shape[:-1]))
    if dim == rows or not _is_recording(weight):
        return functional.linear(x, weight, bias)
    x, weight, bias = _in_autocast(x, weight, bias)
    batch = x.detach().reshape(rows, -1)
    if seed is None:
        kept, seed = random_sketch(batch, weight.detach(), how.kind, dim)
    else:
        kept = random_projection(batch, seed, how.kind, dim)
    made: Tensor = _LINEAR.apply(x, weight, bias, kept, seed, how.kind)
    return made


def _is_recording(weight: Tensor) -> bool:
    return torch.is_grad_enabled() and weight.requires_grad


def _in_autocast(*tensors: Tensor | None) -> list[Any]:
    """The tensors as autocast has them where a linear layer is called."""
    kind = next(x.device.type for x in tensors if x is not None)
    if not torch.is_autocast_enabled(kind):
        return list(tensors)
    dtype = torch.get_autocast_dtype(kind)
    return [x if x is None or x.dtype == torch.float64 else x.to(dtype) for x in tensors]


def _seed_tensor(seed: Any, x: Tensor) -> Tensor:
    number, tensor = seed_arguments(seed if isinstance(seed, Tensor) else _checked_seed(seed), x)
    if tensor is not None:
        return tensor.reshape(())
    return torch.full((), number, dtype=torch.int64, device=x.device)


def _checked_seed(seed: Any) -> int | None:
    return None if seed is None else checked_integer("seed", seed, 0, _SEEDS - 1)


def _check_input(x: Tensor, weight: Tensor) -> None:
    if x.dtype not in _FLOATS:
        allowed = ", ".join(str(dtype).removeprefix("torch.") for dtype in _FLOATS)
        raise TypeError(f"x has dtype {str(x.dtype).removeprefix('torch.')}; {allowed} are allowed")
    if x.dim() == 0 or weight.dim() != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"x has the shape {list(x.shape)} and weight {list(weight.shape)}; [..., in_features] and "
            "[out_features, in_features] are allowed"
        )
