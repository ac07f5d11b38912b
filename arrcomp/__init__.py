"""Array compression for machine learning and science.

>>> import numpy, arrcomp
>>> x = numpy.zeros((100, 100), dtype=numpy.float32)
>>> c = arrcomp.compress(x, arrcomp.ErrorBounded(abs=1e-4))
>>> c.shape, str(c.dtype), c.ratio > 100
((100, 100), 'float32', True)
>>> bool((arrcomp.decompress(c) == x).all())
True
"""

import typing as _typing

from ._interrupts import ending_the_program as _ending_the_program

try:
    from ._core import instruction_set as _  # noqa: F401 - what follows needs the extension module
except ModuleNotFoundError as _error:
    if _error.name != "arrcomp._core":
        raise
    raise ImportError(
        f"{__path__[0]} has no compiled extension for this Python; if it is in arrcomp's source tree, run Python from "
        "another folder, or as `python -P`, to import the installed arrcomp"
    ) from None

with _ending_the_program():
    from . import cpu, errors
    from ._api.compress import compress, max_compressed_nbytes
    from ._api.compressed import Compressed, decompress, from_bytes
    from ._api.many import compress_many, decompress_many
    from ._api.references import content_hash
    from ._api.sums import accumulate, compress_sum
    from ._methods.planner import plan_bits
    from .codecs import Codec, available_codecs, codec_from_config
    from .codecs._list import *  # noqa: F403 - so that a codec is listed once
    from .codecs._list import __all__ as _codecs
    from .codecs._rules import Rule, model_rules, rule_from_config
    from .errors import *  # noqa: F403

if _typing.TYPE_CHECKING:
    from ._files import CheckpointChain, CompressedFile, append_file, load_file, open_file, save_file

__version__ = "0.1.0"

__all__ = [
    *_codecs,
    *errors.__all__,
    "CheckpointChain",
    "Codec",
    "Compressed",
    "CompressedFile",
    "Rule",
    "accumulate",
    "append_file",
    "available_codecs",
    "codec_from_config",
    "compress",
    "compress_many",
    "compress_sum",
    "content_hash",
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

# Files would take a quarter of this import's time.
_IN_FILES = ("CheckpointChain", "CompressedFile", "append_file", "load_file", "open_file", "save_file")


def __getattr__(name: str) -> _typing.Any:
    """Import what works with files when it is first used."""
    if name not in _IN_FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _files

    globals().update({each: getattr(_files, each) for each in _IN_FILES})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_IN_FILES})
