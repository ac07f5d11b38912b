"""Compression of PyTorch's tensors: in eager mode, under `torch.compile` and `torch.export`, with gradients.

And training in less memory: `nn`, `functional`, `compressed_activations`, `CompressedOptimizer`, `saved_memory`.

The operators are `torch.ops.arrcomp.*`. Importing this module also lets `torch.load(weights_only=True)` read compressed
arrays, and what `save` wrote.
"""

from . import functional, nn
from ._files import load, save
from ._functions import accumulate, compress, compress_sum, decompress, roundtrip
from ._saved_activations import ActivationStatistics, compressed_activations
from ._saved_memory import SavedMemory, saved_memory
from .optim import CompressedOptimizer

__all__ = [
    "ActivationStatistics",
    "CompressedOptimizer",
    "SavedMemory",
    "accumulate",
    "compress",
    "compress_sum",
    "compressed_activations",
    "decompress",
    "functional",
    "load",
    "nn",
    "roundtrip",
    "save",
    "saved_memory",
]
