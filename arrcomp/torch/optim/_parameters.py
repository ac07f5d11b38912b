"""Layout of state tensors: the device, memory order and sharding of their parameter."""

import sys
from typing import Any

import torch
from torch import Tensor


def is_compressible(x: Tensor, parameter: Tensor) -> bool:
    """Whether a state tensor can be compressed: it is dense, and sharded like its parameter."""
    if x.layout is not torch.strided or x.is_nested or x.is_meta:
        return False
    if not (_is_distributed(parameter) or _is_distributed(x)):
        return True
    return _is_distributed(parameter) and _is_distributed(x) and _sharding(x) == _sharding(parameter)


def local(x: Tensor) -> Tensor:
    """This process's shard of a DTensor; other tensors are returned as they are."""
    return x.to_local() if _is_distributed(x) else x  # type: ignore[attr-defined]


def with_layout_of(x: Tensor, parameter: Tensor) -> Tensor:
    """A decompressed shard with the memory order and sharding of its parameter: the inverse of `local`.

    PyTorch's optimizers are faster if state has the memory order of its parameter (for instance
    `torch.channels_last`), and some require it.
    """
    shard = local(parameter)
    if x.shape == shard.shape and x.stride() != shard.stride():
        x = torch.empty_like(shard, dtype=x.dtype, requires_grad=False).copy_(x)
    if not _is_distributed(parameter):
        return x
    whole: Any = parameter
    shaped = {"shape": whole.shape, "stride": whole.stride(), "run_check": False}
    sharded: Tensor = type(whole).from_local(x, whole.device_mesh, whole.placements, **shaped)
    return sharded


def _sharding(x: Any) -> tuple[Any, ...]:
    return x.device_mesh, x.placements, x.shape


def _is_distributed(x: Tensor) -> bool:
    module = sys.modules.get("torch.distributed.tensor")  # importing it is slow; without it there are no DTensors
    return module is not None and isinstance(x, module.DTensor)
