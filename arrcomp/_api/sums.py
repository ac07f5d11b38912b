"""Sums of compressed arrays without decompressed copies, for instance for an all-reduce of quantized gradients."""

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _dtypes
from .._arguments import as_float, shown, thread_count, wrong_type, wrong_value
from .._arrays.contract import Adapter, Payload
from .._arrays.registry import adapter_named, framework_of
from .._format.spec import Spec
from ..codecs import Codec
from .compress import checked_codec, checked_seed
from .compressed import Compressed

_LARGEST_FLOAT, _LARGEST_DOUBLE = float(np.finfo(np.float32).max), float(np.finfo(np.float64).max)


def accumulate(c: Compressed, into: Any, weight: float = 1.0, *, threads: int | None = None) -> Any:
    """Add a compressed array to an array: ``into += weight * decompress(c)``, in one pass.

    The sum is computed in float32 (float64 for float64 arrays) and rounded to the dtype once. It may differ from the
    formula, which also rounds the product. NaN becomes the default quiet NaN. There is no `max_nbytes`, as `into` has
    the array's size already.

    Args:
        c: a compressed array of a codec with `has_sums`: QSGD with packed levels.
        into: a writable, C-contiguous NumPy, PyTorch or CuPy array of the same shape and dtype, which is changed; or a
            JAX array, which is not.
        weight: a finite number (finite in float32, unless the arrays are float64).
        threads: same as in `compress`.

    Returns:
        `into`; a new array for JAX.

    Raises:
        TypeError: the codec has no sums; or an argument is of a wrong type or dtype.
        ValueError: `into` has another shape, is read-only or not contiguous; `weight` is not finite; or `threads` is
            below 1.
        CorruptStreamError, ImportError, DeviceUnavailableError: same as in `decompress`.

    >>> import numpy, arrcomp
    >>> c = arrcomp.compress(numpy.array([1.0, 2.0, 4.0]), arrcomp.QSGD(bits=8))
    >>> arrcomp.accumulate(c, numpy.array([0.5, 0.5, 0.5]), weight=2)
    array([2.5, 4.5, 8.5])
    """
    threads = thread_count(threads)
    framework = framework_of(into, "into")
    if framework in ("dlpack", "other"):
        raise wrong_type("into", "a NumPy, PyTorch, JAX or CuPy array", into)
    adapter = adapter_named(framework)
    checked_summand("c", c)
    return accumulate_with(adapter, c, c.payload.to(adapter, adapter.device(into)), into, weight, threads)


def accumulate_with(adapter: Adapter, c: Compressed, payload: Payload, into: Any, weight: float, threads: int) -> Any:
    """`accumulate` with a known adapter and a payload on the device of `into`."""
    (checked,) = checked_weights([weight], 1, c.spec.dtype, "weight")
    return adapter.accumulate(payload, c.spec, checked, into, threads)


def compress_sum(
    compressed: Sequence[Compressed],
    codec: Codec | None = None,
    *,
    weights: Sequence[float] | None = None,
    out: Any = None,
    threads: int | None = None,
    seed: Any = None,
) -> Compressed:
    """Compress the (weighted) sum of compressed arrays, without decompressing them to memory first.

    The sum of the elements, ``weights[0] * y[0] + weights[1] * y[1] + ...`` in this order, is computed in float32
    (float64 for float64 arrays) and rounded to the dtype once. The result has the same bytes as `compress` of an array
    with these elements. If the buckets of `codec` have 32, 64, ... or 4096 values, one pass is enough. Otherwise the
    array of the sum is in memory temporarily. There is no `check_finite`: check the arrays when they are compressed.

    Arguments and errors are those of `arrcomp.compress`, except:

    Args:
        compressed: at least one compressed array, all of one framework, device, dtype, shape and codec with `has_sums`.
        codec: codec of the result; None for that of `compressed`.
        weights: a finite number (finite in float32, unless the arrays are float64) for each array; None for ones.
        out: memory for the result, same as in `compress`.
        threads: same as in `compress`.
        seed: for the result's codec, same as in `compress`.

    Returns:
        The compressed sum, on the same device.

    Raises:
        CorruptStreamError: a payload is corrupt.
        TypeError: the codec of `compressed` has no sums; or same as in `compress`.
        ValueError: `compressed` is empty, or its arrays do not match; there is not one finite weight for each; or same
            as in `compress`.

    >>> import numpy, arrcomp
    >>> terms = [arrcomp.compress(numpy.full(100, x), arrcomp.QSGD(bits=8)) for x in (1.0, 2.0)]
    >>> arrcomp.decompress(arrcomp.compress_sum(terms, weights=[0.5, 0.5]))[:3]
    array([1.5, 1.5, 1.5])
    """
    terms = checked_summands(compressed)
    adapter = terms[0].payload.adapter
    codec = terms[0].codec if codec is None else checked_codec(codec)
    return compress_sum_with(adapter, terms, codec, weights, out, thread_count(threads), checked_seed(codec, seed))


