"""Compression inside JAX programs: `compress`, `decompress` and `roundtrip` for `jax.jit` and its relatives.

Importing this registers the core's calls with XLA, and `Compressed` as a pytree.
"""

from . import nn
from . import tree as _tree  # noqa: F401  registers Compressed
from .activations import compress_residuals
from .collectives import (
    all_gather_quantized,
    pmean_quantized,
    psum_quantized,
    psum_scatter_quantized,
    psum_wire_nbytes,
)
from .files import load, save
from .functions import accumulate, compress, compress_sum, decompress, roundtrip
from .optimizers import compressed_optimizer

__all__ = [
    "accumulate",
    "all_gather_quantized",
    "compress",
    "compress_residuals",
    "compress_sum",
    "compressed_optimizer",
    "decompress",
    "load",
    "nn",
    "pmean_quantized",
    "psum_quantized",
    "psum_scatter_quantized",
    "psum_wire_nbytes",
    "roundtrip",
    "save",
]
