"""The codecs and their parameters; finds them by name and by their ids in streams."""

from collections.abc import Mapping
from typing import Any

from .._arguments import wrong_type
from ..errors import UnknownCodecError
from . import _list
from ._base import Codec
from ._list import *  # noqa: F403 - so that a codec is listed once
from ._list import __all__

# By their ids in streams.
_CODECS: tuple[type[Codec], ...] = tuple(sorted((getattr(_list, name) for name in _list.__all__), key=lambda c: c.id))

__all__ = [*__all__, "Codec", "available_codecs", "codec_from_config", "codec_from_id"]


def available_codecs() -> dict[str, type[Codec]]:
    """All codecs by name, in the order of their ids in streams.

    >>> list(available_codecs())[:4]
    ['lossless', 'error-bounded', 'qsgd', 'smaq']
    """
    return {codec.name: codec for codec in _CODECS}


def codec_from_config(config: Mapping[str, Any]) -> Codec:
    """The codec of a configuration, which `Codec.config()` returned.

    Args:
        config: a mapping with the codec's name under "codec", and its parameters. Missing parameters get their
            defaults.

    Raises:
        TypeError, ValueError: it is not such a mapping, or a parameter is unknown, or of a wrong type or value.
        UnknownCodecError: there is no codec of this name.

    >>> codec_from_config({"codec": "error-bounded", "rel": 0.001})
    ErrorBounded(rel=0.001)
    """
    if not isinstance(config, Mapping):
        raise wrong_type("config", "a mapping", config)
    name = config.get("codec")
    codec = available_codecs().get(name) if isinstance(name, str) else None
    if codec is None:
        error = UnknownCodecError if isinstance(name, str) else ValueError
        raise error(f"config['codec']: expected {', '.join(available_codecs())}, got {name!r}")
    return codec.from_config(config)


def codec_from_id(number: int) -> type[Codec]:
    """The codec with this id in streams.

    Raises:
        UnknownCodecError: there is none.
    """
    for codec in _CODECS:
        if codec.id == number:
            return codec
    raise UnknownCodecError(f"codec id: expected 1 to {len(_CODECS)}, got {number}; a newer arrcomp may read it")
