"""Parts of chunks: only the bytes of a stream that a part's values need are read, and only their blocks decoded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._api.compressed import Compressed, parse_stream
from .._arrays.driver import decode_selection, needed_spans
from .._arrays.numpy import ADAPTER as NUMPY
from .._arrays.parts import GAP, Axis, Selection, basic_selection, point_selection
from .._dtypes import Bytes
from .._format import stream
from ..errors import CorruptStreamError

Span = tuple[int, int]

HEAD_NBYTES = 1 << 14  # read first: a stream's headers, and a directory of up to 2^26 values
LEAST_NBYTES = 1 << 20  # of an array, below which reading all of it is as fast
_MOST_SHARE = 0.5  # of an array's values, above which it is decoded whole
_GAP_NBYTES = 1 << 16  # between bytes that are read at once: a request of their own costs more


class Part(NamedTuple):
    """Values of a chunk: a selection, and the index into what is decoded of it, or None for all of it."""

    selection: Selection
    rest: Any = None


def part_of(shape: Sequence[int], index: Any, predicted: bool) -> Part | None:
    """What an index of zarr's takes of a chunk; None where it is of a kind that is not known here."""
    index = index if isinstance(index, tuple) else (index,)
    if len(index) != len(shape) or 0 in shape:
        return None
    if all(isinstance(one, (int, np.integer, slice)) for one in index):
        return Part(
            basic_selection(shape, [_axis(one, size) for one, size in zip(index, shape, strict=True)], predicted)
        )
    if not all(isinstance(one, np.ndarray) and one.size and one.dtype.kind in "iu" for one in index):
        return None
    if all(one.ndim == 1 for one in index):  # a place each: zarr's `vindex`
        return Part(point_selection(shape, np.broadcast_arrays(*index), predicted))
    if all(one.shape[axis] == one.size for axis, one in enumerate(index)):  # of each axis its own: zarr's `oindex`
        boxes = [_box(one.ravel()) for one in index]
        inside = [(one.ravel() - box.start) // box.step for one, box in zip(index, boxes, strict=True)]
        is_all = all(np.array_equal(one, range(len(box))) for one, box in zip(inside, boxes, strict=True))
        return Part(basic_selection(shape, boxes, predicted), None if is_all else np.ix_(*inside))
    return None


def _axis(one: Any, size: int) -> Axis:
    return range(size)[one] if isinstance(one, slice) else int(range(size)[one])


def _box(places: NDArray[Any]) -> range:
    """The places of an axis where they are at equal distances, else all from the first to the last."""
    steps = np.diff(places)
    if steps.size == 0 or (steps[0] > 0 and (steps == steps[0]).all()):
        return range(int(places[0]), int(places[-1]) + 1, int(steps[0]) if steps.size else 1)
    return range(int(places.min()), int(places.max()) + 1)


def pays(part: Part, shape: Sequence[int], itemsize: int) -> bool:
    """Whether decoding a part of an array alone is faster than all of it."""
    count = math.prod(shape)
    taken = sum(size + GAP for _, size in part.selection.ranges)
    return count * itemsize >= LEAST_NBYTES and taken <= _MOST_SHARE * count


class PartialStream:
    """A stream of which some bytes are read.

    Attributes:
        compressed: the array, whose payload has only these bytes.
    """

    def __init__(self, memory: Bytes, is_whole: bool) -> None:
        """A stream of which all bytes are there, and are checked; `begun` makes others."""
        self._memory = memory
        self._is_whole = is_whole
        self.compressed: Compressed = parse_stream(memory, check=is_whole)

    @classmethod
    def begun(cls, head: Bytes, most_nbytes: int) -> PartialStream | None:
        """The stream of which these are the first `HEAD_NBYTES`, or all; None where it has to be read whole.

        It must be if its header is longer, its payload is in a frame, or it claims to have more than `most_nbytes`.
        Raises the same as `from_bytes`.
        """
        if head.size < HEAD_NBYTES:
            return cls(head, True)
        nbytes = stream.stated_nbytes(head.data)
        if nbytes is None or not HEAD_NBYTES <= nbytes <= most_nbytes:
            return None
        memory: Bytes = np.empty(nbytes, np.uint8)
        memory[:HEAD_NBYTES] = head
        return cls(memory, False)

    def missing(self, part: Part) -> Iterator[list[Span]]:
        """Begin and end of bytes to fill in before `decode`, in steps: those of a step before the next is asked for."""
        if self._is_whole:
            return
        c = self.compressed
        start = NUMPY.address(c.payload.buffer) - NUMPY.address(self._memory)
        for spans in needed_spans(c.host_payload(), c.spec, part.selection.ranges):
            ends = ((max(start + begin, HEAD_NBYTES), start + end) for begin, end in spans)
            yield _joined(span for span in ends if span[0] < span[1])

    def fill(self, span: Span, data: Bytes | None) -> None:
        """Fill in bytes; raises CorruptStreamError where they are fewer than they should be, or None are left."""
        begin, end = span
        data = self._memory[:0] if data is None else data
        if data.size != end - begin:
            expected = f"expected bytes {begin} to {end}, as its header says"
            raise CorruptStreamError(f"stream is truncated: {expected}, got {data.size} of them")
        self._memory[begin:end] = data

    def decode(self, part: Part) -> NDArray[Any]:
        """The values of a part. Raises CorruptStreamError."""
        values = decode_selection(self.compressed.payload, self.compressed.spec, part.selection, threads=1)
        return values if part.rest is None else values[part.rest]


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, without those between which there is little."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin - joined[-1][1] <= _GAP_NBYTES:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
