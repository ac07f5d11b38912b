"""Blosc2 with its bit shuffle, then LZ4 or Zstandard: lossless, or on quantized integers."""

from __future__ import annotations

import blosc2
import numpy as np

from . import Array, Kind, Payload, as_unsigned
from .scratch import Quantizer

_CODECS = {"lz4": blosc2.Codec.LZ4, "zstd": blosc2.Codec.ZSTD}
_LEVELS = {"lz4": 5, "zstd": 1}


def _compress(array: Array, codec: str) -> bytes:
    return blosc2.compress2(
        array,
        codec=_CODECS[codec],
        clevel=_LEVELS[codec],
        typesize=array.dtype.itemsize,
        filters=[blosc2.Filter.BITSHUFFLE],
        filters_meta=[0],
        nthreads=1,
    )


class Blosc:
    """Every bit kept."""

    kind: Kind = "lossless"

    def __init__(self, codec: str) -> None:
        self.name = f"blosc2 {codec}"
        self._codec = codec

    def supports(self, array: Array) -> bool:
        return array.dtype.itemsize <= 8

    def compress(self, array: Array, bound: float) -> Payload:
        data = _compress(as_unsigned(array), self._codec)
        return Payload(data, len(data))

    def decompress(self, payload: Payload, out: Array) -> Array:
        blosc2.decompress2(payload.data, dst=as_unsigned(out), nthreads=1)
        return out


class QuantizedBlosc:
    """Quantized by NumPy to int32, then every bit kept."""

    kind: Kind = "bounded"

    def __init__(self, codec: str) -> None:
        self.name = f"quantize + blosc2 {codec}"
        self._codec = codec
        self._quantizer = Quantizer()

    def supports(self, array: Array) -> bool:
        return array.dtype == np.float32

    def compress(self, array: Array, bound: float) -> Payload:
        data = _compress(self._quantizer.quantize(array, bound), self._codec)
        return Payload((data, bound), len(data))

    def decompress(self, payload: Payload, out: Array) -> Array:
        data, bound = payload.data
        quantized = self._quantizer.target(out)
        blosc2.decompress2(data, dst=quantized, nthreads=1)
        return self._quantizer.restore(quantized, bound, out)


COMPRESSORS = [form(codec) for form in (Blosc, QuantizedBlosc) for codec in _CODECS]
