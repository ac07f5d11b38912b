"""Files at URLs, by fsspec."""

import contextlib
import errno
import os
import posixpath
import re
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._arguments import shown
from .._dtypes import Bytes
from .locations import Location, OtherFile, Source
from .reading import truncated

_URL = re.compile(r"[A-Za-z][\w+.-]*(::[A-Za-z][\w+.-]*)*://")
_HTTP = ("http", "https")
# Their objects are the old or the new ones at any time, while they are uploaded, too.
_OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss")

_SHORT_NBYTES = 1 << 17  # of the least request
_MOST_KEPT = 16  # short ranges
_PART_NBYTES, _PARTS = 1 << 24, 4  # of a long read, that are requested together


def is_url(path: Any) -> bool:
    """Whether an argument is a URL, and no path."""
    return isinstance(path, str) and _URL.match(path) is not None


def is_fsspec_file(path: Any) -> bool:
    """Whether an argument is what `fsspec.open` returns, before it is opened by `with`."""
    return hasattr(path, "fs") and isinstance(getattr(path, "path", None), str) and not hasattr(path, "read")


def at_url(url: str, storage_options: Mapping[str, Any] | None) -> Location:
    """The file at a URL, of this machine's file system too."""
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f"{url}: URLs need fsspec ({error}): pip install arrcomp[remote]") from None
    try:
        system, path = fsspec.core.url_to_fs(url, **(storage_options or {}))
    except ImportError as error:
        raise ImportError(f"{url}: its file system is a package of its own, which fsspec lacks: {error}") from None
    return in_system(system, path)


def in_system(system: Any, path: str) -> Location:
    """The file at a path of one of fsspec's file systems."""
    return Path(path) if "file" in _protocols(system) else RemoteFile(system, path)


def _protocols(system: Any) -> tuple[str, ...]:
    return (system.protocol,) if isinstance(system.protocol, str) else tuple(system.protocol)


class RemoteFile(OtherFile):
    """A file of one of fsspec's file systems. It is opened once."""

    def __init__(self, system: Any, path: str) -> None:
        self._system, self._path = system, path
        self._ranges: _Ranges | None = None
        self._plain = path.partition("?")[0] if self._is_http else path  # what follows may be a password
        self.url = self._plain if self._is_http else system.unstrip_protocol(path)
        self.suffix = posixpath.splitext(self._plain)[1]
        self.identity = (system, path)

    def __str__(self) -> str:
        return str(self.url)

    def check_exists(self) -> None:
        self._opened()

    def open(self, failure: type[Exception]) -> Source:
        return _Source(self._opened(), self, failure)

    def put(self, written: Path) -> None:
        if any(protocol in _OBJECT_STORES for protocol in _protocols(self._system)):
            self._system.put_file(str(written), self._path)
            return
        folder, name = posixpath.split(self._path)
        temporary = posixpath.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
        try:
            self._system.put_file(str(written), temporary)
            self._system.mv(temporary, self._path)
        except BaseException:
            with contextlib.suppress(Exception):  # the first error counts
                self._system.rm_file(temporary)
            raise

    def beside(self, file: str) -> "RemoteFile":
        inside = urllib.parse.quote(file) if self._is_http else file
        return RemoteFile(self._system, posixpath.join(posixpath.dirname(self._plain), inside))

    def path_to(self, base: OtherFile) -> str | None:
        if not isinstance(base, RemoteFile) or base._system != self._system:
            return None
        return posixpath.relpath(base._path, posixpath.dirname(self._path))

    def check_writable(self) -> None:
        """ValueError if its file system takes no files."""
        if self._is_http:
            raise ValueError(f"{self}: expected a URL that can be written to, got one of HTTP, which is only read")

    @property
    def _is_http(self) -> bool:
        return any(protocol in _HTTP for protocol in _protocols(self._system))

    def _opened(self) -> "_Ranges":
        if self._ranges is None:
            self._system.invalidate_cache(self._path)  # of what the folder had at an earlier time
            self._ranges = _Ranges(self._system, self._path, str(self), self._nbytes())
        return self._ranges

    def _nbytes(self) -> int:
        try:
            info = self._system.info(self._path)
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        if info.get("type") == "directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self))
        size = info.get("size")
        if not isinstance(size, int):
            raise OSError(errno.ESPIPE, f"expected its size from the server, got {shown(size)}", str(self))
        return size


class _Ranges:
    """A remote file in ranges.

    A short read is part of a longer one, and the last of these are kept: so headers, which are read one by one, take
    few requests.
    """

    def __init__(self, system: Any, path: str, name: str, nbytes: int) -> None:
        self._system, self._path, self._name, self.nbytes = system, path, name, nbytes
        self._kept: tuple[tuple[int, bytes], ...] = ()

    def read(self, offset: int, nbytes: int) -> Iterator[bytes]:
        """The bytes from `offset` on, in parts; fewer if the file has become shorter."""
        if nbytes <= _SHORT_NBYTES:
            yield self._short(offset, nbytes)
            return
        end = offset + nbytes
        starts = range(offset, end, _PART_NBYTES)
        for first in range(0, len(starts), _PARTS):
            yield from self._requested([(at, min(at + _PART_NBYTES, end)) for at in starts[first : first + _PARTS]])

    def _short(self, offset: int, nbytes: int) -> bytes:
        for start, data in self._kept:
            if start <= offset and offset + nbytes <= start + len(data):
                return data[offset - start : offset - start + nbytes]
        (data,) = self._requested([(offset, min(offset + _SHORT_NBYTES, self.nbytes))])
        self._kept = ((offset, data), *self._kept[: _MOST_KEPT - 1])
        return data[:nbytes]

    def _requested(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        starts, ends = map(list, zip(*ranges, strict=True))
        parts = self._system.cat_ranges([self._path] * len(ranges), starts, ends, on_error="return")
        for part, (start, end) in zip(parts, ranges, strict=True):
            if isinstance(part, Exception):
                raise part
            if len(part) > end - start:
                reason = f"expected bytes {start} to {end} from the server, got {len(part)}; it sends no ranges"
                raise OSError(errno.ESPIPE, reason, self._name)
        return parts  # type: ignore[no-any-return]


class _Source:
    """A remote file that is open."""

    def __init__(self, ranges: _Ranges, file: RemoteFile, failure: type[Exception]) -> None:
        self._ranges, self._file, self._failure = ranges, file, failure
        self.nbytes = ranges.nbytes

    def read_into(self, data: Bytes, offset: int) -> None:
        done = 0
        for found in self._ranges.read(offset, data.size) if data.size else ():
            data[done : done + len(found)] = np.frombuffer(found, np.uint8)
            done += len(found)
        if done < data.size:
            raise truncated(self._failure, self._file, self.nbytes, offset + done)
