"""Files of arrays: .npy, .npz and .safetensors."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .._arrays.host import numpy_bytes
from .._format.limits import checked_max_nbytes
from . import container, numpy_files
from .container import Container
from .content import ARRAY_SUFFIXES, Content, Lazy, check_suffix
from .opened import open_file


def read_arrays(path: Path, max_nbytes: int | None = None) -> Content[NDArray[Any]]:
    """Open a .npy, .npz or .safetensors file.

    Args:
        path: of the file.
        max_nbytes: bytes that each array of a .npz file may have, which may be packed there: a larger one raises
            SizeLimitError when it is asked for. None for 8192 times the bytes that it takes there, or 1 GiB if that is
            more. Arrays of other files are mapped into memory as they are.

    Raises:
        TypeError: `max_nbytes` is no integer.
        ValueError: the suffix is another one, or the file is not what its suffix says, or compressed already; or
            `max_nbytes` is below 0.
        OSError: it cannot be read.
        ImportError: safetensors is not installed.
    """
    suffix, limit = check_suffix(path, ARRAY_SUFFIXES), checked_max_nbytes(max_nbytes)
    if suffix == ".npy":
        return Content(numpy_files.open_npy(path))
    if suffix == ".npz":
        return Content(numpy_files.open_npz(path, limit))
    opened = Container(path, ValueError)
    if _is_compressed(opened):
        raise ValueError(f"{path} holds compressed arrays already; `arrcomp decompress` reads it")
    return Content(Lazy(opened.entries, opened.array), opened.metadata)


def write_arrays(path: Path, content: Content[NDArray[Any]]) -> None:
    """Write a .npy (of one array), .npz or .safetensors file, array by array.

    Raises:
        ValueError: the suffix is another one, or several arrays are to go into a .npy file.
        TypeError: this kind of file has no such dtype.
        OSError: it cannot be written.
        ImportError: safetensors is not installed.
    """
    suffix = check_suffix(path, ARRAY_SUFFIXES)
    arrays = content.arrays
    if suffix == ".safetensors":
        _write_safetensors(path, content)
    elif suffix == ".npz":
        numpy_files.write_npz(path, content)
    else:
        if len(arrays) != 1:
            raise ValueError(f"{path}: a .npy file holds one array, not {len(arrays)}; .npz is allowed")
        numpy_files.write_npy(path, next(iter(arrays.values())))


def _write_safetensors(path: Path, content: Content[NDArray[Any]]) -> None:
    entries = container.entries_of_arrays(path, {name: content.look(name) for name in content.arrays})
    with container.writing(path, entries, content.metadata) as writer:
        for name, entry in entries.items():
            writer.add(name, entry.kind, entry.shape, [numpy_bytes(content.arrays[name])])


def read_any(path: Path, max_nbytes: int | None = None) -> Content[NDArray[Any]]:
    """Open a file of arrays, or of compressed ones, which are decompressed when they are asked for.

    Args:
        path: of the file.
        max_nbytes: as of `read_arrays` and `open_file`.

    Raises:
        As `read_arrays` and `open_file`.
    """
    check_suffix(path, (*ARRAY_SUFFIXES, ".arrcomp"))
    if path.suffix == ".arrcomp" or (path.suffix == ".safetensors" and _is_compressed(Container(path, ValueError))):
        file = open_file(path, max_nbytes=max_nbytes)
        return Content(Lazy(file, file.__getitem__, file.look), file.metadata)
    return read_arrays(path, max_nbytes)


def _is_compressed(opened: Container) -> bool:
    return opened.metadata.get("format") == "arrcomp"
