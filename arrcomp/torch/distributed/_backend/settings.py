"""What users set on a group of the backend while the program runs."""

from dataclasses import replace
from typing import Any

import torch.distributed as dist

from .._arguments import Processes
from .group import CompressingGroup
from .options import BackendOptions

_FIXED = ("backends", "nccl")


def configure(group: Any = None, **changes: Any) -> BackendOptions:
    """Change what the backend "arrcomp" does with a group's all-reduces from now on.

    All processes of the group must do so, between the same all-reduces.

    Args:
        group: of the backend "arrcomp", made with options; None for the default group.
        changes: fields of `BackendOptions`, as `codec=QSGD(bits=4)`, but `backends` and `nccl`. None changes nothing.

    Returns:
        The options that now hold.

    Raises:
        RuntimeError: torch.distributed is not initialized.
        TypeError, ValueError: the group is not one of the backend, or an option is unknown or not allowed.
    """
    target = _group(group)
    for name in _FIXED:
        if name in changes:
            raise ValueError(f"{name}: what is underneath a group is chosen when it is made; pass it as pg_options")
    target.configure(replace(target.options, **changes))
    return target.options


def register_layer(
    bucket_index: int, layer_index: int, numel: int, bits: int, bucket_size: int = 512, *, group: Any = None
) -> None:
    """Tell where a layer is in a flattened bucket of gradients, and how it is quantized.

    An all-reduce of as many elements as all layers of a bucket have together is cut at them, in the order of their
    indices. (Buckets with equally many take turns.) Any other one goes on as if nothing were registered. This is for
    reducers and hooks of one's own; for `DistributedDataParallel` a communication hook sees the layers itself.

    Args:
        bucket_index: of the bucket, from 0 on.
        layer_index: of the layer in its bucket, from 0 on.
        numel: elements of the layer.
        bits: of each value, 1 to 8; above 8 (CGX: 32) the layer is not compressed, as biases and norms had better not
            be. Layers with fewer than `BackendOptions.minimal_size` elements are not either.
        bucket_size: values that are quantized together.
        group: of the backend "arrcomp", made with options; None for the default group.

    Raises:
        RuntimeError: torch.distributed is not initialized.
        TypeError, ValueError: an argument is not allowed.
    """
    _group(group).layers.register(bucket_index, layer_index, numel, bits, bucket_size)


def set_quantization_bits(bucket_index: int, layer_index: int, bits: int, *, group: Any = None) -> None:
    """Change the bits of a registered layer; above 8 it is not compressed.

    Raises:
        KeyError: the layer is not registered.
        RuntimeError, TypeError, ValueError: as `register_layer`.
    """
    _group(group).layers.set_bits(bucket_index, layer_index, bits)


def set_quantization_bucket_size(bucket_index: int, layer_index: int, bucket_size: int, *, group: Any = None) -> None:
    """Change how many values of a registered layer are quantized together.

    Raises:
        KeyError: the layer is not registered.
        RuntimeError, TypeError, ValueError: as `register_layer`.
    """
    _group(group).layers.set_bucket_size(bucket_index, layer_index, bucket_size)


def _group(group: Any) -> CompressingGroup:
    found = Processes.of(group).group
    if not isinstance(found, CompressingGroup):
        made = "dist.new_group(..., backend='arrcomp', pg_options=BackendOptions(...)) makes one"
        raise TypeError(f"group: nothing in it is compressed, its backend is {dist.get_backend(found)}; {made}")
    return found
