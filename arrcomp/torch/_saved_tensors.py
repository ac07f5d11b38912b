"""What a tensor is to those who keep it for the backward pass: whose memory it is, and in which order it lies there."""

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from ._shared import memory_order

# Nodes of autograd's graph whose result is their input's memory, or their input in another dtype.
_VIEWS = frozenset(
    f"{name}Backward0"
    for name in (
        "Alias", "AsStrided", "Detach", "Expand", "Permute", "Reshape", "ReshapeAlias", "Select", "Slice", "Split",
        "SplitWithSizes", "Squeeze", "T", "Transpose", "Unsqueeze", "UnsafeView", "View",
    )
)  # fmt: skip
_CASTS = frozenset(("ToCopyBackward0",))

_is_cached: Any = getattr(torch._C, "_is_cached_tensor", lambda x: False)


def belongs_to_leaf(x: Tensor) -> bool:
    """Whether a tensor is a parameter, or a view of one, or one in another dtype, as autocast makes it.

    Other leaves that require a gradient are as good as parameters, since autograd keeps them anyway; but not what is
    calculated from them.
    """
    if isinstance(x, Parameter) or isinstance(x._base, Parameter) or (x.is_leaf and x.requires_grad):
        return True
    node, cast = x.grad_fn, False
    while node is not None and node.name() in _VIEWS | _CASTS:
        cast |= node.name() in _CASTS
        node = node.next_functions[0][0]
    leaf = getattr(node, "variable", None)  # of AccumulateGrad
    return leaf is not None and (not cast or isinstance(leaf, Parameter))


def is_plain(x: Tensor) -> bool:
    """Whether a tensor is nothing but values in the memory of the CPU or of a CUDA device, each of them once."""
    if type(x) is not Tensor or x.layout is not torch.strided or x.is_nested or not (x.is_cpu or x.is_cuda):
        return False
    return 0 < x.numel() <= _extent(x) and not (x.is_conj() or x.is_neg())


def in_memory_order(x: Tensor) -> Tensor | None:
    """All values of a tensor in the order of memory, as a view of one dimension; None where there are gaps."""
    permuted = x.permute(memory_order(x))
    return permuted.reshape(-1) if permuted.is_contiguous() else None


def place_of(x: Tensor) -> Hashable:
    """Where the values of a tensor are: equal for tensors that have equal values, as long as its storage lives.

    A tensor without gaps, its transposes and what reshapes it are at one place. Changes that autograd is not told of,
    by `x.data` for instance, are not noticed here either.
    """
    at = (id(x.untyped_storage()), x.storage_offset(), x.dtype, x._version)
    dense = in_memory_order(x) is not None
    return (*at, x.numel()) if dense else (*at, tuple(x.shape), x.stride())


def is_tracked(x: Tensor) -> bool:
    """Whether another version of a tensor means other values: CUDA graphs of compiled code give the same one again."""
    return not _is_cached(x)


def with_layout(values: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """Values in memory as a tensor had them: compiled code counts on it.

    Args:
        values: in the order of memory, one-dimensional; or in that of the dimensions, where the tensor had gaps.
        shape: of the tensor.
        strides: of the tensor.
    """
    if values.dim() == 1 and _span(shape, strides) == values.numel():
        return values.as_strided(shape, strides)
    return torch.empty_strided(shape, strides, dtype=values.dtype, device=values.device).copy_(values)


def _extent(x: Tensor) -> int:
    return _span(tuple(x.shape), x.stride())


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last of a tensor that is not empty, in memory."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
