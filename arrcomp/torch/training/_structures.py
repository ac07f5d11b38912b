"""The structures of a training run, each compressed and at once decompressed after each use.

Works on any model and any optimizer of PyTorch, in a loop of one's own as in Lightning's.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import activation, pooling
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.conv import _ConvNd

from ..._api.compress import checked_codec
from ..._arguments import shown
from ..._methods.seeds import derived
from ...codecs import Codec
from ...errors import UnknownNameError
from .._functions import compress, decompress, roundtrip
from .._tensors import dtype_of

STRUCTURES = ("weights", "gradients", "forward", "backward", "optimizer")
_NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.LocalResponseNorm)
_KINDS = (_ConvNd, nn.Linear, nn.Bilinear, *_NORMS)
_MODULES = {activation.__name__, pooling.__name__, "arrcomp.torch.nn._few_bit"}  # of activations and pools
_NOT_FLAT = (nn.MultiheadAttention,)  # which has places of its own inside
_SAMPLE = 1 << 16  # the most values of a tensor that a meter keeps


@dataclass
class Size:
    """Bytes of one structure, over some time.

    Attributes:
        original: as the tensors have them.
        compressed: of the payloads; of tensors that are not compressed, those that they have.
    """

    original: int = 0
    compressed: int = 0

    @property
    def ratio(self) -> float:
        """Original bytes divided by compressed ones; 1 of nothing."""
        return self.original / self.compressed if self.compressed else 1.0


class Meter:
    """Bytes of each structure since the last `take`, and since the beginning, and a sample of each one's values."""

    def __init__(self) -> None:
        self.total: dict[str, Size] = {}
        self.samples: dict[str, Tensor] = {}
        self._recent: dict[str, Size] = {}

    def count(self, structure: str, original: int, compressed: int) -> None:
        """Add the bytes of a tensor."""
        for sizes in (self._recent, self.total):
            size = sizes.setdefault(structure, Size())
            size.original += original
            size.compressed += compressed

    def take(self) -> Mapping[str, Size]:
        """Sizes since the last call."""
        recent, self._recent = self._recent, {}
        return recent

    def keep(self, structure: str, x: Tensor) -> None:
        """Remember the values of a structure's largest tensor; of a large one, values at equal distances."""
        kept = self.samples.get(structure)
        if kept is None or min(x.numel(), _SAMPLE) >= kept.numel():
            flat = x.detach().reshape(-1)
            chosen = flat[:: -(-flat.numel() // _SAMPLE)] if flat.numel() else flat
            self.samples[structure] = chosen.to(device="cpu", dtype=torch.float32, copy=True)


def places(model: nn.Module) -> Iterator[nn.Module]:
    """The modules whose outputs count: each convolution, linear layer, pool, norm and activation.

    They are those of PyTorch and of `arrcomp.torch.nn`, and classes derived from them. What a model calls as a
    function, as `torch.nn.functional.relu`, is not seen.
    """
    for module in model.modules():
        homes = {base.__module__ for base in type(module).__mro__}
        if isinstance(module, _KINDS) or (homes & _MODULES and not isinstance(module, _NOT_FLAT)):
            yield module


def weights(model: nn.Module) -> set[nn.Parameter]:
    """All parameters but those of batch normalization."""
    owners = (module for module in model.modules() if not isinstance(module, _BatchNorm))
    return {p for module in owners for p in module.parameters(recurse=False)}


def check_structure(name: str) -> None:
    """Raise UnknownNameError unless there is this structure, which may be "optimizer.NAME"."""
    family, dot, state = name.partition(".")
    if family not in STRUCTURES or (dot and (family != "optimizer" or not state)):
        known = f"{', '.join(STRUCTURES)}, and optimizer.NAME of one of its tensors, as optimizer.exp_avg_sq"
        raise UnknownNameError(f"structure {shown(name)} is unknown; there are {known}")


class Compression:
    """Round trips of a model's structures through codecs, while it trains.

    - "forward": the output of each of the `places`, also in evaluation; its gradient passes unchanged.
    - "backward": the gradient at the same places, once in each backward pass.
    - "gradients": the parameters' gradients, once before each step of the optimizer, whether that has a closure or not,
      and after all backward passes that add up to the step.
    - "optimizer": after each step, every tensor of floats that the optimizer keeps for a parameter, whatever its name;
      "optimizer.NAME", as "optimizer.exp_avg_sq", is for that one alone and comes first.
    - "weights": when an optimizer is attached and after each of its steps, all of its parameters but those of batch
      normalization. They are the weights from then on: rounding to nearest loses small updates, and random rounding
      adds up from step to step. With `master_weights` the optimizer updates a copy that keeps every bit, and the model
      computes with its roundtrip.

    Everything stays in the tensors' own dtypes. The bytes that are counted are those of payloads, without the header
    that a stream has; tensors whose dtype the codec does not take stay as they are and count in full.

    Args:
        model: whose structures are meant.
        codecs: a codec, or None to leave it as it is and count it, for each structure that is chosen.
        seed: of stochastic rounding, 0 to 2^64 - 1: each round trip has a seed of its own, which follows from it.
        master_weights: as above.

    Attributes:
        meter: what was counted.
        measuring: whether bytes are counted. On CUDA that synchronizes where a codec's rate varies.
        sampling: whether values are kept in the meter.

    Raises:
        UnknownNameError: there is no such structure.
        TypeError: a codec is none.

    >>> from arrcomp import QSGD
    >>> model = nn.Linear(64, 64)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> compression = Compression(model, {"gradients": QSGD(bits=4)})
    >>> compression.attach(optimizer)
    >>> model(torch.ones(8, 64)).square().sum().backward()
    >>> optimizer.step()
    >>> compression.meter.total["gradients"].ratio > 7
    True
    """

    def __init__(
        self, model: nn.Module, codecs: Mapping[str, Codec | None], *, seed: int = 0, master_weights: bool = False
    ) -> None:
        self.model = model
        for name in codecs:
            check_structure(name)
        self.codecs = {name: codec and checked_codec(codec) for name, codec in codecs.items()}
        self.seed, self.master_weights = seed, master_weights
        self.meter, self.measuring, self.sampling = Meter(), True, False
        self._calls = 0
        self._masters: dict[Tensor, Tensor] = {}
        self._handles: list[Any] = []
        if {"forward", "backward"} & set(self.codecs):
            self._handles += [place.register_forward_hook(self._after_forward) for place in places(model)]

    def attach(self, optimizer: torch.optim.Optimizer) -> None:
        """Do what belongs to the steps of an optimizer of the model's parameters, and compress the weights now."""
        self._handles.append(optimizer.register_step_pre_hook(self._before_step))
        self._handles.append(optimizer.register_step_post_hook(self._after_step))
        self._compress_weights(optimizer)

    def remove(self) -> None:
        """Leave the model and the optimizers alone from now on; the weights stay what they are."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def round_trip(self, structure: str, x: Tensor) -> Tensor:
        """Compress a tensor of a structure, count its bytes, and decompress it; without a gradient."""
        family = structure.partition(".")[0]
        codec = self.codecs[structure if structure in self.codecs else family]
        if self.sampling:
            self.meter.keep(structure, x)
        if codec is None or not codec.takes(dtype_of(x)) or x.numel() == 0:
            return self._counted(family, x, x.nbytes)
        seed = derived(self.seed, self._calls) if codec.needs_seed else None
        self._calls += 1
        threads = torch.get_num_threads()
        with torch.no_grad():
            if not self.measuring:
                return roundtrip(x, codec, seed=seed, threads=threads)
            compressed = compress(x, codec, seed=seed, threads=threads)
            return self._counted(family, decompress(compressed, threads=threads), compressed.payload.nbytes)

    def _counted(self, structure: str, x: Tensor, nbytes: int) -> Tensor:
        if self.measuring:
            self.meter.count(structure, x.nbytes, nbytes)
        return x

    def _after_forward(self, place: nn.Module, arguments: Any, output: Any) -> Any:
        if isinstance(output, tuple):  # of a pool that returns indices too
            return tuple(self._after_forward(place, arguments, part) for part in output)
        if not isinstance(output, Tensor) or not output.is_floating_point():
            return output
        if "forward" in self.codecs and self.codecs["forward"] is None:
            self.round_trip("forward", output)  # counts it
        elif "forward" in self.codecs:
            output = _StraightThrough.apply(output, lambda x: self.round_trip("forward", x))  # type: ignore[no-untyped-call]
        if "backward" in self.codecs and output.requires_grad:
            output.register_hook(lambda gradient: self.round_trip("backward", gradient))
        return output

    def _before_step(self, optimizer: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Compress the gradients when they are there: now, or after the closure that calculates them."""
        closure = named.get("closure", arguments[1] if len(arguments) > 1 else None)
        if closure is None:
            self._before_update(optimizer)
            return None

        def completed() -> Any:
            loss = closure()
            self._before_update(optimizer)
            return loss

        return arguments[:1], {**named, "closure": completed}

    def _before_update(self, optimizer: torch.optim.Optimizer) -> None:
        with torch.no_grad():
            for p in _parameters(optimizer):
                if p.grad is not None and "gradients" in self.codecs:
                    p.grad.copy_(self.round_trip("gradients", p.grad))
            for p in _parameters(optimizer):
                if p in self._masters:  # once in a step, which may call its closure several times
                    p.copy_(self._masters.pop(p))

    def _after_step(self, optimizer: torch.optim.Optimizer, arguments: Any, named: Any) -> None:
        with torch.no_grad():
            for p in _parameters(optimizer):
                for name, value in self._states(optimizer, p):
                    value.copy_(self.round_trip(f"optimizer.{name}", value))
        self._compress_weights(optimizer)

    def _states(self, optimizer: torch.optim.Optimizer, p: Tensor) -> Iterator[tuple[str, Tensor]]:
        for name, value in optimizer.state.get(p, {}).items():
            # A counter of steps has no dimension; another kind of tensor is compressed already.
            is_state = type(value) is Tensor and value.is_floating_point() and value.dim() > 0
            if is_state and {"optimizer", f"optimizer.{name}"} & set(self.codecs):
                yield name, value

    def _compress_weights(self, optimizer: torch.optim.Optimizer) -> None:
        if "weights" not in self.codecs:
            return
        compressible = weights(self.model)
        with torch.no_grad():
            for p in _parameters(optimizer):
                if p in compressible:
                    if self.master_weights:
                        self._masters[p] = p.clone()
                    p.copy_(self.round_trip("weights", p))


class _StraightThrough(torch.autograd.Function):
    """A round trip whose gradient passes unchanged."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, trip: Callable[[Tensor], Tensor]) -> Tensor:
        y = trip(x)
        return x.clone() if y is x else y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0], None


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]
