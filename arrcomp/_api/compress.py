"""Compress one array."""

import math
import operator
from typing import Any

import numpy as np

from .. import _dtypes
from .._arguments import shown, thread_count, wrong_type, wrong_value
from .._arrays.contract import Adapter
from .._arrays.registry import adapter_of
from .._format.spec import Spec
from ..codecs import Codec, Lossless
from ..codecs._base import wrong_codec
from .compressed import Compressed
from .references import adopted, checked_reference, codec_for_reference

_LOSSLESS = Lossless()  # made once: that takes a fifth of a small call
_LONGEST = _LOSSLESS.with_reference()  # of all codecs' payloads


def compress(
    x: Any,
    codec: Codec | None = None,
    *,
    reference: Any = None,
    out: Any = None,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
) -> Compressed:
    """Compress an array on its device.

    Args:
        x: a NumPy, PyTorch, JAX or CuPy array, a NumPy scalar, or any object with `__dlpack__`, on the CPU or on CUDA;
            of any shape, layout and byte order, and a dtype that the codec takes. It is not changed. Other objects with
            `__array__`, such as those of xarray and pandas, are converted to NumPy arrays: names, coordinates and
            attributes are not kept.
        codec: the codec; None for `Lossless()`: compression is lossless by default.
        reference: an array that whoever decompresses has too, of the dtype and shape of `x`, in its framework and on
            its device. `x` is coded by what it differs in from it: a step of training, a fine-tuned model, a later
            checkpoint. `codec` is then `Lossless` or `ErrorBounded` without a predictor, and the codec of the result
            has the predictor "reference".
        out: memory for the result: a writable, contiguous uint8 array (on the CPU also a bytearray or memoryview) of at
            least `max_compressed_nbytes(x)` bytes on the device of `x`. The result views it. None allocates memory.
            (JAX has no `out`, as its arrays are immutable.)
        threads: number of threads on the CPU; None for all cores that the process may use. The result does not depend
            on it.
        seed: for codecs with stochastic rounding (others ignore it): an integer from 0 to 2^64 - 1, or a 0-dimensional
            integer array of the framework of `x` on its device, which is read asynchronously. Equal seeds give equal
            bytes, on every device and with any number of threads.
        check_finite: raise ValueError if a value is NaN or infinite. This reads the array once more, and synchronizes.

    Returns:
        The compressed array. On CUDA the call is asynchronous: it enqueues work on the framework's current stream.

    Raises:
        TypeError: `x` is not an array, has no data (sparse, meta), or has a dtype that the codec does not take; or
            `codec`, `out`, `threads` or `seed` is of a wrong type, or the codec needs a seed; or `reference` is of
            another framework or dtype, or the codec takes none.
        ValueError: `reference` has another shape or device; `out` is too small, read-only or not contiguous; `threads`
            is below 1 or above 2^31 - 1; `seed` is out of its range; or `check_finite` is set and a value is not
            finite.
        DeviceUnavailableError: this build or this computer does not have the device of `x`.

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
        adapter.dtype_and_shape(x)
        check_values(adapter, x, "x")
    if reference is not None:
        reference = adopted(adapter, reference)
    return compress_with(adapter, x, codec, out, threads, checked_seed(codec, seed), reference)


def check_values(adapter: Adapter, x: Any, name: str) -> None:
    """Raise ValueError if a value is NaN or infinite. Synchronizes."""
    if not adapter.is_finite(x):
        raise ValueError(f"{name}: expected finite values, got NaN or infinities; check_finite=False accepts them")


def compress_with(
    adapter: Adapter, x: Any, codec: Codec, out: Any, threads: int, seed: Any, reference: Any = None
) -> Compressed:
    """`compress` with a known adapter, arrays of it and checked arguments."""
    spec = spec_of(adapter, x, codec_for_reference(codec, reference))
    references = None if reference is None else [checked_reference(adapter, reference, spec, x)]
    (payload,) = adapter.compress([x], [spec], None if out is None else [out], threads, seed, references)
    return Compressed(spec, payload)


def checked_seed(codec: Codec, seed: Any) -> Any:
    """The seed, checked: an integer or a 0-dimensional array; None if the codec needs none."""
    if not codec.needs_seed:
        return None
    # This test comes first: compilers with symbolic numbers can trace it alone.
    if type(seed) is int and 0 <= seed < 1 << 64:
        return seed
    if getattr(seed, "shape", None) == () and not isinstance(seed, np.generic):
        return seed
    try:
        number = None if seed is None or isinstance(seed, (bool, np.bool_)) else operator.index(seed)
    except TypeError:
        number = None
    if number is None:
        raise wrong_type("seed", f"an integer, or a 0-dimensional integer array, for {shown(codec)}", seed)
    if not 0 <= number < 1 << 64:
        raise wrong_value("seed", "an integer from 0 to 2^64 - 1", number)
    return number


def checked_codec(codec: Any, name: str = "codec") -> Codec:
    """The codec; `Lossless()` for None. Raises TypeError where the argument `name` is no codec."""
    if codec is None:
        return _LOSSLESS
    if not isinstance(codec, Codec):
        raise wrong_codec(name, "a codec such as ErrorBounded(abs=1e-4)", codec)
    return codec


def checked_unaided_codec(codec: Any, name: str = "codec") -> Codec:
    """Same as `checked_codec`; ValueError for a codec that needs a seed or a reference."""
    checked = checked_codec(codec, name)
    if checked.needs_seed or checked.needs_reference:
        raise wrong_value(name, "a codec that needs no seed and no reference", checked)
    return checked


def spec_of(adapter: Adapter, x: Any, codec: Codec) -> Spec:
    """Codec, data type and shape of an array's compressed array."""
    dtype, shape = adapter.dtype_and_shape(x)
    codec.check_dtype(dtype)
    return Spec(codec, dtype, shape)


def max_compressed_nbytes(x: Any, dtype: Any = None) -> int:
    """The number of bytes that `out` of `compress` needs to be enough for every codec and all values.

    Args:
        x: an array; or a shape (a size or a sequence of sizes), with `dtype`.
        dtype: a NumPy dtype or its name, for instance "bfloat16"; only with a shape.

    Raises:
        TypeError: `x` is neither an array nor a shape, or the dtype is not supported.
        ValueError: a size is negative, or the shape has 2^60 elements or more.

    >>> import arrcomp
    >>> arrcomp.max_compressed_nbytes((1000, 3), "float32") >= 12_000
    True
    """
    if dtype is None:
        adapter, x = adapter_of(x)
        return spec_of(adapter, x, _LONGEST).capacity
    row, shape = _dtypes.by_numpy(dtype), _checked_shape(x)
    elements = math.prod(shape) * row.parts
    if elements >= _dtypes.MAX_VALUES:
        raise wrong_value("x", "a shape of fewer than 2^60 values (complex: 2^59)", shape)
    return Spec(_LONGEST, row, shape).capacity


def _checked_shape(x: Any) -> tuple[int, ...]:
    """A size, or a sequence of sizes, as a shape."""
    try:
        shape = tuple(map(operator.index, x if isinstance(x, (tuple, list)) else (x,)))
    except TypeError:
        raise wrong_type("x", "an integer or a sequence of integers with dtype", x) from None
    if any(size < 0 for size in shape):
        raise wrong_value("x", "a shape of sizes of at least 0", x)
    return shape
