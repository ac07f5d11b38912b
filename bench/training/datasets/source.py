"""Where data sets come from: files that are there, or the `datasets` package, which keeps what it fetches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arrcomp.errors import ArrcompError


class DataNotFoundError(ArrcompError, FileNotFoundError):
    """A data set's files are missing. The message says which are expected where, and how to get them."""


def fetched(path: str, part: str, *, configuration: str | None = None) -> Any:
    """The rows of a part of a data set, as mappings.

    Args:
        path: of the data set on the Hub.
        part: for instance "train".
        configuration: of it, where there are several.

    Raises:
        ImportError: `datasets` is not installed.
    """
    try:
        import datasets
    except ImportError as missing:
        raise ImportError(f"--download needs datasets ({missing}): pip install datasets") from None
    return datasets.load_dataset(path, configuration, split=part)


def require(paths: Sequence[Path], name: str, hint: str) -> None:
    """Raise DataNotFoundError unless all of these are there.

    Args:
        paths: files and folders.
        name: of the data set.
        hint: how to get them.
    """
    missing = [path for path in paths if not path.exists()]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataNotFoundError(f"data set {name}: {missing[0]}{others} not found. {hint}")
