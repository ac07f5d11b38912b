"""Files of arrays as the command line reads and writes them: those of `arrcomp._files`, and PyTorch's."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .. import _files
from .._files import ARRAY_SUFFIXES, COMPRESSED_SUFFIXES, Content
from .._files.content import check_exists, check_suffix

TORCH_SUFFIXES = (".pt", ".pth")
READABLE_SUFFIXES = (*ARRAY_SUFFIXES, *TORCH_SUFFIXES)
ANY_SUFFIXES = (*READABLE_SUFFIXES, ".arrcomp")
COMPRESSED_END = ".arrcomp.safetensors"  # of the names of compressed files with several arrays

_STRUCTURE = "torch_structure"  # the metadata that holds the structure of a PyTorch file
Arrays = Content[NDArray[Any]]


def read_arrays(path: Path, max_nbytes: int | None = None) -> Arrays:
    """Open a file of uncompressed arrays. Those of PyTorch are read into memory.

    Raises the errors of `arrcomp._files.read_arrays`, and ImportError for a PyTorch file where PyTorch is missing.
    """
    check_exists(path)
    if check_suffix(path, READABLE_SUFFIXES) not in TORCH_SUFFIXES:
        return _files.read_arrays(path, max_nbytes)
    arrays, structure = _torch(path).read(path, max_nbytes)
    return Content(arrays, {_STRUCTURE: structure})


def read_any(path: Path, max_nbytes: int | None = None, threads: int | None = None) -> Arrays:
    """Open a file of arrays, compressed or not."""
    check_exists(path)
    if check_suffix(path, ANY_SUFFIXES) in TORCH_SUFFIXES:
        return read_arrays(path, max_nbytes)
    return _files.read_any(path, max_nbytes, threads)


def write_arrays(path: Path, content: Arrays) -> None:
    """Write a file of arrays, those of PyTorch with the structure that they had."""
    if check_suffix(path, READABLE_SUFFIXES) in TORCH_SUFFIXES:
        _torch(path).write(path, content.arrays, content.metadata.get(_STRUCTURE))
    else:
        _files.write_arrays(path, content)


def is_compressed(path: Path) -> bool:
    """Whether a file of a known suffix has compressed arrays."""
    return path.suffix in COMPRESSED_SUFFIXES and _files.is_compressed(path)


def compressed_path(path: Path) -> Path:
    """The file that `arrcomp compress` writes for this one where no other is named, as gzip does.

    One array's suffix is .arrcomp; a file of several arrays remains a .safetensors file.
    """
    if path.suffix == ".npy":
        return path.with_name(f"{path.name}.arrcomp")
    return delta_path(path)


def delta_path(path: Path) -> Path:
    """The file that `arrcomp delta` writes for this one where no other is named: one that has its base's path."""
    name = path.stem if path.suffix == ".safetensors" else path.name
    return path.with_name(f"{name}{COMPRESSED_END}")


def restored_path(path: Path) -> Path:
    """The file that `arrcomp decompress` writes for this one where no other is named: the reverse."""
    end, other = (COMPRESSED_END, ".safetensors") if path.suffix == ".safetensors" else (".arrcomp", ".npy")
    name = path.name.removesuffix(end)
    if not name or name == path.name:
        expected = f"a name that ends in .arrcomp or {COMPRESSED_END} where no output is named"
        raise ValueError(f"{path}: expected {expected}, got {path.name!r}; --output names one")
    return path.with_name(name if Path(name).suffix in READABLE_SUFFIXES else f"{name}{other}")


def _torch(path: Path) -> Any:
    try:
        from ..torch import _state_files
    except ImportError as missing:
        raise ImportError(f"{path}: PyTorch's files need PyTorch ({missing}): pip install torch") from None
    return _state_files
