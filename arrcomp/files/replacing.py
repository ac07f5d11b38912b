"""A file is complete, or as it was before: it is written under another name and then renamed."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`; renamed to it at the end, removed if anything fails.

    Raises:
        ValueError: `path` is there and not a regular file.
        OSError: it cannot be written.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a regular file")
    temporary = target.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        temporary.touch(exist_ok=False)
        mode = (target if target.exists() else temporary).stat().st_mode
        yield temporary
        temporary.chmod(mode)
        _sync(temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(target.parent)


def _sync(path: Path) -> None:
    if path.is_dir() and os.name != "posix":
        return  # only POSIX opens folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
