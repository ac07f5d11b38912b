"""The `arrcomp` program, also as `python -m arrcomp`."""

import sys


def main() -> None:
    """Run the command line. If a package is missing, say in one line how to install it."""
    try:
        from ._cli import main as run
    except ImportError as error:
        print(f"arrcomp: {error}", file=sys.stderr)
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
