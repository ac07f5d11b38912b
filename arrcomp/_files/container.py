"""Files of tensors: the safetensors format. A header of JSON says where each tensor's bytes are.

The safetensors library checks the files that are read. They are not written by it, as it takes all tensors at once, but
with the header last, in room that is left for it: a tensor need not be there before its turn, nor after it.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _dtypes
from .reading import OpenedFile, Span
from .replacing import replacing

_DTYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
_NAMES = {name: kind for kind, name in _DTYPES.items()}
_METADATA = "__metadata__"
_MOST_HEADER_NBYTES = 100_000_000  # what the library reads
_LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class Entry:
    """A tensor's place.

    Attributes:
        kind: the format's name of its data type.
        shape: its shape.
        start: where its bytes begin, from the end of the header.
        end: where they end.
    """

    kind: str
    shape: tuple[int, ...]
    start: int
    end: int


class Container:
    """An open file of tensors, which the library found sound.

    Attributes:
        path: of the file.
        metadata: texts by name.
        entries: the tensors' places by name, in the header's order.
    """

    def __init__(self, path: Path, failure: type[Exception]) -> None:
        """Open and check it.

        Raises:
            failure: the file is damaged.
            OSError: it cannot be read.
            ImportError: safetensors is not installed.
        """
        self.path = path
        self._file = OpenedFile(path, failure)
        self.metadata = _checked_metadata(path, failure)
        self._start = 8 + int.from_bytes(self._file.span(0, 8).read().tobytes(), "little")
        header = _parse(self._file.span(8, self._start).read().tobytes(), path, failure)
        header.pop(_METADATA, None)
        self.entries = {
            name: Entry(entry["dtype"], tuple(entry["shape"]), *entry["data_offsets"]) for name, entry in header.items()
        }

    def span(self, name: str) -> Span:
        """Where the bytes of a tensor are, to be read."""
        entry = self.entries[name]
        return self._file.span(self._start + entry.start, self._start + entry.end)

    def array(self, name: str) -> NDArray[Any]:
        """A tensor, read into memory.

        Raises:
            TypeError: NumPy has no such data type.
            OSError, MemoryError, or `failure` of the container: it cannot be read.
        """
        entry = self.entries[name]
        if entry.kind not in _DTYPES:
            allowed = ", ".join(_DTYPES)
            raise TypeError(f"{self.path}, array {name!r}: dtype {entry.kind} is not supported; allowed are {allowed}")
        return self.span(name).read().view(_dtypes.by_name(_DTYPES[entry.kind]).numpy).reshape(entry.shape)

    def close(self) -> None:
        """Let the file go."""
        self._file.close()


class Writer:
    """Writes tensors one after the other; made by `writing`."""

    def __init__(self, file: Any, room: int, metadata: Mapping[str, str]) -> None:
        self._file = file
        self._room = room
        self._metadata = metadata
        self._entries: dict[str, Entry] = {}
        self._end = 0
        file.seek(8 + room)

    def add(self, name: str, kind: str, shape: tuple[int, ...], parts: Iterable[Any]) -> None:
        """Write the next tensor: its bytes, in parts."""
        start = self._end
        for part in parts:
            self._end += self._file.write(part)
        self._entries[name] = Entry(kind, shape, start, self._end)

    def finish(self) -> None:
        """Write the header into its room."""
        header = _packed(self._entries, self._metadata).ljust(self._room)
        assert len(header) == self._room, "room is left for the longest header"
        self._file.seek(0)
        self._file.write(len(header).to_bytes(8, "little") + header)


@contextlib.contextmanager
def writing(path: Path, entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> Iterator[Writer]:
    """A writer of a file that replaces the one at `path` when all went well.

    Args:
        path: of the file.
        entries: of the tensors to be written; the header will be as long as theirs, or shorter.
        metadata: texts by name.

    Raises:
        ValueError: the header is longer than the library reads.
        OSError: the file cannot be written.
    """
    room = len(_packed(entries, metadata))
    if room > _MOST_HEADER_NBYTES:
        raise ValueError(f"{path}: names and metadata take {room} bytes; {_MOST_HEADER_NBYTES} are allowed")
    with replacing(path) as temporary, temporary.open("wb") as file:
        writer = Writer(file, room, metadata)
        yield writer
        writer.finish()


def entries_of_bytes(names: Iterable[str]) -> dict[str, Entry]:
    """Entries of one-dimensional uint8 tensors, as long as any whose sizes are not known yet."""
    return {name: Entry("U8", (_LARGEST,), _LARGEST, _LARGEST) for name in names}


def entries_of_arrays(path: Path, looks: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> dict[str, Entry]:
    """Entries of arrays of these dtypes and shapes, in the order in which all are aligned to their elements.

    Raises:
        TypeError: the format has no such dtype.
    """
    entries: dict[str, Entry] = {}
    end = 0
    for name in sorted(looks, key=lambda name: (-looks[name][0].itemsize, name)):
        dtype, shape = looks[name]
        if dtype.name not in _NAMES:
            raise TypeError(f"{path}, array {name!r}: .safetensors files have no dtype {dtype.name}; .npz is allowed")
        start, end = end, end + int(np.prod(shape, dtype=object)) * dtype.itemsize
        entries[name] = Entry(_NAMES[dtype.name], shape, start, end)
    return entries


def _packed(entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> bytes:
    """The header; padded so that what follows it is aligned."""
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    for name, entry in entries.items():
        header[name] = {"dtype": entry.kind, "shape": entry.shape, "data_offsets": [entry.start, entry.end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 8)


def _checked_metadata(path: Path, failure: type[Exception]) -> dict[str, str]:
    """What the library says of a file after it has checked all of its header."""
    try:
        import safetensors
    except ImportError as error:
        raise ImportError(f".safetensors files need safetensors ({error}): pip install safetensors") from None
    try:
        with safetensors.safe_open(path, framework="np") as opened:
            return opened.metadata() or {}
    except safetensors.SafetensorError as error:
        raise failure(f"{path} is no readable .safetensors file: {error}") from None


def _parse(header: bytes, path: Path, failure: type[Exception]) -> dict[str, Any]:
    """The header, which the library has read already: but of a name that is there twice it tells nothing."""
    twice: list[str] = []

    def counted(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice.extend(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        return found

    try:
        parsed: dict[str, Any] = json.loads(header, object_pairs_hook=counted)
    except (ValueError, RecursionError) as error:
        raise failure(f"{path}: its header is not readable JSON: {error}") from None
    if twice:
        raise failure(f"{path}: its header has the name {twice[0]!r} twice")
    return parsed
