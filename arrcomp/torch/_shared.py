"""Tensors of a structure: what they are called, and which of them are one and the same memory."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from ._tensors import row_of


class View(NamedTuple):
    """Where a tensor's values are. Equal views are one tensor, under several names or as several objects.

    Attributes:
        device: of the memory.
        storage: address of the memory.
        start: first byte of the tensor, from the start of the memory.
        end: end of its last element.
        shape: of the tensor.
        strides: of its dimensions, in elements.
        dtype: of its elements.
        plain: whether the values are those in memory, each of them once, and the tensor is nothing but them.
    """

    device: torch.device
    storage: int
    start: int
    end: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    plain: bool


def view_of(x: Tensor) -> View | None:
    """Where a tensor's values are; None where that is not a range of the CPU's or a CUDA device's memory."""
    if type(x) not in (Tensor, Parameter) or x.layout is not torch.strided or x.is_nested:
        return None
    if not (x.is_cpu or x.is_cuda):
        return None
    start, last = int(x.storage_offset()), -1
    if x.numel():
        last = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    once = x.numel() <= last + 1  # not with `expand`
    plain = once and not (x.is_conj() or x.is_neg() or (type(x) is Tensor and vars(x))) and _is_known(x.dtype)
    place = (x.device, x.untyped_storage().data_ptr(), start * x.itemsize, (start + last + 1) * x.itemsize)
    return View(*place, tuple(x.shape), tuple(x.stride()), x.dtype, plain)


def named_tensors(tree: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors in dicts, lists and tuples, nested as they like, by their keys and places joined by dots."""
    entered: set[int] = set()  # a container may be in several places, or in itself

    def walk(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Tensor]]:
        if isinstance(node, Tensor):
            yield ".".join(path), node
        elif isinstance(node, (dict, list, tuple)) and id(node) not in entered:
            entered.add(id(node))
            for key, child in node.items() if isinstance(node, dict) else enumerate(node):
                yield from walk(child, (*path, str(key)))

    return walk(tree, ())


def separable(named: Iterable[tuple[str, Tensor]]) -> dict[View, str]:
    """The views that can be stored by themselves, with the first name of each.

    Not those that share a part of their memory with another view, as a matrix and its transpose do.
    """
    names: dict[View, str] = {}
    for name, x in named:
        view = view_of(x)
        if view is not None:
            names.setdefault(view, name)
    shared = _overlapping(names)
    return {view: name for view, name in names.items() if view.plain and view not in shared}


def memory_order(x: Tensor) -> tuple[int, ...]:
    """The order of dimensions in which a tensor is contiguous, as `permute` takes it; as they are if there is none."""
    order = tuple(sorted(range(x.dim()), key=lambda i: -x.stride()[i]))
    return order if x.permute(order).is_contiguous() else tuple(range(x.dim()))


def _overlapping(views: Iterable[View]) -> set[View]:
    found: set[View] = set()
    furthest: View | None = None  # of the views so far in the same memory, the one that ends last
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


def _is_known(dtype: torch.dtype) -> bool:
    try:
        row_of(dtype)
    except TypeError:
        return False
    return True
