"""The static description of a compressed array: all that is known without its payload."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .. import _core
from .._dtypes import DType
from ..codecs._base import Codec
from .stream import Header

Coding = tuple[int, Sequence[float], int]  # codec id, parameters, dtype id


@dataclass(unsafe_hash=True, slots=True)  # not frozen, whose constructor takes a third of a small call's overhead
class Spec:
    """Codec, data type and shape of an array: hashable, so that compilers can treat it as static."""

    codec: Codec
    dtype: DType
    shape: tuple[int, ...]

    @property
    def coding(self) -> Coding:
        """What the core is told about codec and data type."""
        return self.codec.id, self.codec.core_parameters(), self.dtype.id

    @property
    def header(self) -> Header:
        """What a stream says of the array."""
        return Header(self.codec.id, self.dtype, self.shape, self.codec.config())

    @property
    def elements(self) -> int:
        """Number of elements in the payload: a complex value is two."""
        return math.prod(self.shape) * self.dtype.parts

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def capacity(self) -> int:
        """Bytes of the longest possible payload; of every payload, if the codec has a fixed rate."""
        return _core.capacity(*self.coding, self.elements)

    @property
    def least_payload_nbytes(self) -> int:
        """Bytes of the shortest possible payload."""
        return _core.min_length(*self.coding, self.elements)
