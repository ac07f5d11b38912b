"""NumPy's files: .npy and .npz."""

import contextlib
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .._format import limits
from ..errors import SizeLimitError
from .content import ONLY_NAME, Content, Lazy, is_stray
from .reading import OpenedFile
from .replacing import replacing

_NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    (3, 0): np.lib.format.read_array_header_2_0,  # it differs in names of fields alone; such dtypes are not taken
}


def open_npy(path: Path) -> Lazy[NDArray[Any]]:
    """The array of a .npy file, read when it is asked for.

    Raises:
        ValueError: it is none.
        OSError: it cannot be read.
    """
    file = OpenedFile(path)
    with _reading(f"{path} is no readable .npy file"), path.open("rb") as opened:
        shape, in_fortran_order, dtype = _npy_header(opened)
        np.broadcast_to(np.empty((), dtype), shape)  # refuses shapes that no array has
        start = opened.tell()
        end = start + math.prod(shape) * dtype.itemsize
        if end > file.nbytes:
            raise ValueError(f"shape {shape} of {dtype} ends at byte {end}; the file has {file.nbytes}")
        span = file.span(start, end)

    def load(name: str) -> NDArray[Any]:
        data = span.read().view(dtype)
        return data.reshape(shape[::-1]).T if in_fortran_order else data.reshape(shape)

    return Lazy([ONLY_NAME], load, lambda name: (dtype, shape))


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is in Fortran's order, and dtype."""
    version = np.lib.format.read_magic(file)
    if version not in _NPY_HEADERS:
        raise ValueError(f"version {version}; {', '.join(map(str, _NPY_HEADERS))} are allowed")
    shape, in_fortran_order, dtype = _NPY_HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError(f"dtype {dtype} holds Python objects")
    return shape, in_fortran_order, dtype


def write_npy(path: Path, array: NDArray[Any]) -> None:
    """Write a .npy file.

    Raises:
        TypeError: it has no such dtype.
        OSError: it cannot be written.
    """
    _check_dtype(path, array.dtype)
    with replacing(path) as temporary, temporary.open("wb") as file:
        # Through `write` alone: what NumPy writes to a file itself fails without telling why.
        np.lib.format.write_array(SimpleNamespace(write=file.write), array, allow_pickle=False)


def open_npz(path: Path, max_nbytes: int | None = None) -> Lazy[NDArray[Any]]:
    """The arrays of a .npz file, each read when it is asked for.

    Args:
        path: of the file.
        max_nbytes: as of `read_arrays`, checked.

    Raises:
        ValueError: it is none.
        OSError: it cannot be read.
    """
    import zipfile

    def load(name: str) -> NDArray[Any]:
        with (
            _reading(f"{path}, array {name!r}: not readable"),
            zipfile.ZipFile(path) as archive,
            archive.open(f"{name}.npy") as member,
        ):
            packed = archive.getinfo(f"{name}.npy")
            _check_claims(member, packed.file_size, limits.allowed_of(packed.compress_size, max_nbytes))
            array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
            return array

    with _reading(f"{path} is no readable .npz file"), zipfile.ZipFile(path) as archive:
        members = archive.namelist()
    for member, count in Counter(members).items():
        if not member.endswith(".npy"):
            raise ValueError(f"{path}: member {member!r} is not an array")
        if count > 1:
            raise ValueError(f"{path}: member {member!r} is there {count} times")
    return Lazy([member.removesuffix(".npy") for member in members], load)


def write_npz(path: Path, content: Content[NDArray[Any]]) -> None:
    """Write a .npz file, array by array.

    Raises:
        TypeError: it has no such dtype.
        ValueError: a name, which becomes that of a file in the archive, would lead out of a folder.
        OSError: it cannot be written.
    """
    import zipfile

    for name in content.arrays:
        _check_dtype(path, content.look(name)[0])
        if is_stray(name):
            raise ValueError(f"{path}: array {name!r} would be a file outside of its folder; .safetensors is allowed")
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in content.arrays:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, content.arrays[name], allow_pickle=False)


def _check_claims(member: IO[bytes], nbytes: int, max_nbytes: int) -> None:
    """Look at the header of a .npy file of `nbytes` that is packed, for which memory will be allocated.

    Raises:
        ValueError: it is damaged, or its array would not take what is left of the file.
        SizeLimitError: the array has more than `max_nbytes` bytes.
    """
    shape, _, dtype = _npy_header(member)
    claimed = math.prod(shape) * dtype.itemsize
    limits.check_nbytes(claimed, max_nbytes, dtype, shape)
    if claimed != nbytes - member.tell():
        raise ValueError(f"shape {shape} of {dtype} takes {claimed} bytes, not {nbytes - member.tell()}")
    member.seek(0)


@contextlib.contextmanager
def _reading(failure: str) -> Iterator[None]:
    """Make one ValueError of all that NumPy, zipfile and zlib raise of a damaged file."""
    import tokenize
    import zipfile
    import zlib

    of_headers = (ValueError, TypeError, ArithmeticError, SyntaxError, tokenize.TokenError)
    of_archives = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
    try:
        with np.errstate(over="raise"):  # of a shape: NumPy would warn
            yield
    except SizeLimitError as error:
        raise SizeLimitError(f"{failure}: {error}") from None
    except (*of_headers, *of_archives) as error:
        raise ValueError(f"{failure}: {error}") from None


def _check_dtype(path: Path, dtype: np.dtype[Any]) -> None:
    if hasattr(ml_dtypes, dtype.name):
        raise TypeError(f"{path}: {path.suffix} files have no dtype {dtype.name}; .safetensors is allowed")
