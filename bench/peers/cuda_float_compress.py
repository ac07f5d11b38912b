"""cuda_float_compress 0.2.1 in NumPy: what its kernels make of floats on a GPU, and Zstandard of it.

q = rint(x / 2E) as int32, all in float32; first differences along runs of 128 values; zigzag; and of each block of
32768 values, the words cut into pairs of bits, which 16 values share a word for, all lowest pairs first. It has no part
in `peers.load`: the ratio and the errors are the original's, the speed is NumPy's.
"""

from __future__ import annotations

import numpy as np
import zstandard
from numpy.typing import NDArray

from . import Array, Kind, Payload

_RUN, _BLOCK, _LANES = 128, 32768, 16
_HEADER_NBYTES = 12
_BLOCKS_AT_ONCE = 32


class CudaFloatCompress:
    """float32 within a bound, more or less."""

    name = "cuda_float_compress"
    kind: Kind = "bounded"

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._decompressor = zstandard.ZstdDecompressor()

    def supports(self, array: Array) -> bool:
        return bool(array.dtype == np.float32)

    def compress(self, array: Array, bound: float) -> Payload:
        data = self.pack(planes_of(array.reshape(-1), bound))
        return Payload((data, bound), len(data) + _HEADER_NBYTES)

    def decompress(self, payload: Payload, out: Array) -> Array:
        data, bound = payload.data
        planes = np.empty((-(-out.size // _BLOCK), 32, _BLOCK // 32), np.uint32)
        self.unpack(data, planes)
        values_of(planes, bound, out.reshape(-1))
        return out

    def pack(self, planes: NDArray[np.uint32]) -> bytes:
        """What the original does on the CPU."""
        return self._compressor.compress(planes)

    def unpack(self, data: bytes, planes: NDArray[np.uint32]) -> None:
        """The way back, into memory that is there."""
        self._decompressor.stream_reader(data).readinto(planes.reshape(-1).view(np.uint8))


def planes_of(flat: NDArray[np.float32], bound: float) -> NDArray[np.uint32]:
    """What the original makes of values on the GPU: pairs of bits, (blocks, 32, 1024)."""
    planes = np.empty((-(-flat.size // _BLOCK), 32, _BLOCK // 32), np.uint32)
    inverse = np.float32(1) / np.float32(2 * bound)
    for first in range(0, len(planes), _BLOCKS_AT_ONCE):
        values = flat[first * _BLOCK : (first + _BLOCKS_AT_ONCE) * _BLOCK]
        planes[first : first + _BLOCKS_AT_ONCE] = _planes(_words(values, inverse))
    return planes


def values_of(planes: NDArray[np.uint32], bound: float, flat: NDArray[np.float32]) -> None:
    """The way back, into `flat`."""
    for first in range(0, len(planes), _BLOCKS_AT_ONCE):
        values = _values(planes[first : first + _BLOCKS_AT_ONCE], np.float32(2 * bound))
        target = flat[first * _BLOCK : (first + _BLOCKS_AT_ONCE) * _BLOCK]
        target[:] = values[: target.size]


def _words(values: NDArray[np.float32], inverse: np.float32) -> NDArray[np.uint32]:
    """Zigzag differences; zeros up to the end of the last block."""
    quantized = np.zeros(-(-values.size // _RUN) * _RUN, np.int32)
    quantized[: values.size] = np.rint(values * inverse)
    differences = np.diff(quantized.reshape(-1, _RUN), axis=1, prepend=np.int32(0)).reshape(-1)
    words = np.zeros(-(-values.size // _BLOCK) * _BLOCK, np.uint32)
    words[: values.size] = ((differences << 1) ^ (differences >> 31)).view(np.uint32)[: values.size]
    return words


def _planes(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Pairs of bits: (blocks, 32, 1024), where rows 2k and 2k + 1 hold pair k of both halves of 32 values."""
    halves = words.reshape(-1, _BLOCK // 32, 2, _LANES)
    places = np.arange(0, 32, 2, dtype=np.uint32)
    planes = np.empty((len(halves), 32, _BLOCK // 32), np.uint32)
    for pair in range(16):
        bits = (halves >> np.uint32(2 * pair)) & np.uint32(3)
        packed = np.bitwise_or.reduce(bits << places, axis=-1)
        planes[:, 2 * pair : 2 * pair + 2] = packed.transpose(0, 2, 1)
    return planes


def _values(planes: NDArray[np.uint32], step: np.float32) -> NDArray[np.float32]:
    """The values of whole blocks, flat."""
    places = np.arange(0, 32, 2, dtype=np.uint32)
    halves = np.zeros((len(planes), _BLOCK // 32, 2, _LANES), np.uint32)
    for pair in range(16):
        packed = planes[:, 2 * pair : 2 * pair + 2].transpose(0, 2, 1)[..., None]
        halves |= ((packed >> places) & np.uint32(3)) << np.uint32(2 * pair)
    words = halves.reshape(-1, _RUN)
    differences = (words >> np.uint32(1)).view(np.int32) ^ -(words & np.uint32(1)).view(np.int32)
    quantized = np.cumsum(differences, axis=1, dtype=np.int32)
    return quantized.reshape(-1).astype(np.float32) * step
