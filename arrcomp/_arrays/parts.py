"""Which ranges of a flat array a selection of the array needs, so that no more of it is decoded."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Range = tuple[int, int]  # of a flat array: the first value, and how many
Axis = int | range  # what is taken of an axis; of an integer the result has no axis

# Values between two ranges, below which they are decoded as one. A range decodes a group or two of up to 2^14 elements.
GAP = 1 << 15


class Part(NamedTuple):
    """A range of the flat array, and where its values belong."""

    first: int
    size: int
    target: Any  # index into the result
    source: Any  # index into the range, or for `Selection.strides` the offset in it

    @property
    def range(self) -> Range:
        """The range alone."""
        return self.first, self.size


@dataclass(frozen=True)
class Selection:
    """Values of an array.

    Attributes:
        shape: of the result.
        parts: ranges without values between them that cost more than a range of their own.
        counts: shape of what a part gives the result.
        strides: of these in the range, in values; None where `source` of each part is an index.
    """

    shape: tuple[int, ...]
    parts: Sequence[Part]
    counts: tuple[int, ...] = ()
    strides: tuple[int, ...] | None = None

    @property
    def ranges(self) -> list[Range]:
        """The parts' ranges."""
        return [part.range for part in self.parts]

    @property
    def is_range(self) -> bool:
        """Whether the result is one range of the flat array, in its order."""
        if self.strides is None or len(self.parts) != 1:
            return False
        (part,) = self.parts
        return part.size == math.prod(self.shape) and part.source == 0

    def put(self, part: Part, values: NDArray[Any], result: NDArray[Any]) -> None:
        """Copy what is selected of a part's range, one-dimensional, into the result."""
        if self.strides is None:
            result[part.target] = values[part.source]
            return
        width = values.itemsize
        strides = tuple(stride * width for stride in self.strides)
        result[part.target] = np.ndarray(self.counts, values.dtype, values, part.source * width, strides)


def basic_selection(shape: Sequence[int], axes: Sequence[Axis], as_one: bool = False) -> Selection:
    """The values at integers and ranges, one within each axis; `as_one` in one range, for predicted arrays.

    Each range of a predicted array needs rows around it, and their part of coarse grids.
    """
    taken = [one if isinstance(one, range) else range(one, one + 1) for one in axes]
    counts = tuple(len(one) for one in axes if isinstance(one, range))
    if 0 in counts:
        return Selection(counts, ())
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    outer, size = _split(taken, strides, math.inf if as_one else GAP)
    least = [min(one[0], one[-1]) for one in taken]
    source = sum((one[0] - low) * stride for one, low, stride in zip(taken[outer:], least[outer:], strides[outer:]))
    inside = sum(low * stride for low, stride in zip(least[outer:], strides[outer:]))
    kept = [axis for axis in range(outer, len(shape)) if isinstance(axes[axis], range)]
    parts = [
        Part(inside + sum(i * stride for i, stride in zip(place, strides)), size, target, source)
        for place, target in zip(product(*taken[:outer]), _targets(axes[:outer]))
    ]
    return Selection(
        counts, parts, tuple(len(taken[axis]) for axis in kept), tuple(taken[i].step * strides[i] for i in kept)
    )


def _split(taken: Sequence[range], strides: Sequence[int], gap: float) -> tuple[int, int]:
    """The axes of which every place has a range of its own, from the left, and the size of a range."""
    outer, size = len(taken), 1
    while outer:
        one, stride = taken[outer - 1], strides[outer - 1]
        if len(one) > 1 and abs(one.step) * stride - size >= gap:
            break
        size += abs(one[-1] - one[0]) * stride
        outer -= 1
    return outer, size


def _targets(axes: Sequence[Axis]) -> Iterator[tuple[int, ...]]:
    """The places in a result of what is taken of these axes."""
    return product(*(range(len(one)) for one in axes if isinstance(one, range)))


def point_selection(shape: Sequence[int], places: Sequence[NDArray[Any]], as_one: bool = False) -> Selection:
    """The values at some places: one-dimensional, an array of indices from 0 on for each axis."""
    flat = np.ravel_multi_index(tuple(places), tuple(shape))
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    cuts = np.flatnonzero(np.diff(ordered) > (math.inf if as_one else GAP)) + 1
    parts = [
        Part(int(run[0]), int(run[-1] - run[0]) + 1, targets, run - run[0])
        for run, targets in zip(np.split(ordered, cuts), np.split(order, cuts))
        if run.size
    ]
    return Selection(flat.shape, parts)
