"""Segments of an all-reduce: which values are compressed, and which are exchanged together."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ....codecs import Codec
from ..._tensors import dtype_of
from .layers import Layer, Layers
from .options import BackendOptions

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Segment(NamedTuple):
    """Consecutive values of a tensor.

    Attributes:
        values: a flat view of them.
        codec: None if they are not compressed.
    """

    values: Tensor
    codec: Codec | None


def segments(tensors: Sequence[Tensor], options: BackendOptions, layers: Layers) -> list[Segment]:
    """The segments of contiguous tensors: the layers of a registered bucket, or the whole tensor."""
    found = []
    for x in tensors:
        bucket = layers.of(x.numel()) if x.dtype in _FLOATS else None
        found += [_whole(x.view(-1), options)] if bucket is None else _layer_by_layer(x.view(-1), bucket, options)
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


def _whole(x: Tensor, options: BackendOptions) -> Segment:
    return _segment(x, options.codec, options)


def _layer_by_layer(x: Tensor, layers: Sequence[Layer], options: BackendOptions) -> list[Segment]:
    values = x.split_with_sizes([layer.elements for layer in layers])
    return [_segment(each, _codec(layer, options), options) for each, layer in zip(values, layers, strict=True)]


def _codec(layer: Layer, options: BackendOptions) -> Codec | None:
    if not layer.is_compressed:
        return None
    return replace(options.layer_codec, bits=layer.bits, bucket_size=layer.bucket_size)


def _segment(x: Tensor, codec: Codec | None, options: BackendOptions) -> Segment:
    if codec is None or x.dtype not in _FLOATS or x.numel() < options.minimal_size or not codec.takes(dtype_of(x)):
        return Segment(x, None)
    return Segment(x[: math.ceil(options.fake_ratio * x.numel())], codec)
