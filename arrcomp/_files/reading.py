"""Files that are open for reading, in ranges.

They are not mapped into memory: if a mapped file is truncated, the system ends the process that reads it.
"""

import os
import weakref
from pathlib import Path

import numpy as np

from .._dtypes import Bytes

_CHUNK_NBYTES = 1 << 26  # of one read, so that Ctrl-C stops a long one


class OpenedFile:
    """A file that is open for reading, and its length then. It stays the same file if another one takes its name."""

    def __init__(self, path: Path, failure: type[Exception] = ValueError) -> None:
        """Open it. `failure` is raised by reading if the file was truncated since."""
        self.path = path
        self._source: _Source | None = _Source(path, failure)
        self.nbytes = self._source.nbytes

    def span(self, start: int, end: int) -> "Span":
        """A range of the file, which can be read later, even after `close`."""
        if self._source is None:
            raise ValueError(f"{self.path}: expected an open file, got a closed one")
        return Span(self._source, start, end)

    def close(self) -> None:
        """Close the file once its last span is gone. A second call does nothing."""
        self._source = None


class Span:
    """A range of a file, which `OpenedFile.span` makes, and its length."""

    def __init__(self, source: "_Source", start: int, end: int) -> None:
        self._source, self._start = source, start
        self.nbytes = end - start

    def read(self) -> Bytes:
        """All of its bytes, in new memory. `failure` of `OpenedFile` if the file was truncated after it was opened."""
        data = np.empty(self.nbytes, np.uint8)
        self.read_into(data, 0)
        return data

    def read_into(self, data: Bytes, first: int) -> None:
        """Fill `data` with its bytes from `first` on. Raises the same as `read`."""
        self._source.read_into(data, self._start + first)


class _Source:
    """A file descriptor that is closed when its last reader is gone."""

    def __init__(self, path: Path, failure: type[Exception]) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, descriptor)
        self._descriptor, self._path, self._failure = descriptor, path, failure
        self.nbytes = os.fstat(descriptor).st_size

    def read_into(self, data: Bytes, offset: int) -> None:
        done = 0
        while done < data.size:
            count = self._read(data[done : done + _CHUNK_NBYTES], offset + done)
            if count == 0:
                found = os.fstat(self._descriptor).st_size
                expected = f"expected {self.nbytes} bytes, as when it was opened"
                raise self._failure(f"{self._path}: {expected}, got {found}; it was truncated")
            done += count

    def _read(self, data: Bytes, offset: int) -> int:
        try:
            return os.preadv(self._descriptor, [data.data], offset)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None
