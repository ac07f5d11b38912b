"""What a stream means: the reader in `independent`, which was written from native/FORMAT.md and nothing else.

`read_stream` gives the array, `describe` and `describe_lines` what the writer chose for each chunk of a payload. They
raise `CorruptStreamError` where section 7 of the format speaks of corruption, `UnsupportedStreamError` for an unknown
codec or a newer major version.
"""

from __future__ import annotations

from independent import (
    DTYPES,
    Chunk,
    CorruptStreamError,
    Dtype,
    Line,
    LineChunk,
    UnsupportedStreamError,
    describe,
    describe_lines,
)
from independent import read as read_stream

ERRORS = (CorruptStreamError, UnsupportedStreamError)

__all__ = [
    "DTYPES",
    "ERRORS",
    "Chunk",
    "CorruptStreamError",
    "Dtype",
    "Line",
    "LineChunk",
    "UnsupportedStreamError",
    "describe",
    "describe_lines",
    "read_stream",
]
