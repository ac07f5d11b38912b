"""What `torch.save` and `pickle` write of compressed tensors, and what `torch.load` may call to read it.

A `Compressed` is pickled as its payload, and read back as what it was. A tensor that is to be compressed in a file is
pickled as its stream, and read back as a tensor: whoever unpickles it need not know.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .._api import pickling
from .._api.compressed import Compressed, from_bytes
from .._format.stream import check_writable
from ._import_arrcomp_torch_first import arranged, rebuild, restore, restore_from


def reduce(c: Compressed) -> pickling.Reduced:
    """How a compressed tensor is pickled: as its payload, which goes where `map_location` says.

    ValueError for a shape that no stream may have.
    """
    check_writable(tuple(c.shape), c.spec.dtype)
    buffer = c.payload.trimmed_view()
    if buffer.untyped_storage().nbytes() != buffer.numel():
        buffer = buffer.clone()  # or all of the memory that it is in would be saved
    return rebuild, (buffer, c.codec.config(), c.spec.dtype.name, tuple(c.shape))


def streamed(c: Compressed, x: Tensor) -> tuple[Callable[..., Tensor], tuple[Tensor, Tensor]]:
    """How a compressed tensor is pickled as a tensor, which comes back on the device of x: as `object.__reduce__`.

    Synchronizes.
    """
    return restore, (_stream_of(c), x)


def streamed_from(
    c: Compressed, x: Tensor, order: Sequence[int], key: Any, file: str | None
) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """`streamed` for one that was compressed against a tensor of a base.

    Args:
        c: the compressed tensor.
        x: a tensor of the device that it comes back on.
        order: the dimensions of the base's tensor, in the order that they were in.
        key: what finds the base's tensor when it is read; plain values.
        file: the base; None if it is not known.
    """
    return restore_from, (_stream_of(c), x, tuple(order), key, file)


def _stream_of(c: Compressed) -> Tensor:
    return torch.frombuffer(bytearray().join(c.buffers()), dtype=torch.uint8)


# What torch.load(weights_only=True) may call.
torch.serialization.add_safe_globals([rebuild, from_bytes, pickling.restore, restore, restore_from, arranged])
pickling.register("torch", reduce)
