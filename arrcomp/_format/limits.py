"""The limit `max_nbytes` of decompressed arrays.

A few bytes in a Zstandard frame may claim to hold terabytes. A stream that was read from bytes or from a file therefore
decompresses to at most `allowed_of` bytes, unless a caller says otherwise. Arrays that this process compressed have no
limit.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from .._arguments import checked_integer, shortened, shown
from ..errors import SizeLimitError

LEAST_NBYTES = 1 << 30
# A payload takes at least 5 bytes for 4096 elements of at most 8 bytes. Only a frame can exceed this.
MOST_GROWTH = 8192
_LARGEST = (1 << 63) - 1

_reading: ContextVar[int | None] = ContextVar("max_nbytes", default=None)


def allowed_of(nbytes: int, max_nbytes: int | None = None) -> int:
    """The most bytes of the array of a stream of `nbytes`: `max_nbytes`, or else that of `reading`, or the default."""
    limit = _reading.get() if max_nbytes is None else max_nbytes
    return default_max_nbytes(nbytes) if limit is None else limit


def default_max_nbytes(nbytes: int) -> int:
    """The most bytes of the array of a stream of `nbytes` for a reader who says nothing; writers keep to it."""
    return max(MOST_GROWTH * nbytes, LEAST_NBYTES)


@contextlib.contextmanager
def reading(max_nbytes: int | None) -> Iterator[None]:
    """Inside, streams are read with this `max_nbytes`: for readers without arguments, such as those of pickles."""
    token = _reading.set(checked_max_nbytes(max_nbytes))
    try:
        yield
    finally:
        _reading.reset(token)


def checked_max_nbytes(max_nbytes: Any) -> int | None:
    """The argument `max_nbytes`, checked: an integer from 0 to 2^63 - 1; None stays None."""
    return None if max_nbytes is None else checked_integer("max_nbytes", max_nbytes, 0, _LARGEST)


def check_nbytes(nbytes: int, allowed: int, dtype: object, shape: tuple[int, ...]) -> None:
    """Raise SizeLimitError if a stream or file claims to hold an array of more bytes than allowed."""
    if nbytes > allowed:
        claim = f"{shown(nbytes)} bytes ({shortened(str(dtype))} of shape {shown(shape)})"
        raise SizeLimitError(
            f"max_nbytes: expected an array of at most {allowed} bytes, got a claim of {claim}; a larger max_nbytes "
            "accepts trusted data"
        )
