"""arrcomp as a codec of numcodecs and of zarr's format 2: `numcodecs.get_codec({"id": "arrcomp", ...})`."""

from typing import Any

import numpy as np

from .._api.compressed import decompress, from_bytes
from .._arguments import wrong_value
from ._chunks import ChunkCodec

try:
    from numcodecs.abc import Codec as Base  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from numcodecs.compat import ensure_contiguous_ndarray  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError as error:
    raise ImportError(f"arrcomp.stores.numcodecs needs numcodecs ({error}): pip install arrcomp[zarr]") from None

__all__ = ["Arrcomp"]


class Arrcomp(ChunkCodec, Base):  # type: ignore[misc,unused-ignore]
    """Compress each buffer with arrcomp; lossless by default.

    Arrays come back with their dtype (datetimes as integers) and their shape. Arrays in Fortran order come back as
    their flat memory, which is enough for numcodecs. Other buffers are bytes.

    Args:
        codec: the codec; None for `arrcomp.Lossless()`.
        seed: for codecs with stochastic rounding, 0 to 2^64 - 1. Every buffer has the same seed: elements of the same
            index get the same random number.

    Raises:
        TypeError, ValueError: `codec` is not a codec, or needs a seed, or `seed` is of a wrong type or value.

    >>> import numcodecs, numpy, arrcomp
    >>> codec = Arrcomp(arrcomp.ErrorBounded(abs=1e-3))
    >>> codec.get_config()
    {'id': 'arrcomp', 'codec': 'error-bounded', 'abs': 0.001, 'speed': 'default'}
    >>> numcodecs.get_codec(codec.get_config()).decode(codec.encode(numpy.ones((2, 3), "f4"))).shape
    (2, 3)
    """

    codec_id = "arrcomp"

    def encode(self, buf: Any) -> bytes:
        """The stream of an array in C or Fortran order, or of a buffer's bytes.

        TypeError if the codec does not take the dtype, or its byte order, which would be lost, is not the native one.
        """
        array = ensure_contiguous_ndarray(buf, flatten=False)
        if not array.dtype.isnative:
            native = array.dtype.newbyteorder("=")
            raise TypeError(f"dtype: expected {native.str}, in native byte order, got {array.dtype.str}")
        if not array.flags.c_contiguous:
            array = array.reshape(-1, order="F")
        return self.stream_of(array)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The array of a stream, with one thread and the default `max_nbytes`, as numcodecs passes no other arguments.

        Errors are those of `arrcomp.from_bytes` and `arrcomp.decompress`. `out` is a writable, contiguous buffer of
        exactly the array's bytes, which is filled and returned.
        """
        compressed = from_bytes(ensure_contiguous_ndarray(buf).view(np.uint8))
        if out is None:
            return decompress(compressed, threads=1)
        memory = ensure_contiguous_ndarray(out).view(np.uint8)
        nbytes = compressed.spec.nbytes
        if memory.nbytes != nbytes:
            raise wrong_value("out", f"{nbytes} bytes", memory.nbytes)
        decompress(compressed, out=memory.view(compressed.dtype).reshape(compressed.shape), threads=1)
        return out

    def get_config(self) -> dict[str, Any]:
        """The codec as a plain JSON object."""
        return {"id": self.codec_id} | self.config()
