"""The codecs: what is kept, and with which parameters."""

from .base import Codec
from .base_delta import BaseDelta
from .codebook import Codebook
from .error_bounded import ErrorBounded
from .float_format import FloatFormat
from .lossless import Lossless
from .qsgd import QSGD
from .registry import codec_from_config, codec_from_id, codecs
from .s2fp8 import S2FP8
from .smaq import SmaQ

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
    "codec_from_config",
    "codec_from_id",
    "codecs",
]
