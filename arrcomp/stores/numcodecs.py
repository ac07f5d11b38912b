"""arrcomp as a codec of numcodecs and of zarr's format 2: `numcodecs.get_codec({"id": "arrcomp", ...})`."""

from typing import Any

from numpy.typing import NDArray

from .._api.compressed import decompress, from_bytes
from .._arguments import wrong_value
from .._dtypes import native
from ._chunks import BYTE, ChunkCodec

try:
    from numcodecs.abc import Codec as Base  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from numcodecs.compat import ensure_contiguous_ndarray  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError as error:
    raise ImportError(f"arrcomp.stores.numcodecs needs numcodecs ({error}): pip install arrcomp[zarr]") from None

__all__ = ["Arrcomp"]


class Arrcomp(ChunkCodec, Base):  # type: ignore[misc,unused-ignore]
    """Compress each buffer with arrcomp; lossless by default.

    Arrays come back with their dtype (datetimes as integers) and their shape. Arrays in Fortran order come back as
    their flat memory, which is enough for numcodecs. Lossless codecs keep other buffers, and arrays of other dtypes
    (strings, bytes, structures) or of another byte order, as flat bytes. Others refuse these arrays.

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

        TypeError if the codec does not take the dtype, or its byte order, or the dtype has Python objects. Lossless
        codecs take all others.
        """
        array = ensure_contiguous_ndarray(buf, flatten=False)
        if not array.flags.c_contiguous:
            array = array.reshape(-1, order="F")
        return self.stream_of(self._elements(array))

    def _elements(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array; its bytes where the format lacks its dtype or byte order, and the codec takes bytes."""
        dtype = array.dtype
        if dtype.hasobject:
            raise TypeError(f"dtype: expected one without Python objects, got {dtype}")
        if self.takes_bytes and not (dtype.isnative and self.codec.takes_numpy(dtype)):
            return array.reshape(-1).view(BYTE)
        if not dtype.isnative:
            raise TypeError(f"dtype: expected {native(dtype).str}, in native byte order, got {dtype.str}")
        return array

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The array of a stream, with one thread and the default `max_nbytes`, as numcodecs passes no other arguments.

        Errors are those of `arrcomp.from_bytes` and `arrcomp.decompress`. `out` is a writable, contiguous buffer of
        exactly the array's bytes, which is filled and returned.
        """
        compressed = from_bytes(ensure_contiguous_ndarray(buf).view(BYTE))
        if out is None:
            return decompress(compressed, threads=1)
        memory = ensure_contiguous_ndarray(out).view(BYTE)
        nbytes = compressed.spec.nbytes
        if memory.nbytes != nbytes:
            raise wrong_value("out", f"{nbytes} bytes", memory.nbytes)
        decompress(compressed, out=memory.view(compressed.dtype).reshape(compressed.shape), threads=1)
        return out

    def get_config(self) -> dict[str, Any]:
        """The codec as a plain JSON object."""
        return {"id": self.codec_id} | self.config()
