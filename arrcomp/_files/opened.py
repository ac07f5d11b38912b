"""Open files of compressed arrays. Only what is accessed is read."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from .._api.compressed import Compressed, decompress_at, parse_stream
from .._arguments import shortened, shown, thread_count
from .._arrays.contract import Adapter
from .._arrays.device import Device
from .._arrays.registry import FRAMEWORKS, locate_new
from .._format import stream
from .._format.limits import checked_max_nbytes
from .._format.spec import Spec
from ..errors import CorruptStreamError, DeviceUnavailableError, FormatVersionError
from .container import Container
from .content import COMPRESSED_SUFFIXES, ONLY_NAME, ArrayInfo, check_readable, checked_path, is_stray, naming
from .reading import OpenedFile, Span
from .slices import Slice
from .stored import stored


def open_file(path: str | Path, *, max_nbytes: int | None = None) -> "CompressedFile":
    """Open a file of compressed arrays, to decompress some of them, or slices.

    Args:
        path: of a .safetensors file that `save_file` or `arrcomp compress` wrote, or of a .arrcomp file, which is one
            stream. Its array has the name "arr_0".
        max_nbytes: the most bytes that each decompressed array, or slice of one, may have. Larger ones raise
            SizeLimitError. None for 8192 times the bytes of its stream, or 1 GiB if that is more. Only a stream with a
            Zstandard frame can exceed this.

    Returns:
        A mapping from names to arrays, which is also a context manager.

    Raises:
        TypeError: `max_nbytes` is not an integer.
        ValueError: the suffix is wrong, the file has no compressed arrays, or `max_nbytes` is below 0.
        CorruptStreamError: the file's header is damaged, or a name is a path out of its folder. Damaged arrays raise
            when they are accessed.
        FormatVersionError: a newer arrcomp wrote it.
        OSError: it cannot be read.
        ImportError: safetensors is not installed.
    """
    return CompressedFile(checked_path(path), checked_max_nbytes(max_nbytes))


class CompressedFile(Mapping[str, Any]):
    """Compressed arrays in a file, decompressed when they are accessed. `open_file` makes it.

    `file[name]` is an array of the framework that was saved, with the defaults of `file.load`, which makes other arrays
    too. Both need memory for the array and its stream. Results stay valid after the file is closed. Unknown names raise
    KeyError. Reading a closed file raises ValueError; reading one that was truncated while it was open raises
    CorruptStreamError. Damaged arrays, and those that a newer arrcomp wrote, raise CorruptStreamError,
    FormatVersionError or UnknownCodecError. Arrays in a Zstandard frame raise ImportError without zstandard.

    Attributes:
        path: of the file.
        metadata: strings by name: those of the original file, or those given to `save_file`.
        framework: which the arrays were of when they were saved: "numpy", "torch", "jax" or "cupy"; "torch" if the
            metadata has "format" "pt", as files of PyTorch's libraries have; "numpy" where nothing says it.
    """

    def __init__(self, path: Path, max_nbytes: int | None) -> None:
        """`open_file`, with a checked `max_nbytes`."""
        self.path, self._max_nbytes = path, max_nbytes
        self.metadata: dict[str, str] = {}
        self.framework = "numpy"
        self._spans: dict[str, Callable[[], Span]]
        if check_readable(path, COMPRESSED_SUFFIXES) == ".safetensors":
            container = Container(path, CorruptStreamError)
            self.metadata = _source_metadata(container)
            self.framework = _framework(container, self.metadata)
            for name in container.entries:
                if is_stray(name):
                    raise CorruptStreamError(f"{path}: expected names without paths out of a folder, got {shown(name)}")
            self._spans = {name: partial(_stream_span, container, name) for name in container.entries}
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
        """Codec, dtype and shape of an array. Only the headers of its stream and frame are read."""
        return self.compressed(name, check=False).spec

    def info(self, name: str) -> ArrayInfo:
        """NumPy dtype and shape of an array. Reads the same as `spec`."""
        spec = self.spec(name)
        return ArrayInfo(spec.dtype.numpy, spec.shape)

    def nbytes(self, name: str) -> int:
        """Bytes of an array's stream in the file, with its frame if it has one."""
        return self._span(name).nbytes

    def compressed(self, name: str, *, check: bool = True) -> Compressed:
        """An array as it is in the file, not decompressed.

        Without `check` the checksum is not checked. Only the headers of stream and frame are read now, and the payload
        when it is needed. A damaged array may then have wrong values.
        """
        span = self._span(name)
        with naming(self.path, name):
            return parse_stream(span.read(), self._max_nbytes) if check else stored(span, self._max_nbytes)

    def load(
        self,
        name: str,
        *,
        like: Any = None,
        device: Any = None,
        threads: int | None = None,
        max_nbytes: int | None = None,
    ) -> Any:
        """Decompress an array on a device, to which it is transferred compressed.

        Arguments and errors are those of `arrcomp.load_file`; None for `max_nbytes` is the limit of `open_file`.
        """
        target, count = self.target(like, device), thread_count(threads)
        return self.load_at(name, *target, count, checked_max_nbytes(max_nbytes))

    def target(self, like: Any, device: Any) -> tuple[Adapter, Device]:
        """Adapter and device of the arguments of `load`."""
        if like is not None or self.framework == "numpy":
            return locate_new(like, device)
        try:
            return locate_new(self.framework, device)
        except (ImportError, DeviceUnavailableError) as error:
            saved = f"{self.path}: its arrays were saved from {self.framework}, which cannot be used here"
            raise type(error)(f"{saved}; pass like='numpy' to load NumPy arrays ({error})") from None

    def load_at(self, name: str, adapter: Adapter, device: Device, threads: int, max_nbytes: int | None = None) -> Any:
        """`load`, with checked arguments."""
        c = self.compressed(name)
        with naming(self.path, name):
            return decompress_at(c, adapter, device, threads, max_nbytes)

    def slice(self, name: str, *, threads: int | None = None, max_nbytes: int | None = None) -> Slice:
        """An array whose slices are decompressed to NumPy arrays: ``file.slice(name)[10:20]``.

        The checksum is that of the whole stream, and is not checked. A damaged array may have wrong values. Arguments
        are those of `load`, but `max_nbytes` is for each slice (in a Zstandard frame: for the array).
        """
        count, limit = thread_count(threads), checked_max_nbytes(max_nbytes)
        c = self.compressed(name, check=False)
        if limit is not None:
            c.payload.max_nbytes = limit
        return Slice(self.path, name, c, count)

    def close(self) -> None:
        """Close the file. Results stay valid."""
        self._close()

    def _span(self, name: str) -> Span:
        """The range of the file with an array's stream."""
        span = self._spans[name]
        with naming(self.path, name):
            return span()

    def __getitem__(self, name: str) -> Any:
        return self.load(name)

    def __contains__(self, name: object) -> bool:
        return name in self._spans

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def __enter__(self) -> "CompressedFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<CompressedFile {str(self.path)!r}: {len(self)} arrays>"


