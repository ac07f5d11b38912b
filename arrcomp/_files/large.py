"""Large arrays of NumPy, also those that are mapped into memory: they are compressed into a file piece by piece."""

from dataclasses import dataclass
from typing import IO, Any

from numpy.typing import NDArray

from .._api.compress import compress_with, spec_of
from .._arrays.contract import Adapter
from .._arrays.numpy import ADAPTER as NUMPY
from .._arrays.numpy import values_of
from .._dtypes import Bytes
from .._format import pieces
from .._format.spec import Spec
from ..codecs import Codec

_LEAST_NBYTES = 1 << 28  # of an array that is large
_PIECE_NBYTES = 1 << 26


@dataclass
class LargeArray:
    """An array whose stream, the same as that of `compress`, is made while it is written."""

    spec: Spec
    x: NDArray[Any]
    threads: int

    def write(self, file: IO[bytes]) -> None:
        """Write the stream to a file, which can seek and be read, with a piece in memory at a time."""
        pieces.write(file, self.spec, _PIECE_NBYTES, self._payload)

    def _payload(self, first: int, last: int) -> Bytes:
        piece = values_of(self.x, first, last)
        return compress_with(NUMPY, piece, self.spec.codec, None, self.threads, None).host_payload()


def large_array(adapter: Adapter, x: Any, codec: Codec, threads: int) -> LargeArray | None:
    """An array that is large, if its codec can compress it in pieces. TypeError if it does not take its dtype."""
    if adapter is not NUMPY:
        return None
    spec = spec_of(adapter, x, codec)
    return LargeArray(spec, x, threads) if spec.nbytes >= _LEAST_NBYTES and pieces.is_divisible(spec) else None
