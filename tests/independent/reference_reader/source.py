"""Bytes taken in order, none beyond their end; and the errors of a stream that is not as the page says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]


class CorruptStreamError(ValueError):
    """The stream breaks a rule of the page (section 7)."""


class UnsupportedStreamError(ValueError):
    """The stream has an unknown codec or a newer major version."""


class WrongReferenceError(ValueError):
    """The reference is not the writer's (section 10.4)."""


def need(condition: bool, what: str) -> None:
    """Raise CorruptStreamError with `what` is wrong, unless the condition holds."""
    if not condition:
        raise CorruptStreamError(what)


class Source:
    """Takes fields from `data`, bytes, one after the other; raises CorruptStreamError where they are missing."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    @property
    def left(self) -> int:
        """Bytes that were not taken yet."""
        return len(self.data) - self.position

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        need(size <= self.left, f"{size} bytes from {self.position} on of {len(self.data)}")
        self.position += size
        return self.data[self.position - size : self.position]

    def array(self, dtype: str, count: int) -> NDArray[np.generic]:
        """The next `count` little-endian numbers of the NumPy type `dtype`."""
        little = np.dtype(dtype).newbyteorder("<")
        return np.frombuffer(self.take(little.itemsize * count), little).astype(dtype)

    def words(self, size: int, count: int) -> U64:
        """The next `count` unsigned numbers of `size` bytes, shape (count,)."""
        return self.array(f"u{size}", count).astype(np.uint64)

    def number(self, size: int) -> int:
        """The next unsigned number of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def align(self, unit: int) -> bytes:
        """The bytes up to the next multiple of `unit`."""
        return self.take(-self.position % unit)
