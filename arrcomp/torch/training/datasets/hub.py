"""Data sets by way of the `datasets` package, which keeps what it fetches from the Hugging Face Hub."""

from typing import Any


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
        import datasets  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as missing:
        raise ImportError(f"--download needs datasets ({missing}): pip install datasets") from None
    return datasets.load_dataset(path, configuration, split=part)
