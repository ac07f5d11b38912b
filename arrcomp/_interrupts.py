"""Ctrl-C while the `arrcomp` program is being imported: it ends as it does later, without a traceback."""

import contextlib
import os
import sys
from collections.abc import Iterator

INTERRUPTED = 130  # as shells report Ctrl-C


@contextlib.contextmanager
def ending_the_program() -> Iterator[None]:
    """Exit on Ctrl-C if Python was started to run the program. Others who import get the KeyboardInterrupt."""
    try:
        yield
    except KeyboardInterrupt:
        if not _is_program():
            raise
        sys.exit(INTERRUPTED)


def _is_program() -> bool:
    """Whether this is `arrcomp` or `python -m arrcomp`, whose first argument is "-m" while its package is imported."""
    program = (getattr(sys, "argv", None) or [""])[0]
    return (program == "-m" and "arrcomp" in sys.orig_argv) or program.rpartition(os.sep)[2].partition(".")[
        0
    ] == "arrcomp"
