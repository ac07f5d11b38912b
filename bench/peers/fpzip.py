"""fpzip, lossless. bench/fields.py alone measures it: it is made for fields."""

from __future__ import annotations

import fpzip
import numpy as np

from . import Array, Kind, Payload


class Fpzip:
    """fpzip with every bit kept; it sees the array's shape."""

    name = "fpzip"
    kind: Kind = "lossless"

    def supports(self, array: Array) -> bool:
        return array.ndim <= 4 and array.dtype in (np.float32, np.float64)

    def compress(self, array: Array, bound: float) -> Payload:
        data = fpzip.compress(array, precision=0, order="C")
        return Payload(data, len(data))

    def decompress(self, payload: Payload, out: Array) -> Array:
        return fpzip.decompress(payload.data, order="C").reshape(out.shape)
