"""Compression of tensors, in eager mode and inside `torch.compile` and `torch.export`."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._api.compress import check_values, checked_codec, checked_seed, compress_with
from .._api.compressed import Compressed
from .._api.sums import accumulate_with, checked_summand, checked_summands, compress_sum_with
from .._arguments import thread_count, wrong_type, wrong_value
from .._arrays.checks import admit
from .._arrays.device import Device
from ..codecs import Codec
from . import _ops
from ._adapter import ADAPTER, check_layout, seed_arguments
from ._tensors import coding_of, dtype_of


def compress(
    x: Tensor,
    codec: Codec | None = None,
    *,
    out: Any = None,
    threads: int | None = None,
    seed: Any = None,
    check_finite: bool = False,
) -> Compressed:
    """Compress a tensor on its device.

    Same as `arrcomp.compress`, and usable inside `torch.compile(fullgraph=True)`: a compiled function can return the
    result, or take it. In compiled code and on CUDA the payload occupies its capacity until `Compressed.trim` is
    called. Payloads of fixed-rate codecs have no spare memory.

    The gradient of ``decompress(compress(x))`` is zero, without a warning: no gradient flows through a `Compressed`.
    Use `roundtrip` to differentiate.

    Args:
        x: a dense tensor on the CPU or on CUDA, of any shape and strides, and a dtype that the codec supports.
        codec: what to keep; None for `Lossless()`.
        out: memory for the result: a contiguous uint8 tensor of at least `arrcomp.max_compressed_nbytes(x)` bytes on
            the device of `x` (on the CPU also a NumPy array, bytearray or memoryview).
        threads: number of CPU threads; None for all cores that the process may use.
        seed: for stochastic rounding; other codecs ignore it. An integer from 0 to 2^64 - 1; changing it does not
            trigger recompilation. Or a tensor of one integer on the device of `x`, read as unsigned 64-bit when the
            device runs the operator, so that each replay of a CUDA graph can have its own.
        check_finite: raise if a value is NaN or infinite. Reads the tensor once more and synchronizes. Not in compiled
            code.

    Raises:
        TypeError, ValueError, DeviceUnavailableError: same as in `arrcomp.compress`; ValueError also if `check_finite`
            is True in compiled code.

    >>> import torch, arrcomp.torch
    >>> x = torch.linspace(0, 1, 10_000)
    >>> c = arrcomp.torch.compress(x, arrcomp.ErrorBounded(abs=1e-3))
    >>> bool((arrcomp.torch.decompress(c) - x).abs().max() <= 1e-3)
    True
    """
    _check_tensor("x", x, "arrcomp.compress takes other arrays")
    codec = checked_codec(codec)
    if check_finite:
        _check_values(x)
    return compress_with(ADAPTER, x, codec, out, thread_count(threads), _checked_seed(codec, seed))


def decompress(
    c: Compressed, *, out: Tensor | None = None, threads: int | None = None, max_nbytes: int | None = None
) -> Tensor:
    """Decompress to a tensor.

    Usable inside `torch.compile(fullgraph=True)`. Asynchronous on CUDA, except for untrusted payloads (read from
    outside this process), whose validation synchronizes. The result has no gradient.

    Args:
        c: a compressed array of any framework.
        out: a contiguous tensor of the same shape and dtype, to be filled and returned.
        threads: number of CPU threads; None for all cores that the process may use.
        max_nbytes: the most bytes that the tensor may have, same as in `arrcomp.decompress`.

    Returns:
        `out`, or a new contiguous tensor on the payload's device.

    Raises:
        CorruptStreamError: the payload is corrupt. (`out` may have been written to.)
        SizeLimitError: the tensor is larger than `max_nbytes`.
        TypeError, ValueError, DeviceUnavailableError: same as in `arrcomp.decompress`.
    """
    if not isinstance(c, Compressed):
        raise wrong_type("c", "a Compressed (arrcomp.from_bytes reads a stream)", c)
    threads = thread_count(threads)
    payload = c.payload
    admit(c.spec, payload, max_nbytes)
    if out is not None:
        _check_tensor("out", out, "arrcomp.decompress fills other arrays")
        payload = payload.to(ADAPTER, ADAPTER.device(out))
    elif payload.adapter is not ADAPTER:
        here = payload.device
        payload = payload.to(ADAPTER, Device("torch", here.kind, here.index))
    (array,) = ADAPTER.decompress([payload], [c.spec], None if out is None else [out], threads)
    return array


def accumulate(c: Compressed, into: Tensor, weight: float = 1.0, *, threads: int | None = None) -> Tensor:
    """Add a compressed array to a tensor: ``into += weight * decompress(c)``, in one pass.

    Same as `arrcomp.accumulate`, and usable inside `torch.compile(fullgraph=True)`. Asynchronous on CUDA, except for
    untrusted payloads. Autograd records nothing.

    Args:
        c: a compressed array of a codec with `has_sums`.
        into: a contiguous tensor of the same shape and dtype that requires no gradient. It is changed in place.
        weight: a finite number.
        threads: number of CPU threads; None for all cores that the process may use.

    Returns:
        `into`.

    Raises:
        CorruptStreamError, TypeError, ValueError, DeviceUnavailableError: same as in `arrcomp.accumulate`.
    """
    _check_tensor("into", into, "arrcomp.accumulate takes other arrays")
    threads = thread_count(threads)
    checked_summand("c", c)
    payload = c.payload
    if payload.adapter is not ADAPTER or payload.buffer.device != into.device:
        payload = payload.to(ADAPTER, ADAPTER.device(into))
    result: Tensor = accumulate_with(ADAPTER, c, payload, into, weight, threads)
    return result


def compress_sum(
    compressed: Sequence[Compressed],
    codec: Codec | None = None,
    *,
    weights: Sequence[float] | None = None,
    out: Any = None,
    threads: int | None = None,
    seed: Any = None,
) -> Compressed:
    """Compress the (weighted) sum of compressed tensors, without decompressing them to memory first.

    Same as `arrcomp.compress_sum`, and usable inside `torch.compile(fullgraph=True)`.

    Args:
        compressed: compressed tensors with the same device, dtype, shape and fixed-rate codec; at least one.
        codec: of the result; None for the one of `compressed`.
        weights: a finite number for each; None for ones.
        out: memory for the result, same as in `compress`.
        threads: number of CPU threads; None for all cores that the process may use.
        seed: of the result's codec, same as in `compress`.

    Raises:
        CorruptStreamError, TypeError, ValueError, DeviceUnavailableError: same as in `arrcomp.compress_sum`.
    """
    terms = checked_summands(compressed)
    codec = terms[0].codec if codec is None else checked_codec(codec)
    if terms[0].payload.adapter is not ADAPTER:
        name = terms[0].payload.adapter.name
        raise TypeError(f"compressed: expected compressed tensors, got {name} arrays (arrcomp.compress_sum takes them)")
    return compress_sum_with(ADAPTER, terms, codec, weights, out, thread_count(threads), _checked_seed(codec, seed))


def roundtrip(
    x: Tensor, codec: Codec | None = None, *, threads: int | None = None, seed: Any = None, check_finite: bool = False
) -> Tensor:
    """Compress, then decompress, with a straight-through gradient.

    The derivative is 1, as if nothing were lost (Y. Bengio, N. Leonard, A. Courville, arXiv:1308.3432). (The gradient
    of ``decompress(compress(x))`` is zero.) This holds in forward mode and under the transforms of `torch.func`, too;
    in compiled code only `vmap` of these is supported. `vmap` compresses each item separately, with the same seed
    unless `seed` is a batch. Autocast does not change the dtype. Integer tensors have no gradient.

    Args:
        x: a dense tensor on the CPU or on CUDA, of a dtype that the codec supports; or a meta tensor.
        codec: what to keep; None for `Lossless()`.
        threads: number of CPU threads; None for all cores that the process may use.
        seed: same as in `compress`.
        check_finite: same as in `compress`.

    Returns:
        A new contiguous tensor of the shape, dtype and device of `x`.

    Raises:
        TypeError, ValueError, DeviceUnavailableError: same as in `compress`.

    >>> import torch, arrcomp.torch
    >>> x = torch.randn(100, requires_grad=True)
    >>> y = arrcomp.torch.roundtrip(x, arrcomp.ErrorBounded(abs=0.1))
    >>> y.sum().backward()
    >>> bool((y - x).abs().max() <= 0.1), bool((x.grad == 1).all())
    (True, True)
    """
    _check_tensor("x", x, "arrcomp.decompress(arrcomp.compress(x)) takes other arrays")
    check_layout("x", x)
    codec = checked_codec(codec)
    codec.check_dtype(dtype_of(x))
    if check_finite:
        _check_values(x)
    seeds = seed_arguments(_checked_seed(codec, seed), x)
    y: Tensor = _ops.differentiable_roundtrip(x, *coding_of(codec), *seeds, thread_count(threads))
    return y


def _check_values(x: Tensor) -> None:
    """Raise ValueError if a value is NaN or infinite, or under tracing. Synchronizes."""
    if torch.compiler.is_compiling():
        raise wrong_value("check_finite", "False under tracing", True)
    ADAPTER.dtype_and_shape(x)
    check_values(ADAPTER, x, "x")


def _checked_seed(codec: Codec, seed: Any) -> Any:
    # operator.index on an integer would trigger recompilation for each value. The adapter checks tensors.
    if codec.needs_seed and (isinstance(seed, Tensor) or (type(seed) is int and 0 <= seed < 1 << 64)):
        return seed
    return checked_seed(codec, seed)


def _check_tensor(name: str, x: Any, hint: str) -> None:
    if not isinstance(x, Tensor):
        raise wrong_type(name, f"a torch.Tensor ({hint})", x)
