"""Files that a command reads and writes; "-" is standard input or output, by way of a temporary file.

So a stream that comes through a pipe is checked as one in a file is, and nothing is written unless all went well.
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
    """The file to read: `path`, or one with this suffix and all of standard input.

    Raises:
        ValueError: standard input is wanted, and a terminal or closed.
        OSError: it cannot be read.
    """
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
    """The file to write: `path`, or one with this suffix that goes to standard output at the end.

    Raises:
        FileExistsError: it exists, and is not to be overwritten.
        ValueError: it is also the `source`; or standard output is wanted, and a terminal or closed.
        OSError: standard output cannot be written.
    """
    if path != STANDARD:
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(f"{path}: IN and OUT are the same file")
        if path.is_file() and not force:
            raise FileExistsError(f"{path} exists; --force overwrites it")
        yield path
        return
    target = _bytes_of(sys.stdout, "standard output", "name a file, or send it through a pipe")
    with _temporary("standard output", suffix) as file:
        yield file
        with file.open("rb") as copy:
            shutil.copyfileobj(copy, target)
        target.flush()


def _bytes_of(stream: Any, name: str, advice: str) -> Any:
    """The bytes behind a text stream."""
    if stream is None or stream.closed:
        raise ValueError(f"-: {name} is closed; {advice}")
    if stream.isatty():
        raise ValueError(f"-: {name} is a terminal; {advice}")
    return stream.buffer


@contextlib.contextmanager
def _temporary(name: str, suffix: str) -> Iterator[Path]:
    """A path in a folder that is removed at the end; errors have `name` in its place."""
    with tempfile.TemporaryDirectory(prefix="arrcomp-") as folder:
        path = Path(folder) / f"stream{suffix}"
        try:
            yield path
        except Exception as error:
            error.args = tuple(part.replace(str(path), name) if isinstance(part, str) else part for part in error.args)
            if isinstance(error, OSError) and error.filename == str(path):
                error.filename = name
            raise
