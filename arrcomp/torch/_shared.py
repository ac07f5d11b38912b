"""Tensors of a structure: their names, and which of them share memory."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from .._format.stream import is_writable
from ._tensors import ROWS


class View(NamedTuple):
    """The memory of a tensor. Equal views are the same tensor under several names or as several objects."""

    device: torch.device
    storage: int  # its address
    start: int  # byte offset of the first element in the storage
    end: int  # byte offset of the end of the last element
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    # Memory, shape, strides and dtype describe the tensor completely, no element is shared, and the format has both.
    plain: bool


def view_of(x: Tensor) -> View | None:
    """The view of a tensor; None unless its values are a range of CPU or CUDA memory."""
    if type(x) not in (Tensor, Parameter) or x.layout is not torch.strided or x.is_nested:
        return None
    if not (x.is_cpu or x.is_cuda):
        return None
    start, last = int(x.storage_offset()), -1
    if x.numel():
        last = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    unshared = x.numel() <= last + 1  # False after `expand`
    marked = x.is_conj() or x.is_neg() or (type(x) is Tensor and vars(x))
    shape, row = tuple(x.shape), ROWS.get(x.dtype)
    plain = unshared and not marked and row is not None and is_writable(shape, row)
    memory = (x.device, x.untyped_storage().data_ptr(), start * x.itemsize, (start + last + 1) * x.itemsize)
    return View(*memory, shape, tuple(x.stride()), x.dtype, plain)


def named_tensors(tree: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors in nested dicts, lists and tuples, named by their keys and indices joined by dots."""
    entered: set[int] = set()  # a container may occur several times, or in itself

    def walk(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Tensor]]:
        if isinstance(node, Tensor):
            yield ".".join(path), node
        elif isinstance(node, (dict, list, tuple)) and id(node) not in entered:
            entered.add(id(node))
            for key, child in node.items() if isinstance(node, dict) else enumerate(node):
                yield from walk(child, (*path, str(key)))

    return walk(tree, ())


def separable(named: Iterable[tuple[str, Tensor]]) -> dict[View, str]:
    """The views that can be stored alone, with the first name of each.

    Views that share memory with a different view, for instance a matrix and its transpose, are left out.
    """
    names: dict[View, str] = {}
    for name, x in named:
        view = view_of(x)
        if view is not None:
            names.setdefault(view, name)
    shared = _overlapping(names)
    return {view: name for view, name in names.items() if view.plain and view not in shared}


def memory_order(x: Tensor) -> tuple[int, ...]:
    """The dimensions for `permute` that make a tensor contiguous; unchanged if none do."""
    order = tuple(sorted(range(x.dim()), key=lambda i: -x.stride()[i]))
    return order if x.permute(order).is_contiguous() else tuple(range(x.dim()))


def _overlapping(views: Iterable[View]) -> set[View]:
    found: set[View] = set()
    furthest: View | None = None  # the view of the same storage that ends last so far
    for view in sorted(views, key=lambda view: (str(view.device), view.storage, view.start)):
        if view.start == view.end:
            continue
        if furthest is None or (furthest.device, furthest.storage) != (view.device, view.storage):
            furthest = view
            continue
        if view.start < furthest.end:
            found |= {view, furthest}
        furthest = max(view, furthest, key=lambda view: view.end)
    return found
