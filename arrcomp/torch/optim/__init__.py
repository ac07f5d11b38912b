"""Optimizers of `torch.optim`, or anyone's, whose state is compressed between steps.

optimizer = CompressedOptimizer.eight_bit(torch.optim.AdamW(model.parameters(), lr=1e-3))
"""

from ._state_codecs import eight_bit
from ._optimizer import CompressedOptimizer, StateMemory

__all__ = ["CompressedOptimizer", "StateMemory", "eight_bit"]
