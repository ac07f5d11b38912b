"""All-reduce in two levels: every bit within a node, compressed data between nodes."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from ..._arguments import check_choice, checked_integer
from ..._methods.seeds import derived
from ..._methods.shards import Shards
from ...codecs import Codec
from ._arguments import (
    Processes,
    checked_codecs,
    checked_operation,
    checked_tensor,
    seed_of,
    thread_number,
)
from ._collectives import ALGORITHMS
from ._launcher import local_world_size
from ._pending import Pending, run
from ._rank_checks import check_ranks_match
from ._wire import Steps, all_gather_single, then_copy_back, reduce_scatter_single

_SUM = dist.ReduceOp.SUM
_WITHIN = {"SUM": _SUM, "AVG": _SUM, "MAX": dist.ReduceOp.MAX, "MIN": dist.ReduceOp.MIN}


@dataclass(frozen=True)
class Hierarchy:
    """A group's processes on nodes with equally many of them. Make it once, by `Hierarchy.of`.

    Attributes:
        whole: all processes.
        local: those of this node.
        cross: of each node the one with this one's place in its node.
    """

    whole: Processes
    local: Processes
    cross: Processes

    @classmethod
    def of(
        cls, group: Any = None, local_size: int | None = None, timeout: datetime.timedelta | None = None
    ) -> "Hierarchy":
        """The nodes of a group. Every process of the group must call this, as it makes two more groups.

        Args:
            group: the processes, of which each `local_size`, in the order of their ranks, are a node; None for all.
            local_size: processes of a node; None for what the launcher says (LOCAL_WORLD_SIZE).
            timeout: of the new groups; None for their backend's.

        Raises:
            RuntimeError: torch.distributed is not initialized; or the processes of a group that is not all are members
                of different numbers of groups, with which PyTorch would give the new ones different names.
            TypeError: `local_size` is not an integer.
            ValueError: this process is not in the group, or the group does not consist of nodes of that size.
        """
        whole = Processes.of(group)
        size = checked_integer("local_size", local_world_size() if local_size is None else local_size, 1, 1 << 31)
        nodes, peers = nodes_and_peers(whole.world, size)
        return cls(whole, _own_part(nodes, whole, timeout), _own_part(peers, whole, timeout))


def nodes_and_peers(world: int, local_size: int) -> tuple[list[range], list[range]]:
    """The ranks of each node, and those that have each place in their nodes.

    Raises:
        ValueError: the processes are not a number of nodes.
    """
    if world % local_size:
        raise ValueError(f"local_size={local_size}: the group has {world} processes; a divisor of that is allowed")
    nodes = [range(first, first + local_size) for first in range(0, world, local_size)]
    return nodes, [range(place, world, local_size) for place in range(local_size)]


class HierarchicalReduction:
    """One all-reduce of several tensors, in place.

    Each process of a node gets the node's sum of its shard, by a plain reduce-scatter; the processes with the same
    shard reduce it between nodes, compressed; and a plain all-gather brings the shards to all processes of a node. All
    processes with the same shard decode the same bytes, so that all end with the same bits.

    Args:
        tensors: contiguous, of one dtype and device.
        codecs: of each tensor, between nodes.
        op: "SUM", "AVG", "MAX" or "MIN".
        hierarchy: of the processes.
        seed: of codecs that draw random numbers.
        threads: for the codecs, on the CPU.
        algorithm: between nodes, as of `all_reduce`.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        codecs: Sequence[Codec],
        op: str,
        hierarchy: Hierarchy,
        seed: int,
        threads: int,
        algorithm: str = "scatter",
    ) -> None:
        self.flat = [x.view(-1) for x in tensors]
        self.codecs, self.op, self.hierarchy, self.algorithm = codecs, op, hierarchy, algorithm
        self.seed, self.threads = derived(seed, hierarchy.local.rank), threads
        total, world = sum(x.numel() for x in self.flat), hierarchy.local.world
        bucket = max(codec.granularity for codec in codecs)
        self.shards = Shards.of(total, world, bucket if bucket * world <= total else 1)

    def steps(self) -> Steps[None]:
        """The operation; the tensors then have the result."""
        local = self.hierarchy.local
        values = self._padded()
        own = values.new_empty(self.shards.size)
        yield reduce_scatter_single(own, values, op=_WITHIN[self.op], group=local.group, async_op=True)
        yield from self._between_nodes(own)
        yield all_gather_single(values, own, group=local.group, async_op=True)
        parts = values[: self.shards.elements].split_with_sizes([x.numel() for x in self.flat])
        for x, part in zip(self.flat, parts, strict=True):
            x.copy_(part)

    def _padded(self) -> Tensor:
        """All values, and zeros, so that shards have one size."""
        missing = self.shards.size * self.shards.world - self.shards.elements
        values = torch.cat([*self.flat, self.flat[0].new_zeros(missing)])
        # Before they are added, so that 16-bit floats do not overflow; what is left of the average, Reduction divides.
        return values.div_(self.hierarchy.local.world) if self.op == "AVG" else values

    def _between_nodes(self, own: Tensor) -> Steps[None]:
        first, end = self.shards.bounds(self.hierarchy.local.rank)
        pieces, codecs, before = [], [], 0
        for x, codec in zip(self.flat, self.codecs, strict=True):
            start, stop = max(before, first), min(before + x.numel(), end)
            if start < stop:
                pieces.append(own[start - first : stop - first])
                codecs.append(codec)
            before += x.numel()
        if pieces:
            reduction = ALGORITHMS[self.algorithm]
            yield from reduction(pieces, codecs, self.op, self.hierarchy.cross, self.seed, self.threads).steps()


