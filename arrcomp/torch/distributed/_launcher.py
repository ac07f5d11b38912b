"""What launchers say to the processes that they start, in environment variables."""

import os
from collections.abc import Mapping

from ..._arguments import checked_integer

_LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")


def local_world_size(environ: Mapping[str, str] = os.environ) -> int:
    """How many processes the launcher started on this node.

    Raises:
        ValueError: no variable tells.
    """
    for name in _LOCAL_SIZES:
        if name in environ:
            return integer_variable(environ, name, 0, 1, 1 << 31)
    raise ValueError(f"local_size is unknown: neither {' nor '.join(_LOCAL_SIZES)} is set; an integer is allowed")


def integer_variable(environ: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """The integer that a variable holds, or the default if it is not set.

    Raises:
        ValueError: it is no integer, or not in the range.
    """
    text = environ.get(name, str(default)).strip()
    if not text.removeprefix("-").isdecimal():
        raise ValueError(f"{name}={text!r}: an integer from {least} to {most} is allowed")
    return checked_integer(name, int(text), least, most)
