"""PyTorch files as arrays by name, for the command line: nested dicts, lists and tuples of tensors and plain values.

`read` gives NumPy arrays, and everything else as JSON, from which `write` makes the same structure again.
"""

import json
import pickle
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Parameter

from .. import _dtypes
from .._arguments import type_name
from .._arrays.numpy import numpy_bytes
from .._files.content import ONLY_NAME
from .._files.replacing import replacing
from ..errors import ArrcompError
from ._adapter import check_layout
from ._files import load, reasons_of_failures
from ._shared import View, view_of
from ._tensors import dtype_of, name_of, type_named

_EXPECTED = "tensors and plain values in dicts, lists and tuples"
_PLAIN = (bool, int, float, str)
_DICTS = {"dict": dict, "OrderedDict": OrderedDict}

Array = NDArray[Any]


def read(path: Path, max_nbytes: int | None = None) -> tuple[dict[str, Array], str]:
    """The tensors of a file that `torch.save` or `arrcomp.torch.save` wrote, by name, and its structure as JSON.

    Names are keys joined by dots. Tied tensors have the first of their names. The whole file is read into memory.

    Raises:
        ValueError: the file is damaged, or `torch.load` with ``weights_only=True`` refuses an object in it.
        TypeError: it has other objects than tensors and plain values, or a dtype that the format does not have.
        OSError: it cannot be read.
    """
    try:
        tree = load(path, "cpu", max_nbytes=max_nbytes)
    except (ArrcompError, OSError, MemoryError):
        raise
    except pickle.UnpicklingError:  # its text is a page, for people who call torch.load
        hint = "save model.state_dict() in place of a model"
        raise ValueError(
            f"{path}: expected {_EXPECTED}, got a file with other objects, or a damaged one; {hint}"
        ) from None
    except Exception as error:  # whatever else a damaged file leads to
        reason = str(error).partition("\n")[0].strip() or type(error).__name__
        raise ValueError(f"{path}: expected a file of torch.save, got another or a damaged one: {reason}") from None
    packer = _Packer(path)
    structure = json.dumps(packer.packed(tree, ()), separators=(",", ":"))
    return {name: _to_numpy(x) for name, x in packer.tensors.items()}, structure


def write(path: Path, arrays: Mapping[str, Array], structure: str | None) -> None:
    """Write a file for `torch.load`: of this structure, or without one a dict of tensors.

    Raises:
        ValueError: the structure is damaged, or is one of other arrays.
        TypeError: PyTorch has no such dtype.
        OSError: the file cannot be written.
    """
    tensors = {name: _to_tensor(arrays[name]) for name in arrays}
    tree = tensors if structure is None else _unpacked_tree(path, structure, tensors)
    with replacing(path) as temporary, temporary.open("wb") as file, reasons_of_failures():
        torch.save(tree, file)


class _Packer:
    """Turns a structure into plain JSON, in which tensors are names."""

    def __init__(self, path: Path) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._path = path
        self._names: dict[View, str] = {}
        self._entered: set[int] = set()

    def packed(self, node: Any, path: tuple[str, ...]) -> Any:
        """A node, whose path in the tree is that of its keys."""
        if node is None or type(node) in _PLAIN:
            return node
        if isinstance(node, Tensor):
            return {"tensor": self._named(node, path), "parameter": type(node) is Parameter, "grad": node.requires_grad}
        if isinstance(node, torch.Size):
            return {"size": list(node)}
        if isinstance(node, torch.dtype):
            return {"dtype": name_of(node)}
        if isinstance(node, torch.device):
            return {"device": str(node)}
        if id(node) in self._entered or type(node) not in (*_DICTS.values(), list, tuple):
            raise self._refused(node, path)
        self._entered.add(id(node))
        packed = self._packed_container(node, path)
        self._entered.remove(id(node))
        return packed

    def _packed_container(self, node: Any, path: tuple[str, ...]) -> Any:
        if not isinstance(node, dict):
            return {type(node).__name__: [self.packed(child, (*path, str(i))) for i, child in enumerate(node)]}
        for key in node:
            if key is not None and type(key) not in _PLAIN:
                raise self._refused(key, path)
        items = [[key, self.packed(child, (*path, str(key)))] for key, child in node.items()]
        versions = getattr(node, "_metadata", None)  # of a module's state_dict
        extra = {} if versions is None else {"metadata": self.packed(versions, (*path, "_metadata"))}
        return {type(node).__name__: items, **extra}

    def _named(self, x: Tensor, path: tuple[str, ...]) -> str:
        if type(x) not in (Tensor, Parameter) or x.is_quantized or x.is_meta:
            raise self._refused(x, path)
        check_layout(".".join(path) or "x", x)
        view = view_of(x) if x.numel() else None
        if view is not None and view in self._names:
            return self._names[view]
        wanted = ".".join(path) or ONLY_NAME
        name, number = wanted, 2
        while name in self.tensors:  # a key may have dots of its own
            name, number = f"{wanted}#{number}", number + 1
        self.tensors[name] = x
        if view is not None:
            self._names[view] = name
        return name

    def _refused(self, node: Any, path: tuple[str, ...]) -> TypeError:
        where = f", {'.'.join(path)}" if path else ""
        return TypeError(f"{self._path}{where}: expected {_EXPECTED}, got {type_name(node)}")


def _unpacked_tree(path: Path, structure: str, tensors: Mapping[str, Tensor]) -> Any:
    try:
        return _unpacked(json.loads(structure), tensors)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, StopIteration) as error:
        expected = "the structure of a PyTorch file with these arrays"
        raise ValueError(f"{path}: expected {expected}, got another or a damaged one: {error}") from None


def _unpacked(node: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The structure of a node of JSON."""
    if not isinstance(node, dict):
        return node
    kind, value = next(iter(node.items()))
    if kind == "tensor":
        x = tensors[value]
        return Parameter(x, node["grad"]) if node["parameter"] else x.requires_grad_() if node["grad"] else x
    if kind == "dtype":
        return next(kind for kind in vars(torch).values() if isinstance(kind, torch.dtype) and name_of(kind) == value)
    if kind in ("size", "device"):
        return torch.Size(value) if kind == "size" else torch.device(value)
    if kind in ("list", "tuple"):
        items = [_unpacked(child, tensors) for child in value]
        return items if kind == "list" else tuple(items)
    made: Any = _DICTS[kind]((key, _unpacked(child, tensors)) for key, child in value)
    if "metadata" in node:
        made._metadata = _unpacked(node["metadata"], tensors)
    return made


def _to_numpy(x: Tensor) -> Array:
    row, plain = dtype_of(x), x.detach().resolve_conj().resolve_neg().contiguous()
    array: Array = plain.reshape(-1).view(torch.uint8).numpy().view(row.numpy).reshape(tuple(x.shape))
    return array


def _to_tensor(x: Array) -> Tensor:
    tensor = torch.empty(x.shape, dtype=type_named(_dtypes.by_numpy(x.dtype).name))
    tensor.view(-1).view(torch.uint8).numpy()[:] = numpy_bytes(x)
    return tensor
