"""A reader of arrcomp streams written from `native/FORMAT.md` alone, in NumPy; sections below are that page's.

It shares no code with arrcomp and was written without a look at it, so that the page is known to say everything.
Clear rather than fast. `read` is the entrance.
"""

from .source import CorruptStreamError, UnsupportedStreamError
from .stream import read, read_bits

__all__ = ["CorruptStreamError", "UnsupportedStreamError", "read", "read_bits"]
