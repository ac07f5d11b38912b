"""LMCache's stored KV caches, compressed: `register_serde` makes the serializer known to LMCache.

Importing this module does not import LMCache. It is written for, and tested with, LMCache 0.5.6.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from .._api.compress import checked_unaided_codec
from .._api.compressed import from_bytes
from .._arguments import (
    check_mapping,
    checked_integer,
    checked_real,
    shown,
    thread_count,
    wrong_type,
    wrong_value,
)
from .._format import stream
from .._format.spec import Spec
from ..codecs import Codec, codec_from_config
from ..errors import CorruptStreamError
from ._functions import compress, decompress
from ._layouts import Layout, checked_layout, turned
from ._tensors import dtype_of, row_of

__all__ = ["ArrcompDeserializer", "ArrcompSerializer", "register_serde"]

_LAYOUTS: tuple[Layout, ...] = ("token", "channel")  # as the first byte of an object numbers them
_HEAD = struct.Struct("<Q")  # the number of the layout
_LENGTH = struct.Struct("<Q")  # of the stream that follows
_OPTIONS = ("codec", "layout", "share", "threads", "max_workers")


class ArrcompSerializer:
    """Compresses the tensors of an object of LMCache, for its second level of storage.

    An object has one tensor or several, each of shape (..., tokens, channels), such as LMCache's (2, layers, tokens,
    channels) of keys and values. It becomes the number of its layout and, for each tensor, length and stream. The
    streams have checksums, and the same bytes on every machine.

    It has the methods of `lmcache.v1.distributed.serde.Serializer`, and `register_serde` makes it a virtual subclass.

    Args:
        codec: the codec; None for `Lossless()`.
        layout: "channel" puts the tokens of a channel next to each other before it compresses, "token" leaves the
            channels of a token so. None is the same as for `arrcomp.torch.transformers.CompressedCache`.
        share: bytes of an object as a share of its tensors' bytes, above 0. All objects are padded to it, and one that
            needs more is not stored. With None an object has the bytes that it needs, which codecs of fixed rate know
            before. Others need a share where LMCache loads as many bytes as were estimated, and nothing shorter: in
            0.5.6 its file adapter does.
        threads: same as in `arrcomp.compress`.

    Raises:
        TypeError, ValueError: an argument is of a wrong type or value, or the codec needs a seed or a reference.
    """

    def __init__(
        self,
        codec: Codec | None = None,
        *,
        layout: Layout | None = None,
        share: float | None = None,
        threads: int | None = None,
    ) -> None:
        thread_count(threads)
        self._codec = checked_unaided_codec(codec)
        self._share = None if share is None else checked_real("share", share, "a number above 0, or None")
        self._layout, self._threads = checked_layout("layout", layout, self._codec), threads

    def serialize(self, src: Any, dst: Any, key: Any) -> int:
        """Compress all tensors of an object into a buffer.

        Args:
            src: a `MemoryObj` with tensors on any device.
            dst: a `MemoryObj` of bytes in host memory, at least `estimate_serialized_size` of them.
            key: not used.

        Returns:
            The number of bytes that were written.

        Raises:
            TypeError: the codec does not take the dtype of a tensor.
            ValueError: `dst`, or the share, is too small.
        """
        xs = list(_tensors("src", src))
        buffers: list[bytes | memoryview] = [_HEAD.pack(_LAYOUTS.index(self._layout))]
        for x in xs:
            made = compress(turned(x, self._layout), self._codec, threads=self._threads).buffers()
            buffers += [_LENGTH.pack(sum(map(len, made))), *made]
        nbytes, target = sum(map(len, buffers)), _bytes_of("dst", dst)
        room = len(target) if self._share is None else min(len(target), self._shared(x.nbytes for x in xs))
        if nbytes > room:
            raise ValueError(f"dst: expected room for {nbytes} bytes, got {room}")
        end = 0
        for buffer in buffers:
            start, end = end, end + len(buffer)
            target[start:end] = buffer
        if self._share is not None:
            target[end:room] = bytes(room - end)
        return nbytes if self._share is None else room

    def estimate_serialized_size(self, layout_desc: Any) -> int:
        """The bytes that an object has with a share, and else the most that `serialize` writes for it.

        Args:
            layout_desc: a `MemoryLayoutDesc`: shapes and dtypes of the tensors.

        Raises:
            TypeError: the codec does not take a dtype.
        """
        specs = [
            self._spec(tuple(shape), dtype) for shape, dtype in zip(layout_desc.shapes, layout_desc.dtypes, strict=True)
        ]
        if self._share is not None:
            return self._shared(spec.nbytes for spec in specs)
        return _HEAD.size + sum(_LENGTH.size + _most_nbytes(spec) for spec in specs)

    def _shared(self, sizes: Iterable[int]) -> int:
        """The share of these bytes."""
        return math.ceil((self._share or 0) * sum(sizes))

    def _spec(self, shape: tuple[int, ...], dtype: torch.dtype) -> Spec:
        row = row_of(dtype)
        self._codec.check_dtype(row)
        return Spec(self._codec, row, shape)


class ArrcompDeserializer:
    """Decompresses what `ArrcompSerializer` wrote, with any codec and layout.

    It has the methods of `lmcache.v1.distributed.serde.Deserializer`, and `register_serde` makes it a virtual subclass.

    Args:
        threads: same as in `arrcomp.decompress`.

    Raises:
        TypeError, ValueError: `threads` is of a wrong type or value.
    """

    def __init__(self, *, threads: int | None = None) -> None:
        thread_count(threads)
        self._threads = threads

    def deserialize(self, src: Any, dst: Any, key: Any) -> None:
        """Decompress the bytes of an object into its tensors.

        Args:
            src: a `MemoryObj` of bytes in host memory, which may be longer than what was written.
            dst: a `MemoryObj` with tensors of the shapes and dtypes that were written.
            key: not used.

        Raises:
            CorruptStreamError: the bytes are truncated or altered. (`dst` may have been overwritten.)
            ValueError: `dst` has tensors of other shapes or dtypes.
        """
        data = _bytes_of("src", src)
        (layout,) = _HEAD.unpack(_part(data, 0, _HEAD.size))
        if layout >= len(_LAYOUTS):
            raise CorruptStreamError(f"layout: expected 0 or 1, got {layout}")
        start = _HEAD.size
        for target in _tensors("dst", dst):
            (length,) = _LENGTH.unpack(_part(data, start, _LENGTH.size))
            start += _LENGTH.size
            self._fill(turned(target, _LAYOUTS[layout]), _part(data, start, length))
            start += length

    def _fill(self, target: Tensor, data: memoryview) -> None:
        c = from_bytes(data, max_nbytes=target.nbytes)
        if (c.spec.dtype, c.shape) != (dtype_of(target), tuple(target.shape)):
            expected = f"{c.spec.dtype.name}{list(c.shape)}, as it was serialized"
            raise ValueError(f"dst: expected a tensor {expected}, got {dtype_of(target).name}{list(target.shape)}")
        if target.is_contiguous():
            decompress(c, out=target, threads=self._threads)
        else:
            target.copy_(decompress(c.to(target.device), threads=self._threads))


def register_serde(name: str = "arrcomp") -> None:
    """Register serializer and deserializer with LMCache, in each process that stores or loads.

    The configuration of an adapter then names it, for instance::

        {"type": "fs", "base_path": "/cache", "serde": {"type": "arrcomp", "share": 0.75}}

    Beside "type" it may have: "codec", a configuration of `arrcomp.codec_from_config` (lossless without it); "layout",
    "channel" or "token"; "share", of which each object is padded to; "threads", of each call; and
    "max_workers", LMCache's threads that call (1 without it).

    Args:
        name: the name in configurations.

    Raises:
        ImportError: LMCache is not installed, or has no `register_serde_factory`.
        TypeError: `name` is not a string.
        ValueError: LMCache knows the name already.
    """
    from lmcache.v1.distributed import serde

    if not isinstance(name, str):
        raise wrong_type("name", "a string", name)
    serde.Serializer.register(ArrcompSerializer)
    serde.Deserializer.register(ArrcompDeserializer)
    serde.register_serde_factory(name, lambda options: serde.AsyncSerdeProcessor(**_parts(options)))


def _parts(options: Mapping[str, Any]) -> dict[str, Any]:
    """What LMCache's processor is made of, for a configuration without its type."""
    check_mapping("serde", options)
    if unknown := [name for name in options if name not in _OPTIONS]:
        raise wrong_value("serde", f"the options {', '.join(_OPTIONS)}", unknown[0])
    codec, threads = options.get("codec"), options.get("threads")
    return {
        "serializer": ArrcompSerializer(
            None if codec is None else codec_from_config(codec),
            layout=options.get("layout"),
            share=options.get("share"),
            threads=threads,
        ),
        "deserializer": ArrcompDeserializer(threads=threads),
        "max_workers": checked_integer("max_workers", options.get("max_workers", 1), 1, math.inf),
    }


def _most_nbytes(spec: Spec) -> int:
    """Bytes of the longest stream of an array."""
    header = stream.Header(spec.codec.id, spec.dtype, spec.shape, spec.codec.config())
    return stream.stream_nbytes(header, spec.capacity)


def _tensors(name: str, memory: Any) -> Iterator[Tensor]:
    """The tensors of a `MemoryObj`."""
    for index in range(len(memory.get_shapes())):
        x = memory.get_tensor(index)
        if not isinstance(x, Tensor):
            raise wrong_type(name, "a MemoryObj with tensors", x)
        yield x


def _bytes_of(name: str, memory: Any) -> memoryview:
    """The bytes of a `MemoryObj` in host memory, not copied."""
    x = memory.tensor
    if not isinstance(x, Tensor) or x.device.type != "cpu" or not x.is_contiguous():
        raise wrong_type(name, "a MemoryObj with contiguous bytes in host memory", x)
    return x.view(-1).view(torch.uint8).numpy().data


def _part(data: memoryview, start: int, nbytes: int) -> memoryview:
    part = data[start : start + nbytes]
    if len(part) < nbytes:
        raise CorruptStreamError(f"src: expected at least {shown(start + nbytes)} bytes, got {len(data)}")
    return part
