"""The tensors that autograd saves for a model's backward pass, and their memory: `saved_memory`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils import _pytree as pytree

from .._arguments import wrong_type
from ._saved_activations import CompressedTensor
from ._tensors import name_of

_RAW = "_raw_saved_"  # prefix of the node attributes that show a saved tensor without unpacking it
_sequence_number: Any = torch._C._autograd._get_sequence_nr


class SavedTensorRow(NamedTuple):
    """A tensor that a node of the autograd graph saves."""

    module: str  # path of the innermost module whose forward pass created the node; "" for the model itself
    operation: str  # name of the node, for instance "AddmmBackward0"
    name: str  # the node's name for the tensor, for instance "mat1", or "tensors[0]" in a list
    shape: tuple[int, ...]
    dtype: torch.dtype
    nbytes: int  # bytes of its whole storage, or of its payload; 0 if an earlier row has the same memory
    kind: (
        str  # "tensor"; "compressed" (by `compressed_activations`); or "parameter", a parameter or buffer of the model
    )
    shared: bool  # whether an earlier row has the same memory


@dataclass(frozen=True)
class SavedMemory:
    """The tensors that a model saves for the backward pass. ``print`` shows a table.

    Attributes:
        rows: the tensors, in the order of the forward pass.
    """

    rows: tuple[SavedTensorRow, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all storages, each counted once, without parameters and buffers."""
        return sum(row.nbytes for row in self.rows if row.kind != "parameter")

    @property
    def parameter_nbytes(self) -> int:
        """Bytes of saved parameters and buffers, which exist anyway."""
        return sum(row.nbytes for row in self.rows if row.kind == "parameter")

    def __str__(self) -> str:
        headers = ("module", "operation", "saved", "shape", "dtype", "kind", "bytes")
        cells = [headers, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
        return "\n".join([*lines, f"{self.nbytes:,} bytes, and {self.parameter_nbytes:,} of parameters and buffers"])


def saved_memory(model: Callable[..., Any], inputs: Any) -> SavedMemory:
    """Run a model's forward pass, and list what autograd saves for the backward pass.

    The list is read from the graph of the model's outputs. It shows what `compressed_activations` (around the call or
    in the model) compressed, and what the node of a compiled function saves. It does not show the inputs of regions of
    `torch.utils.checkpoint` (``use_reentrant=False``), nor tensors that a `torch.autograd.Function` keeps without
    `save_for_backward`.

    The model runs once, in its current mode (call `train()` before), with gradients: random numbers are drawn and
    running statistics are updated. On the meta device this needs no memory.

    Args:
        model: a module, or any function of tensors. For a function, `module` is "" in all rows, and only
            `torch.nn.Parameter`s count as parameters.
        inputs: a tensor, a tuple or list of positional arguments, or a mapping of keyword arguments.

    Raises:
        TypeError: `model` is not callable.
        ValueError: no output requires a gradient.
        RuntimeError: this version of PyTorch does not show what its graph saves.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU())
    >>> print(saved_memory(model, torch.ones(4, 8)))
    module  operation       saved  shape    dtype    kind    bytes
    0       AddmmBackward0  mat1   [4, 8]   float32  tensor  128
    1       GeluBackward0   self   [4, 32]  float32  tensor  512
    640 bytes, and 0 of parameters and buffers
    """
    if not callable(model):
        raise wrong_type("model", "a torch.nn.Module or a function", model)
    kwargs = inputs if isinstance(inputs, Mapping) else {}
    args = () if isinstance(inputs, Mapping) else inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    calls = _Calls()
    with ExitStack() as stack, torch.enable_grad():
        if isinstance(model, Module):
            for path, module in _followed(model):
                stack.callback(module.register_forward_pre_hook(calls.enter(path)).remove)
                stack.callback(module.register_forward_hook(calls.leave, always_call=True).remove)
        outputs = model(*args, **kwargs)
    nodes = [x.grad_fn for x in pytree.tree_leaves(outputs) if isinstance(x, Tensor) and x.grad_fn is not None]
    if not nodes:
        expected = "expected an output that requires a gradient, got none"
        raise ValueError(f"model: {expected}; a parameter or an input must require one")
    owned = [*model.parameters(), *model.buffers()] if isinstance(model, Module) else []
    known = {id(_memory(x)) for x in owned}
    return SavedMemory(tuple(_rows(_nodes(nodes), calls, known)))


class _Calls:
    """Finds the module that created a node, by autograd's sequence numbers."""

    def __init__(self) -> None:
        self._done: list[tuple[str, int, int]] = []  # path, and the numbers from the first to the end
        self._running: list[tuple[str, int]] = []

    def enter(self, path: str) -> Callable[..., None]:
        return lambda *_: self._running.append((path, _sequence_number()))

    def leave(self, *_: Any) -> None:
        if self._running:
            self._done.append((*self._running.pop(), _sequence_number()))

    def path(self, node: Any) -> str:
        # The innermost module ends first.
        return next((path for path, first, end in self._done if first <= node._sequence_nr() < end), "")


def _followed(model: Module) -> Iterator[tuple[str, Module]]:
    """Modules by path, without those inside compiled ones, where hooks would trigger recompilation."""
    compiled: list[str] = []
    for path, module in model.named_modules():
        if any(path.startswith(f"{outer}." if outer else "") for outer in compiled):
            continue
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            compiled.append(path)
        else:
            yield path, module


def _nodes(roots: Iterable[Any]) -> list[Any]:
    """The nodes of a graph, in the order of their creation."""
    found: dict[Any, None] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += [parent for parent, _ in node.next_functions if parent is not None]
    return sorted(found, key=lambda node: int(node._sequence_nr()))


def _rows(nodes: Iterable[Any], calls: _Calls, parameters: set[int]) -> Iterator[SavedTensorRow]:
    seen: dict[int, Any] = {}  # by id; the references keep the ids valid
    for node in nodes:
        for name, kept in _kept_by(node):
            memory, nbytes, kind = _memory_of(kept, parameters)
            shared = id(memory) in seen
            seen[id(memory)] = memory
            about = (tuple(kept.shape), kept.dtype, 0 if shared else nbytes, kind, shared)
            yield SavedTensorRow(calls.path(node), node.name(), name, *about)


def _kept_by(node: Any) -> Iterator[tuple[str, Tensor | CompressedTensor]]:
    for attribute in dir(node):
        if attribute.startswith(_RAW):
            name, raw = attribute.removeprefix(_RAW), getattr(node, attribute)
            several = isinstance(raw, (tuple, list))
            for index, saved in enumerate(raw if several else [raw]):
                for kept in _contents(saved):
                    yield f"{name}[{index}]" if several else name, kept


def _contents(saved: Any) -> list[Tensor | CompressedTensor]:
    """The tensors in a saved variable: one, none, or what hooks packed."""
    if not hasattr(saved, "data"):
        expected = "a version that shows what its graph saves"
        raise RuntimeError(f"torch: expected {expected}, got {torch.__version__}; install a newer one")
    leaves = pytree.tree_leaves(saved.data, is_leaf=lambda node: isinstance(node, CompressedTensor))
    return [leaf for leaf in leaves if isinstance(leaf, (Tensor, CompressedTensor))]


def _memory_of(kept: Tensor | CompressedTensor, parameters: set[int]) -> tuple[Any, int, str]:
    """The object that holds a tensor's values, its bytes, and the row's kind."""
    if isinstance(kept, CompressedTensor):
        return kept.stored, kept.nbytes, "compressed"
    memory = _memory(kept)
    nbytes = memory.nbytes() if isinstance(memory, torch.UntypedStorage) else kept.numel() * kept.itemsize
    is_parameter = id(memory) in parameters or isinstance(kept, torch.nn.Parameter)
    return memory, nbytes, "parameter" if is_parameter else "tensor"


def _memory(x: Tensor) -> torch.UntypedStorage | Tensor:
    """The storage of a tensor; the tensor itself if it has none (sparse, or a wrapper subclass)."""
    try:
        return x.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return x


def _cells(row: SavedTensorRow) -> tuple[str, ...]:
    size = "as above" if row.shared else f"{row.nbytes:,}"
    return row.module, row.operation, row.name, str(list(row.shape)), name_of(row.dtype), row.kind, size
