"""Open files of compressed arrays. Only what is accessed is read."""

import errno
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .._api.compressed import Compressed, decompress, decompress_at, parse_stream
from .._api.references import content_hash
from .._arguments import shortened, shown, thread_count
from .._arrays.contract import Adapter
from .._arrays.device import Device
from .._arrays.numpy import ADAPTER as NUMPY
from .._arrays.registry import FRAMEWORKS, locate_new
from .._format import stream
from .._format.limits import checked_max_nbytes
from .._format.spec import Spec
from ..errors import CorruptStreamError, DeviceUnavailableError, FormatVersionError, WrongReferenceError
from .arrays import is_compressed, read_arrays
from .bases import PlainBase, counterpart, fingerprint_of, mapping_base, named_by, read_named_base
from .container import Container
from .content import (
    ARRAY_SUFFIXES,
    COMPRESSED_SUFFIXES,
    ONLY_NAME,
    ArrayInfo,
    Content,
    Lazy,
    check_options,
    check_readable,
    is_location,
    is_stray,
    located,
    naming,
)
from .locations import Location, identity, path_or_url
from .reading import OpenedFile, Span
from .slices import Slice
from .stored import stored

_CHECKSUM_NBYTES = 8  # at a stream's end


def open_file(
    path: str | Path | IO[bytes],
    *,
    base: Any = None,
    max_nbytes: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> "CompressedFile":
    """Open a file of compressed arrays, to decompress some of them, or slices.

    Args:
        path: of a .safetensors file that `save_file` or `arrcomp compress` wrote, or of a .arrcomp file, which is one
            stream. Its array has the name "arr_0". It is a path; a URL that fsspec knows ("s3://bucket/x.arrcomp"); or
            a binary file object, which is read from its position to its end, and must be able to seek. It may not be
            used by others meanwhile, and is not closed.
        base: what arrays of `save_file(..., base=)` were coded against: a file of arrays, compressed or not, by a path,
            a URL or a file object; a `CompressedFile`; or a mapping from names to arrays. None for the file that `path`
            names, which must be in its folder or below. It is opened when the first of these arrays is decompressed.
            (If there are none, `base` has no effect.)
        max_nbytes: the most bytes that each decompressed array, or slice of one, may have. Larger ones raise
            SizeLimitError. None for 8192 times the bytes of its stream, or 1 GiB if that is more. Only a stream with a
            Zstandard frame can exceed this.
        storage_options: arguments of fsspec's file system, for URLs: keys, the address of a server.

    Returns:
        A mapping from names to arrays, which is also a context manager. Opening it reads the header alone, and what is
        accessed is read in ranges. An object of an object store that is replaced meanwhile is then another file, with
        damaged arrays.

    Raises:
        TypeError: `max_nbytes` is not an integer, `path` or `base` is none of the above, or a file object is of text.
        ValueError: the suffix is wrong, the file has no compressed arrays, `max_nbytes` is below 0, a file object
            cannot be read or cannot seek, or there are `storage_options` and no URL.
        CorruptStreamError: the file's header is damaged, or a name is a path out of its folder. Damaged arrays raise
            when they are accessed.
        FormatVersionError: a newer arrcomp wrote it.
        OSError: it cannot be read.
        ImportError: safetensors, or for a URL fsspec or the package of its file system, is not installed.
    """
    check_options(storage_options, path, base)
    return CompressedFile(located(path, storage_options), checked_max_nbytes(max_nbytes), base, storage_options)


def open_base(
    base: Any, max_nbytes: int | None = None, storage_options: Mapping[str, Any] | None = None
) -> "CompressedFile | PlainBase":
    """The argument `base` of `save_file`. Errors are those of `open_file` and `read_arrays`."""
    if isinstance(base, CompressedFile):
        return base
    if not is_location(base):
        return mapping_base(base)
    return _open_base(located(base, storage_options, name="base"), max_nbytes)


def _open_base(
    path: Location, max_nbytes: int | None, leading: tuple[Hashable, ...] = ()
) -> "CompressedFile | PlainBase":
    """The base in this file. `leading` are the identities of files whose chain of bases leads to it."""
    check_readable(path, (*ARRAY_SUFFIXES, ".arrcomp"))
    if is_compressed(path):
        return CompressedFile(path, max_nbytes, leading=leading)
    return PlainBase(read_arrays(path, max_nbytes), path)


def read_any(
    path: Any,
    max_nbytes: int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Content[NDArray[Any]]:
    """Open a file of arrays, or of compressed arrays, which are decompressed when they are read.

    Arguments and errors are those of `open_file`, `read_arrays` and `CompressedFile.load`.
    """
    check_options(storage_options, path)
    path = located(path, storage_options)
    check_readable(path, (*ARRAY_SUFFIXES, ".arrcomp"))
    if is_compressed(path):
        file = CompressedFile(path, checked_max_nbytes(max_nbytes))
        lazy = Lazy(file, lambda name: file.load(name, like="numpy", threads=threads), file.info)
        return Content(lazy, file.metadata)
    return read_arrays(path, max_nbytes)


class CompressedFile(Mapping[str, Any]):
    """Compressed arrays in a file, decompressed when they are accessed. `open_file` makes it.

    `file[name]` is an array of the framework that was saved, with the defaults of `file.load`, which makes other arrays
    too. Both need memory for the array and its stream. An array that is coded against one of a base is made of that
    one, in place where the framework's arrays can be written to; that one may itself be coded against one of a further
    file, and so on. Results stay valid after the file is closed.

    Unknown names raise KeyError. Reading a closed file raises ValueError; reading one that was truncated while it was
    open raises CorruptStreamError. Damaged arrays, and those that a newer arrcomp wrote, raise CorruptStreamError,
    FormatVersionError or UnknownCodecError. Arrays in a Zstandard frame raise ImportError without zstandard. An array
    whose base is missing raises FileNotFoundError, and with a base that has another array WrongReferenceError.

    Attributes:
        metadata: strings by name: those of the original file, or those given to `save_file`.
        framework: which the arrays were of when they were saved: "numpy", "torch", "jax" or "cupy"; "torch" if the
            metadata has "format" "pt", as files of PyTorch's libraries have; "numpy" where nothing says it.
    """

    def __init__(
        self,
        path: Location,
        max_nbytes: int | None,
        base: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        leading: tuple[Hashable, ...] = (),
    ) -> None:
        """`open_file`, with checked arguments. `leading` are the files whose chain of bases leads to this one."""
        self.location, self._max_nbytes = path, max_nbytes
        self._given_base: CompressedFile | PlainBase | Location | None = None
        if base is not None:
            is_file = is_location(base)
            self._given_base = located(base, storage_options, name="base") if is_file else open_base(base)
        self._base: CompressedFile | PlainBase | None = None
        self._named_base = None
        self.metadata: dict[str, str] = {}
        self.own_metadata: dict[str, str] = {}  # the container's, which has the original file's as one
        self.framework = "numpy"
        self.container: Container | None = None  # None of a .arrcomp file; for this package
        self._spans: dict[str, Callable[[], Span]]
        if check_readable(path, COMPRESSED_SUFFIXES) == ".safetensors":
            container = self.container = Container(path, CorruptStreamError)
            self.own_metadata = container.metadata
            self.metadata = _source_metadata(container)
            self.framework = _framework(container, self.metadata)
            self._named_base = read_named_base(path, container.metadata)
            for name in container.entries:
                if is_stray(name):
                    raise CorruptStreamError(f"{path}: expected names without paths out of a folder, got {shown(name)}")
            self._spans = {name: partial(_stream_span, container, name) for name in container.entries}
            self._close = container.close
        else:
            file = OpenedFile(path, CorruptStreamError)
            self._spans = {ONLY_NAME: lambda: file.span(0, file.nbytes)}
            self._close = file.close
        self._leading = (*leading, identity(path))

    @property
    def path(self) -> Path | str | None:
        """Path of the file, or its URL; None of a file object."""
        return path_or_url(self.location)

    @property
    def base(self) -> Path | str | None:
        """The file that arrays of this one are coded against: `base` of `open_file`, or the one that this file names.

        Its path, or its URL. None if it names none, or of a file object. One that is outside of this file's folder is
        opened only if `base` gives it.
        """
        location = self._base_location()
        return None if location is None else path_or_url(location)

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
        return self.span(name).nbytes

    def compressed(self, name: str, *, check: bool = True) -> Compressed:
        """An array as it is in the file, not decompressed.

        Without `check` the checksum is not checked. Only the headers of stream and frame are read now, and the payload
        when it is needed. A damaged array may then have wrong values.
        """
        span = self.span(name)
        with naming(self.location, name):
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
            saved = f"{self.location}: its arrays were saved from {self.framework}, which cannot be used here"
            raise type(error)(f"{saved}; pass like='numpy' to load NumPy arrays ({error})") from None

    def load_at(self, name: str, adapter: Adapter, device: Device, threads: int, max_nbytes: int | None = None) -> Any:
        """`load`, with checked arguments."""
        c = self.compressed(name)
        if c.needs_reference:
            del c
            return self._load_from_base(name, adapter, device, threads, max_nbytes)
        with naming(self.location, name):
            return decompress_at(c, adapter, device, threads, max_nbytes)

    def reference(self, name: str) -> "tuple[CompressedFile | PlainBase, str] | None":
        """The base, and the array in it, that an array is coded against; None if it is coded by itself.

        Only headers are read. Raises WrongReferenceError if the base has no such array, and the errors of `open_file`.
        """
        if not self.compressed(name, check=False).needs_reference:
            return None
        base = self._opened_base()
        found, (dtype, shape) = counterpart(name, len(self), base.names), self.info(name)
        there = None if found is None else base.info(found)
        if found is None or there != (dtype, shape):
            expected = f"{dtype} {shown(shape)} in {_described(base)}, as it was coded against"
            got = "none" if there is None else f"{there.dtype} {shown(there.shape)}"
            raise WrongReferenceError(f"{self.location}, array {shown(name)}: expected {expected}, got {got}")
        return base, found

    def check_base(self, names: Iterable[str]) -> None:
        """Raise WrongReferenceError unless the chain of bases has the arrays that these are coded against.

        Where a base is not the very file that was used, by the checksums of its streams, its arrays are hashed.
        """
        file, wanted = self, list(names)
        while True:
            references = {name: link[1] for name in wanted if (link := file.reference(name)) is not None}
            if not references:
                return
            base = file._opened_base()
            if file._named_base is None or base.fingerprint is None or base.fingerprint != file._named_base.fingerprint:
                for name, found in references.items():
                    if base.content_hash(found) != file.compressed(name, check=False).reference_hash:
                        raise file._wrong_reference(name, base)
                return
            assert isinstance(base, CompressedFile), "other bases have no fingerprint"
            file, wanted = base, list(references.values())

    def chain(self) -> "Iterator[CompressedFile | PlainBase]":
        """This file, its base, the base of that one, and so on."""
        file: CompressedFile | PlainBase = self
        yield file
        while isinstance(file, CompressedFile) and (file._named_base or file._given_base) is not None:
            file = file._opened_base()
            yield file

    @property
    def fingerprint(self) -> str:
        """What tells the file from others: a hash of its arrays' names and of the checksums of their streams."""
        return fingerprint_of((name, self._checksum(name)) for name in self)

    def content_hash(self, name: str) -> int:
        """The hash of an array, which is decompressed to NumPy."""
        return content_hash(self.load_at(name, NUMPY, Device(), 0))

    def slice(self, name: str, *, threads: int | None = None, max_nbytes: int | None = None) -> Slice:
        """An array whose slices are decompressed to NumPy arrays: ``file.slice(name)[10:20]``.

        The checksum is that of the whole stream, and is not checked. A damaged array may have wrong values. Arguments
        are those of `load`, but `max_nbytes` is for each slice (in a Zstandard frame, and of an array that is coded
        against one of a base: for the array).
        """
        count, limit = thread_count(threads), checked_max_nbytes(max_nbytes)
        c = self.compressed(name, check=False)
        if c.needs_reference:
            return Slice(self.location, name, c, count, lambda: self.load_at(name, NUMPY, Device(), count, limit))
        if limit is not None:
            c.payload.max_nbytes = limit
        return Slice(self.location, name, c, count)

    def close(self) -> None:
        """Close the file, and its base if that is another file that was opened for it. Results stay valid."""
        self._close()
        if self._base is not None and self._base is not self._given_base:
            self._base.close()

    def _links(self, name: str) -> "tuple[list[tuple[CompressedFile, str]], tuple[PlainBase, str] | None]":
        """An array and those that it is coded against, in files; and at the end that of a base without streams."""
        links: list[tuple[CompressedFile, str]] = [(self, name)]
        while True:
            file, own = links[-1]
            found = file.reference(own)
            if found is None:
                return links, None
            base, inside = found
            if isinstance(base, PlainBase):
                return links, (base, inside)
            links.append((base, inside))

    def _load_from_base(self, name: str, adapter: Adapter, device: Device, threads: int, max_nbytes: int | None) -> Any:
        """`load_at` for an array that is coded against another one: the first of the chain, and then each of it."""
        links, plain = self._links(name)
        if plain is None:
            file, own = links.pop()
            array, is_ours = file.load_at(own, adapter, device, threads, max_nbytes), True
        else:
            base, own = plain
            array, is_ours = base.load_at(own, adapter, device, threads), not base.is_shared
        for file, own in reversed(links):
            array = file._applied(own, array, is_ours and device.framework != "jax", threads, max_nbytes)
            is_ours = True
        return array

    def _applied(self, name: str, reference: Any, in_place: bool, threads: int, max_nbytes: int | None) -> Any:
        """The array that is coded against `reference`, in its memory or in new memory."""
        c = self.compressed(name)
        target: dict[str, Any] = {"out": reference} if in_place else {"like": reference}
        try:
            with naming(self.location, name):
                return decompress(c, reference=reference, threads=threads or None, max_nbytes=max_nbytes, **target)
        except WrongReferenceError:
            raise self._wrong_reference(name, self._opened_base()) from None

    def _wrong_reference(self, name: str, base: "CompressedFile | PlainBase") -> WrongReferenceError:
        expected = f"the array that it was coded against in {_described(base)}"
        return WrongReferenceError(f"{self.location}, array {shown(name)}: expected {expected}, got another")

    def _opened_base(self) -> "CompressedFile | PlainBase":
        """The base, opened the first time."""
        if self._base is None:
            self._base = (
                self._given_base if isinstance(self._given_base, (CompressedFile, PlainBase)) else self._found_base()
            )
        return self._base

    def _base_location(self) -> Location | None:
        """The base's file; None of a mapping, and where none is known."""
        given = self._given_base
        if isinstance(given, (CompressedFile, PlainBase)):
            return given.location
        if given is not None or self._named_base is None:
            return given
        return named_by(self.location, self._named_base.file)

    def _found_base(self) -> "CompressedFile | PlainBase":
        """The base, which is a file."""
        path, named = self._base_location(), self._named_base
        if path is None:
            raise ValueError(f"{self.location}: expected a base, which its arrays were coded against, got none")
        if self._given_base is None and named is not None and is_stray(named.file):
            expected = "a base in its folder"
            raise ValueError(f"{self.location}: expected {expected}, got {shown(named.file)}; pass its path as base")
        try:
            if identity(path) in self._leading:
                raise WrongReferenceError(f"{self.location}: expected a base that does not lead back to it, got {path}")
            return _open_base(path, self._max_nbytes, self._leading)
        except FileNotFoundError:
            reason = f"expected the base of {self.location}, got no such file; pass its path as base"
            raise FileNotFoundError(errno.ENOENT, reason, str(path)) from None

    def _checksum(self, name: str) -> bytes:
        """The bytes at the end of an array's stream."""
        span = self.span(name)
        last = np.empty(min(_CHECKSUM_NBYTES, span.nbytes), np.uint8)
        span.read_into(last, span.nbytes - last.size)
        return last.tobytes()

    def span(self, name: str) -> Span:  # for this package
        span = self._spans[name]
        with naming(self.location, name):
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
        return f"<CompressedFile {str(self.location)!r}: {len(self)} arrays>"


def _described(base: "CompressedFile | PlainBase") -> str:
    """A base in errors."""
    return "base" if base.location is None else str(base.location)


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
