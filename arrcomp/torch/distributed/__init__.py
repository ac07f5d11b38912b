"""Collective operations of torch.distributed with compressed communication.

Importing this module registers the backend "arrcomp": `torch.distributed.init_process_group("arrcomp")`.
"""

from ._all_to_all import all_to_all, all_to_all_autograd
from ._backend.environment import options_from_environment
from ._backend.group import CompressingGroup
from ._backend.options import BackendOptions
from ._backend.settings import configure, register_layer, set_quantization_bits, set_quantization_bucket_size
from ._collectives import all_gather, all_reduce, all_reduce_coalesced, broadcast, reduce_scatter
from ._ddp.hook import quantized_allreduce_hook
from ._ddp.state import QuantizedState
from ._ddp.statistics import LayerStatistics
from ._hierarchy import Hierarchy, hierarchical_all_reduce
from ._local_updates import LocalUpdates
from ._pending import Pending

__all__ = [
    "BackendOptions",
    "CompressingGroup",
    "Hierarchy",
    "LayerStatistics",
    "LocalUpdates",
    "Pending",
    "QuantizedState",
    "all_gather",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_autograd",
    "broadcast",
    "configure",
    "hierarchical_all_reduce",
    "options_from_environment",
    "quantized_allreduce_hook",
    "reduce_scatter",
    "register_layer",
    "set_quantization_bits",
    "set_quantization_bucket_size",
]
