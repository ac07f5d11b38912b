"""NumPy's files: .npy and .npz."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .content import Content, Lazy, is_stray
from .replacing import replacing


def read_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file, mapped into memory.

    Raises:
        ValueError: it is none.
        OSError: it cannot be read.
    """
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ValueError(f"{path} is no readable .npy file: {error}") from None


def write_npy(path: Path, array: NDArray[Any]) -> None:
    """Write a .npy file.

    Raises:
        TypeError: it has no such dtype.
        OSError: it cannot be written.
    """
    _check_dtype(path, array.dtype)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


def open_npz(path: Path) -> Lazy[NDArray[Any]]:
    """The arrays of a .npz file, each read when it is asked for.

    Raises:
        ValueError: it is none.
        OSError: it cannot be read.
    """
    import zipfile

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


def _check_dtype(path: Path, dtype: np.dtype[Any]) -> None:
    if hasattr(ml_dtypes, dtype.name):
        raise TypeError(f"{path}: {path.suffix} files have no dtype {dtype.name}; .safetensors is allowed")
