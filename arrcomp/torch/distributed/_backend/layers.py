"""Registered layers of flattened gradients: an all-reduce of a bucket is split into them."""

from typing import NamedTuple

from ...._arguments import checked_integer
from ....codecs._base import checked_bucket_size

_MAX = 1 << 62


class Layer(NamedTuple):
    """A layer of a bucket; above 8 bits it is not compressed."""

    elements: int
    bits: int
    bucket_size: int  # values that the codec quantizes with one scale


class Layers:
    """The registered layers of a group's buckets.

    A bucket is identified by its number of elements. Buckets of equal size take turns, in the order of their indices,
    in which a reducer reduces them in every step.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, dict[int, Layer]] = {}
        self._turns: dict[int, int] = {}

    def register(self, bucket_index: int, layer_index: int, elements: int, bits: int, bucket_size: int) -> None:
        """Register a layer, or replace it."""
        for name, index in (("bucket_index", bucket_index), ("layer_index", layer_index)):
            checked_integer(name, index, 0, _MAX)
        elements = checked_integer("numel", elements, 0, _MAX)
        layer = Layer(elements, _checked_bits(bits), checked_bucket_size(bucket_size))
        self._buckets.setdefault(bucket_index, {})[layer_index] = layer

    def set_bits(self, bucket_index: int, layer_index: int, bits: int) -> None:
        """Change the bits of a registered layer."""
        self._change(bucket_index, layer_index, bits=_checked_bits(bits))

    def set_bucket_size(self, bucket_index: int, layer_index: int, bucket_size: int) -> None:
        """Change the bucket size of a registered layer."""
        self._change(bucket_index, layer_index, bucket_size=checked_bucket_size(bucket_size))

    def of(self, elements: int) -> list[Layer] | None:
        """The layers of the next bucket with this number of elements; None if there is no such bucket."""
        sizes = {index: sum(layer.elements for layer in layers.values()) for index, layers in self._buckets.items()}
        found = sorted(index for index, size in sizes.items() if size == elements)
        if not found:
            return None
        turn = self._turns.get(elements, 0)
        self._turns[elements] = turn + 1
        return [layer for _, layer in sorted(self._buckets[found[turn % len(found)]].items())]

    def _change(self, bucket_index: int, layer_index: int, **changes: int) -> None:
        if layer_index not in self._buckets.get(bucket_index, {}):
            known = sorted((bucket, layer) for bucket, layers in self._buckets.items() for layer in layers)
            got = bucket_index, layer_index
            raise KeyError(f"layer: expected a registered (bucket, layer) of {known}, got {got}")
        self._buckets[bucket_index][layer_index] = self._buckets[bucket_index][layer_index]._replace(**changes)


def _checked_bits(bits: int) -> int:
    return checked_integer("bits", bits, 1, 64)
