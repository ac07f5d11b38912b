"""Memory and layout of the tensors that autograd saves for the backward pass."""

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from ._shared import memory_order

# Autograd nodes whose result shares memory with their input, or is their input in another dtype.
_VIEWS = frozenset(
    f"{name}Backward0"
    for name in (
        "Alias", "AsStrided", "Detach", "Expand", "Permute", "Reshape", "ReshapeAlias", "Select", "Slice", "Split",
        "SplitWithSizes", "Squeeze", "T", "Transpose", "Unsqueeze", "UnsafeView", "View",
    )
)  # fmt: skip
_CAST = "ToCopyBackward0"

_is_cached: Any = getattr(torch._C, "_is_cached_tensor", lambda x: False)


def belongs_to_leaf(x: Tensor) -> bool:
    """Whether a tensor is a parameter, a view of one, or a cast of one (as by autocast).

    Other leaves that require a gradient, and their views, count too, since autograd keeps them anyway; their casts do
    not.
    """
    if isinstance(x, Parameter) or isinstance(x._base, Parameter) or (x.is_leaf and x.requires_grad):
        return True
    node, cast = x.grad_fn, False
    while node is not None and (node.name() in _VIEWS or node.name() == _CAST):
        cast |= node.name() == _CAST
        node = node.next_functions[0][0]
    leaf = getattr(node, "variable", None)  # of AccumulateGrad
    return leaf is not None and (not cast or isinstance(leaf, Parameter))


def is_plain(x: Tensor) -> bool:
    """Whether a tensor is dense, in CPU or CUDA memory, not lazily conjugated, and without repeated elements."""
    if type(x) is not Tensor or x.layout is not torch.strided or x.is_nested or not (x.is_cpu or x.is_cuda):
        return False
    return 0 < x.numel() <= _span(tuple(x.shape), x.stride()) and not (x.is_conj() or x.is_neg())


def in_memory_order(x: Tensor) -> Tensor | None:
    """A one-dimensional view of all values in memory order; None if the memory has gaps."""
    permuted = x.permute(memory_order(x))
    return permuted.reshape(-1) if permuted.is_contiguous() else None


def values_key(x: Tensor) -> Hashable:
    """A key that identifies the values of a tensor while its storage lives.

    A tensor without gaps, its transposes and its reshapes have the same key. Changes that autograd does not see, for
    instance through `x.data`, do not change the key.
    """
    memory = (id(x.untyped_storage()), x.storage_offset(), x.dtype, x._version)
    dense = in_memory_order(x) is not None
    return (*memory, x.numel()) if dense else (*memory, tuple(x.shape), x.stride())


def is_tracked(x: Tensor) -> bool:
    """Whether the version counter tells when values change. CUDA graphs of compiled code reuse tensors without it."""
    return not _is_cached(x)


def with_layout(values: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """A tensor with given strides, which compiled code relies on.

    `values` are one-dimensional, in memory order; or of shape `shape`, if the tensor had gaps.
    """
    if values.dim() == 1 and _span(shape, strides) == values.numel():
        return values.as_strided(shape, strides)
    return torch.empty_strided(shape, strides, dtype=values.dtype, device=values.device).copy_(values)


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements of memory from the first to the last element of a non-empty tensor."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
