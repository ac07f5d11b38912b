"""Modules whose weights are decompressed together, just before their forward pass."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .memory import SharedMemory
from .weight import CompressedWeight

_ATTRIBUTE = "_arrcomp_block"  # of a block's module


class Place(NamedTuple):
    """Where a module has a parameter."""

    module: nn.Module
    name: str

    @property
    def weight(self) -> Any:
        """The parameter; None without one."""
        return self.module._parameters.get(self.name)

    def put(self, weight: Tensor) -> None:
        """Replace the parameter for a forward pass: what `setattr` does, in a time that small models notice."""
        self.module._parameters[self.name] = weight  # type: ignore[assignment]


class Block:
    """A module with compressed weights, and the hooks of its forward pass.

    While that runs without gradients, the module has ordinary parameters in shared memory. With gradients, and in
    compiled code, it keeps the compressed ones, which each operator decompresses, in the backward pass again: no plain
    weight has to stay for it.
    """

    def __init__(self, module: nn.Module, memory: SharedMemory) -> None:
        self.module = module
        self.memory = memory
        self._swapped: list[tuple[Place, CompressedWeight]] = []
        self._running: list[bool] = []  # forward passes in one another: whether each is without gradients
        self._hooks = [
            module.register_forward_pre_hook(self._before),
            module.register_forward_hook(self._after, always_call=True),
        ]
        memory.register(self, Block.weights)
        module.__dict__[_ATTRIBUTE] = self

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self.memory.register(self, Block.weights)

    def weights(self) -> list[CompressedWeight]:
        """The weights that are compressed now."""
        return [weight for _, weight in self._places()]

    def remove(self) -> None:
        """Leave the module without hooks."""
        for hook in self._hooks:
            hook.remove()
        del self.module.__dict__[_ATTRIBUTE]

    def _places(self) -> list[tuple[Place, CompressedWeight]]:
        found = [(place, place.weight) for place in places_of(self.module)]
        return [(place, weight) for place, weight in found if type(weight) is CompressedWeight]

    def _before(self, module: nn.Module, inputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self.memory.begin(self, self._end)
        is_first = not any(self._running)
        self._running.append(not torch.is_grad_enabled())
        if self._running[-1] and is_first:
            swapped = self._places()
            plain = self.memory.parameters(self, [weight for _, weight in swapped])
            self._swapped = swapped
            for place, weight in swapped:
                place.put(plain[id(weight)])

    def _after(self, module: nn.Module, inputs: Any, result: Any) -> Any:
        if torch.compiler.is_compiling() or not self.memory.finish(self):
            return None
        return self.memory.copied(result)

    def _end(self) -> None:
        if self._running.pop() and not any(self._running):
            for place, weight in self._swapped:
                place.put(weight)
            self._swapped = []
            self.memory.release(self)


def block_of(module: nn.Module) -> Block | None:
    """The block that a module is."""
    block: Block | None = module.__dict__.get(_ATTRIBUTE)
    return block


def places_of(module: nn.Module) -> Iterator[Place]:
    """Where a module and those in it have parameters."""
    for own in module.modules():
        for name, parameter in own._parameters.items():
            if parameter is not None:
                yield Place(own, name)


def replace_weights(places: Iterable[tuple[str, Place]], make: Callable[[str, Any], Tensor]) -> None:
    """Put make(name, weight) in place of each weight. One that has several places stays one, by its first name."""
    made: dict[int, Tensor] = {}  # by the ids of weights that are replaced, all of which are there before
    done: set[Place] = set()  # blocks may share a module
    for name, place in places:
        if place in done:
            continue
        done.add(place)
        weight = place.weight
        if id(weight) not in made:
            made[id(weight)] = make(name, weight)
        setattr(place.module, place.name, made[id(weight)])  # modules such as LSTM keep it elsewhere, too


def find_blocks(model: nn.Module, is_block: Callable[[str], bool] | None) -> list[tuple[str, nn.Module]]:
    """The modules to be blocks, by name.

    These are, from the model down, those for whose names `is_block` is true; without it the items of lists of modules.
    Beside them, each module with parameters of its own and no modules in it.
    """
    found: list[tuple[str, nn.Module]] = []
    seen: set[nn.Module] = set()

    def walk(name: str, module: nn.Module, is_item: bool) -> None:
        if module in seen:
            return
        seen.add(module)
        if (is_item if is_block is None else is_block(name)) or not module._modules:
            found.append((name, module))
            seen.update(module.modules())
            return
        has_items = isinstance(module, (nn.ModuleList, nn.Sequential))
        for key, child in module.named_children():
            walk(f"{name}.{key}" if name else key, child, has_items)

    walk("", model, False)
    return found
