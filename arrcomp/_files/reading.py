"""Files that are open for reading, in ranges.

They are not mapped into memory: if a mapped file is truncated, the system ends the process that reads it.
"""

import errno
import io
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from .._dtypes import Bytes
from .locations import Location, OtherFile, Source

_CHUNK_NBYTES = 1 << 26  # of one read, so that Ctrl-C stops a long one
_BUFFER_NBYTES = 1 << 16  # of `reader`


class OpenedFile:
    """A file that is open for reading, and its length then. It stays the same file if another one takes its name.

    An object of an object store does not: what is read after it was replaced is of the new one.
    """

    def __init__(self, path: Location, failure: type[Exception] = ValueError) -> None:
        """Open it. `failure` is raised by reading if the file was truncated since."""
        self.path = path
        self._source: Source | None = path.open(failure) if isinstance(path, OtherFile) else _LocalSource(path, failure)
        self.nbytes = self._source.nbytes

    def span(self, start: int, end: int) -> "Span":
        """A range of the file, which can be read later, even after `close`."""
        if self._source is None:
            raise ValueError(f"{self.path}: expected an open file, got a closed one")
        return Span(self._source, start, end)

    def reader(self) -> IO[bytes]:
        """The whole as a binary file of Python."""
        return io.BufferedReader(_Reader(self.span(0, self.nbytes)), _BUFFER_NBYTES)

    def close(self) -> None:
        """Close the file once its last span is gone. A second call does nothing."""
        self._source = None


class Span:
    """A range of a file, which `OpenedFile.span` makes, and its length."""

    def __init__(self, source: Source, start: int, end: int) -> None:
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

    def chunks(self) -> Iterator[Bytes]:
        """All of its bytes, a part in memory at a time. Raises the same as `read`."""
        for start in range(0, self.nbytes, _CHUNK_NBYTES):
            data = np.empty(min(_CHUNK_NBYTES, self.nbytes - start), np.uint8)
            self.read_into(data, start)
            yield data


class _LocalSource:
    """An unbuffered file that is closed when its last reader is gone."""

    def __init__(self, path: Path, failure: type[Exception]) -> None:
        self._file = path.open("rb", buffering=0)
        weakref.finalize(self, self._file.close)
        self._path, self._failure = path, failure
        self._position = threading.Lock()  # where a read cannot say its own
        self.nbytes = os.fstat(self._file.fileno()).st_size

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self._path}: expected its path in a pickle, got the open file; open it in each process")

    def read_into(self, data: Bytes, offset: int) -> None:
        done = 0
        while done < data.size:
            count = self._read(data[done : done + _CHUNK_NBYTES], offset + done)
            if count == 0:
                raise truncated(self._failure, self._path, self.nbytes, os.fstat(self._file.fileno()).st_size)
            done += count

    def _read(self, data: Bytes, offset: int) -> int:
        try:
            if hasattr(os, "preadv"):  # not on Windows
                return os.preadv(self._file.fileno(), [data.data], offset)
            with self._position:
                self._file.seek(offset)
                return self._file.readinto(data.data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None


class _Reader(io.RawIOBase):
    """A span as an unbuffered file of Python."""

    def __init__(self, span: Span) -> None:
        self._span, self._at = span, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._span.nbytes}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = np.frombuffer(buffer, np.uint8)[: max(self._span.nbytes - self._at, 0)]
        self._span.read_into(data, self._at)
        self._at += data.size
        return data.size


def truncated(failure: type[Exception], path: Location | str, expected: int, found: int) -> Exception:
    """The error where a file has fewer bytes than when it was opened."""
    return failure(f"{path}: expected {expected} bytes, as when it was opened, got {found}; it was truncated")
