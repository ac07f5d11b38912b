"""Less memory for models of transformers: compressed weights, in memory and in files, and compressed caches.

Importing this module imports transformers, and lets `from_pretrained` read models that were saved with compressed
weights.
"""

from ._cache import CompressedCache
from ._quantizer import ArrcompConfig

__all__ = ["ArrcompConfig", "CompressedCache"]
