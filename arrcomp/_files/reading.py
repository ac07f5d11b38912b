"""Files that are open for reading, of which parts are read into memory.

None is mapped: where a mapped file is cut, the system ends the process that looks at it.
"""

import os
import weakref
from pathlib import Path

import numpy as np

from .._dtypes import Bytes

_PIECE_NBYTES = 1 << 26  # read at once, so that Ctrl-C need not wait for all


class OpenedFile:
    """A file that is open for reading, and stays what it was if another one takes its name.

    Attributes:
        path: where it was.
        nbytes: its length when it was opened.
    """

    def __init__(self, path: Path, failure: type[Exception] = ValueError) -> None:
        """Open it.

        Args:
            path: of the file.
            failure: what is raised where it turns out to have been cut.

        Raises:
            OSError: it cannot be read.
        """
        self.path = path
        self._source: _Source | None = _Source(path, failure)
        self.nbytes = self._source.nbytes

    def span(self, start: int, end: int) -> "Span":
        """A part of the file, to be read later, even after `close`.

        Raises:
            ValueError: the file is closed.
        """
        if self._source is None:
            raise ValueError(f"{self.path} is closed")
        return Span(self._source, start, end)

    def close(self) -> None:
        """Let the file go, with the last span of it; a second time does nothing."""
        self._source = None


class Span:
    """A part of a file; made by `OpenedFile.span`.

    Attributes:
        nbytes: its length.
    """

    def __init__(self, source: "_Source", start: int, end: int) -> None:
        self._source, self._start = source, start
        self.nbytes = end - start

    def read(self) -> Bytes:
        """All of its bytes, in new memory.

        Raises:
            OSError: they cannot be read.
            MemoryError: there is no memory for them.
            As given to `OpenedFile`: the file was cut since it was opened.
        """
        data = np.empty(self.nbytes, np.uint8)
        self.read_into(data, 0)
        return data

    def read_into(self, data: Bytes, first: int) -> None:
        """Its bytes from `first` on, as many as `data` takes; raises as `read`."""
        self._source.read_into(data, self._start + first)


class _Source:
    """A descriptor that is closed when nobody is left who reads from it."""

    def __init__(self, path: Path, failure: type[Exception]) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, descriptor)
        self._descriptor, self._path, self._failure = descriptor, path, failure
        self.nbytes = os.fstat(descriptor).st_size

    def read_into(self, data: Bytes, place: int) -> None:
        for first in range(0, data.size, _PIECE_NBYTES):
            piece = data[first : first + _PIECE_NBYTES]
            done = 0
            while done < piece.size:
                count = self._read(piece[done:], place + first + done)
                if count == 0:
                    found = os.fstat(self._descriptor).st_size
                    raise self._failure(f"{self._path} was cut while it was open: {found} bytes, of {self.nbytes}")
                done += count

    def _read(self, data: Bytes, place: int) -> int:
        try:
            return os.preadv(self._descriptor, [data.data], place)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None