def compress_sum_with(
    adapter: Adapter, terms: Sequence[Compressed], codec: Codec, weights: Any, out: Any, threads: int, seed: Any
) -> Compressed:
    """`compress_sum` with a known adapter and matching arrays."""
    spec = terms[0].spec
    codec.check_dtype(spec.dtype)
    checked = checked_weights(weights, len(terms), spec.dtype, "weights")
    result = Spec(codec, spec.dtype, spec.shape)
    payload = adapter.compress_sum([c.payload for c in terms], spec, checked, result, out, threads, seed)
    return Compressed(result, payload)


def checked_summand(name: str, c: Any) -> None:
    """Raise TypeError unless this is a compressed array of a codec with sums."""
    if not isinstance(c, Compressed):
        raise wrong_type(name, "a Compressed", c)
    if not c.codec.has_sums:
        raise TypeError(f"{name}: expected codec QSGD with packed levels, got {shown(c.codec)}; decompress others")


def checked_summands(compressed: Any) -> list[Compressed]:
    """Compressed arrays that can be added to each other: a list or tuple of at least one, which match."""
    if isinstance(compressed, Compressed) or not isinstance(compressed, (list, tuple)):
        raise wrong_type("compressed", "a list or tuple of Compressed", compressed)
    if not compressed:
        raise ValueError("compressed: expected at least one array, got none")
    for number, c in enumerate(compressed):
        checked_summand(f"compressed[{number}]", c)
        _check_alike(compressed[0], c, number)
    return list(compressed)


def _check_alike(first: Compressed, c: Compressed, number: int) -> None:
    a, b = first.spec, c.spec
    name = f"compressed[{number}]"
    # Compilers with symbolic sizes cannot compare whole specs.
    if (a.codec.id, a.codec.core_parameters()) != (b.codec.id, b.codec.core_parameters()):
        raise ValueError(f"{name}: expected codec {shown(a.codec)}, that of compressed[0], got {shown(b.codec)}")
    if a.dtype.name != b.dtype.name:
        raise ValueError(f"{name}: expected dtype {a.dtype.name}, that of compressed[0], got {b.dtype.name}")
    if a.shape != b.shape:
        raise ValueError(f"{name}: expected shape {shown(a.shape)}, that of compressed[0], got {shown(b.shape)}")
    here, there = first.payload, c.payload
    if here.adapter is not there.adapter or here.adapter.batch_key(here.buffer) != here.adapter.batch_key(there.buffer):
        expected, got = f"{here.adapter.name} on {first.device}", f"{there.adapter.name} on {c.device}"
        raise ValueError(f"{name}: expected {expected}, that of compressed[0], got {got}")


def checked_weights(weights: Any, count: int, dtype: _dtypes.DType, name: str) -> list[float]:
    """A weight for each of `count` arrays, finite in the arithmetic type; ones for None."""
    if weights is None:
        return [1.0] * count
    if not isinstance(weights, (list, tuple, np.ndarray)) or getattr(weights, "shape", None) == ():
        raise wrong_type(name, "a list or tuple of numbers", weights)
    if len(weights) != count:
        raise ValueError(f"{name}: expected {count} numbers, one for each array, got {len(weights)}")
    most = _LARGEST_DOUBLE if dtype.itemsize == 8 else _LARGEST_FLOAT
    checked: list[float] = []
    for weight in weights:
        if isinstance(weight, (bool, np.bool_)) or not isinstance(weight, numbers.Real):
            raise wrong_type(name, "a number", weight)
        number = as_float(weight)
        if not abs(number) <= most:  # NaN is refused too
            raise wrong_value(name, f"a finite number in the arithmetic of {dtype.name}", weight)
        checked.append(number)
    return checked
