"""The codecs and their parameters. A codec is found by its name, and by its id in streams, once it is imported here."""

from collections.abc import Mapping
from typing import Any

from .._arguments import check_mapping, shown
from ..errors import UnknownCodecError
from . import _list
from ._base import Codec
from ._list import *  # noqa: F403 - so that a codec is listed once
from ._list import __all__

__all__ = [*__all__, "Codec", "available_codecs", "codec_from_config", "codec_from_id"]

_LISTED: list[type[Codec]] = [getattr(_list, name) for name in _list.__all__]
_BY_ID = {kind.id: kind for kind in sorted(_LISTED, key=lambda kind: kind.id)}


def available_codecs() -> dict[str, type[Codec]]:
    """All codecs by name, in the order of their ids in streams.

    >>> list(available_codecs())[:4]
    ['lossless', 'error-bounded', 'qsgd', 'smaq']
    """
    return {kind.name: kind for kind in _BY_ID.values()}


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
    check_mapping("config", config)
    name, kinds = config.get("codec"), available_codecs()
    if not isinstance(name, str) or name not in kinds:
        error = UnknownCodecError if isinstance(name, str) else ValueError
        raise error(f"config['codec']: expected {', '.join(kinds)}, got {shown(name)}")
    return kinds[name].from_config(config)


def codec_from_id(number: int) -> type[Codec]:
    """The codec with this id in streams. UnknownCodecError if there is none."""
    if number not in _BY_ID:
        raise UnknownCodecError(f"codec id: expected 1 to {len(_BY_ID)}, got {number}; a newer arrcomp may read it")
    return _BY_ID[number]
