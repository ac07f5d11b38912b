"""The codecs and their parameters."""

from ._base import Codec
from ._list import *  # noqa: F403 - so that a codec is listed once
from ._list import __all__
from ._registry import available_codecs, codec_from_config, codec_from_id

__all__ = [*__all__, "Codec", "available_codecs", "codec_from_config", "codec_from_id"]
