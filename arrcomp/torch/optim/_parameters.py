"""Where state is: on the device, in the order and with the shards of its parameter."""

import sys
from typing import Any

import torch
from torch import Tensor


def is_compressible(x: Tensor, parameter: Tensor) -> bool:
    """Whether a tensor in the state of a parameter can be compressed, and come back as it was: a dense one.

    Of a parameter that is a DTensor those are compressed that are sharded as it is.
    """
    if x.layout is not torch.strided or x.is_nested or x.is_meta:
        return False
    if not (_is_distributed(parameter) or _is_distributed(x)):
        return True
    return _is_distributed(parameter) and _is_distributed(x) and _sharding(x) == _sharding(parameter)


def local(x: Tensor) -> Tensor:
    """What this process has of a tensor."""
    if not _is_distributed(x):
        return x
    part: Tensor = x.to_local()  # type: ignore[attr-defined]
    return part


def with_layout_of(x: Tensor, parameter: Tensor) -> Tensor:
    """A decompressed tensor as it was in the state of a parameter: `local` turned back, and in its order in memory.

    PyTorch's optimizers take the fast way where states are in the order of their parameters, for instance
    `torch.channels_last`; some take no other.
    """
    mine = local(parameter)
    if x.shape == mine.shape and x.stride() != mine.stride():
        x = torch.empty_like(mine, dtype=x.dtype, requires_grad=False).copy_(x)
    if not _is_distributed(parameter):
        return x
    whole: Any = parameter
    shaped = {"shape": whole.shape, "stride": whole.stride(), "run_check": False}
    sharded: Tensor = type(whole).from_local(x, whole.device_mesh, whole.placements, **shaped)
    return sharded


def _sharding(x: Any) -> tuple[Any, ...]:
    return x.device_mesh, x.placements, x.shape


def _is_distributed(x: Tensor) -> bool:
    module = sys.modules.get("torch.distributed.tensor")  # importing it takes long: there are none without it
    return module is not None and isinstance(x, module.DTensor)
