"""Array compression for machine learning and science.

>>> import numpy, arrcomp
>>> x = numpy.zeros((100, 100), dtype=numpy.float32)
>>> c = arrcomp.compress(x, arrcomp.ErrorBounded(abs=1e-4))
>>> c.shape, str(c.dtype), c.ratio > 100
((100, 100), 'float32', True)
>>> bool((arrcomp.decompress(c) == x).all())
True
"""

from . import machine
from .codecs import (
    QSGD,
    S2FP8,
    BaseDelta,
    Codebook,
    Codec,
    ErrorBounded,
    FloatFormat,
    Lossless,
    SmaQ,
    codec_from_config,
    codecs,
)
from .compress import compress, decompress, max_compressed_size
from .compressed import Compressed, from_bytes
from .errors import (
    ArrcompError,
    CorruptStreamError,
    DataNotFoundError,
    DeviceUnavailableError,
    FormatVersionError,
    SizeLimitError,
    UnknownCodecError,
    UnknownNameError,
)
from .files import CompressedFile, load_file, open_file, save_file
from .many import compress_many, decompress_many
from .rules import Rule, model_rules, rule_from_config
from .sums import accumulate, compress_sum

__version__ = "0.1.0"

__all__ = [
    "QSGD",
    "S2FP8",
    "ArrcompError",
    "BaseDelta",
    "Codebook",
    "Codec",
    "Compressed",
    "CompressedFile",
    "CorruptStreamError",
    "DataNotFoundError",
    "DeviceUnavailableError",
    "ErrorBounded",
    "FloatFormat",
    "FormatVersionError",
    "Lossless",
    "Rule",
    "SizeLimitError",
    "SmaQ",
    "UnknownCodecError",
    "UnknownNameError",
    "accumulate",
    "codec_from_config",
    "codecs",
    "compress",
    "compress_many",
    "compress_sum",
    "decompress",
    "decompress_many",
    "from_bytes",
    "load_file",
    "machine",
    "max_compressed_size",
    "model_rules",
    "open_file",
    "rule_from_config",
    "save_file",
]
