"""Files of arrays (.npy, .npz, .safetensors) and of compressed arrays (.arrcomp, .safetensors).

A .arrcomp file is one stream. Several compressed arrays are a .safetensors file with one uint8 tensor for each, which
is its complete stream, and the metadata `{"format": "arrcomp", "version": "0.1"}`; metadata of the file they came from
is kept there as JSON under "source_metadata".

Files are written to a temporary name beside the target and then renamed: a target is complete, or as it was before.
"""

import contextlib
import json
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from . import dtypes, stream
from .compressed import Compressed, from_bytes
from .errors import CorruptStreamError, FormatVersionError

ARRAY_SUFFIXES = (".npy", ".npz", ".safetensors")
COMPRESSED_SUFFIXES = (".arrcomp", ".safetensors")
ONLY_NAME = "arr_0"  # of an array without one, as NumPy names it

_SAFETENSORS_DTYPES = {
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

T = TypeVar("T")


@dataclass(frozen=True)
class Content(Generic[T]):
    """What a file holds.

    Attributes:
        arrays: by name; each is read when it is asked for.
        metadata: of a .safetensors file, else empty.
    """

    arrays: Mapping[str, T]
    metadata: Mapping[str, str] = field(default_factory=dict)


class _Lazy(Mapping[str, T]):
    def __init__(self, names: list[str], load: Callable[[str], T]) -> None:
        self._names = dict.fromkeys(names)
        self._load = load

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def read_arrays(path: Path) -> Content[NDArray[Any]]:
    """Open a .npy, .npz or .safetensors file.

    Raises:
        ValueError: the suffix is another one, or the file is not what its suffix says, or compressed already.
        OSError: it cannot be read.
        ImportError: safetensors is not installed.
    """
    suffix = _suffix(path, ARRAY_SUFFIXES)
    if suffix == ".npy":
        return Content({ONLY_NAME: _read_npy(path)})
    if suffix == ".npz":
        return Content(_open_npz(path))
    arrays, metadata = _open_safetensors(path, ValueError)
    if metadata.get("format") == "arrcomp":
        raise ValueError(f"{path} holds compressed arrays already; `arrcomp decompress` reads it")
    return Content(arrays, metadata)


def write_arrays(path: Path, content: Content[NDArray[Any]]) -> None:
    """Write a .npy (of one array), .npz or .safetensors file.

    Raises:
        ValueError: the suffix is another one, or several arrays are to go into a .npy file.
        TypeError: this kind of file has no such dtype.
        OSError: it cannot be written.
        ImportError: safetensors is not installed.
    """
    suffix = _suffix(path, ARRAY_SUFFIXES)
    if suffix == ".safetensors":
        _write_safetensors(path, content.arrays, content.metadata)
    elif suffix == ".npz":
        with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for name, array in content.arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    _write_npy(member, path, array)
    else:
        if len(content.arrays) != 1:
            raise ValueError(f"{path}: a .npy file holds one array, not {len(content.arrays)}; .npz is allowed")
        with replacing(path) as temporary, temporary.open("wb") as file:
            _write_npy(file, path, next(iter(content.arrays.values())))


def read_compressed(path: Path) -> Content[Compressed]:
    """Open a file of compressed arrays.

    Raises:
        ValueError: the suffix is neither .arrcomp nor .safetensors, or the arrays are not compressed.
        CorruptStreamError, FormatVersionError, UnknownCodecError: the file is damaged, or a newer arrcomp wrote it.
        OSError: it cannot be read.
        ImportError: safetensors is not installed.
    """
    if _suffix(path, COMPRESSED_SUFFIXES) == ".arrcomp":
        return Content({ONLY_NAME: from_bytes(path.read_bytes())})
    tensors, metadata = _open_safetensors(path, CorruptStreamError)
    if metadata.get("format") != "arrcomp":
        raise ValueError(f"{path} holds no compressed arrays; `arrcomp compress` makes such files")
    _check_version(path, metadata.get("version", ""))

    def load(name: str) -> Compressed:
        try:
            return from_bytes(tensors[name])
        except (CorruptStreamError, TypeError) as error:
            raise CorruptStreamError(f"{path}, array {name!r}: {error}") from None

    return Content(_Lazy(list(tensors), load), _source_metadata(path, metadata))


def write_compressed(path: Path, content: Content[Compressed]) -> None:
    """Write a .arrcomp file (of one array) or a .safetensors file of compressed arrays.

    Raises:
        ValueError: the suffix is neither, or several arrays are to go into a .arrcomp file.
        OSError: it cannot be written.
        ImportError: safetensors is not installed.
    """
    if _suffix(path, COMPRESSED_SUFFIXES) == ".safetensors":
        metadata = {"format": "arrcomp", "version": stream.VERSION}
        if content.metadata:
            metadata["source_metadata"] = json.dumps(dict(content.metadata), sort_keys=True)
        streams = {name: np.frombuffer(c.to_bytes(), np.uint8) for name, c in content.arrays.items()}
        _write_safetensors(path, streams, metadata)
        return
    if len(content.arrays) != 1:
        raise ValueError(f"{path}: a .arrcomp file holds one array, not {len(content.arrays)}; .safetensors is allowed")
    with replacing(path) as temporary, temporary.open("wb") as file:
        for part in next(iter(content.arrays.values())).parts():
            file.write(part)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`; renamed to it at the end, removed if anything fails.

    Raises:
        ValueError: `path` is there and not a regular file.
        OSError: it cannot be written.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a regular file")
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.touch(exist_ok=False)
        mode = (target if target.exists() else temporary).stat().st_mode
        yield temporary
        temporary.chmod(mode)  # safetensors makes files that only their owner can read
        _sync(temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(target.parent)


def _sync(path: Path) -> None:
    if path.is_dir() and os.name != "posix":
        return  # only POSIX opens folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _suffix(path: Path, allowed: tuple[str, ...]) -> str:
    if path.suffix not in allowed:
        raise ValueError(f"{path}: suffix {path.suffix!r}; allowed are {', '.join(allowed)}")
    return path.suffix


def _read_npy(path: Path) -> NDArray[Any]:
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ValueError(f"{path} is no readable .npy file: {error}") from None


def _open_npz(path: Path) -> Mapping[str, NDArray[Any]]:
    def load(name: str) -> NDArray[Any]:
        try:
            with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as member:
                array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
                return array
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path}, array {name!r}: not readable: {error}") from None

    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is no readable .npz file: {error}") from None
    for member in members:
        if not member.endswith(".npy"):
            raise ValueError(f"{path}: member {member!r} is not an array")
    return _Lazy([member.removesuffix(".npy") for member in members], load)


def _write_npy(file: Any, path: Path, array: NDArray[Any]) -> None:
    if hasattr(ml_dtypes, array.dtype.name):
        raise TypeError(f"{path}: {path.suffix} files have no dtype {array.dtype.name}; .safetensors is allowed")
    np.lib.format.write_array(file, array, allow_pickle=False)


def _import_safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(f".safetensors files need safetensors ({error}): pip install arrcomp[cli]") from None
    return safetensors


def _open_safetensors(path: Path, failure: type[Exception]) -> tuple[Mapping[str, NDArray[Any]], dict[str, str]]:
    """Its tensors, mapped into memory, and metadata; `failure` is raised where the library finds it damaged.

    safetensors.numpy knows no float8 types, so the library checks the file and the tensors are viewed here.
    """
    safetensors = _import_safetensors()
    try:
        with safetensors.safe_open(path, framework="np") as opened:
            metadata = opened.metadata() or {}
    except safetensors.SafetensorError as error:
        raise failure(f"{path} is no readable .safetensors file: {error}") from None
    mapped = np.memmap(path, np.uint8, mode="r")
    start = 8 + int.from_bytes(mapped[:8].tobytes(), "little")
    header = json.loads(mapped[8:start].tobytes())

    def load(name: str) -> NDArray[Any]:
        entry = header[name]
        if entry["dtype"] not in _SAFETENSORS_DTYPES:
            allowed = ", ".join(_SAFETENSORS_DTYPES)
            raise TypeError(f"{path}, array {name!r}: dtype {entry['dtype']} is not supported; allowed are {allowed}")
        dtype = dtypes.by_name(_SAFETENSORS_DTYPES[entry["dtype"]]).numpy
        first, last = entry["data_offsets"]
        return np.asarray(mapped[start + first : start + last]).view(dtype).reshape(entry["shape"])

    return _Lazy([name for name in header if name != "__metadata__"], load), metadata


def _write_safetensors(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    for name, array in arrays.items():
        kind = array.dtype.name
        if kind not in _SAFETENSORS_DTYPES.values():
            raise TypeError(f"{path}, array {name!r}: .safetensors files have no dtype {kind}; .npz is allowed")
    with replacing(path) as temporary:
        _import_safetensors().numpy.save_file(dict(arrays), temporary, metadata=dict(metadata) or None)


def _check_version(path: Path, version: str) -> None:
    major = version.partition(".")[0]
    if not (major.isascii() and major.isdigit()):
        raise CorruptStreamError(f"{path}: metadata's version is {version!r}")
    if int(major) > stream.MAJOR_VERSION:
        raise FormatVersionError(
            f"{path}: format version {version} is newer than {stream.VERSION}, the newest this package reads"
        )


def _source_metadata(path: Path, metadata: Mapping[str, str]) -> dict[str, str]:
    try:
        source = json.loads(metadata.get("source_metadata", "{}"))
    except (ValueError, RecursionError):
        source = None
    if not isinstance(source, dict) or not all(isinstance(value, str) for value in source.values()):
        raise CorruptStreamError(f"{path}: metadata's source_metadata is not a JSON object of texts")
    return source
