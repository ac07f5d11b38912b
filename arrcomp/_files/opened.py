"""Files of compressed arrays, opened: what is not asked for is not read."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from .._api.compress import decompress_at
from .._api.compressed import Compressed, parse_stream
from .._arguments import thread_count
from .._arrays import host
from .._arrays.contract import Adapter, Home
from .._arrays.registry import place_wanted
from .._format import stream
from .._format.limits import checked_max_nbytes
from .._format.spec import Spec
from ..errors import CorruptStreamError, FormatVersionError
from .container import Container
from .content import COMPRESSED_SUFFIXES, ONLY_NAME, Look, check_suffix, is_stray, naming
from .parts import Slice
from .reading import OpenedFile, Span
from .stored import stored


def open_file(path: str | Path, *, max_nbytes: int | None = None) -> "CompressedFile":
    """Open a file of compressed arrays, to decompress some of them, or parts.

    Args:
        path: of a .safetensors file that `save_file` or `arrcomp compress` wrote, or of a .arrcomp file, which is one
            stream: its array is called "arr_0".
        max_nbytes: bytes that each of the arrays may have, or what is asked for of it: more raises SizeLimitError when it
            is asked for. None for 8192 times the bytes of its stream, or 1 GiB if that is more, which only a stream
            with a Zstandard frame can exceed.

    Returns:
        A mapping from names to arrays, and a context manager.

    Raises:
        TypeError: `max_nbytes` is no integer.
        ValueError: the suffix is another one, or the file holds no compressed arrays, or `max_nbytes` is below 0.
        CorruptStreamError: the file's header is damaged, or a name is a path that leads out of its folder. Damage to an
            array is found when that is asked for.
        FormatVersionError: a newer arrcomp wrote it.
        OSError: it cannot be read.
        ImportError: safetensors is not installed.
    """
    return CompressedFile(Path(path), checked_max_nbytes(max_nbytes))


class CompressedFile(Mapping[str, Any]):
    """Compressed arrays in a file, decompressed when they are asked for; made by `open_file`.

    `file[name]` is an array in NumPy, `file.load` makes one elsewhere; both take memory for the array's stream and for
    the array. What was asked for stays valid after the file is closed. Names that are not there raise KeyError; what
    would read a closed file raises ValueError, and of a file that was cut while it was open CorruptStreamError; without
    zstandard, all that is asked of an array in a Zstandard frame raises ImportError.

    Attributes:
        path: of the file.
        metadata: texts by name: those of the file that was compressed, or those that `save_file` was given.
    """

    def __init__(self, path: Path, max_nbytes: int | None) -> None:
        """As `open_file`, with a `max_nbytes` that is checked."""
        self.path = path
        self._max_nbytes = max_nbytes
        self.metadata: dict[str, str] = {}
        if check_suffix(path, COMPRESSED_SUFFIXES) == ".safetensors":
            container = Container(path, CorruptStreamError)
            self.metadata = _source_metadata(container)
            self._spans = _spans(container)
            self._close = container.close
        else:
            file = OpenedFile(path, CorruptStreamError)
            self._spans = {ONLY_NAME: lambda: file.span(0, file.nbytes)}
            self._close = file.close

    @property
    def names(self) -> list[str]:
        """The arrays' names, in the file's order."""
        return list(self._spans)

    def spec(self, name: str) -> Spec:
        """Codec, dtype and shape of an array, of which nothing but the headers of stream and frame is read.

        Raises:
            CorruptStreamError, FormatVersionError, UnknownCodecError: that is damaged, or of a newer arrcomp.
        """
        return self.compressed(name, check=False).spec

    def look(self, name: str) -> Look:
        """NumPy dtype and shape of an array, as of `spec`."""
        spec = self.spec(name)
        return spec.dtype.numpy, spec.shape

    def nbytes(self, name: str) -> int:
        """Length in bytes of an array's stream in the file, with its frame where it has one."""
        return self._span(name).nbytes

    def compressed(self, name: str, *, check: bool = True) -> Compressed:
        """An array as it is in the file, not decompressed.

        Args:
            name: of the array.
            check: whether to check the checksum; if not, nothing but the headers of stream and frame is read now, the
                payload when it is looked at, and of a damaged array the values may be wrong.

        Raises:
            CorruptStreamError, FormatVersionError, UnknownCodecError: it is damaged, or of a newer arrcomp.
        """
        span = self._span(name)
        with naming(self.path, name):
            return parse_stream(span.read(), self._max_nbytes) if check else stored(span, self._max_nbytes)

    def load(self, name: str, *, like: Any = None, device: Any = None, threads: int | None = None) -> Any:
        """An array, decompressed where it is wanted: to a device it travels compressed.

        Args:
            name: of the array.
            like: an array whose framework and device it gets; or the name of a framework, "numpy", "torch", "jax" or
                "cupy", for where that puts new arrays; None for NumPy, or on CUDA for whichever is installed.
            device: "cpu", "cuda", "cuda:1", a `torch.device`, a `jax.Device`, or an array; None for the one of `like`.
            threads: how many to use on the CPU; None for all cores that the process may use.

        Raises:
            CorruptStreamError, FormatVersionError, UnknownCodecError: it is damaged, or of a newer arrcomp.
            SizeLimitError: it is larger than `max_nbytes`, as of `open_file`.
            TypeError, ValueError: an argument is of a wrong type or value, or the framework has no such dtype.
            ImportError, DeviceUnavailableError: the framework or the device is not there.
        """
        return self.load_at(name, *place_wanted(like, device), thread_count(threads))

    def load_at(self, name: str, adapter: Adapter, home: Home, threads: int) -> Any:
        """`load`, with arguments that are checked."""
        c = self.compressed(name)
        with naming(self.path, name):
            return decompress_at(c, adapter, home, threads)

    def slice(self, name: str, *, threads: int | None = None) -> Slice:
        """An array of which parts are decompressed, in NumPy: ``file.slice(name)[10:20]``.

        The checksum, which is of all of a stream, is not checked for a part: of a damaged one the values may be wrong.

        Args:
            name: of the array.
            threads: how many to use; None for all cores that the process may use.

        Raises:
            CorruptStreamError, FormatVersionError, UnknownCodecError: its header is damaged, or of a newer arrcomp.
            TypeError, ValueError: `threads` is no integer, or below 1.
        """
        count = thread_count(threads)
        return Slice(self.path, name, self.compressed(name, check=False), count)

    def close(self) -> None:
        """Let the file go; what was asked for stays."""
        self._close()

    def _span(self, name: str) -> Span:
        """Where an array's stream is."""
        span = self._spans[name]
        with naming(self.path, name):
            return span()

    def __getitem__(self, name: str) -> Any:
        return self.load_at(name, host.ADAPTER, Home(), 0)

    def __contains__(self, name: object) -> bool:
        return name in self._spans

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def __enter__(self) -> "CompressedFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<CompressedFile {str(self.path)!r}: {len(self)} arrays>"


