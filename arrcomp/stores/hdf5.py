"""Options with which h5py writes datasets through the HDF5 filter of arrcomp, which CMake builds (docs/use/c.md)."""

import json
import struct
from typing import Any

from .._arguments import wrong_value
from ..codecs import Codec
from ._chunks import ChunkCodec

__all__ = ["FILTER_ID", "filter_options"]

FILTER_ID = 428
"""The filter's number in files: one for tests and for use inside one organization, until a number is registered."""

_LAYOUT_VERSION = 1
_MOST_VALUES = 256  # that HDF5 keeps for a filter
_ADDED_VALUES = 2 + 32  # that the filter puts behind them: data type, rank and sizes


def filter_options(codec: Codec | None = None, *, seed: int | None = None) -> dict[str, Any]:
    """The arguments of h5py's `create_dataset`, `h5py.Group.require_dataset` and the like for a codec.

    Args:
        codec: the codec; None for `arrcomp.Lossless()`.
        seed: for codecs with stochastic rounding, 0 to 2^64 - 1. Every chunk has the same seed: elements of the same
            index get the same random number.

    Returns:
        `compression`, the number of the filter, and `compression_opts`, its numbers. HDF5 finds the filter in the
        folders of HDF5_PLUGIN_PATH, which must be set before h5py is imported.

    Raises:
        TypeError: `codec` is not a codec, or needs a seed, or `seed` is of a wrong type.
        ValueError: `seed` is out of its range, the codec needs a reference, or its configuration is too long for HDF5
            (a codebook of many levels that has no name).

    >>> import arrcomp
    >>> filter_options(arrcomp.ErrorBounded(abs=1e-3))["compression"]
    428
    """
    kept = ChunkCodec(codec, seed=seed)
    if kept.codec.needs_reference:
        raise wrong_value("codec", "one without a reference, which a chunk does not have", kept.codec)
    text = json.dumps(kept.codec.config(), sort_keys=True, separators=(",", ":")).encode()
    words = struct.unpack(f"<{-(-len(text) // 4)}I", text + bytes(-len(text) % 4))
    number = kept.seed or 0
    values = (_LAYOUT_VERSION, number & 0xFFFFFFFF, number >> 32, len(text), *words)
    most = 4 * (_MOST_VALUES - _ADDED_VALUES - 4)
    if len(text) > most:
        raise wrong_value("codec", f"one with a configuration of at most {most} bytes in HDF5", f"{len(text)} bytes")
    return {"compression": FILTER_ID, "compression_opts": values}
