"""The stream of an array whose payload is made and written piece by piece (FORMAT.md, section 3).

Groups of chunks do not depend on each other. So the payload of an array that is cut between groups has the groups of
the pieces' payloads, one after the other, behind a directory of all.
"""

import struct
from collections.abc import Callable, Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from .._dtypes import Bytes
from ..codecs import ErrorBounded, Lossless
from . import stream
from .spec import Spec

_HEAD = struct.Struct("<dII")  # bound, chunks per group, bytes per entry of the directory
_CHUNKS = 4  # per group, of at least so many elements
_LEAST_ELEMENTS = 1 << 20
_GROUP = _CHUNKS * 4096  # elements
_UNIT_NBYTES = 4  # of the directory's entries
_WIDE_NBYTES = 1 << 33  # of an array from which on the entries have 8 bytes
_READ_NBYTES = 1 << 20


def is_divisible(spec: Spec) -> bool:
    """Whether pieces of such an array can be compressed each by itself: its codec asks for nothing of the whole."""
    codec = spec.codec
    if not isinstance(codec, (Lossless, ErrorBounded)) or (isinstance(codec, ErrorBounded) and codec.rel is not None):
        return False
    return codec.predictor is None and spec.elements >= _LEAST_ELEMENTS


def ranges(spec: Spec, nbytes: int) -> Iterator[tuple[int, int]]:
    """Begin and end of the values of each piece of an array that `is_divisible`.

    Pieces have about `nbytes`, the last one up to twice as many.
    """
    parts = spec.dtype.parts
    size, wanted = spec.elements // parts, nbytes // spec.dtype.itemsize * parts
    step = max(wanted // _GROUP * _GROUP, _LEAST_ELEMENTS) // parts
    for first in range(0, max(size // step, 1) * step, step):
        yield first, first + step if first + 2 * step <= size else size


def write(file: IO[bytes], spec: Spec, nbytes: int, payload_of: Callable[[int, int], Bytes]) -> None:
    """Write the stream of an array that `is_divisible` to a file, from its position on, which is then the stream's end.

    The file can seek, and be read. `payload_of` makes the payload of the values from a begin to an end, of pieces of
    about `nbytes`.
    """
    start, payload = file.tell(), _Payload(spec)
    file.seek(start + len(stream.pack_header(spec.header, 0)) + payload.groups_offset)
    for first, last in ranges(spec, nbytes):
        file.write(payload.groups_of(payload_of(first, last), (last - first) * spec.dtype.parts).data)
    end = file.tell()
    file.seek(start)
    file.write(stream.pack_header(spec.header, payload.nbytes) + payload.head())
    file.seek(start)
    checksum = stream.checksum_of(_read(file, end - start))
    file.seek(end)
    file.write(checksum)


class _Payload:
    """What is known of an array's payload when those of its pieces are."""

    def __init__(self, spec: Spec) -> None:
        self._entry = np.dtype("<u8" if spec.nbytes >= _WIDE_NBYTES else "<u4")
        self._groups = -(-spec.elements // _GROUP)
        self.groups_offset = self._offset(self._groups, self._entry.itemsize)
        self._ends: list[NDArray[np.uint64]] = []  # of groups, from the first one on
        self._bound, self._units = 0.0, 0

    @property
    def nbytes(self) -> int:
        """Its length, once all pieces are there."""
        return self.groups_offset + self._units * _UNIT_NBYTES

    def groups_of(self, payload: Bytes, elements: int) -> Bytes:
        """The groups of the next piece's payload."""
        self._bound, chunks, entry_nbytes = _HEAD.unpack_from(payload.data)
        assert chunks == _CHUNKS, "a piece has groups of as many chunks as the whole"
        groups = -(-elements // _GROUP)
        ends = np.frombuffer(payload, f"<u{entry_nbytes}", groups, _HEAD.size).astype(np.uint64)
        self._ends.append(ends + np.uint64(self._units))
        self._units += int(ends[-1])
        return payload[self._offset(groups, entry_nbytes) :]

    def head(self) -> bytes:
        """What is before the groups, once all pieces are there."""
        ends = np.concatenate(self._ends).astype(self._entry)
        assert ends.size == self._groups, "the pieces are the whole"
        head = _HEAD.pack(self._bound, _CHUNKS, self._entry.itemsize) + ends.tobytes()
        return head.ljust(self.groups_offset, b"\0")

    @staticmethod
    def _offset(groups: int, entry_nbytes: int) -> int:
        """Of the first group in a payload."""
        end = _HEAD.size + groups * entry_nbytes
        return end + -end % 8


def _read(file: IO[bytes], nbytes: int) -> Iterator[bytes]:
    """So many bytes of a file, in parts."""
    while nbytes > 0:
        data = file.read(min(nbytes, _READ_NBYTES))
        assert data, "what was written can be read"
        nbytes -= len(data)
        yield data
