"""The program `python bench/training`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the benchmarks import each other by their own names


def main() -> None:
    """Run the command line; without the packages that it needs, say in one line how to install them."""
    try:
        from training.cli import app
    except ImportError as error:
        print(f"arrcomp: training needs {_missing(error)}", file=sys.stderr)
        sys.exit(2)
    app(prog_name="python bench/training")


def _missing(error: ImportError) -> str:
    package = (error.name or "another package").partition(".")[0]
    return f"{package} ({error}): pip install -r bench/requirements.txt"


if __name__ == "__main__":
    main()
