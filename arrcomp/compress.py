"""Arrays to compressed arrays and back."""

import operator
from typing import Any

import numpy as np

from . import _core, arrays, device, dtypes
from .codecs import Codec, Lossless
from .compressed import Compressed
from .machine import thread_count


def compress(x: Any, codec: Codec | None = None, *, out: Any = None, threads: int | None = None) -> Compressed:
    """Compress an array where it is.

    Args:
        x: a NumPy, PyTorch, JAX or CuPy array, a NumPy scalar, or any object with `__dlpack__`, on the CPU or on CUDA;
            of any shape, layout and byte order, and a dtype that the codec takes. It is not changed.
        codec: what to keep; None for `Lossless()`, so that nobody loses data by accident.
        out: memory for the result: a writable, contiguous uint8 array (on the CPU also a bytearray or memoryview) of at
            least `max_compressed_size(x)` bytes on the device of `x`. The result views it. None allocates.
        threads: how many to use on the CPU; None for all cores that the process may use. The result does not depend
            on it.

    Returns:
        The compressed array. On CUDA the work is enqueued on the framework's current stream, and not waited for.

    Raises:
        TypeError: `x` is not an array, has no data (sparse, meta, traced), or a dtype that the codec does not take;
            or `codec`, `out` or `threads` is of a wrong type.
        ValueError: `out` is too small, read-only or not contiguous, or `threads` is below 1.
        DeviceUnavailableError: `x` is on a device that this build or this machine does not have.

    >>> import numpy, arrcomp
    >>> x = numpy.linspace(0, 1, 10_000, dtype=numpy.float32)
    >>> y = arrcomp.decompress(arrcomp.compress(x, arrcomp.ErrorBounded(abs=1e-3)))
    >>> bool(abs(x - y).max() <= 1e-3)
    True
    """
    codec = Lossless() if codec is None else codec
    if not isinstance(codec, Codec):
        raise TypeError(f"codec={codec!r} is a {type(codec).__name__}; a codec is allowed, as ErrorBounded(abs=1e-4)")
    threads = thread_count(threads)
    source = arrays.open_source(x)
    codec.check_dtype(source.dtype)
    on_device = source.kind == "cuda"
    payload = _encode_cuda(source, codec, out) if on_device else _encode_cpu(source, codec, out, threads)
    return Compressed(codec, source.dtype, source.shape, payload, source.home)


def decompress(c: Compressed, *, like: Any = None, out: Any = None, threads: int | None = None) -> Any:
    """The array that was compressed.

    Args:
        c: a compressed array.
        like: an array whose framework and device the result gets (its shape and dtype do not matter).
        out: a writable, C-contiguous NumPy, PyTorch or CuPy array of the same shape and dtype, to be filled and
            returned.
        threads: how many to use on the CPU; None for all cores that the process may use.

    Returns:
        An array in C order and native byte order, of the shape and dtype of the one compressed: in `like`'s framework
        and on its device if given, else in those of the one compressed. Other DLPack producers' arrays, and streams
        read by `from_bytes`, become NumPy arrays.

    Raises:
        CorruptStreamError: the payload is corrupt. (`out` may have been written to.)
        TypeError: `c`, `like`, `out` or `threads` is of a wrong type or dtype, or the framework has no such dtype.
        ValueError: `out` has another shape, is read-only or not contiguous; `like` and `out` are both given; `threads`
            is below 1.
        ImportError, DeviceUnavailableError: the framework or the device is not there.
    """
    if not isinstance(c, Compressed):
        raise TypeError(f"c is a {type(c).__name__}; a Compressed is allowed (of a stream's bytes: from_bytes)")
    if like is not None and out is not None:
        raise ValueError("like and out are both given; one of them is allowed")
    threads = thread_count(threads)
    if out is not None:
        target = arrays.into(out, c.data_type, c.shape)
    else:
        target = arrays.allocate(c.home if like is None else arrays.home_of(like), c.data_type, c.shape)
    if target.home.kind == "cuda":
        memory = device.memory(target.home.framework, target.home.index)
        device.decode(memory, c.data_type.id, c.elements, c.payload, target.buffer)
    else:
        payload = c.host_payload()
        arrays.check_apart(payload, target.buffer, "out overlaps the compressed array; separate memory is allowed")
        _core.decode(c.data_type.id, payload, c.elements, target.buffer, threads)
    return target.result()


def max_compressed_size(x: Any, dtype: Any = None) -> int:
    """How large an `out` for `compress` must be, in bytes, whatever the codec and the values.

    Args:
        x: an array; or its shape (a size or a sequence of sizes), and `dtype` as well.
        dtype: a NumPy dtype or the name of one, as "bfloat16"; only with a shape.

    Raises:
        TypeError: `x` is neither, or the dtype is not supported.
        ValueError: a size is negative.

    >>> import arrcomp
    >>> arrcomp.max_compressed_size((1000, 3), "float32") >= 12_000
    True
    """
    if dtype is None:
        source = arrays.open_source(x)
        return _core.capacity(source.dtype.id, source.elements)
    row = dtypes.by_numpy(dtype)
    elements = row.parts
    for size in x if isinstance(x, (tuple, list)) else (x,):
        size = operator.index(size)
        if size < 0:
            raise ValueError(f"shape {x}: sizes of 0 and above are allowed")
        elements *= size
    return _core.capacity(row.id, elements)


def _encode_cpu(source: arrays.Source, codec: Codec, out: Any, threads: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    capacity = _core.capacity(source.dtype.id, source.elements)
    buffer = np.empty(capacity, np.uint8) if out is None else arrays.writable_buffer(out, capacity, "cpu", 0)
    data = source.read()
    arrays.check_apart(data, buffer, "out overlaps x; separate memory is allowed")
    kind, bound, fast = codec.core_parameters()
    nbytes = _core.encode(source.dtype.id, data, source.elements, int(kind), bound, fast, buffer, threads)
    if out is not None:
        return buffer.reshape(-1)[:nbytes]
    buffer.resize(nbytes, refcheck=False)  # gives the rest back without a copy
    return buffer


def _encode_cuda(source: arrays.Source, codec: Codec, out: Any) -> device.DevicePayload:
    memory = device.memory(source.home.framework, source.index)
    capacity = _core.capacity(source.dtype.id, source.elements)
    given = None if out is None else arrays.writable_buffer(out, capacity, "cuda", source.index)
    buffer = memory.empty(capacity) if given is None else memory.flat(given)
    parameters = codec.core_parameters()
    payload = device.encode(memory, source.dtype.id, source.elements, source.read(), parameters, buffer)
    if source.home.framework != memory.framework:
        payload.nbytes  # noqa: B018  Waits: x's framework does not know that this stream still reads x.
    return payload
