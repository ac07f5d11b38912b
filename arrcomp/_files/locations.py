"""Where files are: at a path of this machine, or elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from pathlib import Path
from typing import Protocol, TypeAlias

from .._dtypes import Bytes


class Source(Protocol):
    """A file that is open for reading, in ranges.

    Attributes:
        nbytes: its length when it was opened.
    """

    nbytes: int

    def read_into(self, data: Bytes, offset: int) -> None:
        """Fill `data` with the bytes from `offset` on. Raises what `open` was told to, if there are fewer."""


class OtherFile(ABC):
    """A file that is at no path of this machine. `str` names it in errors.

    Attributes:
        suffix: what a path with such a file would end in.
        url: of a file that has one, else None.
        identity: equal for all objects of this file.
    """

    suffix: str
    url: str | None
    identity: Hashable

    @abstractmethod
    def check_exists(self) -> None:
        """Raise OSError unless there is such a file."""

    @abstractmethod
    def check_writable(self) -> None:
        """Raise ValueError if it can only be read."""

    @abstractmethod
    def open(self, failure: type[Exception]) -> Source:
        """Open it for reading. `failure` is raised if it becomes shorter."""

    @abstractmethod
    def put(self, written: Path) -> None:
        """Make it a copy of the file at the path `written`."""

    @abstractmethod
    def beside(self, file: str) -> "OtherFile | None":
        """The file at a path, with "/", from this one's folder; None where it has none."""

    @abstractmethod
    def path_to(self, base: "OtherFile") -> str | None:
        """The path of a file, with "/", from this one's folder; None where there is none."""


Location: TypeAlias = Path | OtherFile


def path_or_url(location: Location) -> Path | str | None:
    """A location as users see it; None of a file object."""
    return location.url if isinstance(location, OtherFile) else location


def identity(location: Location) -> Hashable:
    """What is the same for all names of a file; None where there is none at this path."""
    if isinstance(location, OtherFile):
        return location.identity
    try:
        found = location.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
