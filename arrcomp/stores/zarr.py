"""arrcomp as codecs of zarr's format 3: one from array to bytes, an array's serializer, and one from bytes to bytes.

They are registered by entry points: who reads an array has to install arrcomp, and to import nothing. Arrays of
format 2 take `arrcomp.stores.numcodecs.Arrcomp` as their compressor.
"""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .. import _dtypes
from .._api.compress import decompress
from .._api.compressed import Compressed, from_bytes
from ..codecs import Codec, Lossless
from ..errors import CorruptStreamError
from . import _chunks

try:
    from zarr.abc.codec import ArrayBytesCodec, BytesBytesCodec  # type: ignore[import-not-found,unused-ignore]
except ImportError as error:
    raise ImportError(f"arrcomp.stores.zarr needs zarr 3.1 ({error}): pip install arrcomp[zarr]") from None

_BYTE = np.dtype(np.uint8)


@dataclass(frozen=True, init=False, repr=False)
class _ChunkCodec(ABC):
    """What is the same for both of zarr's kinds: how a codec is made, kept in metadata, and run.

    Attributes:
        codec_name: what zarr's metadata call it: unique among all codecs, of either kind.
    """

    codec_name: ClassVar[str]
    is_fixed_size = False

    codec: Codec
    seed: int | None

    def __init__(self, codec: Codec | None = None, *, seed: int | None = None) -> None:
        codec, seed = _chunks.checked(codec, seed)
        object.__setattr__(self, "codec", codec)
        object.__setattr__(self, "seed", seed)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The codec of zarr's metadata.

        Raises:
            TypeError, ValueError: a parameter is unknown or not allowed.
        """
        codec, seed = _chunks.from_config(data.get("configuration", {}))
        return cls(codec, seed=seed)

    def to_dict(self) -> dict[str, Any]:
        """The codec as zarr's metadata have it."""
        return {"name": self.codec_name, "configuration": _chunks.config_of(self.codec, self.seed)}

    def evolve_from_array_spec(self, array_spec: Any) -> Self:
        """The same codec, for chunks that it takes; this is asked when an array is made or opened.

        Raises:
            TypeError: the codec, or the format, does not take the array's dtype.
        """
        self.codec.check_dtype(_dtypes.by_numpy(array_spec.dtype.to_native_dtype()))
        return self

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("the size of a stream depends on the values")

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        stream = _chunks.encode(self._array_of(chunk_data, chunk_spec), self.codec, self.seed)
        return chunk_spec.prototype.buffer.from_bytes(stream)

    @abstractmethod
    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        """What zarr had of a chunk before it was coded."""

    @abstractmethod
    def _array_of(self, chunk_data: Any, chunk_spec: Any) -> Any:
        """The array to compress, of what zarr has of a chunk."""

    def __repr__(self) -> str:
        return _chunks.repr_of(self, self.codec, self.seed)


