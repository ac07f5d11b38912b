"""A reader of arrcomp streams written from `native/FORMAT.md` alone, in NumPy; sections below are that page's.

It shares no code with arrcomp and was written without a look at it, so that the page is known to say everything.
Clear rather than fast. `read` is the entrance.
"""

from .base_delta import Line, LineChunk
from .chunks import Chunk
from .dtypes import DTYPES, Dtype
from .source import CorruptStreamError, UnsupportedStreamError
from .stream import describe, describe_lines, read

__all__ = [
    "DTYPES",
    "Chunk",
    "CorruptStreamError",
    "Dtype",
    "Line",
    "LineChunk",
    "UnsupportedStreamError",
    "describe",
    "describe_lines",
    "read",
]
