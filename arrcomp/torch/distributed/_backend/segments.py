"""Segments of an all-reduce: which values are compressed, which are exchanged together, and how they are reduced."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ...._methods.seeds import derived
from ....codecs import Codec
from ..._tensors import FLOATS, dtype_of
from .._arguments import Operation, Processes, thread_number
from .._hierarchy import Hierarchy, hierarchical_steps
from .._rank_checks import check_ranks_match
from .._reduction import ALGORITHMS
from .._wire import Steps
from .layers import Layers
from .options import BackendOptions


class Segment(NamedTuple):
    """A flat view of consecutive values of a tensor; without a codec they are not compressed."""

    values: Tensor
    codec: Codec | None


def segments(tensors: Sequence[Tensor], options: BackendOptions, layers: Layers) -> list[Segment]:
    """The segments of contiguous tensors: the layers of a registered bucket, or the whole tensor."""
    found = []
    for x in tensors:
        bucket = layers.of(x.numel()) if x.dtype in FLOATS else None
        if bucket is None:
            found.append(_segment(x.view(-1), options.codec, options))
            continue
        parts = x.view(-1).split_with_sizes([layer.elements for layer in bucket])
        for values, (_, bits, size) in zip(parts, bucket, strict=True):
            codec = replace(options.layer_codec, bits=bits, bucket_size=size) if bits <= 8 else None
            found.append(_segment(values, codec, options))
    return found


def fused(compressed: Sequence[Segment], nbytes: int) -> Iterator[list[Segment]]:
    """Compressed segments in batches for one exchange: each of at most `nbytes` bytes, or one bucket of a codec."""
    batch: list[Segment] = []
    free = nbytes
    for values, codec in compressed:
        assert codec is not None
        unit = codec.granularity * values.element_size()
        rest = values
        while rest.numel():
            buckets = free // unit if batch else max(free // unit, 1)
            if buckets < 1 or (batch and batch[0].values.dtype != rest.dtype):
                yield batch
                batch, free = [], nbytes
                continue
            first, rest = rest[: buckets * codec.granularity], rest[buckets * codec.granularity :]
            batch.append(Segment(first, codec))
            free -= first.nbytes
    if batch:
        yield batch


def all_reduce_steps(
    found: Sequence[Segment], coded: Operation, hierarchy: Hierarchy | None, plain: Any, options: BackendOptions
) -> Steps[None]:
    """Reduce segments on one device over all ranks.

    `coded` is the operation on the compressed ones, at least one. A hierarchy compresses only between nodes. `plain` is
    a group of the same processes, for uncompressed segments.
    """
    op, algorithm = coded.op, options.algorithm
    check_ranks_match(f"all_reduce {op} {algorithm}", coded.tensors, coded.codecs, coded.processes)
    started = [(xs, *_started(xs, op, plain)) for xs in _uncompressed(found)]
    for i, batch in enumerate(fused(list(map(Segment, coded.tensors, coded.codecs)), options.fusion_nbytes)):
        part = coded_operation(batch, op, coded.processes, derived(coded.seed, i), coded.threads)
        if hierarchy is None:
            yield from ALGORITHMS[algorithm](part).steps()
        else:
            yield from hierarchical_steps(part, hierarchy, algorithm)
    for xs, sums, work in started:
        yield work
        for x, total in zip(xs, sums.split_with_sizes([x.numel() for x in xs]), strict=True):
            x.copy_(total)


def coded_operation(
    segments: Sequence[Segment], op: str, processes: Processes, seed: int, threads: int | None
) -> Operation:
    """The operation on the compressed ones of some segments."""
    coded = [(x, codec) for x, codec in segments if codec is not None]
    xs, codecs = [x for x, _ in coded], [codec for _, codec in coded]
    return Operation(xs, codecs, op, processes, seed, thread_number(threads))


def _segment(x: Tensor, codec: Codec | None, options: BackendOptions) -> Segment:
    if codec is None or x.dtype not in FLOATS or x.numel() < options.minimal_size or not codec.takes(dtype_of(x)):
        return Segment(x, None)
    return Segment(x[: math.ceil(options.fake_ratio * x.numel())], codec)


def _started(xs: Sequence[Tensor], op: str, group: Any) -> tuple[Tensor, Any]:
    """An uncompressed all-reduce of flat tensors of one dtype: their sums, one after the other, and its `Work`."""
    sums = torch.cat(list(xs))
    if op == "AVG":  # not every backend supports it
        sums.div_(group.size())
    options: Any = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.SUM
    return sums, group.allreduce([sums], options)


def _uncompressed(found: Sequence[Segment]) -> list[list[Tensor]]:
    """The uncompressed segments, by dtype."""
    groups: dict[torch.dtype, list[Tensor]] = {}
    for values, codec in found:
        if codec is None and values.numel():
            groups.setdefault(values.dtype, []).append(values)
    return list(groups.values())
