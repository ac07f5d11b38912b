"""How an array is cut into shards, one for each process of a collective operation."""

from collections.abc import Sequence
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

    def length(self, rank: int) -> int:
        """Elements of a shard."""
        first, end = self.bounds(rank)
        return end - first


class Piece(NamedTuple):
    """Consecutive elements of one of several arrays.

    Attributes:
        array: which of them.
        first: the first element.
        end: the one behind the last.
    """

    array: int
    first: int
    end: int

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.end - self.first


def cut(elements: Sequence[int], multiples: Sequence[int], world: int) -> list[list[Piece]]:
    """Pieces of several arrays for each process: about as many elements for each, in order, none of them empty.

    Args:
        elements: of each array.
        multiples: of what an array is cut at: the values that its codec codes together.
        world: number of processes.
    """
    total, before = sum(elements), 0
    shares: list[list[Piece]] = [[] for _ in range(world)]
    for array, (count, multiple) in enumerate(zip(elements, multiples, strict=True)):
        first = 0
        for rank, share in enumerate(shares):
            wanted = (rank + 1) * total // world - before  # where this process's share would end in this array
            end = count if rank == world - 1 else min(max(-(-wanted // multiple) * multiple, first), count)
            if end > first:
                share.append(Piece(array, first, end))
            first = end
        before += count
    return shares


def cut_each(elements: Sequence[int], multiples: Sequence[int], turns: Sequence[int], world: int) -> list[list[Piece]]:
    """As `cut`, but each array by itself: its pieces do not depend on which others are beside it.

    Args:
        elements: of each array.
        multiples: of what an array is cut at.
        turns: of each array: the process that gets its first piece, modulo their number; arrays too small for pieces
            for all processes then go to different ones.
        world: number of processes.
    """
    shares: list[list[Piece]] = [[] for _ in range(world)]
    for array, (count, multiple, turn) in enumerate(zip(elements, multiples, turns, strict=True)):
        for rank, pieces in enumerate(cut([count], [multiple], world)):
            shares[(rank + turn) % world] += [piece._replace(array=array) for piece in pieces]
    return shares
