"""arrcomp as codecs of zarr's format 3: from array to bytes (a serializer), and from bytes to bytes (a compressor).

Entry points register them: readers of an array install arrcomp, and import nothing. For arrays of format 2,
`arrcomp.stores.numcodecs.Arrcomp` is a compressor.
"""

import asyncio
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from .. import _dtypes
from .._api.compressed import Compressed, decompress, from_bytes
from .._dtypes import Bytes
from ..codecs import Lossless
from ..errors import CorruptStreamError
from . import _partial
from ._chunks import BYTE, ChunkCodec

try:
    import zarr  # type: ignore[import-not-found,unused-ignore]
    from zarr.abc.codec import (  # type: ignore[import-not-found,unused-ignore]
        ArrayBytesCodec,
        ArrayBytesCodecPartialDecodeMixin,
        BytesBytesCodec,
    )
    from zarr.abc.store import RangeByteRequest  # type: ignore[import-not-found,unused-ignore]
    from zarr.buffer.cpu import numpy_buffer_prototype  # type: ignore[import-not-found,unused-ignore]
    from zarr.storage import StorePath  # type: ignore[import-not-found,unused-ignore]
except ImportError as error:
    raise ImportError(f"arrcomp.stores.zarr needs zarr 3.1 ({error}): pip install arrcomp[zarr]") from None

__all__ = ["ArrcompCodec", "ArrcompCompressor"]

# Before 3.1.6, zarr kept the axes of integers beside arrays of places in what it decodes in part.
_IN_PARTS = re.match(r"[0-2]\.|3\.0\.|3\.1\.[0-5](?!\d)", zarr.__version__) is None
_Partial: Any = ArrayBytesCodecPartialDecodeMixin if _IN_PARTS else object

_THREAD_NBYTES = 1 << 16  # of a chunk: below, its work takes less time than a thread of its own


