"""Files of tensors: the safetensors format. A JSON header has the offsets of each tensor's bytes.

The safetensors library checks files that are read. It needs all tensors at once to write a file. This module writes
them one by one instead, into the space after a reserved header, and the header last.
"""

import contextlib
import json
import operator
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _dtypes
from .._arguments import shortened, shown
from .._dtypes import Bytes
from . import journal
from .content import ArrayInfo
from .locations import Location, OtherFile
from .reading import OpenedFile, Span
from .replacing import replacing

_DTYPES = {
    "BOOL": "bool", "I8": "int8", "U8": "uint8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
    "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz", "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
_NAMES = {name: kind for kind, name in _DTYPES.items()}
RESERVED = "__metadata__"  # no tensor's name
_MOST_HEADER_NBYTES = 100_000_000  # the library's limit
_LENGTH_NBYTES = journal.LENGTH_NBYTES
_LEAST_ROOM_NBYTES = 1 << 12
_MOST_LOOKS = 100  # at a file that changes
_LARGEST = (1 << 63) - 1


class Entry(NamedTuple):
    """A tensor's description in the header."""

    kind: str  # the format's name of its data type
    shape: tuple[int, ...]
    start: int  # offset of its first byte after the header
    end: int  # offset after its last byte


LONGEST_OF_BYTES = Entry("U8", (_LARGEST,), _LARGEST, _LARGEST)  # of a stream whose length is not known yet


class Container:
    """An open file of tensors, checked by the library.

    Where an append was interrupted, it is the file before the append, or after it.

    Attributes:
        path: where it is.
        head: the header, with its length before it.
        metadata: those of the header.
        entries: the tensors', in the header's order.
        end: of the tensors, in the file.
    """

    def __init__(self, path: Location, failure: type[Exception]) -> None:
        """Open it. `failure` is raised if it is damaged."""
        self.path = path
        self._file, self.head = _opened(path, failure)
        header = _parse(self.head, path, failure)
        self.metadata: dict[str, str] = header.pop(RESERVED, None) or {}
        self.entries = _entries(header)
        self.end = _end_of(self.head, self.entries)

    def span(self, name: str) -> Span:
        """The range of the file with a tensor's bytes."""
        entry = self.entries[name]
        return self._file.span(self.head.size + entry.start, self.head.size + entry.end)

    def info(self, name: str) -> ArrayInfo:
        """A tensor's dtype and shape. TypeError if NumPy has no such data type."""
        entry = self.entries[name]
        if entry.kind not in _DTYPES:
            raise TypeError(f"{self.path}, array {shown(name)}: expected dtype {', '.join(_DTYPES)}, got {entry.kind}")
        return ArrayInfo(_dtypes.by_name(_DTYPES[entry.kind]).numpy, entry.shape)

    def array(self, name: str) -> NDArray[Any]:
        """A tensor, read into memory. TypeError if NumPy has no such data type."""
        dtype, shape = self.info(name)
        return self.span(name).read().view(dtype).reshape(shape)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Writer:
    """Writes tensors one after the other; made by `writing`, and by `in_place.appending`."""

    def __init__(self, file: Any, start: int, entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> None:
        """A writer to a file at its position. The tensors, those of `entries` first, begin at the offset `start`."""
        self._file, self._start = file, start
        self.metadata = metadata
        self.entries = dict(entries)

    @contextlib.contextmanager
    def tensor(self, name: str, kind: str = "U8", shape: tuple[int, ...] | None = None) -> Iterator[Any]:
        """The file, at the position where the block writes the next tensor, of one dimension without a shape."""
        start = self._file.tell() - self._start
        yield self._file
        end = self._file.tell() - self._start
        self.entries[name] = Entry(kind, (end - start,) if shape is None else shape, start, end)

    def head(self, nbytes: int) -> bytes:
        """A header of `nbytes`, which are enough, with its length before it."""
        header = packed(self.entries, self.metadata).ljust(nbytes)
        assert len(header) == nbytes, "the reserved space fits the longest header"
        return nbytes.to_bytes(_LENGTH_NBYTES, "little") + header


@contextlib.contextmanager
def writing(
    path: Location, entries: Mapping[str, Entry], metadata: Mapping[str, str], *, with_room: bool = False
) -> Iterator[Writer]:
    """A writer of a file that replaces `path` if the block succeeds.

    The length of a header with `entries` and `metadata` is reserved: those that will be written, or longer ones. The
    writer's `metadata` may be set to shorter ones until the block ends. `with_room` the header has room for as much
    again, so that what is appended to a file is copied ever more rarely as its header grows.
    """
    nbytes = len(packed(entries, metadata))
    if nbytes > _MOST_HEADER_NBYTES:
        raise ValueError(f"{path}: expected names and metadata of at most {_MOST_HEADER_NBYTES} bytes, got {nbytes}")
    if with_room:
        nbytes = min(nbytes + max(nbytes, _LEAST_ROOM_NBYTES), _MOST_HEADER_NBYTES)
    start = _LENGTH_NBYTES + nbytes
    with replacing(path) as temporary, temporary.open("w+b") as file:
        file.seek(start)
        writer = Writer(file, start, {}, metadata)
        yield writer
        file.seek(0)
        file.write(writer.head(nbytes))


def entries_of_arrays(path: Location, infos: Mapping[str, ArrayInfo]) -> dict[str, Entry]:
    """Entries of arrays of these dtypes and shapes, in an order that aligns all of them."""
    entries: dict[str, Entry] = {}
    end = 0
    for name in sorted(infos, key=lambda name: (-infos[name].dtype.itemsize, name)):
        dtype, shape = infos[name]
        if dtype.name not in _NAMES:
            expected = f"dtype {', '.join(_NAMES)} for a .safetensors file"
            raise TypeError(f"{path}, array {shown(name)}: expected {expected}, got {dtype.name}; .npz has more")
        start, end = end, end + int(np.prod(shape, dtype=object)) * dtype.itemsize
        entries[name] = Entry(_NAMES[dtype.name], shape, start, end)
    return entries


def packed(entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> bytes:
    """The header, padded so that the tensors after it are aligned."""
    header: dict[str, Any] = {RESERVED: dict(metadata)} if metadata else {}
    for name, entry in entries.items():
        header[name] = {"dtype": entry.kind, "shape": entry.shape, "data_offsets": [entry.start, entry.end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 8)


def _opened(path: Location, failure: type[Exception]) -> tuple[OpenedFile, Bytes]:
    """A file and its header, which the library has checked.

    Where a file changes between two looks at it, as another process appends to it, it is looked at again.
    """
    for _ in range(_MOST_LOOKS):
        file = OpenedFile(path, failure)
        head = _head_of(file)
        try:
            _check(file, head, file.nbytes, failure)
        except failure:
            interrupted = _interrupted(path, head, failure)
            if interrupted is not None:
                file, head, nbytes = interrupted
                _check(file, head, nbytes, failure)
                return file, head
            if not _is_changed(file, head, failure):
                raise
        else:
            if isinstance(path, OtherFile) or not journal.can_mark(head) or np.array_equal(head, _head_of(file)):
                return file, head
    raise failure(f"{path}: expected a file that stays for a moment, got one that changes all the time")


def _interrupted(path: Location, seen: Bytes, failure: type[Exception]) -> tuple[OpenedFile, Bytes, int] | None:
    """A file in which an append runs, or was interrupted; the header that counts, and where what it describes ends.

    None of other files. `seen` is the header of an earlier look. It is no mixture of two: while one is written over the
    other, and until the file has its new length, the journal is there.
    """
    try:
        file = OpenedFile(path, failure)
        whole = journal.found(file)
        if whole is not None:
            return file, *whole
        if not journal.is_marked(seen) or not np.array_equal(seen, _head_of(file)):
            return None
        end = _stated_end(seen, path, failure)
    except failure:  # it is damaged, or was truncated since
        return None
    return None if end is None or end > file.nbytes else (file, seen, end)


def _stated_end(head: Bytes, path: Location, failure: type[Exception]) -> int | None:
    """Where the tensors of a header end in a file; None where the library would refuse it."""
    header = _parse(head, path, failure)
    try:
        header.pop(RESERVED, None)
        return operator.index(_end_of(head, _entries(header)))
    except (AttributeError, KeyError, TypeError):
        return None


def _end_of(head: Bytes, entries: Mapping[str, Entry]) -> int:
    """Where the tensors of a header end in a file."""
    return head.size + max((entry.end for entry in entries.values()), default=0)


def _is_changed(file: OpenedFile, head: Bytes, failure: type[Exception]) -> bool:
    """Whether a file of this machine is another one than it was a moment ago."""
    if isinstance(file.path, OtherFile):
        return False
    again = OpenedFile(file.path, failure)
    return again.nbytes != file.nbytes or not np.array_equal(head, _head_of(again))


def _head_of(file: OpenedFile) -> Bytes:
    """The header with its length before it, as far as they are there, which is not checked."""
    nbytes = int.from_bytes(file.span(0, min(_LENGTH_NBYTES, file.nbytes)).read().tobytes(), "little")
    return file.span(0, min(_LENGTH_NBYTES + min(nbytes, _MOST_HEADER_NBYTES), file.nbytes)).read()


def _check(file: OpenedFile, head: Bytes, nbytes: int, failure: type[Exception]) -> None:
    """Have the library check a header, in a file of so many bytes."""
    try:
        import safetensors
    except ImportError as error:
        raise ImportError(f".safetensors files need safetensors ({error}): pip install safetensors") from None
    try:
        with _at_path(file, head, nbytes) as path, safetensors.safe_open(path, framework="np"):
            pass
    except safetensors.SafetensorError as error:
        reason = shortened(str(error))
        raise failure(f"{file.path}: expected a .safetensors file, got another or a damaged one: {reason}") from None


@contextlib.contextmanager
def _at_path(file: OpenedFile, head: Bytes, nbytes: int) -> Iterator[Any]:
    """A path with a header, and `nbytes` in all. The library opens nothing but paths.

    Of a file elsewhere, or longer than that, it is a copy of the header, with a hole in place of the tensors, which
    takes no space.
    """
    if not isinstance(file.path, OtherFile) and nbytes == file.nbytes:
        yield file.path
        return
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(head.data)
        copy.truncate(nbytes)
        copy.flush()
        yield copy.name


def _entries(header: Mapping[str, Any]) -> dict[str, Entry]:
    """The tensors of a header without metadata."""
    return {
        name: Entry(entry["dtype"], tuple(entry["shape"]), *entry["data_offsets"]) for name, entry in header.items()
    }


def _parse(head: Bytes, path: Location, failure: type[Exception]) -> dict[str, Any]:
    """The header, with its length before it. The library, which checks it, does not report duplicate names."""
    duplicates: list[str] = []

    def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            duplicates.extend(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        return found

    try:
        parsed: dict[str, Any] = json.loads(head[_LENGTH_NBYTES:].tobytes(), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise failure(f"{path}: expected JSON in its header, got {error}") from None
    if duplicates:
        raise failure(f"{path}: expected different names in its header, got {shown(duplicates[0])} twice")
    return parsed
