"""A file whose parts are mapped into memory one by one, so that each leaves it with the last array that views it."""

import mmap
import os
import weakref
from pathlib import Path

import numpy as np

from ..adapter import Bytes


class MappedFile:
    """A file that is open for reading, and stays what it was if another one takes its name.

    Attributes:
        path: where it was.
        nbytes: its length.
    """

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            OSError: it cannot be read.
        """
        with path.open("rb") as file:
            self._descriptor = os.dup(file.fileno())
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self.path = path
        self.nbytes = os.fstat(self._descriptor).st_size

    def bytes(self, start: int, end: int) -> Bytes:
        """A read-only view of a part of the file, which outlives `close`.

        Raises:
            ValueError: the file is closed, or was cut since.
        """
        if not self._close.alive:
            raise ValueError(f"{self.path} is closed")
        if start == end:
            return np.empty(0, np.uint8)
        before = start % mmap.ALLOCATIONGRANULARITY
        length, offset = before + end - start, start - before
        window = mmap.mmap(self._descriptor, length, access=mmap.ACCESS_READ, offset=offset)
        return np.frombuffer(window, np.uint8)[before:]

    def close(self) -> None:
        """Let the file go; a second time does nothing."""
        self._close()