class ArrcompCodec(_ChunkCodec, ArrayBytesCodec):  # type: ignore[misc,unused-ignore]
    """Compress each chunk as arrcomp does, losslessly unless told otherwise.

    What zarr calls compressors may follow, but seldom pays: `compressors=None` leaves the default one out. Chunks of a
    few hundred kilobytes and more are best. Data types are those that zarr and the codec have: booleans, integers,
    floats, complex numbers. (bfloat16 is not among zarr's.)

    Args:
        codec: how to compress; None for `arrcomp.Lossless()`.
        seed: for codecs that round at random, 0 to 2^64 - 1. It is the same for every chunk: elements of the same index
            in their chunks get the same random number.

    Raises:
        TypeError, ValueError: `codec` is no codec, or needs a seed, or `seed` is not allowed.

    >>> import arrcomp
    >>> ArrcompCodec(arrcomp.ErrorBounded(abs=1e-3)).to_dict()["configuration"]
    {'codec': 'error-bounded', 'abs': 0.001, 'speed': 'default'}
    """

    codec_name = "arrcomp"

    def _array_of(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return chunk_data.as_ndarray_like()

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        dtype = chunk_spec.dtype.to_native_dtype()
        array = _decoded(from_bytes(chunk_data.as_numpy_array()), chunk_spec.shape, dtype)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(array)


class ArrcompCompressor(_ChunkCodec, BytesBytesCodec):  # type: ignore[misc,unused-ignore]
    """The same as one of an array's compressors, behind zarr's default serializer: the streams are `ArrcompCodec`'s.

    A compressor gets bytes. These are taken for elements of the array's dtype, little-endian, as zarr's serializer
    `bytes` writes them unless told otherwise; filters before it may change dtype and shape. Bytes that cannot be all of
    a chunk's elements (of strings, of structures, from a serializer or compressor that changes their number) are coded
    as bytes by a lossless codec, and refused by others.

    **Behind what keeps their number but changes the bytes (`bytes` with `endian: big`, a shuffle) only lossless codecs
    are safe**: zarr does not tell a compressor what comes before it, and values of another byte order than expected
    would be within no bound. Put it first among the compressors, or use `ArrcompCodec`, which gets the array itself.

    Args:
        codec: how to compress; None for `arrcomp.Lossless()`. Lossless codecs take arrays of every dtype of zarr's,
            datetimes as the integers that they are.
        seed: as for `ArrcompCodec`.

    Raises:
        TypeError, ValueError: `codec` is no codec, or needs a seed, or `seed` is not allowed.

    >>> import arrcomp
    >>> ArrcompCompressor(arrcomp.ErrorBounded(abs=1e-3)).to_dict()["name"]
    'arrcomp_compressor'
    """

    codec_name = "arrcomp_compressor"

    def evolve_from_array_spec(self, array_spec: Any) -> Self:
        return self if self._takes_bytes else super().evolve_from_array_spec(array_spec)

    def _array_of(self, chunk_data: Any, chunk_spec: Any) -> Any:
        """The elements of a chunk, or its bytes if these are no elements.

        Raises:
            ValueError: they are no elements, and the codec takes no bytes.
        """
        data = chunk_data.as_array_like()
        dtype, nbytes = _elements(chunk_spec)
        if data.nbytes == nbytes:
            return data.view(dtype).reshape(chunk_spec.shape)
        if self._takes_bytes:
            return data
        raise ValueError(
            f"the chunk has {data.nbytes} bytes; {nbytes} are allowed, as zarr's serializer `bytes` writes {dtype} of "
            f"shape {chunk_spec.shape}: other compressors come after {self!r}"
        )

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        compressed = from_bytes(chunk_data.as_numpy_array())
        shape, (dtype, nbytes) = chunk_spec.shape, _elements(chunk_spec)
        if self._takes_bytes and compressed.dtype == _BYTE and compressed.spec.nbytes != nbytes:
            shape, dtype = (compressed.spec.nbytes,), _BYTE
        return chunk_spec.prototype.buffer.from_bytes(_decoded(compressed, shape, dtype).reshape(-1).view(_BYTE))

    @property
    def _takes_bytes(self) -> bool:
        """Whether the codec is lossless, whatever it is given."""
        return self.codec.takes_numpy(_BYTE)


def _elements(chunk_spec: Any) -> tuple[np.dtype[Any], int]:
    """What zarr's serializer `bytes` writes of a chunk: the dtype, bytes for one that the format does not have; bytes.

    zarr allows other byte orders than little-endian, but that is what it writes unless told otherwise, on any machine.
    """
    dtype = chunk_spec.dtype.to_native_dtype()
    if dtype.kind in "mM":
        dtype = np.dtype(np.int64)
    dtype = dtype.newbyteorder("<") if Lossless().takes_numpy(dtype) else _BYTE
    return dtype, math.prod(chunk_spec.shape) * dtype.itemsize


def _decoded(compressed: Compressed, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array of a chunk, in the byte order of `dtype`.

    Raises:
        CorruptStreamError: the stream is of another shape or dtype, or corrupt.
    """
    if (compressed.shape, compressed.dtype) != (shape, dtype.newbyteorder("=")):
        raise CorruptStreamError(
            f"the chunk holds {compressed.dtype} of shape {compressed.shape}, "
            f"not {dtype} of shape {shape} as the array's metadata say"
        )
    array: NDArray[Any] = decompress(compressed, threads=1).astype(dtype, copy=False)
    return array
