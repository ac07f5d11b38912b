"""Compressed arrays that stay in their file until their payload is needed."""

import mmap
import sys
from typing import Any

import numpy as np

from .._api.compressed import Compressed, parse_stream
from .._arrays.contract import Fetch, Payload
from .._arrays.device import Device
from .._arrays.framed import FramedPayload
from .._arrays.numpy import ADAPTER as NUMPY
from .._dtypes import Bytes
from .._format.spec import Spec
from .reading import Span

# The longest headers: of a stream with 64 dimensions and the longest configuration, and of a frame (RFC 8878).
_HEADERS_NBYTES = 24 + 8 * 64 + (1 << 16) + 8 + 18

_LEAST_UNRESERVED_NBYTES = 1 << 20
# Python names it from 3.13 on; this is Linux's number on x86-64 and on Arm.
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def stored(span: Span, max_nbytes: int | None) -> Compressed:
    """The compressed array of a stream in a file. Only headers are read now, and the checksum is not checked."""
    memory = _LazyMemory(span)
    memory.fetch(0, min(span.nbytes, _HEADERS_NBYTES))
    c = parse_stream(memory.data, max_nbytes, check=False)
    if isinstance(c.payload, FramedPayload):
        return Compressed(c.spec, _StoredFrame(memory, c.payload, c.spec))
    return Compressed(c.spec, _StoredPayload(memory, c.payload))


class _LazyMemory:
    """Memory for a range of a file. The system allocates only those pages into which bytes were read."""

    def __init__(self, span: Span) -> None:
        self.data = _unreserved(span.nbytes)  # undefined where it was not fetched
        self._span = span
        self._is_full = False

    def fetch(self, begin: int, end: int) -> None:
        """Read bytes `begin` to `end`."""
        if not self._is_full:
            self._span.read_into(self.data[begin:end], begin)

    def fill(self) -> None:
        """Read all bytes; once."""
        self.fetch(0, self.data.size)
        self._is_full = True

    def parts(self, start: int, nbytes: int) -> tuple[Bytes, Fetch | None]:
        """Bytes from `start` on, and what reads some of them. The memory is new, so that none is kept for later ones.

        Without the latter where all were read before.
        """
        if self._is_full:
            return self.data[start : start + nbytes], None
        data = _unreserved(nbytes)
        return data, lambda begin, end: self._span.read_into(data[begin:end], start + begin)


def _unreserved(nbytes: int) -> Bytes:
    """New memory, also of more bytes than the machine has: those that are never written take none."""
    if nbytes < _LEAST_UNRESERVED_NBYTES or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.empty(nbytes, np.uint8)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    try:
        return np.frombuffer(mmap.mmap(-1, nbytes, flags=flags), np.uint8)
    except OSError:
        raise MemoryError(f"no address space for a stream of {nbytes} bytes") from None


class _StoredPayload(Payload):
    """A payload in a file, without a frame."""

    __slots__ = ("_data", "_memory")

    _data: Bytes

    def __init__(self, memory: _LazyMemory, payload: Payload) -> None:
        super().__init__(NUMPY, payload.buffer, max_nbytes=payload.max_nbytes)
        self._memory = memory
        self._nbytes = payload.nbytes

    @property
    def device(self) -> Device:
        return Device()

    @property
    def buffer(self) -> Any:
        """The payload, read on first access. Raises the same as `Span.read`."""
        self._memory.fill()
        return self._data

    @buffer.setter
    def buffer(self, data: Any) -> None:
        self._data = data

    def host_parts(self) -> tuple[Bytes, Fetch | None]:
        start = NUMPY.address(self._data) - NUMPY.address(self._memory.data)
        return self._memory.parts(start, self._data.size)


class _StoredFrame(FramedPayload):
    """A payload in a file, in a frame."""

    __slots__ = ("_memory",)

    def __init__(self, memory: _LazyMemory, payload: FramedPayload, spec: Spec) -> None:
        super().__init__(payload.frame, payload.nbytes, spec, payload.max_nbytes)
        self._memory = memory

    @property
    def frame(self) -> memoryview:
        """The frame, read on first access. Raises the same as `Span.read`."""
        self._memory.fill()
        return super().frame
