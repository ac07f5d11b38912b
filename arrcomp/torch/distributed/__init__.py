"""Collective operations of torch.distributed with compressed communication.

Importing this module registers the backend "arrcomp": `torch.distributed.init_process_group("arrcomp")`.
"""

from ._backend import (
    BackendOptions,
    CompressingGroup,
    configure,
    options_from_environment,
    register_layer,
    set_quantization_bits,
    set_quantization_bucket_size,
)
from ._collectives import all_gather, all_reduce, all_reduce_coalesced, broadcast, reduce_scatter
from ._ddp import LayerStatistics, QuantizedState, quantized_allreduce_hook
from ._hierarchy import Hierarchy, hierarchical_all_reduce
from ._pending import Pending

__all__ = [
    "BackendOptions",
    "CompressingGroup",
    "Hierarchy",
    "LayerStatistics",
    "Pending",
    "QuantizedState",
    "all_gather",
    "all_reduce",
    "all_reduce_coalesced",
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
