"""Array compression for machine learning and science.

>>> import numpy, arrcomp
>>> x = numpy.zeros((100, 100), dtype=numpy.float32)
>>> c = arrcomp.compress(x, arrcomp.ErrorBounded(abs=1e-4))
>>> c.shape, str(c.dtype), c.ratio > 100
((100, 100), 'float32', True)
>>> bool((arrcomp.decompress(c) == x).all())
True
"""

from . import cpu, errors
from ._api.compress import compress, decompress, max_compressed_nbytes
from ._api.compressed import Compressed, from_bytes
from ._api.many import compress_many, decompress_many
from ._api.sums import accumulate, compress_sum
from ._files import CompressedFile, load_file, open_file, save_file
from ._methods.planner import plan_bits
from .codecs import Codec, available_codecs, codec_from_config
from .codecs._list import *  # noqa: F403 - so that a codec is listed once
from .codecs._list import __all__ as _codecs
from .codecs._rules import Rule, model_rules, rule_from_config
from .errors import *  # noqa: F403

__version__ = "0.1.0"

__all__ = [
    *_codecs,
    *errors.__all__,
    "Codec",
    "Compressed",
    "CompressedFile",
    "Rule",
    "accumulate",
    "available_codecs",
    "codec_from_config",
    "compress",
    "compress_many",
    "compress_sum",
    "cpu",
    "decompress",
    "decompress_many",
    "from_bytes",
    "load_file",
    "max_compressed_nbytes",
    "model_rules",
    "open_file",
    "plan_bits",
    "rule_from_config",
    "save_file",
]
