"""Zstandard on bytes shuffled by NumPy: all first bytes of the values, then all second ones, and so on."""

from __future__ import annotations

import numpy as np
import zstandard

from . import Array, Kind, Payload
from .scratch import Scratch


class ShuffledZstandard:
    """Every bit kept."""

    kind: Kind = "lossless"

    def __init__(self, level: int) -> None:
        self.name = f"byte planes + zstd {level}"
        self._compressor = zstandard.ZstdCompressor(level=level)
        self._decompressor = zstandard.ZstdDecompressor()
        self._scratch = Scratch()

    def supports(self, array: Array) -> bool:
        return True

    def compress(self, array: Array, bound: float) -> Payload:
        values = array.view(np.uint8).reshape(-1, array.dtype.itemsize)
        planes = self._scratch.get("planes", values.shape[::-1], np.uint8)
        np.copyto(planes, values.T)
        data = self._compressor.compress(planes)
        return Payload(data, len(data))

    def decompress(self, payload: Payload, out: Array) -> Array:
        values = out.view(np.uint8).reshape(-1, out.dtype.itemsize)
        planes = np.frombuffer(self._decompressor.decompress(payload.data), np.uint8)
        np.copyto(values, planes.reshape(values.shape[::-1]).T)
        return out


COMPRESSORS = [ShuffledZstandard(level) for level in (1, 3)]