class _ZarrCodec(ChunkCodec, ABC):
    """The common base of both kinds: metadata, and asynchronous calls."""

    codec_name: ClassVar[str]  # in zarr's metadata, unique among all codecs of both kinds
    is_fixed_size = False

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The codec of zarr's metadata."""
        return cls.from_config(data.get("configuration", {}))

    def to_dict(self) -> dict[str, Any]:
        """The codec for zarr's metadata."""
        return {"name": self.codec_name, "configuration": self.config()}

    def evolve_from_array_spec(self, array_spec: Any) -> Self:
        """This codec, if it takes the array's dtype. zarr calls it when an array is created or opened."""
        dtype = array_spec.dtype.to_native_dtype()
        if self.takes_bytes and not self.codec.takes_numpy(dtype):
            raise TypeError(f"dtype: expected numbers or booleans, got {dtype}; ArrcompCompressor takes every dtype")
        self.codec.check_dtype(_dtypes.by_numpy(dtype))
        return self

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("a stream's size depends on the values")

    async def encode(self, chunks_and_specs: Any) -> Any:
        batch = list(chunks_and_specs)
        return await (_at_once(self._encode_sync, batch) if _are_small(batch) else super().encode(batch))  # type: ignore[misc]

    async def decode(self, chunks_and_specs: Any) -> Any:
        batch = list(chunks_and_specs)
        return await (_at_once(self._decode_sync, batch) if _are_small(batch) else super().decode(batch))  # type: ignore[misc]

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await _called(_chunk_nbytes(chunk_spec), self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await _called(_chunk_nbytes(chunk_spec), self._decode_sync, chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return chunk_spec.prototype.buffer.from_bytes(self.stream_of(self._array_of(chunk_data, chunk_spec)))

    @abstractmethod
    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        """The chunk as zarr passed it to the codec."""

    @abstractmethod
    def _array_of(self, chunk_data: Any, chunk_spec: Any) -> Any:
        """The array to compress, from the chunk that zarr passes."""


class ArrcompCodec(_ZarrCodec, ArrayBytesCodec, _Partial):  # type: ignore[misc,unused-ignore]
    """Compress each chunk with arrcomp; lossless by default.

    zarr's compressors may follow, but rarely make chunks smaller: `compressors=None` omits the default one. Chunks of a
    few hundred kilobytes or more are best. Data types are those that zarr and the codec have: booleans, integers,
    floats, complex numbers. (zarr has no bfloat16.)

    Without filters and compressors, a selection of less than half of a chunk of 1 MiB or more is decoded alone, with
    zarr 3.1.6 or newer: only the bytes that its blocks need are read from the store (in a shard, all bytes of its
    chunks). The checksum is that of the whole chunk, and is checked then in shards alone: another damaged chunk, or one
    that is replaced meanwhile, may have wrong values. Chunks in zarr's GPU buffers are coded on the GPU; this has not
    run on a GPU yet.

    Write whole chunks: zarr decodes a chunk of which a part is written, and codes all of it again. What was there may
    then change by the bound once more with a predictor or `rel`, and does not with `abs` or `pointwise` alone. zarr's
    fill value, if it is finite, is kept bit for bit where it is the codec's `fill_value` too.

    Filters may come first. The codec's bound then holds for the values that they make, and may not hold for the array
    (errors add up after `Delta`). Some filters of numcodecs flatten chunks, or view floats as integers (`BitRound`,
    after which the codec must be lossless), and do not tell zarr: such chunks are kept as zarr expects to read them.
    Other chunks that are not of the dtype and shape that zarr expects are a ValueError when they are written, as are
    all of these in the byte order of other machines.

    Args:
        codec: the codec; None for `arrcomp.Lossless()`.
        seed: for codecs with stochastic rounding, 0 to 2^64 - 1. Every chunk has the same seed: elements of the same
            index in their chunks get the same random number.

    Raises:
        TypeError, ValueError: `codec` is not a codec, or needs a seed, or `seed` is of a wrong type or value.

    >>> import arrcomp
    >>> ArrcompCodec(arrcomp.ErrorBounded(abs=1e-3)).to_dict()["configuration"]
    {'codec': 'error-bounded', 'abs': 0.001, 'speed': 'default'}
    """

    codec_name = "arrcomp"

    def _array_of(self, chunk_data: Any, chunk_spec: Any) -> Any:
        """The chunk in the shape and dtype of its spec, which the reader expects; ValueError if it is another one."""
        array, shape, dtype = chunk_data.as_ndarray_like(), chunk_spec.shape, chunk_spec.dtype.to_native_dtype()
        if array.shape == shape and array.dtype.newbyteorder("=") == dtype.newbyteorder("="):
            return array
        return _as_declared(array, shape, dtype, keeps_bits=self.takes_bytes)

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        dtype = chunk_spec.dtype.to_native_dtype()
        compressed = from_bytes(chunk_data.as_numpy_array())
        _check_declared(compressed, chunk_spec.shape, dtype)
        buffer = chunk_spec.prototype.nd_buffer
        if not dtype.isnative:
            return buffer.from_numpy_array(decompress(compressed, threads=1).astype(dtype))
        result = buffer.empty(shape=chunk_spec.shape, dtype=dtype)
        decompress(compressed, out=result.as_ndarray_like(), threads=1)  # on the device of zarr's memory
        return result

    async def decode_partial(self, batch_info: Any) -> Any:
        batch = list(batch_info)
        if not _are_small([(getter, spec) for getter, _, spec in batch]):
            return await super().decode_partial(batch)
        chunks = await asyncio.gather(*(_read_whole(getter, spec) for getter, _, spec in batch))
        decoded = await self.decode([(chunk, spec) for chunk, (_, _, spec) in zip(chunks, batch, strict=True)])
        return [None if one is None else one[index] for one, (_, index, _) in zip(decoded, batch, strict=True)]

    async def _decode_partial_single(self, byte_getter: Any, selection: Any, chunk_spec: Any) -> Any:
        """A part of a chunk; None where the store has no such chunk. zarr calls it for whole chunks, too."""
        dtype = chunk_spec.dtype.to_native_dtype()
        part = _partial.part_of(chunk_spec.shape, selection, self.codec.predicts)
        if part is None or not _partial.pays(part, chunk_spec.shape, dtype.itemsize):
            return await self._decode_whole(byte_getter, selection, chunk_spec)
        stream = await _begun(byte_getter, chunk_spec)
        if stream is None:
            return None
        _check_declared(stream.compressed, chunk_spec.shape, dtype)
        for spans in stream.missing(part):
            found = await asyncio.gather(*(_read(byte_getter, *span) for span in spans))
            for span, data in zip(spans, found, strict=True):
                stream.fill(span, data)
        taken_nbytes = sum(size for _, size in part.selection.ranges) * dtype.itemsize
        values = await _called(taken_nbytes, stream.decode, part)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(values.astype(dtype, copy=False))

    async def _decode_whole(self, byte_getter: Any, selection: Any, chunk_spec: Any) -> Any:
        """The part, of a chunk that is read and decoded whole."""
        data = await _read_whole(byte_getter, chunk_spec)
        return None if data is None else (await self._decode_single(data, chunk_spec))[selection]


class ArrcompCompressor(_ZarrCodec, BytesBytesCodec):  # type: ignore[misc,unused-ignore]
    """`ArrcompCodec` as one of an array's compressors, after zarr's default serializer. Its streams are the same.

    A compressor gets bytes. They are interpreted as elements of the array's dtype, little-endian, as zarr's serializer
    `bytes` writes them by default. Filters before it may change dtype and shape. Bytes of another number than a chunk's
    elements have (of strings, of structures, after a serializer or compressor that changes their number) are coded as
    bytes by a lossless codec, and refused by others.

    **Only lossless codecs are safe after a codec that changes the bytes but not their number (`bytes` with `endian:
    big`, a shuffle), or a filter that makes another dtype without telling zarr**: zarr does not tell a compressor what
    comes before it, and the error bound does not hold for values in another byte order. Put it first among the
    compressors, or use `ArrcompCodec`, which gets the array.

    Arguments and errors are those of `ArrcompCodec`. Lossless codecs take arrays of every dtype of zarr (datetimes as
    integers).

    >>> import arrcomp
    >>> ArrcompCompressor(arrcomp.ErrorBounded(abs=1e-3)).to_dict()["name"]
    'arrcomp_compressor'
    """

    codec_name = "arrcomp_compressor"

    def evolve_from_array_spec(self, array_spec: Any) -> Self:
        return self if self.takes_bytes else super().evolve_from_array_spec(array_spec)

    def _array_of(self, chunk_data: Any, chunk_spec: Any) -> Any:
        """The elements of a chunk, or its bytes if their number does not match and the codec takes bytes."""
        data = chunk_data.as_array_like()
        dtype, nbytes = _elements(chunk_spec)
        if data.nbytes == nbytes:
            return data.view(dtype).reshape(chunk_spec.shape)
        if self.takes_bytes:
            return data
        expected = f"{nbytes} bytes, as zarr's serializer `bytes` writes {dtype} of shape {chunk_spec.shape}"
        raise ValueError(f"chunk: expected {expected}, got {data.nbytes}; put {self!r} first among the compressors")

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        compressed = from_bytes(chunk_data.as_numpy_array())
        shape, (dtype, nbytes) = chunk_spec.shape, _elements(chunk_spec)
        if self.takes_bytes and compressed.dtype == BYTE and compressed.spec.nbytes != nbytes:
            shape, dtype = (compressed.spec.nbytes,), BYTE
        _check_declared(compressed, shape, dtype)
        array = decompress(compressed, threads=1).astype(dtype, copy=False)
        return chunk_spec.prototype.buffer.from_bytes(array.reshape(-1).view(BYTE))


def _as_declared(array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], keeps_bits: bool) -> Any:
    """What a filter made, in the shape and dtype that it told zarr; ValueError if that may not be what it made.

    Some of numcodecs' filters flatten, or view bits as integers (`BitRound`), and tell zarr of neither. They view what
    they read as their own dtype, so the bits are enough. In another byte order they would be other values.
    """
    as_flat = array.shape == shape or (array.ndim == 1 and array.size == math.prod(shape))
    as_bits = array.dtype == dtype or (keeps_bits and array.dtype.itemsize == dtype.itemsize)
    if as_flat and as_bits and array.dtype.isnative and dtype.isnative:
        return array.view(dtype).reshape(shape)
    expected, got = f"{dtype} of shape {shape}, as its filters tell zarr", f"{array.dtype} of shape {array.shape}"
    hint = "" if keeps_bits else "; lossless codecs keep other dtypes of the same size"
    raise ValueError(f"chunk: expected {expected}, got {got} from them{hint}")


def _elements(chunk_spec: Any) -> tuple[np.dtype[Any], int]:
    """Dtype and number of bytes of a chunk from zarr's serializer `bytes`; uint8 for dtypes that the format lacks.

    The serializer writes little-endian by default, on every platform.
    """
    dtype = chunk_spec.dtype.to_native_dtype()
    if dtype.kind in "mM":
        dtype = np.dtype(np.int64)
    dtype = dtype.newbyteorder("<") if Lossless().takes_numpy(dtype) else BYTE
    return dtype, math.prod(chunk_spec.shape) * dtype.itemsize


async def _called(nbytes: int, work: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns, on a thread of its own where it codes so many bytes that this pays."""
    return work(*arguments) if nbytes < _THREAD_NBYTES else await asyncio.to_thread(work, *arguments)


def _are_small(batch: Sequence[tuple[Any, Any]]) -> bool:
    """Whether one thread codes several chunks faster than a thread each does. The last of a pair is its spec."""
    return len(batch) > 1 and all(_chunk_nbytes(spec) < _THREAD_NBYTES for _, spec in batch)


async def _at_once(work: Callable[[Any, Any], Any], batch: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Chunks that are coded one after the other; None for those that are not there."""
    nbytes = sum(_chunk_nbytes(spec) for data, spec in batch if data is not None)
    coded: list[Any] = await _called(
        nbytes, lambda: [None if data is None else work(data, spec) for data, spec in batch]
    )
    return coded


def _chunk_nbytes(chunk_spec: Any) -> int:
    nbytes: int = math.prod(chunk_spec.shape) * chunk_spec.dtype.to_native_dtype().itemsize
    return nbytes


def _most_nbytes(chunk_spec: Any) -> int:
    """More bytes than the stream of a chunk has; what claims to have more is read as it is, and refused."""
    return 2 * _chunk_nbytes(chunk_spec) + (1 << 17)


def _host_prototype(byte_getter: Any, chunk_spec: Any) -> Any:
    """What bytes are read with: into host memory, where the checksum is, but in shards, which have them already."""
    return numpy_buffer_prototype() if isinstance(byte_getter, StorePath) else chunk_spec.prototype


async def _read_whole(byte_getter: Any, chunk_spec: Any) -> Any:
    """All bytes of a chunk; None where there is no chunk."""
    return await byte_getter.get(prototype=_host_prototype(byte_getter, chunk_spec))


async def _begun(byte_getter: Any, chunk_spec: Any) -> _partial.PartialStream | None:
    """The stream of a chunk, of which the first bytes are read, or all; None where there is no chunk.

    A shard has all bytes of its chunks in memory, and not every version of zarr gives ranges of them.
    """
    if isinstance(byte_getter, StorePath):
        head = await _read(byte_getter, 0, _partial.HEAD_NBYTES)
        if head is None:
            return None
        stream = _partial.PartialStream.begun(head, _most_nbytes(chunk_spec))
        if stream is not None:
            return stream
    data = await _read_whole(byte_getter, chunk_spec)
    return None if data is None else _partial.PartialStream(data.as_numpy_array(), is_whole=True)


async def _read(path: StorePath, begin: int, end: int) -> Bytes | None:
    """A range of a chunk's bytes in a store; None where there is no chunk."""
    data = await path.get(prototype=numpy_buffer_prototype(), byte_range=RangeByteRequest(begin, end))
    return None if data is None else np.asarray(data.as_numpy_array())


def _check_declared(compressed: Compressed, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise CorruptStreamError unless a chunk has the shape and dtype of the array's metadata."""
    if (compressed.shape, compressed.dtype) != (shape, dtype.newbyteorder("=")):
        expected, got = f"{dtype} of shape {shape}", f"{compressed.dtype} of shape {compressed.shape}"
        raise CorruptStreamError(f"chunk: expected {expected}, as in the array's metadata, got {got}")
