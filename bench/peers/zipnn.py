"""ZipNN: floats, lossless."""

from __future__ import annotations

import numpy as np
from zipnn import ZipNN

from . import Array, Kind, Payload, as_unsigned

_DTYPES = ("float32", "bfloat16", "float16")


class ZipNNFloats:
    """Every bit kept."""

    name = "zipnn"
    kind: Kind = "lossless"

    def __init__(self) -> None:
        self._by_dtype = {name: ZipNN(input_format="byte", bytearray_dtype=name, threads=1) for name in _DTYPES}

    def supports(self, array: Array) -> bool:
        return array.dtype.name in _DTYPES

    def compress(self, array: Array, bound: float) -> Payload:
        # The copy is needed: zipnn reorders the bits of the memory it is given.
        data = self._by_dtype[array.dtype.name].compress(bytearray(as_unsigned(array)))
        return Payload(data, len(data))

    def decompress(self, payload: Payload, out: Array) -> Array:
        data = self._by_dtype[out.dtype.name].decompress(payload.data)
        return np.frombuffer(data, out.dtype).reshape(out.shape)


COMPRESSORS = [ZipNNFloats()]
