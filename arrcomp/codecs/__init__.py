"""The codecs: what is kept, and with which parameters."""

from .base import Codec
from .error_bounded import ErrorBounded
from .float_format import FloatFormat
from .lossless import Lossless
from .qsgd import QSGD
from .registry import codec_from_config, codec_from_id, codecs

__all__ = ["QSGD", "Codec", "ErrorBounded", "FloatFormat", "Lossless", "codec_from_config", "codec_from_id", "codecs"]
