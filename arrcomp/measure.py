"""Compress an array, look at what comes back, and time both: what the command line's tables show."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import to_cuda
from .codecs import Codec
from .compress import compress, decompress
from .compressed import Compressed, from_bytes
from .verify import Comparison, compare


@dataclass(frozen=True)
class Measurement:
    """One array and what became of it; None stands for what was not looked at.

    Attributes:
        name: of the array.
        compressed: the result, in host memory.
        source_nbytes: bytes of the array.
        encode_seconds: time taken to compress it where it was, on the CPU or on the device.
        decode_seconds: time taken to decompress it into NumPy.
        comparison: how it came back.
    """

    name: str
    compressed: Compressed
    source_nbytes: int
    encode_seconds: float | None = None
    decode_seconds: float | None = None
    comparison: Comparison | None = None


def encode(
    name: str,
    x: NDArray[Any],
    codec: Codec,
    *,
    threads: int | None = None,
    cuda: int | None = None,
    seed: int | None = None,
) -> Measurement:
    """Compress an array.

    Args:
        name: of the array, for messages.
        x: any NumPy array.
        codec: how to compress it.
        threads: on the CPU; None for all cores.
        cuda: number of the device to compress on; None for the CPU.
        seed: for codecs that round at random.

    Raises:
        TypeError: the dtype is not supported; the message names the array.
        DeviceUnavailableError: there is no such device.
    """
    source = x if cuda is None else to_cuda(x, cuda)
    start = time.perf_counter()
    try:
        compressed = compress(source, codec, threads=threads, seed=seed)
    except TypeError as error:
        raise TypeError(f"array {name!r}: {error}") from None
    _ = compressed.nbytes  # waits for the device
    seconds = time.perf_counter() - start
    if cuda is not None:
        compressed = from_bytes(compressed.to_bytes())  # frees the device's memory for the next array
    return Measurement(name, compressed, x.nbytes, seconds)


def decode(name: str, compressed: Compressed, *, threads: int | None = None) -> tuple[NDArray[Any], Measurement]:
    """Decompress an array into NumPy."""
    start = time.perf_counter()
    restored: NDArray[Any] = decompress(compressed, like=np.empty(0), threads=threads)
    seconds = time.perf_counter() - start
    return restored, Measurement(name, compressed, restored.nbytes, decode_seconds=seconds)


def check(original: NDArray[Any], measurement: Measurement, *, threads: int | None = None) -> Measurement:
    """The measurement with what decompressing takes and gives."""
    restored, decoded = decode(measurement.name, measurement.compressed, threads=threads)
    return Measurement(
        measurement.name,
        measurement.compressed,
        measurement.source_nbytes,
        measurement.encode_seconds,
        decoded.decode_seconds,
        compare(original, restored, measurement.compressed.codec),
    )
