"""Files of tensors: the safetensors format. A JSON header has the offsets of each tensor's bytes.

The safetensors library checks files that are read. It needs all tensors at once to write a file. This module writes
them one by one instead, into the space after a reserved header, and the header last.
"""

import contextlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _dtypes
from .._arguments import shortened, shown
from .._dtypes import Bytes
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
_LARGEST = (1 << 63) - 1


class Entry(NamedTuple):
    """A tensor's description in the header."""

    kind: str  # the format's name of its data type
    shape: tuple[int, ...]
    start: int  # offset of its first byte after the header
    end: int  # offset after its last byte


LONGEST_OF_BYTES = Entry("U8", (_LARGEST,), _LARGEST, _LARGEST)  # of a stream whose length is not known yet


class Container:
    """An open file of tensors, checked by the library: its metadata, and its entries in the header's order."""

    def __init__(self, path: Location, failure: type[Exception]) -> None:
        """Open it. `failure` is raised if it is damaged."""
        self.path = path
        self._file = OpenedFile(path, failure)
        head = _head_of(self._file)
        self.metadata = _checked_metadata(self._file, head, failure)
        self._start = head.size  # the library has checked that all of it is there
        header = _parse(head[8:].tobytes(), path, failure)
        self.entries = {
            name: Entry(entry["dtype"], tuple(entry["shape"]), *entry["data_offsets"])
            for name, entry in header.items()
            if name != RESERVED
        }

    def span(self, name: str) -> Span:
        """The range of the file with a tensor's bytes."""
        entry = self.entries[name]
        return self._file.span(self._start + entry.start, self._start + entry.end)

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
    """Writes tensors one after the other; made by `writing`."""

    def __init__(self, file: Any, metadata: Mapping[str, str]) -> None:
        self._file, self._end = file, 0
        self.metadata = metadata
        self.entries: dict[str, Entry] = {}

    def add(self, name: str, kind: str, shape: tuple[int, ...], buffers: Iterable[Any]) -> None:
        """Write the next tensor, whose bytes are these buffers."""
        start = self._end
        for buffer in buffers:
            self._end += self._file.write(buffer)
        self.entries[name] = Entry(kind, shape, start, self._end)


@contextlib.contextmanager
def writing(path: Location, entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> Iterator[Writer]:
    """A writer of a file that replaces `path` if the block succeeds.

    The length of a header with `entries` and `metadata` is reserved: those that will be written, or longer ones. The
    writer's `metadata` may be set to shorter ones until the block ends.
    """
    nbytes = len(_packed(entries, metadata))
    if nbytes > _MOST_HEADER_NBYTES:
        raise ValueError(f"{path}: expected names and metadata of at most {_MOST_HEADER_NBYTES} bytes, got {nbytes}")
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.seek(8 + nbytes)
        writer = Writer(file, metadata)
        yield writer
        header = _packed(writer.entries, writer.metadata).ljust(nbytes)
        assert len(header) == nbytes, "the reserved space fits the longest header"
        file.seek(0)
        file.write(nbytes.to_bytes(8, "little") + header)


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


def _packed(entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> bytes:
    """The header, padded so that the tensors after it are aligned."""
    header: dict[str, Any] = {RESERVED: dict(metadata)} if metadata else {}
    for name, entry in entries.items():
        header[name] = {"dtype": entry.kind, "shape": entry.shape, "data_offsets": [entry.start, entry.end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 8)


def _head_of(file: OpenedFile) -> Bytes:
    """The header with its length before it, as far as they are there, which is not checked."""
    nbytes = int.from_bytes(file.span(0, min(8, file.nbytes)).read().tobytes(), "little")
    return file.span(0, min(8 + min(nbytes, _MOST_HEADER_NBYTES), file.nbytes)).read()


def _checked_metadata(file: OpenedFile, head: Bytes, failure: type[Exception]) -> dict[str, str]:
    """The metadata of a file whose whole header the library has checked."""
    try:
        import safetensors
    except ImportError as error:
        raise ImportError(f".safetensors files need safetensors ({error}): pip install safetensors") from None
    try:
        with _at_path(file, head) as path, safetensors.safe_open(path, framework="np") as opened:
            return opened.metadata() or {}
    except safetensors.SafetensorError as error:
        reason = shortened(str(error))
        raise failure(f"{file.path}: expected a .safetensors file, got another or a damaged one: {reason}") from None


@contextlib.contextmanager
def _at_path(file: OpenedFile, head: Bytes) -> Iterator[Any]:
    """A path with a file's header, and its length. The library opens nothing but paths.

    Of a file elsewhere it is a copy of the header, with a hole in place of the tensors, which takes no space.
    """
    if not isinstance(file.path, OtherFile):
        yield file.path
        return
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(head.data)
        copy.truncate(file.nbytes)
        copy.flush()
        yield copy.name


def _parse(header: bytes, path: Location, failure: type[Exception]) -> dict[str, Any]:
    """The header. The library has checked it, but does not report duplicate names."""
    duplicates: list[str] = []

    def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            duplicates.extend(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        return found

    try:
        parsed: dict[str, Any] = json.loads(header, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise failure(f"{path}: expected JSON in its header, got {error}") from None
    if duplicates:
        raise failure(f"{path}: expected different names in its header, got {shown(duplicates[0])} twice")
    return parsed
