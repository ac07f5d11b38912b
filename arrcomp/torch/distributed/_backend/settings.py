"""Settings of a group of the backend that can change while the program runs."""

from dataclasses import replace
from typing import Any

import torch.distributed as dist

from .._arguments import Processes
from .group import CompressingGroup
from .options import BackendOptions


def configure(group: Any = None, **changes: Any) -> BackendOptions:
    """Change the options of a group of the backend "arrcomp".

    All ranks of the group must call this between the same all-reduces.

    `changes` are fields of `BackendOptions`, for instance `codec=QSGD(bits=4)`, except `backends` and `nccl`. Without
    any, nothing changes. Returns the new options. `group` and errors are those of `register_layer`; an unknown or
    invalid option is a TypeError or ValueError too.
    """
    target = _group(group)
    for name in ("backends", "nccl"):
        if name in changes:
            raise ValueError(f"changes: expected options that can change, got {name}; pass it when creating the group")
    target.configure(replace(target.options, **changes))
    return target.options


def register_layer(
    bucket_index: int, layer_index: int, numel: int, bits: int, bucket_size: int = 512, *, group: Any = None
) -> None:
    """Register a layer of a flattened bucket of gradients, and how to quantize it.

    An all-reduce with the total number of elements of a bucket's layers is split into them, in the order of their
    indices. (Buckets of equal size take turns.) Other all-reduces are not affected. Use this for your own reducers and
    hooks; for `DistributedDataParallel`, `quantized_allreduce_hook` finds the layers itself.

    Args:
        bucket_index: of the bucket, from 0.
        layer_index: of the layer in its bucket, from 0.
        numel: elements of the layer.
        bits: of each value, 1 to 8; above 8 (CGX: 32) the layer is not compressed, which is best for biases and norms.
            Layers with fewer than `BackendOptions.minimal_size` elements are not compressed either.
        bucket_size: values that are quantized with one scale.
        group: of the backend "arrcomp", created with options; None for the default group.

    Raises:
        RuntimeError: torch.distributed is not initialized.
        TypeError, ValueError: an argument is invalid.
    """
    _group(group).layers.register(bucket_index, layer_index, numel, bits, bucket_size)


def set_quantization_bits(bucket_index: int, layer_index: int, bits: int, *, group: Any = None) -> None:
    """Change the bits of a registered layer; above 8 it is not compressed.

    It is a KeyError if the layer is not registered. Other errors are those of `register_layer`.
    """
    _group(group).layers.set_bits(bucket_index, layer_index, bits)


def set_quantization_bucket_size(bucket_index: int, layer_index: int, bucket_size: int, *, group: Any = None) -> None:
    """Change the bucket size of a registered layer. Errors are those of `set_quantization_bits`."""
    _group(group).layers.set_bucket_size(bucket_index, layer_index, bucket_size)


def _group(group: Any) -> CompressingGroup:
    found = Processes.of(group).group
    if not isinstance(found, CompressingGroup):
        raise TypeError(
            f"group: expected one of the backend arrcomp with options, got backend {dist.get_backend(found)}; "
            "dist.new_group(..., backend='arrcomp', pg_options=BackendOptions(...)) creates one"
        )
    return found
