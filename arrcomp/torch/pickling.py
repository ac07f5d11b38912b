"""Pickled compressed arrays whose payloads are tensors: what `torch.save`, `torch.load` and `pickle` write and read."""

import math
from typing import Any

import torch
from torch import Tensor

from .. import dtypes, stream
from ..compressed import Compressed, check_payload_nbytes, from_bytes, spec_from_config
from ..errors import CorruptStreamError
from ..payload import Payload


def rebuild(payload: Tensor, config: dict[str, Any], dtype: str, shape: tuple[int, ...]) -> Compressed:
    """The compressed array of a pickle, whose payload the decoder will not trust.

    Args:
        payload: uint8[n], the payload and nothing else.
        config: the codec's configuration.
        dtype: name of the array's data type.
        shape: of the array.

    Raises:
        CorruptStreamError: these do not belong together, or are none of what `Compressed` pickles.
        UnknownCodecError: a newer arrcomp wrote it.
    """
    from .adapter import ADAPTER

    if not (isinstance(payload, Tensor) and payload.dtype == torch.uint8 and payload.dim() == 1):
        raise CorruptStreamError("payload is no one-dimensional uint8 tensor")
    if not payload.is_contiguous():
        raise CorruptStreamError("payload is not contiguous")
    spec = spec_from_config(config, _row(dtype), _shape(shape))
    check_payload_nbytes(spec, payload.numel())
    return Compressed(spec, Payload(ADAPTER, payload))


def _row(name: Any) -> dtypes.DType:
    try:
        return dtypes.by_name(name)
    except TypeError as error:
        raise CorruptStreamError(str(error)) from None


def _shape(shape: Any) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, tuple) else (None,)
    if not all(type(size) is int and size >= 0 for size in sizes) or len(sizes) > stream.MAX_DIMENSIONS:
        raise CorruptStreamError(f"shape is {shape!r}; sizes of 0 and above are allowed")
    # A dimension of 0 must not hide others that no array can have.
    if math.prod(max(size, 1) for size in sizes) >= stream.MAX_VALUES:
        raise CorruptStreamError(f"shape {shape} is larger than any array")
    return sizes


# What torch.load(weights_only=True) may call.
torch.serialization.add_safe_globals([rebuild, from_bytes])