def _spans(container: Container) -> dict[str, Callable[[], Span]]:
    """What gives the place of each array's stream."""

    def span(name: str) -> Callable[[], Span]:
        return lambda: _stream_span(container, name)

    for name in container.entries:
        if is_stray(name):
            raise CorruptStreamError(f"{container.path}: array name {name!r} is a path out of its folder")
    return {name: span(name) for name in container.entries}


def _stream_span(container: Container, name: str) -> Span:
    entry = container.entries[name]
    if entry.kind != "U8" or len(entry.shape) != 1:
        raise CorruptStreamError(f"a tensor {entry.kind} of shape {list(entry.shape)}, not the uint8 bytes of a stream")
    return container.span(name)


def _source_metadata(container: Container) -> dict[str, str]:
    """The metadata of what was compressed, from a file that this package reads."""
    path, metadata = container.path, container.metadata
    if metadata.get("format") != "arrcomp":
        raise ValueError(f"{path} holds no compressed arrays; `arrcomp compress` makes such files")
    _check_version(path, metadata.get("version", ""))
    try:
        source = json.loads(metadata.get("source_metadata", "{}"))
    except (ValueError, RecursionError):
        source = None
    if not isinstance(source, dict) or not all(isinstance(value, str) for value in source.values()):
        raise CorruptStreamError(f"{path}: metadata's source_metadata is not a JSON object of texts")
    return source


def _check_version(path: Path, version: str) -> None:
    major = version.partition(".")[0]
    if not (major.isascii() and major.isdigit()):
        raise CorruptStreamError(f"{path}: metadata's version is {version!r}")
    if int(major) > stream.MAJOR_VERSION:
        raise FormatVersionError(
            f"{path}: format version {version} is newer than {stream.VERSION}, the newest this package reads"
        )
