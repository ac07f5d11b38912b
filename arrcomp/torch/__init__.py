"""Compression of PyTorch's tensors: in eager mode, under `torch.compile` and `torch.export`, with gradients.

The operators are `torch.ops.arrcomp.*`. Importing this module also lets `torch.load(weights_only=True)` read compressed
arrays, and what `save` wrote.
"""

from .files import load, save
from .functions import accumulate, compress, compress_sum, decompress, roundtrip

__all__ = ["accumulate", "compress", "compress_sum", "decompress", "load", "roundtrip", "save"]
