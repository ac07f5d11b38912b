"""arrcomp as a codec of zarr's format 3, from array to bytes: `zarr.create_array(..., serializer=ArrcompCodec(...))`.

It is registered by an entry point: who reads an array has to install arrcomp, and to import nothing. Arrays of format 2
take `arrcomp.numcodecs.Arrcomp` as a compressor.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import chunks, dtypes
from .codecs import Codec
from .compress import decompress
from .compressed import from_bytes
from .errors import CorruptStreamError

try:
    from zarr.abc.codec import ArrayBytesCodec  # type: ignore[import-not-found,unused-ignore]
except ImportError as error:
    raise ImportError(f"arrcomp.zarr needs zarr 3.1 ({error}): pip install arrcomp[zarr]") from None

_NAME = "arrcomp"


@dataclass(frozen=True, init=False, repr=False)
class ArrcompCodec(ArrayBytesCodec):  # type: ignore[misc,unused-ignore]
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

    is_fixed_size = False

    codec: Codec
    seed: int | None

    def __init__(self, codec: Codec | None = None, *, seed: int | None = None) -> None:
        codec, seed = chunks.checked(codec, seed)
        object.__setattr__(self, "codec", codec)
        object.__setattr__(self, "seed", seed)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ArrcompCodec":
        """The codec of zarr's metadata.

        Raises:
            TypeError, ValueError: a parameter is unknown or not allowed.
        """
        codec, seed = chunks.from_config(data.get("configuration", {}))
        return cls(codec, seed=seed)

    def to_dict(self) -> dict[str, Any]:
        """The codec as zarr's metadata have it."""
        return {"name": _NAME, "configuration": chunks.config_of(self.codec, self.seed)}

    def evolve_from_array_spec(self, array_spec: Any) -> "ArrcompCodec":
        """The same codec, for chunks that it takes; this is asked when an array is made or opened.

        Raises:
            TypeError: the codec, or the format, does not take the array's dtype.
        """
        self.codec.check_dtype(dtypes.by_numpy(array_spec.dtype.to_native_dtype()))
        return self

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("the size of a stream depends on the values")

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        stream = chunks.encode(chunk_data.as_ndarray_like(), self.codec, self.seed)
        return chunk_spec.prototype.buffer.from_bytes(stream)

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        compressed = from_bytes(chunk_data.as_numpy_array())
        dtype = chunk_spec.dtype.to_native_dtype()
        if (compressed.shape, compressed.dtype) != (chunk_spec.shape, dtype.newbyteorder("=")):
            raise CorruptStreamError(
                f"the chunk holds {compressed.dtype} of shape {compressed.shape}, "
                f"not {dtype} of shape {chunk_spec.shape} as the array's metadata say"
            )
        array = decompress(compressed, threads=1).astype(dtype, copy=False)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(array)

    def __repr__(self) -> str:
        return chunks.repr_of(self, self.codec, self.seed)
