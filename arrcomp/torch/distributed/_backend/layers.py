"""Registered layers of flattened gradients: an all-reduce of a bucket is split into them."""

from typing import NamedTuple

from ...._arguments import checked_integer
from ....codecs._base import checked_bucket_size

_MAX_BITS = 64
_QUANTIZED = 8
_MAX = 1 << 62


class Layer(NamedTuple):
    """A layer of a bucket.

    Attributes:
        elements: their number.
        bits: of each value; above 8 the layer is not compressed.
        bucket_size: values that the codec quantizes with one scale.
    """

    elements: int
    bits: int
    bucket_size: int

    @property
    def is_compressed(self) -> bool:
        """Whether it is quantized."""
        return self.bits <= _QUANTIZED


class Layers:
    """The registered layers of a group's buckets.

    A bucket is identified by its number of elements. Buckets of equal size take turns, in the order of their indices,
    in which a reducer reduces them in every step.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, dict[int, Layer]] = {}
        self._turns: dict[int, int] = {}

    def register(self, bucket_index: int, layer_index: int, elements: int, bits: int, bucket_size: int) -> None:
        """Register a layer, or replace it.

        Raises:
            TypeError, ValueError: an argument is not an integer, or out of range.
        """
        for name, index in (("bucket_index", bucket_index), ("layer_index", layer_index)):
            checked_integer(name, index, 0, _MAX)
        size = checked_bucket_size(bucket_size)
        layer = Layer(checked_integer("numel", elements, 0, _MAX), _checked_bits(bits), size)
        self._buckets.setdefault(bucket_index, {})[layer_index] = layer

    def set_bits(self, bucket_index: int, layer_index: int, bits: int) -> None:
        """Change the bits of a registered layer.

        Raises:
            KeyError: there is no such layer.
            TypeError, ValueError: `bits` is not an integer, or out of range.
        """
        layer = self._layer(bucket_index, layer_index)
        self._buckets[bucket_index][layer_index] = layer._replace(bits=_checked_bits(bits))

    def set_bucket_size(self, bucket_index: int, layer_index: int, bucket_size: int) -> None:
        """Change the bucket size of a registered layer.

        Raises:
            KeyError: there is no such layer.
            TypeError, ValueError: `bucket_size` is not an integer, or out of range.
        """
        layer = self._layer(bucket_index, layer_index)
        self._buckets[bucket_index][layer_index] = layer._replace(bucket_size=checked_bucket_size(bucket_size))

    def of(self, elements: int) -> list[Layer] | None:
        """The layers of the next bucket with this number of elements; None if there is no such bucket."""
        found = [index for index, layers in sorted(self._buckets.items()) if _elements(layers) == elements]
        if not found:
            return None
        turn = self._turns.get(elements, 0)
        self._turns[elements] = turn + 1
        return [layer for _, layer in sorted(self._buckets[found[turn % len(found)]].items())]

    def _layer(self, bucket_index: int, layer_index: int) -> Layer:
        if layer_index not in self._buckets.get(bucket_index, {}):
            known = sorted((bucket, layer) for bucket, layers in self._buckets.items() for layer in layers)
            raise KeyError(
                f"layer: expected a registered (bucket, layer) of {known}, got {(bucket_index, layer_index)}"
            )
        return self._buckets[bucket_index][layer_index]


def _elements(layers: dict[int, Layer]) -> int:
    return sum(layer.elements for layer in layers.values())


def _checked_bits(bits: int) -> int:
    return checked_integer("bits", bits, 1, _MAX_BITS)
