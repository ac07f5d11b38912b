"""Compression of PyTorch's tensors: in eager mode, under `torch.compile` and `torch.export`, with gradients.

The operators are `torch.ops.arrcomp.*`. Importing this module also lets `torch.load(weights_only=True)` read compressed
arrays.
"""

from .functions import compress, decompress, roundtrip

__all__ = ["compress", "decompress", "roundtrip"]
