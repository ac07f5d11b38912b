"""The base of a file: the arrays that its own are coded against. It is another file, or a mapping in memory."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import xxhash

from .._api.compress import compress
from .._api.compressed import decompress_at
from .._api.references import content_hash
from .._arguments import shown, wrong_type
from .._arrays.contract import Adapter
from .._arrays.device import Device
from .._arrays.numpy import numpy_bytes
from .._arrays.registry import adapter_of
from ..codecs import Codec, Lossless
from ..codecs._base import REFERENCE
from ..errors import CorruptStreamError
from .content import ONLY_NAME, ArrayInfo, Content, native_info
from .locations import Location, OtherFile

METADATA = "base"  # the key of a file's metadata


class NamedBase(NamedTuple):
    """What a file says of its base."""

    file: str  # path from the folder of the file that says it, with "/"
    fingerprint: str | None  # of the base's streams; None of a file without streams

    def packed(self) -> str:
        """The text in a file's metadata."""
        return json.dumps({key: value for key, value in self._asdict().items() if value is not None})


def name_from(location: Location, base: Location) -> str | None:
    """`path_from`, of any files; None where there is no path from one to the other."""
    if isinstance(location, Path) and isinstance(base, Path):
        return path_from(location, base)
    return location.path_to(base) if isinstance(location, OtherFile) and isinstance(base, OtherFile) else None


def path_from(path: Path, base: Path) -> str:
    """The path of a base as the file at `path` names it: from its folder, with "/"."""
    here, there = Path(os.path.realpath(path)).parent, Path(os.path.realpath(base.parent)) / base.name
    try:
        file = Path(os.path.relpath(there, here))
    except ValueError:  # on another drive of Windows
        file = there
    return file.as_posix()


def read_named_base(path: Location, metadata: Mapping[str, str]) -> NamedBase | None:
    """What a file's metadata say of its base; None if they name none. CorruptStreamError for damaged ones."""
    text = metadata.get(METADATA)
    if text is None:
        return None
    try:
        found = json.loads(text)
        named = NamedBase(found["file"], found.get("fingerprint"))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        named = NamedBase("", None)
    if not isinstance(named.file, str) or not named.file or not isinstance(named.fingerprint, str | None):
        raise CorruptStreamError(f"{path}: expected a file and its fingerprint as {METADATA}, got {shown(text)}")
    return named


def named_by(location: Location, file: str) -> Location | None:
    """The base that a file names; None where a file object does."""
    return location.beside(file) if isinstance(location, OtherFile) else beside(location, file)


def beside(path: Path, file: str) -> Path:
    """The path of the base that the file at `path` names."""
    here = Path(os.path.realpath(path)) if path.is_symlink() else path
    return here.parent / PurePosixPath(file)


def fingerprint_of(checksums: Iterable[tuple[str, bytes]]) -> str:
    """The fingerprint of streams, from their names and checksums."""
    state = xxhash.xxh3_64()
    for name, checksum in sorted(checksums):
        text = name.encode(errors="surrogatepass")
        state.update(len(text).to_bytes(8, "little") + text + checksum)
    return state.hexdigest()


def counterpart(name: str, count: int, names: Sequence[str]) -> str | None:
    """The array of a base, of these `names`, that one of a file of `count` arrays is coded against; None for none.

    It has the same name, or both are single and one is in a file without names.
    """
    if name in names:
        return name
    return names[0] if count == len(names) == 1 and ONLY_NAME in (name, names[0]) else None


def takes_reference(codec: Codec) -> bool:
    """Whether a codec codes arrays against others: those that have a predictor, without another one."""
    return getattr(codec, "predictor", "none") in (None, REFERENCE)


class PlainBase:
    """A base of arrays that are not compressed: those of a file, or of a mapping."""

    fingerprint = None

    def __init__(self, content: Content[Any], location: Location | None) -> None:
        """The arrays of a file, or those of a mapping for None."""
        self._content, self.location = content, location

    @property
    def names(self) -> list[str]:
        """The arrays' names."""
        return list(self._content.arrays)

    @property
    def is_shared(self) -> bool:
        """Whether the caller has the arrays, too: then they are not written to."""
        return self.location is None

    def info(self, name: str) -> ArrayInfo:
        """NumPy dtype, in native byte order, and shape of an array."""
        if self.location is not None:
            return native_info(self._content.info(name))
        adapter, x = self._array(name)
        dtype, shape = adapter.dtype_and_shape(x)
        return ArrayInfo(dtype.numpy, shape)

    def content_hash(self, name: str) -> int:
        """The hash of an array."""
        return content_hash(self._array(name)[1])

    def load_at(self, name: str, adapter: Adapter, device: Device, threads: int) -> Any:
        """An array on a device of an adapter, in C order where it is a file's."""
        here, x = self._array(name)
        if here.device(x) == device:
            return x
        stream = compress(x, Lossless(speed="fast"), threads=threads or None)
        return decompress_at(stream, adapter, device, threads)

    def chain(self) -> "Iterator[PlainBase]":
        """This base: it needs no other."""
        yield self

    def close(self) -> None:
        """Nothing is to be closed: files are closed when their last array is gone."""

    def _array(self, name: str) -> tuple[Adapter, Any]:
        x = self._content.arrays[name]
        if self.location is not None:
            dtype, shape = self.info(name)
            x = numpy_bytes(x).view(dtype).reshape(shape)
        return adapter_of(x, f"base, array {shown(name)}")


def mapping_base(base: Any) -> PlainBase:
    """The argument `base`, which is no path, as a base. TypeError if it is no mapping."""
    if not isinstance(base, Mapping):
        raise wrong_type("base", "a file, or a mapping from names to arrays", base)
    return PlainBase(Content(base), None)
