"""Compression and decompression of CuPy arrays."""

from typing import Any

import cupy  # type: ignore[import-not-found,import-untyped,unused-ignore]

from .._api.compress import checked_codec, checked_seed, compress_with
from .._api.compressed import Compressed
from .._api.compressed import decompress as decompress_any
from .._arguments import wrong_type
from .._arrays.device import Device
from ..codecs import Codec
from ._adapter import ADAPTER, check_array


def compress(
    x: Any, codec: Codec | None = None, *, reference: Any = None, out: Any = None, seed: Any = None
) -> Compressed:
    """Compress a CuPy array on its device, asynchronously.

    Arguments and errors are those of `arrcomp.compress`, except: `x` is a `cupy.ndarray`; `out` is a contiguous uint8
    `cupy.ndarray` on the same device, aligned to 8 bytes, or None to allocate from CuPy's pool; an array as `seed` is a
    0-d integer `cupy.ndarray` there, whose value the current stream reads (as 64 bits, without its sign). It is a
    DeviceUnavailableError if this build has no CUDA.
    """
    if not isinstance(x, cupy.ndarray):
        raise wrong_type("x", "a cupy.ndarray (arrcomp.compress takes every array)", x)
    if reference is not None:
        check_array(reference, "reference")
    codec = checked_codec(codec)
    return compress_with(ADAPTER, x, codec, out, 0, checked_seed(codec, seed), reference)


def decompress(c: Compressed, *, reference: Any = None, out: Any = None) -> Any:
    """Decompress to a `cupy.ndarray`, asynchronously but with a reference.

    Arguments and errors are those of `arrcomp.decompress`, except: `out` is a C-contiguous, aligned `cupy.ndarray` to
    fill and return, or None to allocate from CuPy's pool; a payload in other memory than CuPy's is copied to the
    current device, or taken without a copy if it is on a CUDA device. It is a TypeError if CuPy has no such dtype, and
    a DeviceUnavailableError if the device does not exist or this build has no CUDA.
    """
    if out is not None:
        check_array(out)
        return decompress_any(c, reference=reference, out=out)
    if not isinstance(c, Compressed) or c.payload.adapter is ADAPTER or reference is not None:
        return decompress_any(c, reference=reference)
    here = c.payload.device
    device = Device("cupy", "cuda", here.index) if here.kind == "cuda" else ADAPTER.default_device()
    return decompress_any(Compressed(c.spec, c.payload.to(ADAPTER, device)))
