"""Models whose weights stay compressed in memory: `compress_weights`, and back."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..._api.compress import checked_unaided_codec
from ..._arguments import checked_integer, wrong_type
from ...codecs import Codec
from ...codecs._rules import Rule, checked_rules, codec_for
from .._functions import compress
from .._tensors import ROWS
from .blocks import Block, Place, block_of, find_blocks, places_of, replace_weights
from .memory import SharedMemory
from .weight import CompressedWeight

Patterns = tuple[str, ...]

_DEVICES = ("cpu", "cuda")
_LEAST_SAVED = 1 / 32  # of a weight's bytes; what saves less is not worth the time


@dataclass(frozen=True)
class WeightMemory:
    """What the parameters of a model take in memory, in bytes. ``print`` shows it in a line.

    Attributes:
        nbytes: what they take: payloads of compressed weights, and the others as they are.
        plain_nbytes: what they would take without compression.
        shared_nbytes: memory for the plain weights of the blocks that run; 0 before the first forward pass.
        compressed: number of compressed weights.
    """

    nbytes: int
    plain_nbytes: int
    shared_nbytes: int
    compressed: int

    def __str__(self) -> str:
        share = 100 * (self.nbytes + self.shared_nbytes) / max(self.plain_nbytes, 1)
        return (
            f"{self.nbytes:,} bytes of parameters and {self.shared_nbytes:,} of shared memory "
            f"instead of {self.plain_nbytes:,} ({share:.1f} %); {self.compressed} weights are compressed"
        )


def compress_weights(
    model: nn.Module,
    codec: Codec | Sequence[Rule] | None = None,
    *,
    blocks: str | Iterable[str] | None = None,
    skip: str | Iterable[str] = (),
    min_size: int = 4096,
) -> nn.Module:
    """Keep a model's weights compressed in memory, in place.

    Each weight becomes a frozen `CompressedWeight`. The weights of a block of the model, for instance a layer of a
    transformer, are decompressed just before its forward pass, into memory that all blocks share; on CUDA those of the
    next block meanwhile, on another stream (two blocks have memory there). So a model takes its compressed weights and
    one or two plain blocks. With a lossless codec its outputs are bit for bit those of the plain model. (T. Zhang et
    al., "DFloat11", arXiv:2504.11651, do this for bfloat16 on GPUs.)

    With gradients enabled, or in code of `torch.compile`, operators decompress the weights one by one, and again in the
    backward pass. So adapters on top of a compressed model can be trained (LoRA), and the inputs have gradients.

    A weight that several modules share stays shared. Parameters stay plain if they are small, if their data type is
    none that `arrcomp` has, if they save less than a thirty-second part, or if they belong to a module that is no block
    and has others in it. `load_state_dict` takes plain and compressed values; those of `state_dict` are compressed.
    `model.to(device)` moves compressed weights. `model.half()` and other changes of the dtype compress them again, with
    the same codec. Threads that run a model take turns, block by block.

    Args:
        model: it is changed. Its compressed weights need no gradient any more.
        codec: the codec, or rules that choose one for each parameter, by the names of `model.named_parameters()`; None
            for `Lossless()`.
        blocks: patterns of `fnmatch` for the names of the modules to be decompressed at once, of which the outermost
            count; None for the items of the outermost `ModuleList` and `Sequential`. Modules beside them that have no
            modules in them are blocks of their own.
        skip: patterns for the names of parameters that stay plain.
        min_size: parameters with fewer values stay plain.

    Raises:
        TypeError: an argument is of a wrong type, or a parameter is neither on the CPU nor on CUDA.
        ValueError: a codec needs a seed or a reference, a pattern matches nothing, `min_size` is negative, or the model
            has compressed weights already. The model is unchanged then.

    Returns:
        The model.

    >>> import torch, arrcomp.torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)).bfloat16()
    >>> x = torch.randn(3, 256, dtype=torch.bfloat16)
    >>> with torch.no_grad():
    ...     before = model(x)
    ...     after = arrcomp.torch.compress_weights(model)(x)
    >>> bool((before == after).all()), arrcomp.torch.weight_memory(model).compressed
    (True, 2)
    """
    if not isinstance(model, nn.Module):
        raise wrong_type("model", "a torch.nn.Module", model)
    if any(block_of(module) for module in model.modules()):
        raise ValueError("model: expected one with plain weights, got one that compress_weights has changed")
    rules = checked_weight_rules(codec)
    chosen = compressible(model, blocks, skip, min_size)
    parameters = [parameter for _, own in chosen for parameter in own]
    _check_devices(parameters)
    replace_weights(parameters, lambda name, weight: compressed_parameter(weight, rules, name))
    add_blocks([module for module, _ in chosen])
    return model


def decompress_weights(model: nn.Module) -> nn.Module:
    """Make a model's compressed weights ordinary parameters again, in place. They need no gradient yet.

    Raises TypeError if `model` is not a module. Returns the model.
    """
    if not isinstance(model, nn.Module):
        raise wrong_type("model", "a torch.nn.Module", model)
    for module in list(model.modules()):
        block = block_of(module)
        if block is not None:
            block.remove()
    compressed = [("", place) for place in places_of(model) if isinstance(place.weight, CompressedWeight)]
    replace_weights(compressed, lambda _, weight: nn.Parameter(weight.decompressed(), requires_grad=False))
    return model


def weight_memory(model: nn.Module) -> WeightMemory:
    """What a model's parameters take in memory, compressed and plain. A shared one is counted once.

    Raises TypeError if `model` is not a module.
    """
    if not isinstance(model, nn.Module):
        raise wrong_type("model", "a torch.nn.Module", model)
    weights = list({id(place.weight): place.weight for place in places_of(model)}.values())
    compressed = [weight for weight in weights if isinstance(weight, CompressedWeight)]
    plain = sum(weight.numel() * weight.itemsize for weight in weights)
    taken = sum(weight._payload.numel() - weight.numel() * weight.itemsize for weight in compressed)
    memories = {id(block.memory): block.memory for block in map(block_of, model.modules()) if block is not None}
    return WeightMemory(plain + taken, plain, sum(memory.nbytes for memory in memories.values()), len(compressed))


def checked_weight_rules(codec: Any) -> tuple[Rule, ...]:
    """The rules for weights; ValueError for codecs that need more than the values, which are compressed at any time."""
    rules = checked_rules(codec)
    for rule in rules:
        checked_unaided_codec(rule.codec)
    return rules


def compressed_parameter(weight: Tensor, rules: Sequence[Rule], name: str) -> Tensor:
    """The weight, compressed by the codec of the first rule that fits; itself if that saves little."""
    x = weight.detach()
    made = compress(x, codec_for(rules, name, ROWS[x.dtype], tuple(x.shape))).trim()
    return CompressedWeight(made) if made.payload.nbytes <= (1 - _LEAST_SAVED) * x.nbytes else weight


def add_blocks(modules: Iterable[nn.Module]) -> None:
    """Make blocks of those modules that have compressed weights."""
    memory = SharedMemory()
    for module in modules:
        if any(isinstance(place.weight, CompressedWeight) for place in places_of(module)):
            Block(module, memory)


def compressible(
    model: nn.Module, blocks: str | Iterable[str] | None, skip: str | Iterable[str], min_size: int
) -> list[tuple[nn.Module, list[tuple[str, Place]]]]:
    """The blocks, with the names and places of their parameters that `compress_weights` compresses; and its errors."""
    checked_integer("min_size", min_size, 0, float("inf"))
    block_patterns, skipped = checked_patterns("blocks", blocks), checked_patterns("skip", skip)
    _check_matched("blocks", block_patterns, (name for name, _ in model.named_modules()))
    _check_matched("skip", skipped, (name for name, _ in model.named_parameters(remove_duplicate=False)))
    modules = find_blocks(model, None if blocks is None else partial(_matches, block_patterns))
    return [(module, list(_parameters(path, module, skipped, min_size))) for path, module in modules]


def _parameters(path: str, module: nn.Module, skipped: Patterns, min_size: int) -> Iterator[tuple[str, Place]]:
    for name, weight in module.named_parameters(remove_duplicate=False):
        owner, _, own = name.rpartition(".")
        full = f"{path}.{name}" if path else name
        if not _matches(skipped, full) and _may_be_compressed(weight, min_size):
            yield full, Place(module.get_submodule(owner), own)


def _check_devices(parameters: Iterable[tuple[str, Place]]) -> None:
    for name, place in parameters:
        kind = place.weight.device.type
        if kind not in _DEVICES:
            raise TypeError(f"model: expected parameters on 'cpu' or 'cuda', got {name!r} on {kind!r}")


def _may_be_compressed(weight: Tensor, min_size: int) -> bool:
    is_dense = type(weight) is nn.Parameter and weight.layout is torch.strided
    return is_dense and weight.numel() >= max(min_size, 1) and weight.dtype in ROWS


def checked_patterns(name: str, value: str | Iterable[str] | None) -> Patterns:
    """The patterns; none for None. TypeError unless they are strings."""
    several = (value,) if isinstance(value, str) else () if value is None else value
    patterns = tuple(several) if isinstance(several, Iterable) else (several,)
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise wrong_type(name, "a string, or several", value)
    return patterns


def _matches(patterns: Patterns, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _check_matched(argument: str, patterns: Patterns, names: Iterable[str]) -> None:
    known = list(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise ValueError(f"{argument}: expected patterns that match a name of the model, got {pattern!r}")
