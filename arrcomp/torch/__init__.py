"""Compression of PyTorch tensors, in eager mode and under `torch.compile` and `torch.export`.

`nn`, `functional`, `compressed_activations`, `CompressedOptimizer` and `saved_memory` reduce the memory of training.

The operators are `torch.ops.arrcomp.*`. After this module is imported, `torch.load(weights_only=True)` reads compressed
arrays and the files of `save`.
"""

from . import functional, nn
from ._files import load, save
from ._functions import accumulate, compress, compress_sum, decompress, roundtrip
from ._saved_activations import ActivationStatistics, compressed_activations
from ._saved_memory import SavedMemory, saved_memory
from ._weights import CompressedWeight, WeightMemory, compress_weights, decompress_weights, weight_memory
from .optim import CompressedOptimizer

__all__ = [
    "ActivationStatistics",
    "CompressedOptimizer",
    "CompressedWeight",
    "SavedMemory",
    "WeightMemory",
    "accumulate",
    "compress",
    "compress_sum",
    "compress_weights",
    "compressed_activations",
    "decompress",
    "decompress_weights",
    "functional",
    "load",
    "nn",
    "roundtrip",
    "save",
    "saved_memory",
    "weight_memory",
]
