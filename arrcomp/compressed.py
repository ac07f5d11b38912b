"""A compressed array."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import arrays, device, dtypes, stream
from .codecs import Codec, codec_from_config, codec_from_id
from .errors import CorruptStreamError

Payload = NDArray[np.uint8] | device.DevicePayload


class Compressed:
    """An array as `compress` leaves it: a payload, and what is needed to read it.

    It is not changed after it was made (but one made with `out=` shares that buffer), and pickles. Of a payload on a
    device, `nbytes`, `ratio`, `to_bytes`, printing and pickling wait for the device; nothing else does.
    """

    __slots__ = ("_codec", "_dtype", "_home", "_payload", "_shape")

    def __init__(
        self, codec: Codec, dtype: dtypes.DType, shape: tuple[int, ...], payload: Payload, home: arrays.Home
    ) -> None:
        """Made by `compress` and `from_bytes`."""
        self._codec = codec
        self._dtype = dtype
        self._shape = shape
        self._payload = payload
        self._home = home

    @property
    def codec(self) -> Codec:
        """The codec that made it."""
        return self._codec

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the array, in native byte order."""
        return self._dtype.numpy

    @property
    def device(self) -> str:
        """Where the payload is: "cpu", or for instance "cuda:0"."""
        return "cpu" if isinstance(self._payload, np.ndarray) else f"cuda:{self._payload.memory.index}"

    @property
    def nbytes(self) -> int:
        """Length in bytes of all of it, as `to_bytes` writes it: header, payload and checksum."""
        return stream.stream_nbytes(self._header, self._payload.nbytes)

    @property
    def ratio(self) -> float:
        """Bytes of the array divided by `nbytes`."""
        return math.prod(self._shape) * self._dtype.itemsize / self.nbytes

    def to_bytes(self) -> bytes:
        """The stream: self-describing, with a checksum, the same on every machine (FORMAT.md)."""
        return b"".join(self.parts())

    def parts(self) -> list[bytes | memoryview]:
        """The stream in pieces, to be written one after the other without putting them together first."""
        payload = self.host_payload()
        head = stream.pack_header(self._header, payload.size)
        body = payload.data
        return [head, body, stream.checksum(head, body)]

    def host_payload(self) -> NDArray[np.uint8]:
        """The payload in host memory, one-dimensional."""
        return self._payload if isinstance(self._payload, np.ndarray) else self._payload.to_host()

    @property
    def payload(self) -> Payload:
        """The payload where it is."""
        return self._payload

    @property
    def home(self) -> arrays.Home:
        """Where `decompress` puts the array if not told otherwise."""
        return self._home

    @property
    def data_type(self) -> dtypes.DType:
        """The dtype as the format knows it."""
        return self._dtype

    @property
    def elements(self) -> int:
        """Elements that the payload codes: a complex value is two."""
        return self._header.elements

    @property
    def _header(self) -> stream.Header:
        return stream.Header(self._codec.id, self._dtype, self._shape, self._codec.config())

    def __repr__(self) -> str:
        array = f"{self._dtype.name}{list(self._shape)}"
        return f"<Compressed {array} by {self._codec!r}: {self.nbytes} bytes, ratio {self.ratio:.2f}, on {self.device}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.to_bytes(), self._home)


def from_bytes(data: Any) -> Compressed:
    """Read a stream that `Compressed.to_bytes` wrote.

    Args:
        data: bytes, bytearray, memoryview, mmap, or a uint8 NumPy array: exactly one stream. It is viewed, not copied,
            and must not change as long as the result is used.

    Returns:
        The compressed array. `decompress` makes a NumPy array of it, unless told otherwise by `like=` or `out=`.

    Raises:
        TypeError: `data` is not a contiguous buffer of bytes.
        CorruptStreamError: the stream is truncated, altered, or none.
        FormatVersionError, UnknownCodecError: a newer arrcomp wrote it.
    """
    return _restore(data, arrays.Home())


def _restore(data: Any, home: arrays.Home) -> Compressed:
    header, payload = stream.parse(_byte_view(data))
    expected = codec_from_id(header.codec_id)
    try:
        codec = codec_from_config(header.configuration)
        codec.check_dtype(header.dtype)
    except (TypeError, ValueError) as error:
        raise CorruptStreamError(f"configuration: {error}") from None
    if type(codec) is not expected:
        raise CorruptStreamError(f"configuration is of codec {codec.name}, the header's codec id of {expected.name}")
    return Compressed(codec, header.dtype, header.shape, np.frombuffer(payload, np.uint8), home)


def _byte_view(data: Any) -> memoryview:
    try:
        view = memoryview(data)
        if view.itemsize == 1 and view.contiguous and view.ndim == 1:
            return view.cast("B")
    except (TypeError, ValueError):
        pass
    raise TypeError(f"data is a {type(data).__name__}; bytes, or a flat contiguous buffer of them, are allowed")
