"""Arrays to compressed arrays and back."""

import operator
from typing import Any

import numpy as np

from .. import _dtypes
from .._arguments import thread_count
from .._arrays.contract import Adapter, Home
from .._arrays.payload import admit
from .._arrays.registry import adapter_of, place_of, place_to_fill
from .._format.spec import Spec
from ..codecs import Codec, Lossless
from .compressed import Compressed


def compress(
    x: Any,
    codec: Codec | None = None,
    *,
    out: Any = None,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
) -> Compressed:
    """Compress an array where it is.

    Args:
        x: a NumPy, PyTorch, JAX or CuPy array, a NumPy scalar, or any object with `__dlpack__`, on the CPU or on CUDA;
            of any shape, layout and byte order, and a dtype that the codec takes. It is not changed.
        codec: what to keep; None for `Lossless()`, so that nobody loses data by accident.
        out: memory for the result: a writable, contiguous uint8 array (on the CPU also a bytearray or memoryview) of at
            least `max_compressed_nbytes(x)` bytes on the device of `x`. The result views it. None allocates. (Not for
            JAX, whose arrays cannot be written to.)
        threads: how many to use on the CPU; None for all cores that the process may use. The result does not depend
            on it.
        seed: for codecs that round at random (others ignore it): an integer from 0 to 2^64 - 1, or an integer array
            without dimensions of the framework of `x` on its device, which is read when the work is done. Equal seeds
            give equal bytes, on every device and with any number of threads.
        check_finite: raise if a value is NaN or infinite, instead of what the codec does with it. Reads the array once
            more, and waits for the device.

    Returns:
        The compressed array. On CUDA the work is enqueued on the framework's current stream, and not waited for.

    Raises:
        TypeError: `x` is not an array, has no data (sparse, meta), or a dtype that the codec does not take;
            or `codec`, `out`, `threads` or `seed` is of a wrong type, or the codec needs a seed.
        ValueError: `out` is too small, read-only or not contiguous, `threads` is below 1, `seed` out of its range, or
            with `check_finite` a value is not finite.
        DeviceUnavailableError: `x` is on a device that this build or this machine does not have.

    >>> import numpy, arrcomp
    >>> x = numpy.linspace(0, 1, 10_000, dtype=numpy.float32)
    >>> y = arrcomp.decompress(arrcomp.compress(x, arrcomp.ErrorBounded(abs=1e-3)))
    >>> bool(abs(x - y).max() <= 1e-3)
    True
    """
    codec = checked_codec(codec)
    threads = thread_count(threads)
    adapter, x = adapter_of(x)
    if check_finite:
        check_all_finite(adapter, x)
    return compress_with(adapter, x, codec, out, threads, checked_seed(codec, seed))


def check_all_finite(adapter: Adapter, x: Any, *, tracing: bool = False) -> None:
    """Raise ValueError if a value of an array is NaN or infinite, or if `x` is being traced. Synchronizes."""
    if tracing:
        raise ValueError("check_finite: expected False under tracing, got True")
    adapter.look(x)
    if not adapter.is_finite(x):
        raise ValueError("x: expected finite values, got NaN or infinity; check_finite=False leaves them to the codec")


def compress_with(adapter: Adapter, x: Any, codec: Codec, out: Any, threads: int, seed: Any) -> Compressed:
    """`compress` of an array whose adapter is known, with arguments that are checked."""
    spec = spec_of(adapter, x, codec)
    (payload,) = adapter.compress([x], [spec], None if out is None else [out], threads, seed)
    return Compressed(spec, payload)


def checked_seed(codec: Codec, seed: Any) -> Any:
    """The seed; None where the codec needs none.

    Raises:
        TypeError: the codec needs one, and it is None or neither an integer nor an array without dimensions.
        ValueError: it is not from 0 to 2^64 - 1.
    """
    if not codec.needs_seed:
        return None
    # First: compilers that have a symbol for the number follow this alone.
    if type(seed) is int and 0 <= seed < 1 << 64:
        return seed
    if getattr(seed, "shape", None) == () and not isinstance(seed, np.generic):
        return seed
    try:
        number = None if seed is None or isinstance(seed, (bool, np.bool_)) else operator.index(seed)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"seed={seed!r}: {codec!r} rounds at random and takes an integer, or an array of one")
    if not 0 <= number < 1 << 64:
        raise ValueError(f"seed={number}: 0 to 2^64 - 1 is allowed")
    return number


