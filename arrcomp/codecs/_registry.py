"""The list of all codecs, by name and by the id they have in streams."""

from collections.abc import Mapping
from typing import Any

from ..errors import UnknownCodecError
from ._base import Codec
from ._base_delta import BaseDelta
from ._codebook import Codebook
from ._error_bounded import ErrorBounded
from ._float_format import FloatFormat
from ._lossless import Lossless
from ._qsgd import QSGD
from ._s2fp8 import S2FP8
from ._smaq import SmaQ

_CODECS: tuple[type[Codec], ...] = (Lossless, ErrorBounded, QSGD, SmaQ, FloatFormat, S2FP8, BaseDelta, Codebook)


def available_codecs() -> dict[str, type[Codec]]:
    """All codecs by name.

    >>> list(available_codecs())
    ['lossless', 'error-bounded', 'qsgd', 'smaq', 'float-format', 's2fp8', 'base-delta', 'codebook']
    """
    return {codec.name: codec for codec in _CODECS}


def codec_from_config(config: Mapping[str, Any]) -> Codec:
    """The codec that `config()` describes.

    Args:
        config: a mapping with the codec's name under "codec" and its parameters; what is left out has its default.

    Raises:
        TypeError, ValueError: it is not such a mapping, or a parameter is unknown or not allowed.
        UnknownCodecError: there is no codec of this name.

    >>> codec_from_config({"codec": "error-bounded", "rel": 0.001})
    ErrorBounded(rel=0.001)
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config is a {type(config).__name__}; a mapping is allowed")
    name = config.get("codec")
    if not isinstance(name, str):
        raise ValueError(f"config['codec'] is {name!r}; a codec's name is allowed: {', '.join(available_codecs())}")
    codec = available_codecs().get(name)
    if codec is None:
        raise UnknownCodecError(f"codec {name!r} is unknown; this package has {', '.join(available_codecs())}")
    return codec.from_config(config)


def codec_from_id(number: int) -> type[Codec]:
    """The codec that has this id in streams.

    Raises:
        UnknownCodecError: there is none.
    """
    for codec in _CODECS:
        if codec.id == number:
            return codec
    raise UnknownCodecError(f"codec id {number} is unknown: a newer arrcomp may read this stream")
