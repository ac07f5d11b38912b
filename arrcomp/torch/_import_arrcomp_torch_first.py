"""The functions that pickles of compressed tensors name.

`torch.load` refuses functions that it does not know, and shows their names: this module's name tells users who have not
imported `arrcomp.torch` what to do.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _dtypes
from .._api.compressed import Compressed, check_payload_nbytes, decompress, decompress_at, from_bytes, spec_from_config
from .._arguments import shown
from .._arrays.contract import Payload
from .._dtypes import MAX_DIMENSIONS
from .._format import limits
from .._format.stream import check_shape
from ..errors import CorruptStreamError, WrongReferenceError
from ._adapter import ADAPTER
from ._references import base_name, reference


def rebuild(payload: Tensor, config: dict[str, Any], dtype: str, shape: tuple[int, ...]) -> Compressed:
    """The compressed array of a pickle, whose payload, uint8[n], the decoder will not trust.

    Raises:
        CorruptStreamError: the arguments do not belong together, or are none of what `Compressed` pickles.
        UnknownCodecError: a newer arrcomp wrote it.
    """
    _check_bytes("payload", payload)
    row = _row(dtype)
    spec = spec_from_config(config, row, _shape(shape, row))
    check_payload_nbytes(spec, payload.numel())
    return Compressed(spec, Payload(ADAPTER, payload, max_nbytes=limits.allowed_of(payload.numel())))


def restore(stream: Tensor, like: Tensor) -> Tensor:
    """The tensor of a complete stream, uint8[n], of which nothing is trusted, on the device of `like`.

    Raises:
        CorruptStreamError, FormatVersionError, UnknownCodecError: the stream is damaged, or of a newer arrcomp.
        SizeLimitError: the tensor is larger than the limit.
        TypeError: PyTorch has no such dtype, or `like` is on the meta device: the shape is in the stream.
        DeviceUnavailableError: the device is not there.
    """
    tensor: Tensor = decompress_at(_checked_stream(stream, like), ADAPTER, ADAPTER.device(like), 0)
    return tensor


def restore_from(stream: Tensor, like: Tensor, order: Sequence[int], key: Any, file: str | None) -> Tensor:
    """`restore` for a stream that needs a reference: that of `key` in the base `file`, with its dimensions in an order.

    Raises WrongReferenceError for another one, and the errors of who finds it.
    """
    c = _checked_stream(stream, like)
    found = reference(key, file).to(like.device)
    if found.dim() == len(c.shape):
        found = arranged(found, order, False)
    if ADAPTER.dtype_and_shape(found) != (c.spec.dtype, c.shape):
        expected = f"{c.spec.dtype.name} of shape {shown(c.shape)} in {base_name()}"
        got = f"{found.dtype} of shape {shown(tuple(found.shape))}"
        raise WrongReferenceError(f"{shown(key)}: expected {expected}, got {got}")
    try:
        tensor: Tensor = decompress(c, reference=found)
    except WrongReferenceError:
        expected = f"the tensor that it was coded against in {base_name()}"
        raise WrongReferenceError(f"{shown(key)}: expected {expected}, got another") from None
    return tensor


def arranged(base: Tensor, order: Sequence[int], requires_grad: bool) -> Tensor:
    """A tensor on the memory of a contiguous one, which tied tensors share, with its dimensions in an order.

    Raises:
        CorruptStreamError: these do not belong together.
    """
    try:
        return base.permute(tuple(order)).detach().requires_grad_(requires_grad)
    except (AttributeError, IndexError, RuntimeError, TypeError) as error:
        raise CorruptStreamError(f"order {shown(order)}, requires_grad {shown(requires_grad)}: {error}") from None


def _checked_stream(stream: Any, like: Any) -> Compressed:
    """The compressed array of a stream, for a device that PyTorch can have tensors on."""
    _check_bytes("stream", stream)
    if not isinstance(like, Tensor):
        raise CorruptStreamError(f"like: expected a tensor, got {type(like).__name__}")
    if stream.is_meta or like.is_meta:
        raise TypeError("map_location: expected 'cpu' or 'cuda', got 'meta'; the shapes are in the streams")
    # The checksum is computed on the host: from a device that `map_location` names, the stream comes back for it.
    return from_bytes(ADAPTER.to_host(stream))


def _check_bytes(name: str, tensor: Any) -> None:
    if not (isinstance(tensor, Tensor) and tensor.dtype == torch.uint8 and tensor.dim() == 1):
        raise CorruptStreamError(f"{name}: expected a one-dimensional uint8 tensor")
    if not tensor.is_contiguous():
        raise CorruptStreamError(f"{name}: expected a contiguous tensor")


def _row(name: Any) -> _dtypes.DType:
    try:
        return _dtypes.by_name(name)
    except TypeError as error:
        raise CorruptStreamError(str(error)) from None


def _shape(shape: Any, dtype: _dtypes.DType) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, tuple) else (None,)
    if not all(type(size) is int and size >= 0 for size in sizes) or len(sizes) > MAX_DIMENSIONS:
        raise CorruptStreamError(f"shape: expected sizes of at least 0, got {shown(shape)}")
    check_shape(sizes, dtype)
    return sizes
