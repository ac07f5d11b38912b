"""Lists of classes by name, to which users add their own."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from ...errors import UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """Classes of one kind, by the `name` that each has.

    >>> from arrcomp.torch.training import CODECS
    >>> "smaq" in CODECS.names()
    True
    """

    def __init__(self, kind: str) -> None:
        """`kind` is what messages call them: "model", "data set", "codec"."""
        self.kind = kind
        self._classes: dict[str, type[T]] = {}

    def add(self, cls: type[T]) -> type[T]:
        """Add a class; to be used as its decorator.

        Raises:
            TypeError: it has no `name`, or one that `chosen_codecs` cannot read.
            ValueError: there is one of this name.
        """
        name = getattr(cls, "name", None)
        if not isinstance(name, str) or not name or set(name) & set(" ,:=."):
            raise TypeError(f"{cls.__name__}.name: expected a text without spaces and ',:=.', got {name!r}")
        if name in self._classes:
            raise ValueError(f"{cls.__name__}.name: there is a {self.kind} {name!r} already")
        self._classes[name] = cls
        return cls

    def find(self, name: str) -> type[T]:
        """The class of a name; UnknownNameError if there is none."""
        if name not in self._classes:
            raise UnknownNameError(f"{self.kind} {name!r} is unknown; there are {', '.join(self._classes) or 'none'}")
        return self._classes[name]

    def names(self) -> list[str]:
        """All names, in the order in which they were added."""
        return list(self._classes)

    def __iter__(self) -> Iterator[type[T]]:
        return iter(self._classes.values())
