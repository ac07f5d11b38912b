"""The program `python -m arrcomp.torch.training`."""

import sys


def main() -> None:
    """Run the command line; without the packages that it needs, say in one line how to install them."""
    try:
        from .cli import app
    except ImportError as error:
        print(f"arrcomp: training needs {_missing(error)}", file=sys.stderr)
        sys.exit(2)
    app(prog_name="python -m arrcomp.torch.training")


def _missing(error: ImportError) -> str:
    package = (error.name or "another package").partition(".")[0]
    return f"{package} ({error}): pip install arrcomp[training]"


if __name__ == "__main__":
    main()
