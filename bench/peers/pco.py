"""pcodec at its default level: lossless, or on quantized integers."""

from __future__ import annotations

import numpy as np
from pcodec import ChunkConfig
from pcodec.standalone import simple_compress, simple_decompress_into

from . import Array, Kind, Payload, as_unsigned
from .scratch import Quantizer


def _numbers(array: Array) -> Array:
    """The array, flat, as a type that pcodec has: bfloat16 as uint16, bool as uint8."""
    native = array.dtype.kind in "iuf"
    return (array if native else as_unsigned(array)).reshape(-1)


class Pcodec:
    """Every bit kept."""

    name = "pcodec"
    kind: Kind = "lossless"

    def supports(self, array: Array) -> bool:
        return array.dtype.itemsize <= 8

    def compress(self, array: Array, bound: float) -> Payload:
        data = simple_compress(_numbers(array), ChunkConfig(enable_8_bit=array.dtype.itemsize == 1))
        return Payload(data, len(data))

    def decompress(self, payload: Payload, out: Array) -> Array:
        simple_decompress_into(payload.data, _numbers(out))
        return out


class QuantizedPcodec:
    """Quantized by NumPy to int32, then every bit kept."""

    name = "quantize + pcodec"
    kind: Kind = "bounded"

    def __init__(self) -> None:
        self._quantizer = Quantizer()

    def supports(self, array: Array) -> bool:
        return array.dtype == np.float32

    def compress(self, array: Array, bound: float) -> Payload:
        data = simple_compress(self._quantizer.quantize(array, bound), ChunkConfig())
        return Payload((data, bound), len(data))

    def decompress(self, payload: Payload, out: Array) -> Array:
        data, bound = payload.data
        quantized = self._quantizer.target(out)
        simple_decompress_into(data, quantized)
        return self._quantizer.restore(quantized, bound, out)


COMPRESSORS = [Pcodec(), QuantizedPcodec()]
