"""References: arrays that others are compressed against, by what these differ in (FORMAT.md, section 10)."""

from typing import Any

from .. import _core
from .._arguments import thread_count
from .._arrays.checks import check_matches
from .._arrays.contract import Adapter
from .._arrays.numpy import ADAPTER as NUMPY
from .._arrays.registry import adapter_of
from .._format.spec import Spec
from ..codecs import Codec


def content_hash(x: Any, *, threads: int | None = None) -> int:
    """The hash of an array's elements by which `decompress` knows a reference: `Compressed.reference_hash`.

    Args:
        x: an array, same as in `compress`. It is copied to host memory from elsewhere.
        threads: number of threads; None for all cores that the process may use.

    Returns:
        An integer from 0 to 2^64 - 1. It does not depend on framework, device, dtype and shape, but on the elements'
        bits, in C order. It is no secure hash: other arrays of the same hash can be made.

    Raises:
        TypeError: `x` is not an array, or has a dtype that the format lacks.

    >>> import numpy, arrcomp
    >>> old, new = numpy.zeros(1000, numpy.float32), numpy.ones(1000, numpy.float32)
    >>> c = arrcomp.compress(new, reference=old)
    >>> c.reference_hash == arrcomp.content_hash(old) != arrcomp.content_hash(new)
    True
    """
    count = thread_count(threads)
    adapter, x = adapter_of(x)
    dtype = adapter.dtype_and_shape(x)[0]
    data = adapter.host_bytes(x)
    return _core.content_hash(dtype.id, NUMPY.address(data), data.nbytes * dtype.parts // dtype.itemsize, count)


def codec_for_reference(codec: Codec, reference: Any) -> Codec:
    """The codec for an array and its reference, which may be None; raises TypeError or ValueError for another codec."""
    if reference is not None:
        return codec.with_reference()
    if codec.needs_reference:
        raise ValueError(f"reference: expected an array for {codec!r}, got none")
    return codec


def adopted(adapter: Adapter, reference: Any, name: str = "reference") -> Any:
    """The reference as an array of an adapter; raises TypeError where it is of another framework."""
    own, x = adapter_of(reference, name)
    if own is not adapter:
        raise TypeError(f"{name}: expected an array of {adapter.name}, as the other one is, got one of {own.name}")
    return x


def checked_reference(adapter: Adapter, reference: Any, spec: Spec, like: Any, name: str = "reference") -> Any:
    """An adapter's array as the reference of an array of this description, where `like` is."""
    check_matches(*adapter.dtype_and_shape(reference), spec, name)
    here, there = adapter.batch_key(reference), adapter.batch_key(like)
    if here != there and here is not None and there is not None:
        places = adapter.device(like).name, adapter.device(reference).name
        raise ValueError(f"{name}: expected an array on {places[0]}, got one on {places[1]}")
    return reference


def check_given(spec: Spec, reference: Any, name: str = "reference") -> None:
    """Raise ValueError unless there is a reference exactly where a compressed array needs it."""
    if spec.codec.needs_reference and reference is None:
        raise ValueError(f"{name}: expected the array that c was compressed against, got none")
    if reference is not None and not spec.codec.needs_reference:
        raise ValueError(f"{name}: expected None for an array that was compressed without one, got an array")
