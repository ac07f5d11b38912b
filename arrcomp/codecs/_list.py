"""The list of all codecs: a codec takes its lines here, and all else in the package finds it from there."""

from ._base_delta import BaseDelta
from ._codebook import Codebook
from ._error_bounded import ErrorBounded
from ._float_format import FloatFormat
from ._lossless import Lossless
from ._qsgd import QSGD
from ._s2fp8 import S2FP8
from ._smaq import SmaQ

__all__ = ["QSGD", "S2FP8", "BaseDelta", "Codebook", "ErrorBounded", "FloatFormat", "Lossless", "SmaQ"]
