"""Collective operations of torch.distributed with compressed data on the wire."""

from .collectives import all_gather, all_reduce, all_reduce_coalesced, broadcast, reduce_scatter
from .pending import Pending

__all__ = ["Pending", "all_gather", "all_reduce", "all_reduce_coalesced", "broadcast", "reduce_scatter"]
