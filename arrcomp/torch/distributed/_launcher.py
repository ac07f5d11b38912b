"""Environment variables that launchers set for their processes."""

import os
from collections.abc import Mapping

from ..._arguments import checked_integer, wrong_value

_LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")


def local_world_size(environ: Mapping[str, str] = os.environ) -> int:
    """Number of processes that the launcher started on this node.

    Raises:
        ValueError: no variable is set.
    """
    for name in _LOCAL_SIZES:
        if name in environ:
            return integer_variable(environ, name, 0, 1, 1 << 31)
    raise ValueError(f"local_size: expected an integer, got None, and {' and '.join(_LOCAL_SIZES)} are not set")


def integer_variable(environ: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """The integer value of a variable, or the default if it is not set.

    Raises:
        ValueError: it is not an integer, or out of range.
    """
    text = environ.get(name, str(default)).strip()
    if not text.removeprefix("-").isdecimal():
        raise wrong_value(name, f"an integer from {least} to {most}", text)
    return checked_integer(name, int(text), least, most)
