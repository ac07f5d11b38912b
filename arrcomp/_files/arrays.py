"""Files of arrays: .npy, .npz and .safetensors."""

from typing import Any

from numpy.typing import NDArray

from .._arrays.numpy import numpy_bytes
from .._format.limits import checked_max_nbytes
from . import container, numpy_files
from .container import Container
from .content import ARRAY_SUFFIXES, Content, Lazy, check_readable, check_suffix
from .locations import Location


def read_arrays(path: Location, max_nbytes: int | None = None) -> Content[NDArray[Any]]:
    """Open a .npy, .npz or .safetensors file.

    `max_nbytes` is the most bytes that an array of a .npz file, which may be packed, may have; None for 8192 times its
    bytes in the file, or 1 GiB if that is more. Reading a larger array raises SizeLimitError.
    """
    suffix, limit = check_readable(path, ARRAY_SUFFIXES), checked_max_nbytes(max_nbytes)
    if suffix == ".npy":
        return Content(numpy_files.open_npy(path))
    if suffix == ".npz":
        return Content(numpy_files.open_npz(path, limit))
    opened = Container(path, ValueError)
    if _is_compressed(opened):
        raise ValueError(f"{path}: expected uncompressed arrays, got compressed ones; `arrcomp decompress` reads it")
    return Content(Lazy(opened.entries, opened.array, opened.info), opened.metadata)


def write_arrays(path: Location, content: Content[NDArray[Any]]) -> None:
    """Write a .npy (of one array), .npz or .safetensors file, array by array."""
    suffix, arrays = check_suffix(path, ARRAY_SUFFIXES), content.arrays
    if suffix == ".safetensors":
        entries = container.entries_of_arrays(path, {name: content.info(name) for name in arrays})
        with container.writing(path, entries, content.metadata) as writer:
            for name, entry in entries.items():
                with writer.tensor(name, entry.kind, entry.shape) as file:
                    file.write(numpy_bytes(arrays[name]))
    elif suffix == ".npz":
        numpy_files.write_npz(path, content)
    elif len(arrays) != 1:
        raise ValueError(f"{path}: expected one array for a .npy file, got {len(arrays)}; .npz holds several")
    else:
        numpy_files.write_npy(path, next(iter(arrays.values())))


def is_compressed(path: Location) -> bool:
    """Whether a file, which exists, has compressed arrays."""
    return path.suffix == ".arrcomp" or (path.suffix == ".safetensors" and _is_compressed(Container(path, ValueError)))


def _is_compressed(opened: Container) -> bool:
    return opened.metadata.get("format") == "arrcomp"
