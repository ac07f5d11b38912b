"""Compress an array, decompress and compare it, and time both, for the command line's tables."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._api.compress import compress, decompress
from .._api.compressed import Compressed, from_bytes
from .._arrays.registry import to_cuda
from .._format.spec import Spec
from ..codecs import Codec
from .guarantees import Comparison, compare

Array = NDArray[Any]


@dataclass(frozen=True)
class Measurement:
    """The measurements of one array; None if not measured.

    Attributes:
        name: of the array.
        spec: its codec, dtype and shape.
        nbytes: bytes of its stream in a file.
        framed: whether its payload is in a Zstandard frame.
        encode_seconds: time to compress it on its device, and to make its frame.
        decode_seconds: time to decompress it to NumPy, with its frame.
        comparison: its difference from the decompressed array.
    """

    name: str
    spec: Spec
    nbytes: int
    framed: bool = False
    encode_seconds: float | None = None
    decode_seconds: float | None = None
    comparison: Comparison | None = None


def encode(
    name: str,
    x: Array,
    codec: Codec,
    *,
    threads: int | None = None,
    cuda: int | None = None,
    seed: int | None = None,
    zstd_level: int | None = None,
) -> tuple[Compressed, Measurement]:
    """Compress an array.

    Args:
        name: of the array.
        x: any NumPy array.
        codec: the codec.
        threads: number of threads on the CPU; None for all cores.
        cuda: index of the CUDA device to compress on; None for the CPU.
        seed: for codecs with stochastic rounding.
        zstd_level: same as in `Compressed.to_bytes`.

    Returns:
        The compressed array, in host memory and in its frame if it has one, and the measurement.

    Raises:
        TypeError: the dtype is not supported, or a seed is needed.
        DeviceUnavailableError: the device is not available.
    """
    source = x if cuda is None else to_cuda(x, cuda)
    start = time.perf_counter()
    compressed = compress(source, codec, threads=threads, seed=seed)
    nbytes = compressed.nbytes  # synchronizes
    if zstd_level is not None:
        stream = compressed.to_bytes(zstd_level=zstd_level, threads=threads)
        compressed, nbytes = from_bytes(stream, max_nbytes=compressed.spec.nbytes), len(stream)
    seconds = time.perf_counter() - start
    if cuda is not None and zstd_level is None:
        compressed = from_bytes(compressed.to_bytes())  # frees the device's memory for the next array
    return compressed, Measurement(name, compressed.spec, nbytes, compressed.payload.is_framed, seconds)


def decode(
    compressed: Compressed, measurement: Measurement, *, threads: int | None = None
) -> tuple[Array, Measurement]:
    """Decompress an array to NumPy. Returns it and the measurement with the time."""
    start = time.perf_counter()
    restored: Array = decompress(compressed, like=np.empty(0), threads=threads)
    return restored, replace(measurement, decode_seconds=time.perf_counter() - start)


def check(
    original: Array, compressed: Compressed, measurement: Measurement, *, threads: int | None = None
) -> Measurement:
    """The measurement with the time to decompress and the comparison."""
    restored, decoded = decode(compressed, measurement, threads=threads)
    return replace(decoded, comparison=compare(original, restored, compressed.codec))
