"""The communication hook for DistributedDataParallel, and what it keeps from step to step."""

from .hook import quantized_allreduce_hook
from .state import QuantizedState
from .statistics import LayerStatistics

__all__ = ["LayerStatistics", "QuantizedState", "quantized_allreduce_hook"]
