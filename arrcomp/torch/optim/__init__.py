"""Compressed state for the optimizers of `torch.optim` and others.

optimizer = CompressedOptimizer.eight_bit(torch.optim.AdamW(model.parameters(), lr=1e-3))
"""

from ._optimizer import CompressedOptimizer, StateMemory
from ._state_codecs import eight_bit

__all__ = ["CompressedOptimizer", "StateMemory", "eight_bit"]
