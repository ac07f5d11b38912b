"""Compression inside JAX programs: `compress`, `decompress` and `roundtrip` for `jax.jit` and its relatives.

Importing this registers the core's calls with XLA, and `Compressed` as a pytree.
"""

from . import tree as _tree  # noqa: F401  registers Compressed
from .files import load, save
from .functions import accumulate, compress, compress_sum, decompress, roundtrip

__all__ = ["accumulate", "compress", "compress_sum", "decompress", "load", "roundtrip", "save"]
