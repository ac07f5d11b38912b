"""One all-reduce of the backend, of compressed and uncompressed segments, in place."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ...._methods.seeds import derived
from ....codecs import Codec
from .._arguments import Processes
from .._collectives import ALGORITHMS
from .._hierarchy import HierarchicalReduction, Hierarchy
from .._rank_checks import check_ranks_match
from .._reduction import Reduction
from .._wire import Steps
from .options import BackendOptions
from .segments import Segment, fused


def all_reduce_steps(
    found: Sequence[Segment],
    op: str,
    where: Processes | Hierarchy,
    plain_group: Any,
    seed: int,
    options: BackendOptions,
    threads: int,
) -> Steps[None]:
    """Reduce segments over all ranks.

    Args:
        found: segments on one device, at least one of them compressed.
        op: "SUM" or "AVG".
        where: the processes; or a hierarchy, to compress only between nodes.
        plain_group: a group of the same processes, for uncompressed segments.
        seed: for stochastic rounding.
        options: of the group.
        threads: CPU threads for the codecs.
    """
    whole = where.whole if isinstance(where, Hierarchy) else where
    compressed = [segment for segment in found if segment.codec is not None]
    xs, codecs = _columns(compressed)
    check_ranks_match(f"all_reduce {op} {options.algorithm}", xs, codecs, whole)
    plain = [_Plain(xs, op, plain_group) for xs in _by_dtype(found)]
    for i, batch in enumerate(fused(compressed, options.fusion_nbytes)):
        yield from _reduction(batch, op, where, derived(seed, i), threads, options.algorithm).steps()
    for each in plain:
        yield each.work
        each.copy_back()


class _Plain:
    """An uncompressed all-reduce of several flat tensors of one dtype, started by the constructor."""

    def __init__(self, xs: Sequence[Tensor], op: str, group: Any) -> None:
        self.xs, self.sums = xs, torch.cat(list(xs))
        if op == "AVG":  # not every backend supports it
            self.sums.div_(group.size())
        options: Any = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp.SUM
        self.work = group.allreduce([self.sums], options)

    def copy_back(self) -> None:
        """Copy the sums to the tensors, after the work is done."""
        for x, total in zip(self.xs, self.sums.split_with_sizes([x.numel() for x in self.xs]), strict=True):
            x.copy_(total)


def _by_dtype(found: Sequence[Segment]) -> list[list[Tensor]]:
    """The uncompressed segments, by dtype."""
    groups: dict[torch.dtype, list[Tensor]] = {}
    for values, codec in found:
        if codec is None and values.numel():
            groups.setdefault(values.dtype, []).append(values)
    return list(groups.values())


def _columns(compressed: Sequence[Segment]) -> tuple[list[Tensor], list[Codec]]:
    return [x for x, _ in compressed], [codec for _, codec in compressed if codec is not None]


def _reduction(
    batch: Sequence[Segment], op: str, where: Processes | Hierarchy, seed: int, threads: int, algorithm: str
) -> Reduction | HierarchicalReduction:
    xs, codecs = _columns(batch)
    if isinstance(where, Hierarchy):
        return HierarchicalReduction(xs, codecs, op, where, seed, threads, algorithm)
    return ALGORITHMS[algorithm](xs, codecs, op, where, seed, threads)
