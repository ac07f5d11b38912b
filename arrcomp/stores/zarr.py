"""arrcomp as codecs of zarr's format 3: from array to bytes (a serializer), and from bytes to bytes (a compressor).

Entry points register them: readers of an array install arrcomp, and import nothing. For arrays of format 2,
`arrcomp.stores.numcodecs.Arrcomp` is a compressor.
"""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .. import _dtypes
from .._api.compressed import Compressed, decompress, from_bytes
from ..codecs import Lossless
from ..errors import CorruptStreamError
from ._chunks import BYTE, ChunkCodec

try:
    from zarr.abc.codec import ArrayBytesCodec, BytesBytesCodec  # type: ignore[import-not-found,unused-ignore]
except ImportError as error:
    raise ImportError(f"arrcomp.stores.zarr needs zarr 3.1 ({error}): pip install arrcomp[zarr]") from None

__all__ = ["ArrcompCodec", "ArrcompCompressor"]


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
        self.codec.check_dtype(_dtypes.by_numpy(array_spec.dtype.to_native_dtype()))
        return self

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("a stream's size depends on the values")

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return chunk_spec.prototype.buffer.from_bytes(self.stream_of(self._array_of(chunk_data, chunk_spec)))

    @abstractmethod
    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        """The chunk as zarr passed it to the codec."""

    @abstractmethod
    def _array_of(self, chunk_data: Any, chunk_spec: Any) -> Any:
        """The array to compress, from the chunk that zarr passes."""


class ArrcompCodec(_ZarrCodec, ArrayBytesCodec):  # type: ignore[misc,unused-ignore]
    """Compress each chunk with arrcomp; lossless by default.

    zarr's compressors may follow, but rarely make chunks smaller: `compressors=None` omits the default one. Chunks of a
    few hundred kilobytes or more are best. Data types are those that zarr and the codec have: booleans, integers,
    floats, complex numbers. (zarr has no bfloat16.)

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
        array = _decoded(from_bytes(chunk_data.as_numpy_array()), chunk_spec.shape, dtype)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(array)


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
        return chunk_spec.prototype.buffer.from_bytes(_decoded(compressed, shape, dtype).reshape(-1).view(BYTE))


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


def _decoded(compressed: Compressed, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array of a chunk, in the byte order of `dtype`."""
    if (compressed.shape, compressed.dtype) != (shape, dtype.newbyteorder("=")):
        expected, got = f"{dtype} of shape {shape}", f"{compressed.dtype} of shape {compressed.shape}"
        raise CorruptStreamError(f"chunk: expected {expected}, as in the array's metadata, got {got}")
    array: NDArray[Any] = decompress(compressed, threads=1).astype(dtype, copy=False)
    return array
