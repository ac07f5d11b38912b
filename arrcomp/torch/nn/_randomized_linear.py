"""Linear layers that save a random projection of their input for the backward pass."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from ..._arguments import check_flag, shortened, shown
from ..._methods import seeds
from ..._methods.projections import KINDS, Projection
from .._randomized_linear import apply_linear, checked_seed, is_recording
from .._seeds import counted, signed
from ._convert import Pattern, map_modules


class RandomizedLinear(nn.Linear):
    """A linear layer that saves a random projection of its input for the backward pass: `randomized_linear`.

    Parameters, initialization and `state_dict` are those of `torch.nn.Linear`. In evaluation mode it is an exact layer.

    Arguments and errors are those of `torch.nn.Linear` and of `randomized_linear`, except `seed`: None draws a seed in
    each step from PyTorch's default generator. From an integer, 0 to 2^64 - 1, the rank and the number of earlier calls
    in this process, seeds are derived. (In compiled code, such a layer cannot be in an activation checkpoint.)

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
        settings = Projection(projection, proj_dim_ratio, proj_dim, proj_dim_min, proj_dim_max)
        check_flag("bias", bias)
        own_seed = checked_seed(seed)
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self._randomize(settings, own_seed)

    @classmethod
    def from_linear(cls, linear: nn.Linear, projection: Projection, seed: int | None = None) -> "RandomizedLinear":
        """A layer that shares the parameters, hooks and mode of another."""
        made = cls.__new__(cls)
        vars(made).update({name: copy.copy(x) if isinstance(x, dict) else x for name, x in vars(linear).items()})
        made._randomize(projection, seed)
        return made

    def _randomize(self, projection: Projection, seed: int | None) -> None:
        self.projection, self.seed = projection, seed
        # Not in the state_dict, which is that of torch.nn.Linear.
        calls = None if seed is None else torch.zeros((), dtype=torch.int64, device=self.weight.device)
        self.register_buffer("calls", calls, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        given = self.seed if is_recording(self.weight) else None
        seed = None if given is None else counted(self.calls, signed(given))
        return apply_linear(x, self.weight, self.bias, self.projection, seed)

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
    pattern: Pattern = None,
) -> nn.Module:
    """Replace each `torch.nn.Linear` of a model with a `RandomizedLinear`, in place.

    The parameter objects do not change, so optimizers, hooks, tied weights and the `state_dict` remain valid.
    Subclasses of `torch.nn.Linear` are not replaced: their parents may read the weight without calling the layer, for
    instance `torch.nn.MultiheadAttention`.

    `projection` and its sizes are those of `randomized_linear`, `seed` is that of `RandomizedLinear` (each layer
    derives its own from it), `pattern` is that of `map_modules`. `model` may be a single layer.

    Returns:
        `model`; the new layer if it is a single one.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: there is nothing to convert, or a number is out of range.

    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    >>> convert_linear(model, proj_dim_ratio=0.2, pattern="0")[0]
    RandomizedLinear(in_features=64, out_features=64, bias=True, projection='rows', proj_dim_ratio=0.2)
    """
    settings = Projection(projection, proj_dim_ratio, proj_dim, proj_dim_min, proj_dim_max)
    seed = checked_seed(seed)
    found: list[str] = []

    def converted(module: nn.Module, path: str) -> nn.Module:
        if type(module) is not nn.Linear:
            return module
        found.append(path)
        own = None if seed is None else seeds.derived(seed, len(found))
        return RandomizedLinear.from_linear(module, settings, own)

    made = map_modules(model, converted, pattern)
    if not found:
        raise ValueError(_nothing_found(model, pattern))
    return made


def _nothing_found(model: nn.Module, pattern: Pattern) -> str:
    paths = [path or "the model itself" for path, module in model.named_modules() if type(module) is nn.Linear]
    if paths:
        return f"pattern: expected one that matches a torch.nn.Linear ({_shortened(paths)}), got {shown(pattern)}"
    kinds = sorted({type(module).__name__ for module in model.modules()})
    hint = "subclasses are not replaced: call randomized_linear in them"
    return f"model: expected a torch.nn.Linear, got {_shortened(kinds)} ({hint})"


def _shortened(names: list[str]) -> str:
    return shortened(", ".join(names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
