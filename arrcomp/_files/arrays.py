"""Files of arrays: .npy, .npz and .safetensors."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .._arrays.numpy import numpy_bytes
from .._format.limits import checked_max_nbytes
from . import container, numpy_files
from .container import Container
from .content import ARRAY_SUFFIXES, Content, Lazy, check_suffix
from .opened import open_file


def read_arrays(path: Path, max_nbytes: int | None = None) -> Content[NDArray[Any]]:
    """Open a .npy, .npz or .safetensors file.

    Args:
        path: of the file.
        max_nbytes: the most bytes that each array of a .npz file, which may be packed, may have. Reading a larger array
            raises SizeLimitError. None for 8192 times its bytes in the file, or 1 GiB if that is more. Arrays of other
            files are not packed.

    Raises:
        TypeError: `max_nbytes` is not an integer.
        ValueError: the suffix is wrong, the file's content does not match it or is compressed already, or `max_nbytes`
            is below 0.
        OSError: the file cannot be read.
        ImportError: safetensors is not installed.
    """
    suffix, limit = check_suffix(path, ARRAY_SUFFIXES), checked_max_nbytes(max_nbytes)
    if suffix == ".npy":
        return Content(numpy_files.open_npy(path))
    if suffix == ".npz":
        return Content(numpy_files.open_npz(path, limit))
    opened = Container(path, ValueError)
    if _is_compressed(opened):
        raise ValueError(f"{path}: expected uncompressed arrays, got compressed ones; `arrcomp decompress` reads it")
    return Content(Lazy(opened.entries, opened.array), opened.metadata)


def write_arrays(path: Path, content: Content[NDArray[Any]]) -> None:
    """Write a .npy (of one array), .npz or .safetensors file, array by array.

    Raises:
        ValueError: the suffix is wrong, or there is not exactly one array for a .npy file.
        TypeError: this kind of file has no such dtype.
        OSError: the file cannot be written.
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
            raise ValueError(f"{path}: expected one array for a .npy file, got {len(arrays)}; .npz holds several")
        numpy_files.write_npy(path, next(iter(arrays.values())))


def _write_safetensors(path: Path, content: Content[NDArray[Any]]) -> None:
    entries = container.entries_of_arrays(path, {name: content.info(name) for name in content.arrays})
    with container.writing(path, entries, content.metadata) as writer:
        for name, entry in entries.items():
            writer.add(name, entry.kind, entry.shape, [numpy_bytes(content.arrays[name])])


def read_any(path: Path, max_nbytes: int | None = None, threads: int | None = None) -> Content[NDArray[Any]]:
    """Open a file of arrays, or of compressed arrays, which are decompressed when they are read.

    Args:
        path: of the file.
        max_nbytes: same as in `read_arrays` and `open_file`.
        threads: number of threads to decompress with; None for all cores that the process may use.

    Raises:
        Same as in `read_arrays` and `open_file`.
    """
    check_suffix(path, (*ARRAY_SUFFIXES, ".arrcomp"))
    if path.suffix == ".arrcomp" or (path.suffix == ".safetensors" and _is_compressed(Container(path, ValueError))):
        file = open_file(path, max_nbytes=max_nbytes)
        return Content(Lazy(file, lambda name: file.load(name, threads=threads), file.info), file.metadata)
    return read_arrays(path, max_nbytes)


def _is_compressed(opened: Container) -> bool:
    return opened.metadata.get("format") == "arrcomp"
