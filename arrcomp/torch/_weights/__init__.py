"""Models whose weights stay compressed in memory."""

from .functions import WeightMemory, compress_weights, decompress_weights, weight_memory
from .weight import CompressedWeight

__all__ = ["CompressedWeight", "WeightMemory", "compress_weights", "decompress_weights", "weight_memory"]
