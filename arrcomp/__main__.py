"""The `arrcomp` program, also as `python -m arrcomp`."""

import sys
from collections.abc import Callable

from ._interrupts import INTERRUPTED


def main() -> None:
    """Run the command line. If a package is missing, say in one line how to install it."""
    try:
        _command_line()()
    except KeyboardInterrupt:  # while it is imported
        sys.exit(INTERRUPTED)


def _command_line() -> Callable[[], None]:
    try:
        from ._cli import main as run
    except ImportError as error:
        print(f"arrcomp: {error}", file=sys.stderr)
        sys.exit(2)
    return run


if __name__ == "__main__":
    main()
