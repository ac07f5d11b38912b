"""Codecs by key: which codec for which part of an optimizer's state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..codecs import Codec


@dataclass(frozen=True)
class KeyedCodecs:
    """Codecs for keys.

    Attributes:
        choices: patterns, as `fnmatch` has them, each with a codec, or None for what is left as it is.
    """

    choices: tuple[tuple[str, Codec | None], ...]

    @classmethod
    def of(cls, codec: Any) -> "KeyedCodecs":
        """What functions take as `codec`: one for everything, or a mapping from patterns to codecs.

        Raises:
            TypeError: it is neither.
            ValueError: it is an empty mapping.
        """
        if isinstance(codec, Codec):
            return cls((("*", codec),))
        if not isinstance(codec, Mapping):
            raise TypeError(f"codec={codec!r} is a {type(codec).__name__}; a codec, or a mapping of codecs, is allowed")
        if not codec:
            raise ValueError("codec is an empty mapping; a key at least is allowed")
        for key, value in codec.items():
            if not isinstance(key, str):
                raise TypeError(f"codec has the key {key!r}, a {type(key).__name__}; texts are allowed")
            check_codec_or_none(f"codec[{key!r}]", value)
        return cls(tuple(codec.items()))

    def find(self, keys: Iterable[str]) -> Codec | None:
        """The codec of the first key that a pattern fits, by the first pattern that does; None where none fits."""
        for key in keys:
            for pattern, codec in self.choices:
                if fnmatchcase(key, pattern):
                    return codec
        return None


def check_codec_or_none(name: str, value: Any) -> None:
    """Raise TypeError unless `value` is a codec or None."""
    if value is not None and not isinstance(value, Codec):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; a codec or None is allowed")
