"""Atomic replacement of files: a file is written without its name, and gets it at the end."""

import contextlib
import errno
import itertools
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import xxhash

from .locations import Location, OtherFile
from .locks import lock

T = TypeVar("T")

_DESCRIPTORS = Path("/proc/self/fd")
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.[0-9]+\.tmp")
_STORAGE_ERRORS = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG, errno.EIO)


@contextlib.contextmanager
def replacing(path: Location) -> Iterator[Path]:
    """A path to write to. Its file becomes the one at `path` at the end, and is removed if anything fails.

    At a URL, and in a file object, a copy of it is made. Until then it is in the folder of temporary files.
    """
    with _copied(path) if isinstance(path, OtherFile) else _renamed(path) as temporary:
        yield temporary


@contextlib.contextmanager
def _copied(file: OtherFile) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile() as temporary:
        path = Path(temporary.name)
        with errors_of(path, path.parent):
            yield path
        file.put(path)


@contextlib.contextmanager
def _renamed(path: Path) -> Iterator[Path]:
    """`replacing` for a path of this machine.

    On systems with unnamed files, a process that is killed leaves nothing behind either. But if it replaces a file, and
    is killed between two calls at the very end, the new file stays beside the old one under a temporary name. The next
    writer of the same file removes it, as on other systems. An OSError has `path` as `filename`.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path}: expected a regular file, got another kind")
    with errors_of(path, target.parent):
        descriptor, temporary = _opened(target)
        try:
            yield temporary
            if target.exists() and hasattr(os, "fchmod"):
                os.fchmod(descriptor, target.stat().st_mode & 0o7777)
            os.fsync(descriptor)
            _put(descriptor, temporary, target)
        except BaseException:
            if temporary.parent == target.parent:
                temporary.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        _sync_folder(target.parent)


def _opened(target: Path) -> tuple[int, Path]:
    """A new file in the folder of `target`: its descriptor, locked, and a path to it."""
    with contextlib.suppress(AttributeError, OSError):  # if it fails, the way below reports the reason
        descriptor = os.open(target.parent, os.O_TMPFILE | os.O_RDWR, 0o666)
        nameless = _DESCRIPTORS / str(descriptor)
        if nameless.exists():
            lock(descriptor)
            return descriptor, nameless
        os.close(descriptor)
    while True:
        descriptor, named = _beside(target, lambda path: os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
        lock(descriptor)
        if os.fstat(descriptor).st_nlink:
            return descriptor, named
        os.close(descriptor)  # another writer removed it before it was locked


def _put(descriptor: int, temporary: Path, target: Path) -> None:
    """Give the file at `temporary` the name `target`."""
    if temporary.parent == target.parent:
        temporary.replace(target)
        return

    def link(path: Path) -> None:
        # With a descriptor, any one, Python makes the system follow links, such as those in /proc.
        os.link(temporary, path, src_dir_fd=descriptor, follow_symlinks=True)

    with contextlib.suppress(FileExistsError):
        link(target)
        return
    # A link cannot replace another file.
    linked: Path | None = None
    try:
        _, linked = _beside(target, link)
        linked.replace(target)
    except BaseException:
        if linked is not None:
            linked.unlink(missing_ok=True)
        raise


def _beside(target: Path, make: Callable[[Path], T]) -> tuple[T, Path]:
    """The result of `make` for the first free name of a temporary file of `target`, and that name."""
    stem = xxhash.xxh3_64_hexdigest(os.fsencode(target.name))  # short, as the name itself may have the greatest length
    for number in itertools.count():
        path = target.with_name(f".{stem}.{number}.tmp")
        for _ in range(2):
            with contextlib.suppress(FileExistsError):
                return make(path), path
            _remove_if_left(path)
    raise AssertionError("numbers do not end")


def _remove_if_left(path: Path) -> None:
    """Remove a file whose writer was killed. A living writer holds a lock. Without locks such files stay."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            if lock(descriptor, wait=False) and os.path.samestat(os.fstat(descriptor), path.lstat()):
                path.unlink()
        finally:
            os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # the folder may be writable but not readable; on Windows folders cannot be opened
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def errors_of(path: Path, folder: Path) -> Iterator[None]:
    """Name `path` in errors without a file name, or with that of a temporary file."""
    try:
        yield
    except OSError as error:
        if _is_ours(error.filename, folder) or (error.filename is None and error.errno in _STORAGE_ERRORS):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _is_ours(filename: Any, folder: Path) -> bool:
    """Whether a name in an error is that of the folder or of a temporary file."""
    if not isinstance(filename, (str, Path)):
        return False
    name = Path(filename)
    is_temporary = name.parent == folder and _TEMPORARY.fullmatch(name.name) is not None
    return name in (folder, _DESCRIPTORS) or name.parent == _DESCRIPTORS or is_temporary
