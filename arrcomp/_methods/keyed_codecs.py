"""Codecs by key: which codec for which array of an optimizer's state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from .._arguments import shown, wrong_type, wrong_value
from ..codecs import Codec


@dataclass(frozen=True)
class KeyedCodecs:
    """Codecs for keys: patterns of `fnmatch`, each with a codec, or with None for arrays that are not compressed."""

    choices: tuple[tuple[str, Codec | None], ...]

    @classmethod
    def of(cls, codec: Any) -> "KeyedCodecs":
        """The argument `codec` of functions: one codec for all keys, or a mapping from patterns to codecs."""
        if isinstance(codec, Codec):
            return cls((("*", codec),))
        if not isinstance(codec, Mapping):
            raise wrong_type("codec", "a codec, or a mapping from patterns to codecs", codec)
        if not codec:
            raise wrong_value("codec", "at least one key", codec)
        for key, value in codec.items():
            if not isinstance(key, str):
                raise wrong_type("codec", "strings as keys", key)
            check_codec_or_none(f"codec[{shown(key)}]", value)
        return cls(tuple(codec.items()))

    def find(self, keys: Iterable[str]) -> Codec | None:
        """The codec of the first key that matches a pattern, by the first such pattern; None if no key does."""
        for key in keys:
            for pattern, codec in self.choices:
                if fnmatchcase(key, pattern):
                    return codec
        return None


def check_codec_or_none(name: str, value: Any) -> None:
    """Raise TypeError unless `value` is a codec or None."""
    if value is not None and not isinstance(value, Codec):
        raise wrong_type(name, "a codec or None", value)
