"""The communication hook for DistributedDataParallel, and its state."""

from .hook import quantized_allreduce_hook
from .state import QuantizedState
from .statistics import LayerStatistics

__all__ = ["LayerStatistics", "QuantizedState", "quantized_allreduce_hook"]
