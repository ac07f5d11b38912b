"""What files hold: arrays by name, each made when it is asked for."""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from ..errors import CorruptStreamError, FormatVersionError, SizeLimitError, UnknownCodecError

ARRAY_SUFFIXES = (".npy", ".npz", ".safetensors")
COMPRESSED_SUFFIXES = (".arrcomp", ".safetensors")
ONLY_NAME = "arr_0"  # of an array without one, as NumPy names it

# What would lead out of a folder on one system or another, were a name ever taken for a path.
_STRAY_PATH = re.compile(r"\0|^[/\\]|^[A-Za-z]:[/\\]|(^|[/\\])\.\.([/\\]|$)")

T = TypeVar("T")
Look = tuple[np.dtype[Any], tuple[int, ...]]


class Lazy(Mapping[str, T]):
    """Items that are made when they are asked for, and not kept."""

    def __init__(
        self, names: Iterable[str], load: Callable[[str], T], look: Callable[[str], Look] | None = None
    ) -> None:
        """Made of names and of what makes the item of a name; `look` tells dtype and shape of an array before that."""
        self._names = dict.fromkeys(names)
        self._load = load
        self._look = look

    def look(self, name: str) -> Look:
        """Dtype and shape of an array, without making it where that is known."""
        return _look_of(self[name]) if self._look is None else self._look(name)

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
    """What a file holds.

    Attributes:
        arrays: by name; each is read when it is asked for.
        metadata: of a .safetensors file, else empty.
    """

    arrays: Mapping[str, T]
    metadata: Mapping[str, str] = field(default_factory=dict)

    def look(self, name: str) -> Look:
        """Dtype and shape of an array, which is read for that only where they are not known before."""
        if isinstance(self.arrays, Lazy):
            return self.arrays.look(name)
        return _look_of(self.arrays[name])


def _look_of(array: Any) -> Look:
    return array.dtype, array.shape


def check_suffix(path: Path, allowed: tuple[str, ...]) -> str:
    """The suffix of a path.

    Raises:
        ValueError: it is none of those that are allowed.
    """
    if path.suffix not in allowed:
        raise ValueError(f"{path}: suffix {path.suffix!r}; allowed are {', '.join(allowed)}")
    return path.suffix


def is_stray(name: str) -> bool:
    """Whether a name, taken for a path, would lead out of its folder: it is absolute, has a "..", or a NUL."""
    return _STRAY_PATH.search(name) is not None


@contextlib.contextmanager
def naming(path: Path | None, name: str) -> Iterator[None]:
    """Say in errors of which array they are."""
    try:
        yield
    except (CorruptStreamError, FormatVersionError, SizeLimitError, UnknownCodecError, TypeError) as error:
        if path is not None and str(error).startswith(f"{path} "):
            raise  # it is of all of the file, which it names
        where = "" if path is None else f"{path}, "
        raise type(error)(f"{where}array {name!r}: {error}") from None
