"""NumPy's files: .npy and .npz."""

import contextlib
import math
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import IO, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .._arguments import shortened, shown
from .._format import limits
from ..errors import SizeLimitError
from .content import ONLY_NAME, ArrayInfo, Content, Lazy, is_stray
from .locations import Location
from .reading import OpenedFile
from .replacing import replacing

_MOST_REASON = 1000  # characters of NumPy's errors, which show a whole header

_NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    (3, 0): np.lib.format.read_array_header_2_0,  # it differs in field names alone, and such dtypes are refused
}


def open_npy(path: Location) -> Lazy[NDArray[Any]]:
    """The array of a .npy file, read when it is accessed."""
    file = OpenedFile(path)
    with _as_value_errors(f"{path}: expected a .npy file, got another or a damaged one"), file.reader() as opened:
        shape, in_fortran_order, dtype = _npy_header(opened)
        np.broadcast_to(np.empty((), dtype), shape)  # raises for impossible shapes
        start = opened.tell()
        end = start + math.prod(shape) * dtype.itemsize
        if end > file.nbytes:
            raise ValueError(f"file: expected {end} bytes for {_described(shape, dtype)}, got {file.nbytes}")
        span = file.span(start, end)

    def load(name: str) -> NDArray[Any]:
        data = span.read().view(dtype)
        return data.reshape(shape[::-1]).T if in_fortran_order else data.reshape(shape)

    return Lazy([ONLY_NAME], load, lambda name: ArrayInfo(dtype, shape))


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is in Fortran order, and dtype."""
    version = np.lib.format.read_magic(file)
    if version not in _NPY_HEADERS:
        raise ValueError(f"version: expected {', '.join(map(str, _NPY_HEADERS))}, got {version}")
    shape, in_fortran_order, dtype = _NPY_HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError(f"dtype: expected one without Python objects, got {shortened(str(dtype))}")
    return shape, in_fortran_order, dtype


def write_npy(path: Location, array: NDArray[Any]) -> None:
    """Write a .npy file."""
    _check_dtype(path, array.dtype)
    with replacing(path) as temporary, temporary.open("wb") as file:
        # NumPy sees `write` alone: its own way to write a file loses the reasons of failures.
        np.lib.format.write_array(SimpleNamespace(write=file.write), array, allow_pickle=False)


def open_npz(path: Location, max_nbytes: int | None = None) -> Lazy[NDArray[Any]]:
    """The arrays of a .npz file, each read when it is accessed; `max_nbytes` is that of `read_arrays`, checked."""
    import zipfile

    file = OpenedFile(path)

    def load(name: str) -> NDArray[Any]:
        failure, inside = f"{path}, array {shown(name)}: not readable", f"{name}.npy"
        with _as_value_errors(failure), zipfile.ZipFile(file.reader()) as archive, archive.open(inside) as member:
            packed = archive.getinfo(inside)
            _check_claims(member, packed.file_size, limits.allowed_of(packed.compress_size, max_nbytes))
            array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
            return array

    def info(name: str) -> ArrayInfo:
        failure = f"{path}, array {shown(name)}: not readable"
        with (
            _as_value_errors(failure),
            zipfile.ZipFile(file.reader()) as archive,
            archive.open(f"{name}.npy") as member,
        ):
            shape, _, dtype = _npy_header(member)
        return ArrayInfo(dtype, shape)

    failure = f"{path}: expected a .npz file, got another or a damaged one"
    with _as_value_errors(failure), zipfile.ZipFile(file.reader()) as archive:
        members = archive.namelist()
    for member, count in Counter(members).items():
        if not member.endswith(".npy"):
            raise ValueError(f"{path}: expected .npy files as members, got {shown(member)}")
        if count > 1:
            raise ValueError(f"{path}: expected different members, got {shown(member)} {count} times")
    return Lazy([member.removesuffix(".npy") for member in members], load, info)


def write_npz(path: Location, content: Content[NDArray[Any]]) -> None:
    """Write a .npz file, array by array."""
    import zipfile

    for name in content.arrays:
        _check_dtype(path, content.info(name).dtype)
        if is_stray(name):
            raise ValueError(f"{path}: expected names without paths out of a folder, got {shown(name)}")
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in content.arrays:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, content.arrays[name], allow_pickle=False)


def _described(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    return f"shape {shown(shape)} of {shortened(str(dtype))}"


def _check_claims(member: IO[bytes], nbytes: int, max_nbytes: int) -> None:
    """Check the header of a packed .npy file of `nbytes`, before memory is allocated for its array."""
    shape, _, dtype = _npy_header(member)
    claimed = math.prod(shape) * dtype.itemsize
    limits.check_nbytes(claimed, max_nbytes, dtype, shape)
    found = nbytes - member.tell()
    if claimed != found:
        raise ValueError(f"member: expected {claimed} bytes for {_described(shape, dtype)}, got {found}")
    member.seek(0)


@contextlib.contextmanager
def _as_value_errors(failure: str) -> Iterator[None]:
    """Turn all errors of NumPy, zipfile and zlib about damaged files into ValueErrors."""
    import tokenize
    import zipfile
    import zlib

    header_errors = (ValueError, TypeError, ArithmeticError, SyntaxError, tokenize.TokenError)
    archive_errors = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
    try:
        with np.errstate(over="raise"):  # of products of sizes, for which NumPy would warn
            yield
    except SizeLimitError as error:
        raise SizeLimitError(f"{failure}: {error}") from None
    except (*header_errors, *archive_errors) as error:
        raise ValueError(f"{failure}: {shortened(str(error), _MOST_REASON)}") from None


def _check_dtype(path: Location, dtype: np.dtype[Any]) -> None:
    if hasattr(ml_dtypes, dtype.name):
        raise TypeError(f"{path}: expected a dtype of {path.suffix} files, got {dtype.name}; .safetensors has it")
