"""Arithmetic on compressed arrays: what an all-reduce of quantized gradients needs, without arrays in between."""

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _dtypes
from .._arguments import thread_count, type_name
from .._arrays.contract import Adapter, Payload
from .._arrays.registry import adapter_named, framework_of
from .._format.spec import Spec
from ..codecs import Codec
from .compress import checked_codec, checked_seed
from .compressed import Compressed

_LARGEST_FLOAT, _LARGEST_DOUBLE = float(np.finfo(np.float32).max), float(np.finfo(np.float64).max)


def accumulate(c: Compressed, into: Any, weight: float = 1.0, *, threads: int | None = None) -> Any:
    """Add a compressed array to an array: ``into += weight * decompress(c)``, in one pass.

    The sum is calculated in float32 (float64 for float64 arrays) and rounded to the dtype once, so that it may differ
    from the formula's, which rounds the product as well. A NaN becomes the quiet one.

    Args:
        c: a compressed array, of a codec with `has_sums`: QSGD with packed levels.
        into: a writable, C-contiguous NumPy, PyTorch or CuPy array of the same shape and dtype, which is changed; or
            one of JAX's, which is not.
        weight: a finite number (in float32 as well, for other arrays than float64).
        threads: how many to use on the CPU; None for all cores that the process may use.

    Returns:
        `into`; a new array for one of JAX's.

    Raises:
        CorruptStreamError: the payload is corrupt.
        TypeError: `c`, `into`, `weight` or `threads` is of a wrong type or dtype, or the codec has no sums.
        ValueError: `into` has another shape, is read-only or not contiguous; `weight` is not finite; `threads` is
            below 1.
        ImportError, DeviceUnavailableError: the framework or the device is not there.

    >>> import numpy, arrcomp
    >>> c = arrcomp.compress(numpy.array([1.0, 2.0, 4.0]), arrcomp.QSGD(bits=8))
    >>> arrcomp.accumulate(c, numpy.array([0.5, 0.5, 0.5]), weight=2)
    array([2.5, 4.5, 8.5])
    """
    threads = thread_count(threads)
    framework = framework_of(into)
    if framework == "dlpack":
        raise TypeError(f"into is a {type_name(into)}; a NumPy, PyTorch, JAX or CuPy array is allowed")
    adapter = adapter_named(framework)
    checked_summand("c", c)
    return accumulate_with(adapter, c, c.payload.to(adapter, adapter.device(into)), into, weight, threads)


