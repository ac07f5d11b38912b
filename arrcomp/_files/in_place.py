"""Appending to a .safetensors file in place: what `journal` describes, step by step.

Each step is on the disk before the next one begins. Whenever a process is killed or the power goes, readers of this
package have the file before the append or after it. The next append finishes, or undoes, what was interrupted.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import journal
from .container import Container, Entry, Writer, packed
from .locations import Location, OtherFile
from .locks import lock, unlock
from .opened import CompressedFile
from .replacing import errors_of

_CHUNK_NBYTES = 1 << 26  # of one write, so that Ctrl-C stops a long one
_LENGTH_NBYTES = journal.LENGTH_NBYTES


class Held(NamedTuple):
    """A file that no other append changes or replaces."""

    file: CompressedFile
    descriptor: int | None  # to write to it; None where that is not possible, or not safe as there are no locks


@contextlib.contextmanager
def held(path: Location) -> Iterator[Held]:
    """The file of compressed arrays at a path, open. Other appends on this machine wait until the block ends."""
    if isinstance(path, OtherFile):
        with CompressedFile(path, None) as file:
            yield Held(file, None)
        return
    while True:
        with contextlib.ExitStack() as stack:
            descriptor, is_writable = _opened(path)
            stack.callback(os.close, descriptor)
            is_locked = lock(descriptor)
            if is_locked:
                stack.callback(unlock, descriptor)
            file = stack.enter_context(CompressedFile(path, None))
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                yield Held(file, descriptor if is_locked and is_writable else None)
                return
            # It was replaced while this append waited: the new one counts.


def has_room(container: Container, entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> bool:
    """Whether a file's header has room for these tensors and metadata, and for the mark."""
    return journal.can_mark(container.head) and len(packed(entries, metadata)) < container.head.size - _LENGTH_NBYTES


@contextlib.contextmanager
def appending(descriptor: int, container: Container, path: Path, metadata: Mapping[str, str]) -> Iterator[Writer]:
    """A writer of further tensors of a file that `held` gave, and whose header has room.

    The writer's `metadata` are those of the new header. If anything fails the file is cut back to what it was.
    """
    with errors_of(path, path.parent):
        _settle(descriptor, container.head.tobytes(), container.end)
        append = _Append(descriptor, container)
        try:
            append.mark()
            file = _File(descriptor, container.end)
            writer = Writer(file, container.head.size, container.entries, metadata)
            yield writer
            append.finish(writer.head(container.head.size - _LENGTH_NBYTES), file.tell())
        except BaseException:
            append.undo()
            raise


class _Append:
    """The steps of an append."""

    def __init__(self, descriptor: int, container: Container) -> None:
        self._descriptor, self._head, self._end = descriptor, container.head, container.end
        self._new_end: int | None = None  # once the new header counts

    def mark(self) -> None:
        """Say that what follows the data is no damage."""
        self._write_last(journal.marked(self._head))

    def finish(self, head: bytes, end: int) -> None:
        """Make the header count that describes what the file has up to `end`, and put it in its place."""
        _write(self._descriptor, journal.packed(head, end), end)
        os.fsync(self._descriptor)
        self._new_end = end
        _settle(self._descriptor, head, end)

    def undo(self) -> None:
        """Make the file what it was, unless the new one is complete. Where even that fails, the next append does it."""
        if os.fstat(self._descriptor).st_size == self._new_end:
            return
        with contextlib.suppress(OSError):  # the first error counts
            _settle(self._descriptor, journal.marked(self._head), self._end)
            self._write_last(journal.unmarked(self._head))

    def _write_last(self, head: bytes) -> None:
        """Write the last byte of a header: one byte is written, or it is not."""
        _write(self._descriptor, head[-1:], len(head) - 1)
        os.fsync(self._descriptor)


class _File:
    """What a `Writer` writes to: a file without a buffer, from an offset on."""

    def __init__(self, descriptor: int, offset: int) -> None:
        self._descriptor, self._offset = descriptor, offset

    def write(self, data: Any) -> None:
        self._offset += _write(self._descriptor, data, self._offset)

    def read(self, nbytes: int) -> bytes:
        data = os.pread(self._descriptor, nbytes, self._offset)
        self._offset += len(data)
        return data

    def seek(self, offset: int) -> None:
        self._offset = offset

    def tell(self) -> int:
        return self._offset


def _settle(descriptor: int, head: bytes, end: int) -> None:
    """Write a header over the one that is there, and then cut the file off at `end`, if it is longer."""
    if os.fstat(descriptor).st_size == end:
        return
    _write(descriptor, head, 0)
    os.fsync(descriptor)
    os.ftruncate(descriptor, end)
    os.fsync(descriptor)


def _write(descriptor: int, data: Any, offset: int) -> int:
    """Write all of a buffer at an offset; its length."""
    view = memoryview(data)
    done = 0
    while done < view.nbytes:
        done += os.pwrite(descriptor, view[done : done + _CHUNK_NBYTES], offset + done)
    return done


def _opened(path: Path) -> tuple[int, bool]:
    """A file's descriptor, and whether it can be written to."""
    flags = getattr(os, "O_CLOEXEC", 0)
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDWR | flags), True
    return os.open(path, os.O_RDONLY | flags), False
