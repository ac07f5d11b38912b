"""The content of files: arrays by name, each loaded when it is accessed."""

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from .._arguments import shown, wrong_type, wrong_value
from ..errors import CorruptStreamError, FormatVersionError, SizeLimitError, UnknownCodecError, WrongReferenceError
from .file_objects import FileObject
from .locations import Location, OtherFile
from .remote import at_url, in_system, is_fsspec_file, is_url

ARRAY_SUFFIXES = (".npy", ".npz", ".safetensors")
COMPRESSED_SUFFIXES = (".arrcomp", ".safetensors")
_PYTORCH_SUFFIXES = (".pt", ".pth", ".ckpt", ".bin")
ONLY_NAME = "arr_0"  # NumPy's name of an array without a name

# Names that, used as a path, would lead out of a folder on some system.
_STRAY_PATH = re.compile(r"\0|^[/\\]|^[A-Za-z]:[/\\]|(^|[/\\])\.\.([/\\]|$)")

_OF_STREAMS = (CorruptStreamError, FormatVersionError, SizeLimitError, UnknownCodecError, WrongReferenceError)

T = TypeVar("T")


class ArrayInfo(NamedTuple):
    """NumPy dtype and shape of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def native_info(info: ArrayInfo) -> ArrayInfo:
    """The same in native byte order."""
    return ArrayInfo(info.dtype.newbyteorder("="), tuple(info.shape))


class Lazy(Mapping[str, T]):
    """Items that are loaded when they are accessed, and not kept."""

    def __init__(
        self, names: Iterable[str], load: Callable[[str], T], info: Callable[[str], ArrayInfo] | None = None
    ) -> None:
        """A mapping from `names` to what `load` returns. `info` returns dtype and shape without loading an array."""
        self._names, self._load, self._info = dict.fromkeys(names), load, info

    def info(self, name: str) -> ArrayInfo:
        """Dtype and shape of an array, without loading it if possible."""
        return _info_of(self[name]) if self._info is None else self._info(name)

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        return self._load(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class Content(Generic[T]):
    """The content of a file."""

    arrays: Mapping[str, T]  # by name; each is read when it is accessed
    metadata: Mapping[str, str] = field(default_factory=dict)  # of a .safetensors file

    def info(self, name: str) -> ArrayInfo:
        """Dtype and shape of an array, without reading it if possible."""
        return self.arrays.info(name) if isinstance(self.arrays, Lazy) else _info_of(self.arrays[name])


def _info_of(array: Any) -> ArrayInfo:
    return ArrayInfo(array.dtype, array.shape)


def is_path(path: Any) -> bool:
    """Whether an argument is a path, or the string of a URL."""
    return isinstance(path, (str, os.PathLike))


def checked_path(path: Any, name: str = "path") -> Path:
    """The argument `name` as a path of this machine. TypeError if it is none, ValueError for a URL."""
    if not is_path(path):
        raise wrong_type(name, "a string or a path", path)
    if is_url(path):
        raise ValueError(f"{name}: expected a path of this machine, got a URL, {shown(path)}")
    return Path(path)


def located(
    path: Any, storage_options: Mapping[str, Any] | None = None, *, writing: bool = False, name: str = "path"
) -> Location:
    """The argument `name`, which is a path, a URL or a file object. Errors are those of `open_file` or `save_file`."""
    found: Location
    if isinstance(path, OtherFile):
        return path
    if is_url(path):
        found = at_url(path, storage_options)
    elif is_fsspec_file(path):
        if getattr(path, "compression", None) is not None:
            raise wrong_value(name, "a file of fsspec without a compression of its own", path.compression)
        found = in_system(path.fs, path.path)
    elif hasattr(path, "read") or hasattr(path, "write"):
        return FileObject(path, name, writing=writing)
    elif is_path(path):
        return Path(path)
    else:
        raise wrong_type(name, "a path, a URL or a file object", path)
    if writing and isinstance(found, OtherFile):
        found.check_writable()
    return found


def is_location(path: Any) -> bool:
    """Whether the argument `base` is a path, a URL or a file object."""
    return is_path(path) or is_fsspec_file(path) or hasattr(path, "read")


def check_options(storage_options: Any, *paths: Any) -> None:
    """Raise unless `storage_options` are a mapping, of the file system of one of these arguments, or None."""
    if storage_options is None:
        return
    if not isinstance(storage_options, Mapping):
        raise wrong_type("storage_options", "a mapping, or None", storage_options)
    if not any(map(is_url, paths)):
        raise ValueError("storage_options: expected None where there is no URL, got options")


def check_suffix(path: Location, suffixes: tuple[str, ...]) -> str:
    """The suffix of a file. ValueError if it is not one of these."""
    if path.suffix not in suffixes:
        hint = "; arrcomp.torch.save and load are for PyTorch's checkpoints" if path.suffix in _PYTORCH_SUFFIXES else ""
        raise ValueError(f"{path}: expected suffix {', '.join(suffixes)}, got {shown(path.suffix)}{hint}")
    return path.suffix


def check_exists(path: Location) -> None:
    """Raise OSError unless there is such a file, ValueError if it is a pipe: users want to know that first."""
    if isinstance(path, OtherFile):
        path.check_exists()
        return
    path.stat()
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.is_file():  # a pipe, which cannot be read in ranges
        raise ValueError(f"{path}: expected a regular file, got another kind")


def check_readable(path: Location, suffixes: tuple[str, ...]) -> str:
    """The suffix of a file that is to be read. OSError if it does not exist or is a folder, else as `check_suffix`."""
    check_exists(path)
    return check_suffix(path, suffixes)


def is_stray(name: str) -> bool:
    """Whether a name, used as a path, would lead out of its folder: it is absolute, or has a ".." or a NUL."""
    return _STRAY_PATH.search(name) is not None


@contextlib.contextmanager
def naming(path: Location | None, name: str) -> Iterator[None]:
    """Add the array's name to errors."""
    try:
        yield
    except (*_OF_STREAMS, TypeError) as error:
        if path is not None and str(error).startswith(f"{path} "):
            raise  # it is about the whole file, and names it
        where = "" if path is None else f"{path}, "
        raise type(error)(f"{where}array {shown(name)}: {error}") from None