def accumulate_with(adapter: Adapter, c: Compressed, payload: Payload, into: Any, weight: float, threads: int) -> Any:
    """`accumulate` of a payload that is where `into` is, with an adapter that is known."""
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

    The sum of the elements, ``weights[0] * y[0] + weights[1] * y[1] + ...`` in this order, is calculated in float32
    (float64 for float64 arrays) and rounded to the dtype once; the result is, byte for byte, what `compress` makes of
    an array with these elements. It is made in one pass where the buckets of `codec` are of 32, 64, ... or 4096
    values; otherwise the array of the sum is in memory for a while.

    Args:
        compressed: compressed arrays of one framework, device, dtype, shape and codec, one with `has_sums`; one
            at least.
        codec: of the result; None for the one of `compressed`.
        weights: a finite number (in float32 as well, for other arrays than float64) for each; None for ones.
        out: memory for the result, as of `compress`.
        threads: how many to use on the CPU; None for all cores that the process may use.
        seed: of the result's codec, as of `compress`.

    Returns:
        The compressed sum, where the arrays are.

    Raises:
        CorruptStreamError: a payload is corrupt.
        TypeError: an argument is of a wrong type; the codec of `compressed` has no sums, or `codec` does not take
            their dtype; or it needs a seed.
        ValueError: `compressed` is empty, or its arrays differ in something; there is not one finite weight for each;
            `out` is too small, read-only or not contiguous; `threads` is below 1, or `seed` out of its range.
        DeviceUnavailableError: the device is not there.

    >>> import numpy, arrcomp
    >>> parts = [arrcomp.compress(numpy.full(100, x), arrcomp.QSGD(bits=8)) for x in (1.0, 2.0)]
    >>> arrcomp.decompress(arrcomp.compress_sum(parts, weights=[0.5, 0.5]))[:3]
    array([1.5, 1.5, 1.5])
    """
    parts = checked_summands(compressed)
    first = parts[0]
    codec = first.codec if codec is None else checked_codec(codec)
    return compress_sum_with(
        first.payload.adapter, parts, codec, weights, out, thread_count(threads), checked_seed(codec, seed)
    )


def compress_sum_with(
    adapter: Adapter, parts: Sequence[Compressed], codec: Codec, weights: Any, out: Any, threads: int, seed: Any
) -> Compressed:
    """`compress_sum` of arrays that go together, with an adapter that is known."""
    spec = parts[0].spec
    codec.check_dtype(spec.dtype)
    checked = checked_weights(weights, len(parts), spec.dtype, "weights")
    result = Spec(codec, spec.dtype, spec.shape)
    payload = adapter.compress_sum([c.payload for c in parts], spec, checked, result, out, threads, seed)
    return Compressed(result, payload)


def checked_summand(name: str, c: Any) -> None:
    """Raise TypeError unless this is a compressed array that can be added."""
    if not isinstance(c, Compressed):
        raise TypeError(f"{name} is a {type_name(c)}; a Compressed is allowed")
    if not c.codec.has_sums:
        raise TypeError(f"{name} is of {c.codec!r}; QSGD of fixed rate is allowed (decompress others)")


def checked_summands(compressed: Any) -> list[Compressed]:
    """Compressed arrays that can be added to each other.

    Raises:
        TypeError: they are no sequence of them.
        ValueError: there is none, or they differ in something.
    """
    if isinstance(compressed, Compressed) or not isinstance(compressed, (list, tuple)):
        raise TypeError(f"compressed is a {type_name(compressed)}; a list or tuple of Compressed is allowed")
    if not compressed:
        raise ValueError("compressed is empty; one at least is allowed")
    for number, c in enumerate(compressed):
        checked_summand(f"compressed[{number}]", c)
        _check_alike(compressed[0], c, number)
    return list(compressed)


def _check_alike(first: Compressed, c: Compressed, number: int) -> None:
    a, b = first.spec, c.spec
    # Field by field: compilers that have symbols for sizes cannot compare the whole.
    if (a.codec.id, a.codec.core_parameters()) != (b.codec.id, b.codec.core_parameters()):
        raise ValueError(f"compressed[{number}] has codec {b.codec}; {a.codec}, as compressed[0] has it, is allowed")
    if a.dtype.name != b.dtype.name:
        raise ValueError(
            f"compressed[{number}] has dtype {b.dtype.name}; {a.dtype.name}, as compressed[0] has it, is allowed"
        )
    if a.shape != b.shape:
        raise ValueError(f"compressed[{number}] has shape {b.shape}; {a.shape}, as compressed[0] has it, is allowed")
    here, there = first.payload, c.payload
    if here.adapter is not there.adapter or here.adapter.batch_key(here.buffer) != here.adapter.batch_key(there.buffer):
        raise ValueError(
            f"compressed[{number}] is of {there.adapter.name} on {c.device}; {here.adapter.name} on {first.device}, "
            "as compressed[0] is, is allowed"
        )


def checked_weights(weights: Any, count: int, dtype: _dtypes.DType, name: str) -> list[float]:
    """A weight for each of `count` arrays; ones for None.

    Raises:
        TypeError: they are no sequence of numbers.
        ValueError: there are more or fewer, or one is not finite in the arithmetic type.
    """
    if weights is None:
        return [1.0] * count
    if not isinstance(weights, (list, tuple, np.ndarray)):
        raise TypeError(f"{name} is a {type(weights).__name__}; a list or tuple of numbers is allowed")
    if len(weights) != count:
        raise ValueError(f"{name} has {len(weights)} numbers; {count}, one for each array, are allowed")
    most = _LARGEST_DOUBLE if dtype.itemsize == 8 else _LARGEST_FLOAT
    checked: list[float] = []
    for weight in weights:
        if isinstance(weight, (bool, np.bool_)) or not isinstance(weight, numbers.Real):
            raise TypeError(f"{name}: {weight!r} is a {type(weight).__name__}; a number is allowed")
        number = float(weight)
        if not abs(number) <= most:  # as a NaN is not either
            raise ValueError(f"{name}: {weight!r} is not finite in the arithmetic of {dtype.name}")
        checked.append(number)
    return checked
