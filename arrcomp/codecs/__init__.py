"""The codecs and their parameters."""

from ._base import Codec
from ._base_delta import BaseDelta
from ._codebook import Codebook
from ._error_bounded import ErrorBounded
from ._float_format import FloatFormat
from ._lossless import Lossless
from ._qsgd import QSGD
from ._registry import available_codecs, codec_from_config, codec_from_id
from ._s2fp8 import S2FP8
from ._smaq import SmaQ

__all__ = [
    "QSGD",
    "S2FP8",
    "BaseDelta",
    "Codebook",
    "Codec",
    "ErrorBounded",
    "FloatFormat",
    "Lossless",
    "SmaQ",
    "available_codecs",
    "codec_from_config",
    "codec_from_id",
]
