"""All-reduce in two levels: uncompressed within a node, compressed between nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from ..._arguments import check_choice, checked_integer, wrong_type
from ..._methods.seeds import derived
from ..._methods.shards import Shards
from ...codecs import Codec
from ._arguments import Operation, Processes, checked_codecs, checked_operation, checked_tensor, local_world_size
from ._collectives import prepared
from ._pending import Pending, run
from ._reduction import ALGORITHMS
from ._wire import Steps, all_gather_single, reduce_scatter_single, then_copy_back

_SUM = dist.ReduceOp.SUM
_OPS_IN_NODE = {"SUM": _SUM, "AVG": _SUM, "MAX": dist.ReduceOp.MAX, "MIN": dist.ReduceOp.MIN}


@dataclass(frozen=True)
class Hierarchy:
    """A process group, divided into nodes of equal size. Create it once, with `Hierarchy.of`.

    Attributes:
        whole: all processes.
        local: those of this node.
        cross: the processes of all nodes with this one's local rank.
    """

    whole: Processes
    local: Processes
    cross: Processes

    @classmethod
    def of(cls, group: Any = None, local_size: int | None = None, timeout: timedelta | None = None) -> "Hierarchy":
        """Divide a group into nodes. All ranks of the group must call this, as it creates two groups.

        Args:
            group: the process group, whose consecutive `local_size` ranks are a node; None for the default group.
            local_size: processes of a node; None for the launcher's LOCAL_WORLD_SIZE.
            timeout: of the new groups; None for the backend's.

        Raises:
            RuntimeError: torch.distributed is not initialized; or `group` is not the default group and its ranks have
                created different numbers of groups, so that PyTorch would name the new groups differently.
            TypeError: `local_size` is not an integer.
            ValueError: this process is not in the group, or the group's size is not a multiple of `local_size`.
        """
        whole = Processes.of(group)
        size = checked_integer("local_size", local_world_size() if local_size is None else local_size, 1, 1 << 31)
        nodes, peers = nodes_and_peers(whole.world, size)
        return cls(whole, _own_group(nodes, whole, timeout), _own_group(peers, whole, timeout))


def nodes_and_peers(world: int, local_size: int) -> tuple[list[range], list[range]]:
    """The ranks of each node, and the ranks with each local rank."""
    if world % local_size:
        raise ValueError(f"local_size: expected a divisor of the group's size {world}, got {local_size}")
    nodes = [range(first, first + local_size) for first in range(0, world, local_size)]
    return nodes, [range(local_rank, world, local_size) for local_rank in range(local_size)]


def hierarchical_steps(operation: Operation, hierarchy: Hierarchy, algorithm: str) -> Steps[None]:
    """Reduce tensors of one dtype over all processes, in place.

    A plain reduce-scatter gives each process its node's sum of its shard. The processes with the same shard reduce it
    between nodes, compressed. A plain all-gather sends the shards to all processes of a node. All processes with the
    same shard decode the same bytes, so all ranks get bit-identical results.
    """
    local, flat = hierarchy.local, [x.view(-1) for x in operation.tensors]
    sizes = [x.numel() for x in flat]
    bucket = max(codec.granularity for codec in operation.codecs)
    shards = Shards.of(sum(sizes), local.world, bucket if bucket * local.world <= sum(sizes) else 1)
    padding = flat[0].new_zeros(shards.size * shards.world - shards.elements)  # all shards have the same size
    values = torch.cat([*flat, padding])
    if operation.op == "AVG":
        # Divided before the sum, so that 16-bit floats do not overflow. Reduction divides by the number of nodes.
        values.div_(local.world)
    own = values.new_empty(shards.size)
    yield reduce_scatter_single(own, values, op=_OPS_IN_NODE[operation.op], group=local.group, async_op=True)
    between = _between_nodes(operation, hierarchy, own, *shards.bounds(local.rank))
    if between.tensors:
        yield from ALGORITHMS[algorithm](between).steps()
    yield all_gather_single(values, own, group=local.group, async_op=True)
    for x, result in zip(flat, values[: shards.elements].split_with_sizes(sizes), strict=True):
        x.copy_(result)


def _between_nodes(operation: Operation, hierarchy: Hierarchy, own: Tensor, first: int, end: int) -> Operation:
    """The operation on this process's shard `own`, which starts at `first`, with the other nodes."""
    slices, codecs, before = [], [], 0
    for x, codec in zip(operation.tensors, operation.codecs, strict=True):
        start, stop = max(before, first), min(before + x.numel(), end)
        if start < stop:
            slices.append(own[start - first : stop - first])
            codecs.append(codec)
        before += x.numel()
    seed = derived(operation.seed, hierarchy.local.rank)
    return replace(operation, tensors=slices, codecs=codecs, processes=hierarchy.cross, seed=seed)


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
    """Reduce a tensor over all processes of a hierarchy, in place, compressed only between nodes.

    Within a node, an uncompressed reduce-scatter comes first and an uncompressed all-gather last. In between, each
    process reduces its shard with the other nodes, like `all_reduce`. Each value is coded twice, for any number of
    nodes, and each node sends its values once, divided among its processes. All ranks get bit-identical results. With
    one node nothing is coded.

    `hierarchy` is created once, by `Hierarchy.of`. `codec` and `algorithm` serve between nodes; within a node, the
    group's backend sums 16-bit floats. Other arguments and errors are those of `all_reduce`.
    """
    if not isinstance(hierarchy, Hierarchy):
        raise wrong_type("hierarchy", "a Hierarchy (Hierarchy.of makes one)", hierarchy)
    check_choice("algorithm", algorithm, list(ALGORITHMS))
    x = checked_tensor("tensor", tensor)
    codecs = checked_codecs([codec], [x])
    name = checked_operation(op, [x], codecs)
    title = f"hierarchical_all_reduce {name} {algorithm} on nodes of {hierarchy.local.world}"
    operation = prepared(title, [x], codecs, name, hierarchy.whole, seed, threads, check_finite)
    steps = then_copy_back(hierarchical_steps(operation, hierarchy, algorithm), operation.tensors, [x])
    return run(steps, [x, *operation.tensors], tensor, async_op)


def _own_group(subsets: Sequence[range], whole: Processes, timeout: timedelta | None) -> Processes:
    """A new group of this process's subset of the group's ranks; the subsets are disjoint."""
    ranks = sorted(dist.get_process_group_ranks(whole.group))
    own = next(subset for subset in subsets if ranks.index(dist.get_rank()) in subset)
    settings: Any = {"timeout": timeout, "backend": dist.get_backend(whole.group)}
    if whole.group is not dist.group.WORLD:
        _check_group_counts(whole)
        subsets = [own]
        settings |= {"use_local_synchronization": True}
    groups = {subset: dist.new_group([ranks[rank] for rank in subset], **settings) for subset in subsets}
    return Processes.of(groups[own])


def _check_group_counts(whole: Processes) -> None:
    counts: list[Any] = [None] * whole.world
    dist.all_gather_object(counts, len(dist.distributed_c10d._world.pg_names), whole.group)
    if len(set(counts)) > 1:
        raise RuntimeError(
            f"group: expected ranks that have created equally many groups, got {counts}, for which PyTorch would name "
            "new groups differently; call Hierarchy.of before creating groups of some ranks"
        )
