"""CuPy arrays to compressed arrays and back."""

from typing import Any

import cupy  # type: ignore[import-not-found,import-untyped,unused-ignore]

from .._api.compress import checked_codec, checked_seed, compress_with
from .._api.compress import decompress as decompress_any
from .._api.compressed import Compressed
from .._arguments import wrong_type
from .._arrays.device import Device
from ..codecs import Codec
from ._adapter import ADAPTER, check_array


def compress(x: Any, codec: Codec | None = None, *, out: Any = None, seed: Any = None) -> Compressed:
    """Compress a CuPy array where it is, without waiting for anything.

    Args:
        x: a `cupy.ndarray` of any shape and layout. It is not changed.
        codec: what to keep; None for `Lossless()`.
        out: memory for the result: a contiguous uint8 `cupy.ndarray` of at least `max_compressed_nbytes(x)` bytes on
            the device of `x`. The result views it. None allocates from CuPy's pool.
        seed: of a codec that draws random numbers; others ignore it. An integer from 0 to 2^64 - 1, or an integer
            `cupy.ndarray` of no dimensions on the device of `x`, whose value is read when the current stream comes to
            it (without its sign, as 64 bits).

    Returns:
        The compressed array. Its payload is ready when the current stream has come so far.

    Raises:
        TypeError: `x`, `out` or `seed` is not such an array, the codec does not take the dtype, or it needs a seed.
        ValueError: `out` is too small, not contiguous, not aligned to 8 bytes, or overlaps `x`.
        DeviceUnavailableError: this build has no CUDA.
    """
    if not isinstance(x, cupy.ndarray):
        raise wrong_type("x", "a cupy.ndarray (arrcomp.compress takes every array)", x)
    codec = checked_codec(codec)
    return compress_with(ADAPTER, x, codec, out, 0, checked_seed(codec, seed))


def decompress(c: Compressed, *, out: Any = None) -> Any:
    """The array that was compressed, as a `cupy.ndarray`.

    Args:
        c: a compressed array. Where its payload is not in CuPy's memory, it is taken or copied to the current device.
        out: a C-contiguous `cupy.ndarray` of the same shape and dtype, to be filled and returned. None allocates from
            CuPy's pool.

    Returns:
        The array, ready when the current stream has come so far.

    Raises:
        CorruptStreamError: the payload, which this process did not make, is corrupt.
        TypeError: `c` or `out` is of a wrong type or dtype, or CuPy has no such dtype.
        ValueError: `out` has another shape, is not contiguous, not aligned, or overlaps the payload.
        DeviceUnavailableError: the device is not there, or this build has no CUDA.
    """
    if out is not None:
        check_array(out)
        return decompress_any(c, out=out)
    if not isinstance(c, Compressed) or c.payload.adapter is ADAPTER:
        return decompress_any(c)
    here = c.payload.device
    device = Device("cupy", "cuda", here.index) if here.kind == "cuda" else ADAPTER.default_device()
    return decompress_any(Compressed(c.spec, c.payload.to(ADAPTER, device)))
