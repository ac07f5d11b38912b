"""Compress an array, decompress and compare it, and time both, for the command line's tables."""

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._api.compress import compress
from .._api.compressed import Compressed, decompress, from_bytes
from .._arrays.registry import to_cuda
from .._format.spec import Spec
from ..codecs import Codec
from .guarantees import Comparison, compare

Array = NDArray[Any]


class Measurement(NamedTuple):
    """The measurements of one array; None if not measured."""

    name: str
    spec: Spec
    nbytes: int  # of its stream in a file
    framed: bool = False  # whether its payload is in a Zstandard frame
    encode_seconds: float | None = None  # to compress it on its device, and to make its frame
    decode_seconds: float | None = None  # to decompress it to NumPy, with its frame
    comparison: Comparison | None = None  # with the decompressed array


class Settings(NamedTuple):
    """How arrays are compressed, besides their codecs."""

    threads: int | None = None  # on the CPU; None for all cores
    seed: int | None = None  # for codecs with stochastic rounding
    zstd_level: int | None = None  # same as in `Compressed.to_bytes`
    cuda: int | None = None  # index of the CUDA device to compress on; None for the CPU


def encode(
    name: str, x: Array, codec: Codec, settings: Settings, reference: Array | None = None
) -> tuple[Compressed, Measurement]:
    """Compress an array, against a `reference` if there is one. The result is in host memory, framed if it has one."""
    threads, seed, zstd_level, cuda = settings
    source = x if cuda is None else to_cuda(x, cuda)
    start = time.perf_counter()
    compressed = compress(source, codec, reference=reference, threads=threads, seed=seed)
    nbytes = compressed.nbytes  # synchronizes
    if zstd_level is not None:
        stream = compressed.to_bytes(zstd_level=zstd_level, threads=threads)
        compressed, nbytes = from_bytes(stream, max_nbytes=compressed.spec.nbytes), len(stream)
    seconds = time.perf_counter() - start
    if cuda is not None and zstd_level is None:
        compressed = from_bytes(compressed.to_bytes())  # frees the device's memory for the next array
    return compressed, Measurement(name, compressed.spec, nbytes, compressed.payload.is_framed, seconds)


def decode(
    compressed: Compressed, measurement: Measurement, threads: int | None, reference: Array | None = None
) -> tuple[Array, Measurement]:
    """Decompress an array to NumPy. Returns it and the measurement with the time."""
    start = time.perf_counter()
    restored: Array = decompress(compressed, reference=reference, like=np.empty(0), threads=threads)
    return restored, measurement._replace(decode_seconds=time.perf_counter() - start)


def check(
    original: Array,
    compressed: Compressed,
    measurement: Measurement,
    threads: int | None,
    reference: Array | None = None,
) -> Measurement:
    """The measurement with the time to decompress and the comparison."""
    restored, decoded = decode(compressed, measurement, threads, reference)
    return decoded._replace(comparison=compare(original, restored, compressed.codec))
