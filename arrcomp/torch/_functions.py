"""Compression of tensors, in eager mode and inside `torch.compile` and `torch.export`."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._api.compress import check_values, checked_codec, checked_seed, compress_with
from .._api.compressed import Compressed, admit_with, own_references
from .._api.references import codec_for_reference
from .._api.sums import accumulate_with, checked_summand, checked_summands, compress_sum_with
from .._arguments import thread_count, wrong_type, wrong_value
from .._arrays.device import Device
from ..codecs import Codec
from . import _ops
from ._adapter import ADAPTER, check_layout, seed_arguments
from ._tensors import coding_of, dtype_of


def compress(
    x: Tensor,
    codec: Codec | None = None,
    *,
    reference: Tensor | None = None,
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

    Arguments and errors are those of `arrcomp.compress`, except:

    - `x` is a dense tensor on the CPU or on CUDA, of any strides.
    - `out` is a contiguous uint8 tensor on the device of `x` (on the CPU also a NumPy array, bytearray or memoryview).
    - `seed` is an integer (changing it does not trigger recompilation), or a tensor of one integer on the device of
      `x`, read as unsigned 64-bit when the device runs the operator, so that each replay of a CUDA graph can have its
      own.
    - `check_finite` raises ValueError in compiled code.
    - Under `torch.vmap` it raises NotImplementedError: payloads of one batch have different lengths. Call it for each
      item, or use `roundtrip`.

    >>> import torch, arrcomp.torch
    >>> x = torch.linspace(0, 1, 10_000)
    >>> c = arrcomp.torch.compress(x, arrcomp.ErrorBounded(abs=1e-3))
    >>> bool((arrcomp.torch.decompress(c) - x).abs().max() <= 1e-3)
    True
    """
    _check_tensor("x", x, "arrcomp.compress takes other arrays")
    if reference is not None:
        _check_tensor("reference", reference, "arrcomp.compress takes other arrays")
        check_layout("reference", reference)
    codec = checked_codec(codec)
    if check_finite:
        _check_values(x)
    return compress_with(ADAPTER, x, codec, out, thread_count(threads), _checked_seed(codec, seed), reference)


def decompress(
    c: Compressed,
    *,
    reference: Tensor | None = None,
    out: Tensor | None = None,
    threads: int | None = None,
    max_nbytes: int | None = None,
) -> Tensor:
    """Decompress to a tensor.

    Usable inside `torch.compile(fullgraph=True)`. Asynchronous on CUDA, except for untrusted payloads (read from
    outside this process) and those with a reference, whose validation synchronizes. The result has no gradient.

    Arguments and errors are those of `arrcomp.decompress`. `c` is a compressed array of any framework, and `out` is a
    contiguous tensor.

    Returns:
        `out`, or a new contiguous tensor on the payload's device.
    """
    if not isinstance(c, Compressed):
        raise wrong_type("c", "a Compressed (arrcomp.from_bytes reads a stream)", c)
    threads = thread_count(threads)
    payload = c.payload
    admit_with(c, max_nbytes, reference)
    if reference is not None:
        _check_tensor("reference", reference, "arrcomp.decompress takes other arrays")
        check_layout("reference", reference)
    if out is not None:
        _check_tensor("out", out, "arrcomp.decompress fills other arrays")
        payload = payload.to(ADAPTER, ADAPTER.device(out))
    elif reference is not None:
        payload = payload.to(ADAPTER, ADAPTER.device(reference))
    elif payload.adapter is not ADAPTER:
        here = payload.device
        payload = payload.to(ADAPTER, Device("torch", here.kind, here.index))
    references = own_references(c, payload, reference)
    (array,) = ADAPTER.decompress([payload], [c.spec], None if out is None else [out], threads, references)
    return array


def accumulate(c: Compressed, into: Tensor, weight: float = 1.0, *, threads: int | None = None) -> Tensor:
    """Add a compressed array to a tensor: ``into += weight * decompress(c)``, in one pass.

    Same as `arrcomp.accumulate`, with the same arguments, errors and result, and usable inside
    `torch.compile(fullgraph=True)`. `into` is a contiguous tensor that requires no gradient. Asynchronous on CUDA,
    except for untrusted payloads. Autograd records nothing.
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

    Same as `arrcomp.compress_sum`, with the same arguments and errors, and usable inside
    `torch.compile(fullgraph=True)`. `out` and `seed` are those of `compress`.
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

    Arguments and errors are those of `compress`; `x` may also be a meta tensor.

    Returns:
        A new contiguous tensor of the shape, dtype and device of `x`.

    >>> import torch, arrcomp.torch
    >>> x = torch.randn(100, requires_grad=True)
    >>> y = arrcomp.torch.roundtrip(x, arrcomp.ErrorBounded(abs=0.1))
    >>> y.sum().backward()
    >>> bool((y - x).abs().max() <= 0.1), bool((x.grad == 1).all())
    (True, True)
    """
    _check_tensor("x", x, "arrcomp.decompress(arrcomp.compress(x)) takes other arrays")
    check_layout("x", x)
    codec = codec_for_reference(checked_codec(codec), None)
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
