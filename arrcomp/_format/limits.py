"""How large an array may become of bytes that claim to hold it: the one home of `max_nbytes`.

A few bytes in a Zstandard frame may claim terabytes. What was read, from bytes or from a file, is therefore
decompressed to `allowed_of` bytes at most, unless a caller says otherwise; what this process compressed has no limit.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from .._arguments import checked_integer
from ..errors import SizeLimitError

LEAST_NBYTES = 1 << 30
# No payload takes less than 5 bytes for 4096 elements of at most 8: only what a frame holds can be larger.
MOST_GROWTH = 8192
_LARGEST = (1 << 63) - 1

_reading: ContextVar[int | None] = ContextVar("max_nbytes", default=None)


def allowed_of(nbytes: int, max_nbytes: int | None = None) -> int:
    """Bytes that an array may have of which `nbytes` were read: a stream with its payload or frame.

    Args:
        nbytes: read.
        max_nbytes: what the caller allows, checked; None for the rule, or what `reading` was told.
    """
    said = _reading.get() if max_nbytes is None else max_nbytes
    return max(MOST_GROWTH * nbytes, LEAST_NBYTES) if said is None else said


@contextlib.contextmanager
def reading(max_nbytes: int | None) -> Iterator[None]:
    """Inside, what is read gets this `max_nbytes`: for readers that others call, as those of pickles."""
    token = _reading.set(checked_max_nbytes(max_nbytes))
    try:
        yield
    finally:
        _reading.reset(token)


def checked_max_nbytes(max_nbytes: Any) -> int | None:
    """The argument `max_nbytes`, checked; None stays None.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is below 0, or no array's size.
    """
    return None if max_nbytes is None else checked_integer("max_nbytes", max_nbytes, 0, _LARGEST)


def check_nbytes(nbytes: int, allowed: int, dtype: object, shape: tuple[int, ...]) -> None:
    """Raise SizeLimitError where an array that is claimed has more bytes than are allowed."""
    if nbytes > allowed:
        raise SizeLimitError(
            f"max_nbytes: an array of {nbytes} bytes is claimed ({dtype} of shape {shape}); {allowed} are allowed, and "
            "more with a larger max_nbytes, for data that is trusted"
        )
