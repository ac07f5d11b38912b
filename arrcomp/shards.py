"""How an array is cut into shards, one for each process of a collective operation."""

from typing import NamedTuple


class Shards(NamedTuple):
    """Equal shards of an array, in C order, of which the last may be shorter or empty.

    Attributes:
        elements: of the array.
        world: number of shards.
        size: elements of each shard but the last.
    """

    elements: int
    world: int
    size: int

    @classmethod
    def of(cls, elements: int, world: int, multiple: int = 1) -> "Shards":
        """Shards whose sizes are multiples of `multiple`, so that a codec's buckets are as in the whole array."""
        each = -(-elements // world)
        return cls(elements, world, -(-each // multiple) * multiple)

    def bounds(self, rank: int) -> tuple[int, int]:
        """First element of a shard, and the one behind its last."""
        return min(rank * self.size, self.elements), min((rank + 1) * self.size, self.elements)

    def count(self, rank: int) -> int:
        """Elements of a shard."""
        first, end = self.bounds(rank)
        return end - first
