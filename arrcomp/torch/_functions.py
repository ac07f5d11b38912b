"""`arrcomp.torch`: compression of tensors, in eager mode and inside `torch.compile` and `torch.export`."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .._api.compress import checked_codec, checked_seed, compress_with
from .._api.compressed import Compressed
from .._api.sums import accumulate_with, checked_summand, checked_summands, compress_sum_with
from .._arguments import thread_count, type_name
from .._arrays.checks import admit
from .._arrays.device import Device
from ..codecs import Codec
from . import _ops
from ._adapter import ADAPTER, check_layout, seed_arguments
from ._tensors import coding_of, dtype_of


def compress(
    x: Tensor, codec: Codec | None = None, *, out: Any = None, threads: int | None = None, seed: Any = None
) -> Compressed:
    """Compress a tensor where it is.

    As `arrcomp.compress`, and usable inside `torch.compile(fullgraph=True)`: the result may leave the compiled
    function, and enter another. Gradients stop here. In compiled code, and on CUDA, the payload keeps the memory that
    the longest one takes, until `Compressed.trim`; those of fixed-rate codecs all have one length.

    Args:
        x: a dense tensor on the CPU or on CUDA, of any shape and strides, and a dtype that the codec takes.
        codec: what to keep; None for `Lossless()`.
        out: memory for the result: a contiguous uint8 tensor of at least `arrcomp.max_compressed_size(x)` bytes on the
            device of `x` (on the CPU also a NumPy array, bytearray or memoryview).
        threads: how many to use on the CPU; None for all cores that the process may use.
        seed: of a codec that draws random numbers; others ignore it. An integer from 0 to 2^64 - 1: in compiled code
            another one does not compile anew. Or a tensor of one integer on the device of `x`, whose value is read
            when the device comes to it (without its sign, as 64 bits): so each replay of a CUDA graph can have another.

    Raises:
        TypeError, ValueError, DeviceUnavailableError: as `arrcomp.compress`.

    >>> import torch, arrcomp.torch
    >>> x = torch.linspace(0, 1, 10_000)
    >>> c = arrcomp.torch.compress(x, arrcomp.ErrorBounded(abs=1e-3))
    >>> bool((arrcomp.torch.decompress(c) - x).abs().max() <= 1e-3)
    True
    """
    _check_tensor("x", x, "arrcomp.compress takes every array")
    codec = checked_codec(codec)
    return compress_with(ADAPTER, x, codec, out, thread_count(threads), _checked_seed(codec, seed))


def decompress(
    c: Compressed, *, out: Tensor | None = None, threads: int | None = None, max_size: int | None = None
) -> Tensor:
    """The array that was compressed, as a tensor.

    Usable inside `torch.compile(fullgraph=True)`. On CUDA nothing waits for the device, unless the payload was read
    from outside this process and may be corrupt.

    Args:
        c: a compressed array of any framework.
        out: a contiguous tensor of the same shape and dtype, to be filled and returned.
        threads: how many to use on the CPU; None for all cores that the process may use.
        max_size: bytes that the tensor may have, as of `arrcomp.decompress`.

    Returns:
        `out`, or a new contiguous tensor on the device of the payload.

    Raises:
        CorruptStreamError: the payload is corrupt. (`out` may have been written to.)
        SizeLimitError: the tensor is larger than `max_size`.
        TypeError, ValueError, DeviceUnavailableError: as `arrcomp.decompress`.
    """
    if not isinstance(c, Compressed):
        raise TypeError(f"c is a {type(c).__name__}; a Compressed is allowed (of a stream's bytes: from_bytes)")
    threads = thread_count(threads)
    payload = c.payload
    admit(c.spec, payload, max_size)
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

    As `arrcomp.accumulate`, and usable inside `torch.compile(fullgraph=True)`. On CUDA nothing waits for the device,
    unless the payload was read from outside this process. Nothing is recorded for gradients.

    Args:
        c: a compressed array, of a codec that has sums.
        into: a contiguous tensor of the same shape and dtype that requires no gradient, which is changed.
        weight: a finite number.
        threads: how many to use on the CPU; None for all cores that the process may use.

    Returns:
        `into`.

    Raises:
        CorruptStreamError, TypeError, ValueError, DeviceUnavailableError: as `arrcomp.accumulate`.
    """
    _check_tensor("into", into, "arrcomp.accumulate takes every array")
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

    As `arrcomp.compress_sum`, and usable inside `torch.compile(fullgraph=True)`.

    Args:
        compressed: compressed tensors of one device, dtype, shape and codec, whose rate is fixed; one at least.
        codec: of the result; None for the one of `compressed`.
        weights: a finite number for each; None for ones.
        out: memory for the result, as of `compress`.
        threads: how many to use on the CPU; None for all cores that the process may use.
        seed: of the result's codec, as of `compress`.

    Raises:
        CorruptStreamError, TypeError, ValueError, DeviceUnavailableError: as `arrcomp.compress_sum`.
    """
    parts = checked_summands(compressed)
    codec = parts[0].codec if codec is None else checked_codec(codec)
    if parts[0].payload.adapter is not ADAPTER:
        raise TypeError("compressed is of another framework; arrcomp.compress_sum takes those")
    return compress_sum_with(ADAPTER, parts, codec, weights, out, thread_count(threads), _checked_seed(codec, seed))


def roundtrip(x: Tensor, codec: Codec | None = None, *, threads: int | None = None, seed: Any = None) -> Tensor:
    """What comes back of a tensor that is compressed and decompressed.

    The gradient passes unchanged, as if nothing had been lost (a straight-through estimator: Y. Bengio, N. Leonard,
    A. Courville, arXiv:1308.3432). The derivative is one in forward mode too, and under the transforms of `torch.func`
    (inside compiled code those do not reach it, but for `vmap`). Under `vmap` every item is compressed by itself, one
    after the other, and all with the same seed, unless `seed` is a batch of them. Autocast leaves the dtype as it is.
    Tensors of integers have no gradient, as elsewhere.

    Args:
        x: a dense tensor on the CPU or on CUDA, of a dtype that the codec takes; on the meta device, shapes go through.
        codec: what to keep; None for `Lossless()`.
        threads: how many to use on the CPU; None for all cores that the process may use.
        seed: as of `compress`.

    Returns:
        A new contiguous tensor of the shape, dtype and device of `x`.

    Raises:
        TypeError, ValueError, DeviceUnavailableError: as `arrcomp.compress`.

    >>> import torch, arrcomp.torch
    >>> x = torch.randn(100, requires_grad=True)
    >>> y = arrcomp.torch.roundtrip(x, arrcomp.ErrorBounded(abs=0.1))
    >>> y.sum().backward()
    >>> bool((y - x).abs().max() <= 0.1), bool((x.grad == 1).all())
    (True, True)
    """
    _check_tensor("x", x, "arrcomp.decompress(arrcomp.compress(x)) takes every array")
    check_layout("x", x)
    codec = checked_codec(codec)
    codec.check_dtype(dtype_of(x))
    seeds = seed_arguments(_checked_seed(codec, seed), x)
    y: Tensor = _ops.differentiable_roundtrip(x, *coding_of(codec), *seeds, thread_count(threads))
    return y


def _checked_seed(codec: Codec, seed: Any) -> Any:
    # Compilers compile anew for every number that is turned into an index; tensors are looked at by the adapter.
    if codec.needs_seed and (isinstance(seed, Tensor) or (type(seed) is int and 0 <= seed < 1 << 64)):
        return seed
    return checked_seed(codec, seed)


def _check_tensor(name: str, x: Any, hint: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is a {type_name(x)}; a torch.Tensor is allowed ({hint})")
