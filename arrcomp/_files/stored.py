"""Compressed arrays that stay in their file until somebody looks at them."""

from typing import Any

import numpy as np

from .._api.compressed import Compressed, parse_stream
from .._arrays import host
from .._arrays.contract import Bytes, Home
from .._arrays.framed import FramedPayload
from .._arrays.payload import Fetch, Payload
from .._format.spec import Spec
from .reading import Span

# The longest header of stream and frame: of 64 dimensions and the longest configuration, and RFC 8878's.
_HEADERS_NBYTES = 24 + 8 * 64 + (1 << 16) + 8 + 18


def stored(span: Span, max_nbytes: int | None) -> Compressed:
    """The compressed array whose stream a part of a file is: nothing but headers is read now, no checksum checked.

    Args:
        span: the part of the file.
        max_nbytes: as of `open_file`, checked.

    Raises:
        CorruptStreamError, FormatVersionError, UnknownCodecError: these are damaged, or of a newer arrcomp.
    """
    room = _Room(span)
    room.fetch(0, min(span.nbytes, _HEADERS_NBYTES))
    c = parse_stream(room.data, max_nbytes, check=False)
    if isinstance(c.payload, FramedPayload):
        return Compressed(c.spec, _StoredFrame(room, c.payload, c.spec))
    return Compressed(c.spec, _StoredPayload(room, c.payload))


class _Room:
    """Memory for a part of a file, of which the system gives no more than what is read into it.

    Attributes:
        data: the bytes; those that were not fetched are anything.
    """

    def __init__(self, span: Span) -> None:
        self.data: Bytes = np.empty(span.nbytes, np.uint8)
        self._span = span
        self._is_full = False

    def fetch(self, begin: int, end: int) -> None:
        """Read some of the bytes."""
        if not self._is_full:
            self._span.read_into(self.data[begin:end], begin)

    def fill(self) -> None:
        """Read all bytes, the first time."""
        self.fetch(0, self.data.size)
        self._is_full = True


class _StoredPayload(Payload):
    """A payload in a file, not in a frame."""

    __slots__ = ("_data", "_room")

    _data: Bytes

    def __init__(self, room: _Room, payload: Payload) -> None:
        super().__init__(host.ADAPTER, payload.buffer, max_nbytes=payload.max_nbytes)
        self._room = room
        self._nbytes = payload.nbytes

    @property
    def home(self) -> Home:
        return Home()

    @property
    def buffer(self) -> Any:
        """The payload, read the first time; raises as `Span.read`."""
        self._room.fill()
        return self._data

    @buffer.setter
    def buffer(self, data: Any) -> None:
        self._data = data

    def host_parts(self) -> tuple[Bytes, Fetch]:
        start = host.address(self._data) - host.address(self._room.data)
        return self._data, lambda begin, end: self._room.fetch(start + begin, start + end)


class _StoredFrame(FramedPayload):
    """A payload in a file, in a frame."""

    __slots__ = ("_room",)

    def __init__(self, room: _Room, payload: FramedPayload, spec: Spec) -> None:
        super().__init__(payload.frame, payload.nbytes, spec, payload.max_nbytes)
        self._room = room

    @property
    def frame(self) -> memoryview:
        """The frame, read the first time; raises as `Span.read`."""
        self._room.fill()
        return super().frame