def _stream_span(container: Container, name: str) -> Span:
    entry = container.entries[name]
    if entry.kind != "U8" or len(entry.shape) != 1:
        raise CorruptStreamError(
            f"stream: expected one-dimensional U8, got {entry.kind} of shape {shown(list(entry.shape))}"
        )
    return container.span(name)


def _framework(container: Container, source: Mapping[str, str]) -> str:
    """The framework of the arrays that a file was made of."""
    framework = container.metadata.get("framework")
    if framework is None:
        return "torch" if source.get("format") == "pt" else "numpy"
    if framework not in FRAMEWORKS:
        expected = f"{', '.join(FRAMEWORKS)} as framework in its metadata"
        raise CorruptStreamError(f"{container.path}: expected {expected}, got {shown(framework)}")
    return framework


def _source_metadata(container: Container) -> dict[str, str]:
    """The original file's metadata, from those of a file that this version reads."""
    path, metadata = container.path, container.metadata
    if metadata.get("format") != "arrcomp":
        raise ValueError(f"{path}: expected compressed arrays, got others; `arrcomp compress` makes such files")
    version = metadata.get("version", "")
    major = version.partition(".")[0]
    if not (major.isascii() and major.isdigit()):
        raise CorruptStreamError(f"{path}: expected a version number in its metadata, got {shown(version)}")
    if int(major) > stream.MAJOR_VERSION:
        expected = f"format version {stream.VERSION} at most"
        raise FormatVersionError(f"{path}: expected {expected}, got {shortened(version)}; a newer arrcomp reads it")
    try:
        source = json.loads(metadata.get("source_metadata", "{}"))
    except (ValueError, RecursionError):
        source = None
    if not isinstance(source, dict) or not all(isinstance(value, str) for value in source.values()):
        raise CorruptStreamError(f"{path}: expected a JSON object of strings as source_metadata, got something else")
    return source
