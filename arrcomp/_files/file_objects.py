"""File objects: what has a `read` or a `write` of its own."""

import errno
import io
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np

from .._arguments import type_name, wrong_type
from .._dtypes import Bytes
from .locations import OtherFile, Source
from .reading import truncated

_CHUNK_NBYTES = 1 << 24  # of one read or write
_MAGICS = {b"ARRC": ".arrcomp", b"\x93NUM": ".npy", b"PK\x03\x04": ".npz", b"PK\x05\x06": ".npz"}
_OTHERS = ".safetensors"


class FileObject(OtherFile):
    """A binary file object, from its position on. It is not closed.

    Its first bytes say what is read. What is written is a .safetensors file, unless its `name` has another suffix.
    """

    url = None

    def __init__(self, file: Any, argument: str, *, writing: bool) -> None:
        """TypeError for one of text; ValueError if it cannot be written, or read and sought."""
        names = (getattr(file, "name", None), getattr(file, "path", None))  # fsspec's have the latter alone
        name = next((each for each in names if isinstance(each, str)), "")
        self._name = name or type_name(file)
        self._file, self._argument, self.identity, self._lock = file, argument, id(file), threading.Lock()
        if writing:
            self._check_writable()
            self.suffix = Path(name).suffix or _OTHERS
            return
        self._check_readable()
        self._start = file.tell()
        self.suffix = _MAGICS.get(file.read(4), _OTHERS)

    def __str__(self) -> str:
        return self._name

    def check_exists(self) -> None:
        """A file object is there."""

    def open(self, failure: type[Exception]) -> Source:
        return _Source(self._file, self._start, self._lock, self._name, failure)

    def put(self, written: Path) -> None:
        with written.open("rb") as copied:
            while chunk := copied.read(_CHUNK_NBYTES):
                left = memoryview(chunk)
                while left:  # a file without a buffer may take less
                    taken = self._file.write(left)
                    if taken is None and isinstance(self._file, io.RawIOBase):
                        raise BlockingIOError(errno.EAGAIN, "expected a file object that waits", self._name)
                    left = left[len(left) if taken is None else taken :]  # files of others may not say how much

    def check_writable(self) -> None:
        """It was checked when it was made."""

    def beside(self, file: str) -> None:
        return None

    def path_to(self, base: OtherFile) -> None:
        return None

    def _check_writable(self) -> None:
        if not _can(self._file, "write", "writable"):
            raise self._refused("that can be written to")
        try:
            self._file.write(b"")
        except TypeError:
            raise self._of_text() from None

    def _check_readable(self) -> None:
        if not _can(self._file, "read", "readable"):
            raise self._refused("that can be read")
        if not _can(self._file, "seek", "seekable"):
            raise self._refused("that can seek", "; io.BytesIO(file.read()) can")
        if not isinstance(self._file.read(0), bytes):
            raise self._of_text()

    def _refused(self, expected: str, hint: str = "") -> ValueError:
        return ValueError(f"{self._argument}: expected a file object {expected}, got {type_name(self._file)}{hint}")

    def _of_text(self) -> TypeError:
        return wrong_type(self._argument, "a file object of bytes", self._file)


class _Source:
    """A file object that is read in ranges, by one thread at a time."""

    def __init__(self, file: Any, start: int, lock: threading.Lock, name: str, failure: type[Exception]) -> None:
        self._file, self._start, self._lock, self._name, self._failure = file, start, lock, name, failure
        self.nbytes = self._end() - start

    def read_into(self, data: Bytes, offset: int) -> None:
        with self._lock:
            self._file.seek(self._start + offset)
            done = 0
            while done < data.size:
                found = self._file.read(min(_CHUNK_NBYTES, data.size - done))
                if not found:
                    raise truncated(self._failure, self._name, self.nbytes, self._end() - self._start)
                data[done : done + len(found)] = np.frombuffer(found, np.uint8)
                done += len(found)

    def _end(self) -> int:
        self._file.seek(0, os.SEEK_END)
        return int(self._file.tell())


def _can(file: Any, method: str, asked: str) -> bool:
    """Whether a file has a method, and does not say that it fails."""
    says = getattr(file, asked, None)
    return callable(getattr(file, method, None)) and (says is None or bool(says()))
