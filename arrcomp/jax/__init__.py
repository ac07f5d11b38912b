"""Compression inside JAX programs: `compress`, `decompress` and `roundtrip` under `jax.jit` and other transformations.

Importing this module registers the core's custom calls with XLA, and `Compressed` as a pytree.
"""

from . import _tree as _tree
from . import nn
from ._collectives import (
    Residual,
    all_gather_quantized,
    all_to_all_quantized,
    pmean_quantized,
    psum_quantized,
    psum_scatter_quantized,
    psum_wire_nbytes,
    zero_residual,
)
from ._files import load, save
from ._functions import accumulate, compress, compress_sum, decompress, roundtrip
from ._saved_activations import compress_residuals
from ._weights import WeightMemory, compress_weights, decompress_weights, weight_memory
from .optim import compressed_optimizer

__all__ = [
    "Residual",
    "WeightMemory",
    "accumulate",
    "all_gather_quantized",
    "all_to_all_quantized",
    "compress",
    "compress_residuals",
    "compress_sum",
    "compress_weights",
    "compressed_optimizer",
    "decompress",
    "decompress_weights",
    "load",
    "nn",
    "pmean_quantized",
    "psum_quantized",
    "psum_scatter_quantized",
    "psum_wire_nbytes",
    "roundtrip",
    "save",
    "weight_memory",
    "zero_residual",
]
