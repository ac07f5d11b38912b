"""Files that a command reads and writes. "-" is standard input or output, with a temporary file.

So streams from a pipe are checked like those in files, and nothing is written if the command fails.
"""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STANDARD = Path("-")


@contextlib.contextmanager
def input_file(path: Path, suffix: str) -> Iterator[Path]:
    """The file to read: `path`, or a temporary one with this suffix and the bytes of standard input."""
    if path != STANDARD:
        yield path
        return
    source = _bytes_of(sys.stdin, "standard input", "name a file, or send one through a pipe")
    with _temporary("standard input", suffix) as file:
        with file.open("wb") as copy:
            shutil.copyfileobj(source, copy)
        yield file


@contextlib.contextmanager
def output_file(path: Path, suffix: str, source: Path, *, force: bool) -> Iterator[Path]:
    """The file to write: `path`, or a temporary one with this suffix that is copied to standard output at the end.

    It must not be the `source`, and must not exist without `force`.
    """
    if path != STANDARD:
        check_writable(path, source, force=force)
        yield path
        return
    target = _bytes_of(sys.stdout, "standard output", "name a file, or send it through a pipe")
    with _temporary("standard output", suffix) as file:
        yield file
        with file.open("rb") as copy:
            shutil.copyfileobj(copy, target)
        target.flush()


def shown_path(path: Path) -> str:
    """A file to read, for people."""
    return "standard input" if path == STANDARD else str(path)


def check_writable(path: Path, source: Path, *, force: bool) -> None:
    """Raise unless a file may be written that is made from `source`."""
    if path.exists() and source.exists() and path.samefile(source):
        raise ValueError(f"{path}: expected another file than IN as OUT, got the same")
    if path.is_file() and not force:
        raise FileExistsError(f"{path}: expected a new file, got one that exists; --force overwrites it")


def _bytes_of(stream: Any, name: str, advice: str) -> Any:
    """The bytes behind a text stream."""
    if stream is None or stream.closed:
        raise ValueError(f"-: expected {name} to be open, got a closed one; {advice}")
    if stream.isatty():
        raise ValueError(f"-: expected {name} to be a file or a pipe, got a terminal; {advice}")
    return stream.buffer


@contextlib.contextmanager
def _temporary(name: str, suffix: str) -> Iterator[Path]:
    """A path in a temporary folder. Errors show `name` in its place."""
    with tempfile.TemporaryDirectory(prefix="arrcomp-") as folder:
        path = Path(folder) / f"stream{suffix}"
        try:
            yield path
        except Exception as error:
            error.args = tuple(arg.replace(str(path), name) if isinstance(arg, str) else arg for arg in error.args)
            if isinstance(error, OSError) and error.filename == str(path):
                error.filename = name
            raise
