"""zfp by zfpy: fixed accuracy, and reversible."""

from __future__ import annotations

import numpy as np
import zfpy

from . import Array, Kind, Payload


class Zfp:
    """zfp; it sees the array's shape. Its reversible mode is made for fields, so it is given no flat arrays."""

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        self.kind = kind

    def supports(self, array: Array) -> bool:
        takes_shape = array.ndim <= 4 and (array.ndim > 1 or self.kind == "bounded")
        return takes_shape and array.dtype in (np.float32, np.float64)

    def compress(self, array: Array, bound: float) -> Payload:
        tolerance = {"tolerance": bound} if self.kind == "bounded" else {}
        data = zfpy.compress_numpy(array, write_header=True, **tolerance)
        return Payload(data, len(data))

    def decompress(self, payload: Payload, out: Array) -> Array:
        return zfpy.decompress_numpy(payload.data)


COMPRESSORS = [Zfp("zfp", "bounded"), Zfp("zfp reversible", "lossless")]
