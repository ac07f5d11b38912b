"""The codecs: what is kept, and with which parameters."""

from .base import Codec
from .error_bounded import ErrorBounded
from .lossless import Lossless
from .qsgd import QSGD
from .registry import codec_from_config, codec_from_id, codecs
from .smaq import SmaQ

__all__ = ["QSGD", "Codec", "ErrorBounded", "Lossless", "SmaQ", "codec_from_config", "codec_from_id", "codecs"]