def checked_codec(codec: Any) -> Codec:
    """The codec; the default one for None.

    Raises:
        TypeError: it is not a codec.
    """
    if codec is None:
        return Lossless()
    if not isinstance(codec, Codec):
        raise TypeError(f"codec={codec!r} is a {type(codec).__name__}; a codec is allowed, as ErrorBounded(abs=1e-4)")
    return codec


def spec_of(adapter: Adapter, x: Any, codec: Codec) -> Spec:
    """What will be known of the compressed array."""
    dtype, shape = adapter.look(x)
    codec.check_dtype(dtype)
    return Spec(codec, dtype, shape)


def decompress(
    c: Compressed, *, like: Any = None, out: Any = None, threads: int | None = None, max_nbytes: int | None = None
) -> Any:
    """The array that was compressed.

    Args:
        c: a compressed array.
        like: an array whose framework and device the result gets (its shape and dtype do not matter).
        out: a writable, C-contiguous NumPy, PyTorch or CuPy array of the same shape and dtype, to be filled and
            returned.
        threads: how many to use on the CPU; None for all cores that the process may use.
        max_nbytes: bytes that the array may have. None for what `from_bytes` or the file's reader was told, by default
            8192 times the bytes of the stream, or 1 GiB if that is more; and for no limit of what `compress` made in
            this process.

    Returns:
        An array in C order and native byte order, of the shape and dtype of the one compressed: in `like`'s framework
        and on its device if given, else in those of the one compressed. Other DLPack producers' arrays in host memory,
        and streams read by `from_bytes`, become NumPy arrays.

    Raises:
        CorruptStreamError: the payload is corrupt. (`out` may have been written to.)
        SizeLimitError: the array is larger than `max_nbytes`; nothing was allocated.
        TypeError: `c`, `like`, `out`, `threads` or `max_nbytes` is of a wrong type or dtype, or the framework has no such
            dtype.
        ValueError: `out` has another shape, is read-only or not contiguous; `like` and `out` are both given; `threads`
            is below 1, or `max_nbytes` below 0.
        ImportError, DeviceUnavailableError: the framework or the device is not there.
    """
    if not isinstance(c, Compressed):
        raise TypeError(f"c is a {type(c).__name__}; a Compressed is allowed (of a stream's bytes: from_bytes)")
    if like is not None and out is not None:
        raise ValueError("like and out are both given; one of them is allowed")
    threads = thread_count(threads)
    payload = c.payload
    admit(c.spec, payload, max_nbytes)
    if like is not None:
        return decompress_at(c, *place_of(like), threads)
    if out is not None:
        payload = payload.moved(*place_to_fill(out))
    (array,) = payload.adapter.decompress([payload], [c.spec], None if out is None else [out], threads)
    return array


def decompress_at(c: Compressed, adapter: Adapter, home: Home, threads: int) -> Any:
    """`decompress` into an adapter's framework, at one of its homes."""
    admit(c.spec, c.payload, None)
    payload = c.payload.moved(adapter, home)
    (array,) = payload.adapter.decompress([payload], [c.spec], None, threads)
    return array


def max_compressed_nbytes(x: Any, dtype: Any = None) -> int:
    """How large an `out` for `compress` must be, in bytes, whatever the codec and the values.

    Args:
        x: an array; or its shape (a size or a sequence of sizes), and `dtype` as well.
        dtype: a NumPy dtype or the name of one, as "bfloat16"; only with a shape.

    Raises:
        TypeError: `x` is neither, or the dtype is not supported.
        ValueError: a size is negative.

    >>> import arrcomp
    >>> arrcomp.max_compressed_nbytes((1000, 3), "float32") >= 12_000
    True
    """
    if dtype is None:
        adapter, x = adapter_of(x)
        return spec_of(adapter, x, Lossless()).capacity
    row = _dtypes.by_numpy(dtype)
    elements = row.parts
    for size in x if isinstance(x, (tuple, list)) else (x,):
        size = operator.index(size)
        if size < 0:
            raise ValueError(f"shape {x}: sizes of 0 and above are allowed")
        elements *= size
    return Spec(Lossless(), row, (elements // row.parts,)).capacity
