"""How arrays are split into shards, one for each process of a collective operation."""

from collections.abc import Sequence
from typing import NamedTuple


class Shards(NamedTuple):
    """Equal shards of an array, in C order. The last ones may be shorter or empty."""

    elements: int  # of the array
    world: int  # number of shards
    size: int  # elements of a full shard

    @classmethod
    def of(cls, elements: int, world: int, multiple: int = 1) -> "Shards":
        """Shards whose sizes are multiples of `multiple`. With a codec's granularity, buckets stay whole."""
        each = -(-elements // world)
        return cls(elements, world, -(-each // multiple) * multiple)

    def bounds(self, rank: int) -> tuple[int, int]:
        """The first element of a shard, and the one after its last."""
        return min(rank * self.size, self.elements), min((rank + 1) * self.size, self.elements)

    def length(self, rank: int) -> int:
        """Number of elements of a shard."""
        first, end = self.bounds(rank)
        return end - first


class Range(NamedTuple):
    """Consecutive elements of one of several arrays."""

    array: int  # its index
    first: int
    end: int  # after the last element

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.end - self.first


def split(elements: Sequence[int], multiples: Sequence[int], world: int) -> list[list[Range]]:
    """Ranges of several arrays for each process: about equally many elements, in order, none of them empty.

    `elements` are the arrays' sizes. Ranges start at multiples of an array's one of `multiples`, its codec's
    granularity.
    """
    total, before = sum(elements), 0
    shares: list[list[Range]] = [[] for _ in range(world)]
    for array, (count, multiple) in enumerate(zip(elements, multiples, strict=True)):
        first = 0
        for rank, share in enumerate(shares):
            ideal = (rank + 1) * total // world - before  # end of an equal share of this process in this array
            end = count if rank == world - 1 else min(max(-(-ideal // multiple) * multiple, first), count)
            if end > first:
                share.append(Range(array, first, end))
            first = end
        before += count
    return shares


def split_each(
    elements: Sequence[int], multiples: Sequence[int], turns: Sequence[int], world: int
) -> list[list[Range]]:
    """`split`, but each array alone: its ranges do not depend on the other arrays.

    Its one of `turns` is the process, modulo `world`, that gets its first range. So small arrays, with fewer ranges
    than processes, go to different processes.
    """
    shares: list[list[Range]] = [[] for _ in range(world)]
    for array, (count, multiple, turn) in enumerate(zip(elements, multiples, turns, strict=True)):
        for rank, ranges in enumerate(split([count], [multiple], world)):
            shares[(rank + turn) % world] += [one._replace(array=array) for one in ranges]
    return shares
