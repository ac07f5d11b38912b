"""Other compressors, one file each, behind one small protocol.

A peer's module has a list `COMPRESSORS`. Each uses one thread, and its library as its documentation says; what NumPy
does for it (quantizing, shuffling bytes) uses memory that is allocated once, and counts.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

Array = NDArray[Any]
Kind = Literal["bounded", "lossless"]

# Library, its module here, what it does.
_PEERS: tuple[tuple[str, str, tuple[Kind, ...]], ...] = (
    ("pysz", "sz3", ("bounded",)),
    ("pcodec", "pco", ("bounded", "lossless")),
    ("zfpy", "zfp", ("bounded", "lossless")),
    ("blosc2", "blosc", ("bounded", "lossless")),
    ("zstandard", "zstd", ("lossless",)),
    ("zipnn", "zipnn", ("lossless",)),
    ("openzl", "openzl", ("lossless",)),
)
LIBRARIES = tuple(library for library, _, _ in _PEERS)


@dataclass(frozen=True)
class Payload:
    """What a compressor wrote, and its length with all that is needed to read it but shape and dtype."""

    data: Any
    nbytes: int


class Compressor(Protocol):
    """One compressor in one setting."""

    name: str
    kind: Kind

    def supports(self, array: Array) -> bool:
        """Whether it takes this array's dtype."""

    def compress(self, array: Array, bound: float) -> Payload:
        """Compress a C-contiguous array within an absolute bound, or with every bit kept if `kind` says so."""

    def decompress(self, payload: Payload, out: Array) -> Array:
        """An array of the shape and dtype of `out`, which the compressor may fill and return."""


class Missing:
    """Stands in the tables for a library that cannot be imported."""

    def __init__(self, name: str, kind: Kind, reason: str) -> None:
        self.name = name
        self.kind = kind
        self._reason = reason

    def supports(self, array: Array) -> bool:
        return True

    def compress(self, array: Array, bound: float) -> Payload:
        raise ImportError(self._reason)

    def decompress(self, payload: Payload, out: Array) -> Array:
        raise ImportError(self._reason)


def load() -> list[Compressor]:
    """All peers' compressors."""
    found: list[Compressor] = []
    for library, module, kinds in _PEERS:
        try:
            found += importlib.import_module(f"{__name__}.{module}").COMPRESSORS
        except ImportError as error:
            found += [Missing(library, kind, str(error)) for kind in kinds]
    return found


def as_unsigned(array: Array) -> Array:
    """The same memory as unsigned integers of the same size."""
    return array.view(f"u{array.dtype.itemsize}")