def hierarchical_all_reduce(
    tensor: Tensor,
    hierarchy: Hierarchy,
    codec: Codec | None = None,
    op: Any = _SUM,
    async_op: bool = False,
    *,
    seed: int | None = None,
    threads: int | None = None,
    check_finite: bool = False,
    algorithm: Literal["scatter", "ring"] = "scatter",
) -> Pending | None:
    """Reduce a tensor over all processes of a hierarchy, in place, with compressed data between nodes alone.

    Within a node, whose processes are near each other, nothing is compressed: a reduce-scatter, and at the end an
    all-gather. In between each process reduces its shard with the other nodes, as `all_reduce` does: every value is
    coded twice, whatever the number of nodes, and every node sends its values once, over all of its processes. All
    processes end with bit-identical results. With one node nothing is coded.

    Args:
        tensor: as of `all_reduce`.
        hierarchy: of the processes, made once by `Hierarchy.of`.
        codec: for what crosses nodes; None for `Lossless()`.
        op: as of `all_reduce`. Within a node 16-bit floats are added as the group's backend adds them.
        async_op: as of `all_reduce`.
        seed: as of `all_reduce`.
        threads: as of `all_reduce`.
        check_finite: as of `all_reduce`.
        algorithm: between nodes, as of `all_reduce`.

    Raises:
        TypeError, ValueError, RuntimeError: as `all_reduce`.
    """
    if not isinstance(hierarchy, Hierarchy):
        raise TypeError(f"hierarchy is a {type(hierarchy).__name__}; what Hierarchy.of makes is allowed")
    check_choice("algorithm", algorithm, list(ALGORITHMS))
    x = checked_tensor("tensor", tensor)
    (checked,) = checked_codecs([codec], [x])
    name = checked_operation(op, [x], [checked])
    number, threads = seed_of([checked], seed), thread_number(threads)
    title = f"hierarchical_all_reduce {name} {algorithm} on nodes of {hierarchy.local.world}"
    check_ranks_match(title, [x], [checked], hierarchy.whole, check_finite=check_finite)
    dense = x.contiguous()
    reduction = HierarchicalReduction([dense], [checked], name, hierarchy, number, threads, algorithm)
    return run(then_copy_back(reduction.steps(), [dense], [x]), [x, dense], tensor, async_op)


def _own_part(parts: Sequence[range], whole: Processes, timeout: datetime.timedelta | None) -> Processes:
    """A new group of that part of a group's processes to which this one belongs.

    Args:
        parts: of the group's processes, by their places.
        whole: the group.
        timeout: of the new group.
    """
    ranks = sorted(dist.get_process_group_ranks(whole.group))
    settings: Any = {"timeout": timeout, "backend": dist.get_backend(whole.group)}
    if whole.group is dist.group.WORLD:
        made = {part: dist.new_group([ranks[place] for place in part], **settings) for part in parts}
    else:
        _check_numbers_of_groups(whole)
        mine = [part for part in parts if ranks.index(dist.get_rank()) in part]
        settings |= {"use_local_synchronization": True}
        made = {part: dist.new_group([ranks[place] for place in part], **settings) for part in mine}
    return Processes.of(made[next(part for part in parts if ranks.index(dist.get_rank()) in part)])


def _check_numbers_of_groups(whole: Processes) -> None:
    counts: list[Any] = [None] * whole.world
    dist.all_gather_object(counts, len(dist.distributed_c10d._world.pg_names), whole.group)
    if len(set(counts)) > 1:
        raise RuntimeError(
            f"group: its processes are in {counts} groups, and PyTorch would give new ones different names; call "
            "Hierarchy.of before making groups with some of its processes"
        )
