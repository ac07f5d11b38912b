"""What the operators do on real tensors: checks, memory, and the driver.

All tensors of one call have one dtype and are on one device. On CUDA the work is enqueued on PyTorch's current stream;
memory comes from PyTorch's allocator, which takes it back in the order of that stream.

`_ops` describes the arguments; `random` are those from `seed` to `references`, `trust` those from `trusted` to
`references`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import _core
from .._arrays import driver
from .._arrays.checks import check_capacity, check_same_or_separate, check_separate
from .._arrays.device import check_device
from .._arrays.driver import Seed, Term
from .._arrays.numpy import ADAPTER as NUMPY
from .._dtypes import Bytes
from .._methods.seeds import MAX_SEED
from ._tensors import capacities, capacity, capacity_of, dtype_of, name_of, row_of

Floats = Sequence[float]
Tensors = Sequence[Tensor]
Lengths = Sequence[Tensor | None]


class TorchMemory:
    """PyTorch's memory and streams (`arrcomp._arrays.contract.Memory`)."""

    @staticmethod
    def address(x: Tensor, /) -> int:
        return x.data_ptr()

    def stream(self, x: Tensor) -> tuple[int, int] | None:
        if x.is_cpu:
            return None
        index = x.device.index
        check_device(index)
        return index, torch.cuda.current_stream(index).cuda_stream

    def empty(self, nbytes: int, like: Tensor) -> Tensor:
        return torch.empty(nbytes, dtype=torch.uint8, device=like.device)

    def copy(self, buffer: Tensor) -> Tensor:
        return buffer.clone()

    def to_host(self, buffer: Tensor) -> Bytes:
        data: Bytes = buffer.detach().cpu().numpy()
        return data


MEMORY = TorchMemory()


def encode(xs: Tensors, codec: int, parameters: Floats, *random: Any) -> tuple[Tensor, Tensor]:
    """Payloads in one buffer, uint8[sum(capacities(xs, codec, parameters))], and their lengths, int64[len(xs)]."""
    _check_together("xs", xs)
    sizes = capacities(xs, codec, parameters)
    payloads = _room(sum(sizes), xs[0])
    out = [payloads] if len(xs) == 1 else payloads.split_with_sizes(sizes)
    return payloads, _encode(xs, out, codec, parameters, *random)


def encode_trimmed(
    xs: Tensors,
    codec: int,
    parameters: Floats,
    seed: int = 0,
    seed_at: Tensor | None = None,
    threads: int = 0,
    references: Tensors | None = None,
) -> list[Tensor]:
    """Payloads of tensors on the CPU, each in memory of its size.

    The memory is NumPy's, which shrinks in place: PyTorch would copy, which takes as long as encoding does.
    """
    _check_together("xs", xs)
    dtype = dtype_of(xs[0])
    alive, rooms, arrays = [], [], []
    for x in xs:
        source, elements = x.contiguous(), x.numel() * dtype.parts
        room = np.empty(_core.capacity(codec, parameters, dtype.id, elements), np.uint8)
        arrays.append((source.data_ptr(), NUMPY.address(room), elements))
        alive.append(source)
        rooms.append(room)
    lengths = NUMPY.new_lengths(len(xs), None)
    number, array = _seed(seed, seed_at, xs[0])
    random = (number, 0 if array is None else array.data_ptr())
    bases = _references(references, xs)
    shapes, addresses = [x.shape for x in xs], [base.data_ptr() for base in bases]
    driver.encode_on_host(arrays, lengths, (codec, parameters, dtype.id), random, threads, shapes, addresses)
    return [torch.from_numpy(payload) for payload in NUMPY.trim(rooms, lengths)]


def encode_out(
    xs: Tensors,
    out: Tensors,
    codec: int,
    parameters: Floats,
    seed: int = 0,
    seed_at: Tensor | None = None,
    threads: int = 0,
    references: Tensors | None = None,
) -> Tensor:
    """Put payloads at the starts of uint8 tensors, and return their lengths, int64[len(xs)]."""
    _check_together("xs", xs)
    if len(xs) != len(out):
        raise ValueError(f"out: expected {len(xs)} tensors, got {len(out)}")
    for x, buffer in zip(xs, out):  # noqa: B905 - here and below, strict=True takes longer than the check above
        _check_bytes("out", buffer, x)
        check_capacity(buffer.numel(), capacity(x, codec, parameters))
        check_separate(MEMORY, buffer, x, "out", "x")
    bases = _references(references, xs)
    for buffer, base in zip(out, bases):  # noqa: B905 - as above
        check_separate(MEMORY, buffer, base, "out", "reference")
    return _encode(xs, out, codec, parameters, seed, seed_at, threads, bases)


def decode(
    payloads: Tensors,
    lengths: Lengths,
    sizes: Sequence[int],
    dimensions: Sequence[int],
    codec: int,
    parameters: Floats,
    dtype: torch.dtype,
    *trust: Any,
) -> list[Tensor]:
    """Arrays of payloads, new and of these shapes."""
    return decode_new(payloads, lengths, shapes(sizes, dimensions), codec, parameters, dtype, *trust)


def decode_new(
    payloads: Tensors,
    lengths: Lengths,
    sizes: Sequence[Sequence[int]],
    codec: int,
    parameters: Floats,
    dtype: torch.dtype,
    *trust: Any,
) -> list[Tensor]:
    """`decode` with a shape for each array. Unlike those of `decode_out`, new arrays need no check of their memory."""
    if len(payloads) != len(sizes):
        raise ValueError(f"dimensions: expected {len(payloads)} numbers, one for each payload, got {len(sizes)}")
    device = payloads[0].device
    arrays = [torch.empty(shape, dtype=dtype, device=device) for shape in sizes]
    _decode(payloads, lengths, arrays, codec, parameters, *trust)
    return arrays


def decode_out(
    payloads: Tensors,
    lengths: Lengths,
    out: Tensors,
    codec: int,
    parameters: Floats,
    trusted: bool = False,
    threads: int = 0,
    references: Tensors | None = None,
) -> None:
    """Fill contiguous tensors with the arrays of payloads."""
    _check_together("out", out)
    if len(payloads) != len(out):
        raise ValueError(f"out: expected {len(payloads)} tensors, got {len(out)}")
    for payload, target in zip(payloads, out):  # noqa: B905 - strict=True takes longer than the check above
        _check_contiguous("out", target)
        check_separate(MEMORY, target, payload, "out")
    bases = _references(references, out)
    for target, base in zip(out, bases):  # noqa: B905 - as above
        check_same_or_separate(MEMORY, target, base)
    _decode(payloads, lengths, out, codec, parameters, trusted, threads, bases)


def roundtrip(
    x: Tensor, codec: int, parameters: Floats, seed: int = 0, seed_at: Tensor | None = None, threads: int = 0
) -> Tensor:
    """Compress, then decompress into a new tensor."""
    payload = _room(capacity(x, codec, parameters), x)
    length = _encode([x], [payload], codec, parameters, seed, seed_at, threads)
    result = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    _decode([payload], [length], [result], codec, parameters, True, threads)
    return result


def accumulate(
    into: Tensor,
    payloads: Tensors,
    lengths: Lengths,
    weights: Floats,
    codec: int,
    parameters: Floats,
    trusted: bool = False,
    threads: int = 0,
) -> None:
    """Add the arrays of payloads, times their weights, to a contiguous tensor."""
    dtype = dtype_of(into)
    _check_contiguous("into", into)
    for payload in payloads:
        check_separate(MEMORY, into, payload, "into")
    terms = _terms(payloads, lengths, weights, into)
    elements, coding = into.numel() * dtype.parts, (codec, parameters, dtype.id)
    driver.accumulate(MEMORY, terms, into, elements, coding, trusted, threads)


def encode_sum(payloads: Tensors, lengths: Lengths, weights: Floats, *result: Any) -> tuple[Tensor, Tensor]:
    """The payload of a sum of payloads' arrays, in memory of the longest one, and its length, int64[1].

    `result` are the arguments that follow `out` in `encode_sum_out`.
    """
    out = _room(sum_capacity(*result), payloads[0])
    return out, encode_sum_out(payloads, lengths, weights, out, *result)


def sum_capacity(
    elements: int, dtype: torch.dtype, terms_codec: int, terms: Floats, codec: int, parameters: Floats, *rest: Any
) -> int:
    """Bytes of the longest payload of a sum."""
    return capacity_of(elements, row_of(dtype), codec, parameters)


def encode_sum_out(
    payloads: Tensors,
    lengths: Lengths,
    weights: Floats,
    out: Tensor,
    elements: int,
    dtype: torch.dtype,
    terms_codec: int,
    terms_parameters: Floats,
    codec: int,
    parameters: Floats,
    seed: int = 0,
    seed_at: Tensor | None = None,
    trusted: bool = False,
    threads: int = 0,
) -> Tensor:
    """Put the payload of a sum of payloads' arrays at the start of a uint8 tensor, and return its length, int64[1]."""
    row = row_of(dtype)
    _check_bytes("out", out, payloads[0])
    check_capacity(out.numel(), capacity_of(elements, row, codec, parameters))
    for payload in payloads:
        check_separate(MEMORY, out, payload, "out")
    terms = _terms(payloads, lengths, weights, out)
    length = torch.empty(1, dtype=torch.int64, device=out.device)
    coding, random = (terms_codec, terms_parameters, row.id), _seed(seed, seed_at, out)
    driver.encode_sum(MEMORY, terms, out, length, elements, coding, (codec, parameters), random, trusted, threads)
    return length


def shapes(sizes: Sequence[int], dimensions: Sequence[int]) -> list[Sequence[int]]:
    """Shapes from the sizes of all of them one after the other, and the number of sizes in each."""
    if sum(dimensions) != len(sizes):
        raise ValueError(f"dimensions: expected the sum {len(sizes)}, the number of sizes, got {dimensions}")
    ends = [sum(dimensions[: i + 1]) for i in range(len(dimensions))]
    return [sizes[end - count : end] for end, count in zip(ends, dimensions, strict=True)]


def _encode(
    xs: Tensors,
    out: Tensors,
    codec: int,
    parameters: Floats,
    seed: int = 0,
    seed_at: Tensor | None = None,
    threads: int = 0,
    references: Tensors | None = None,
) -> Tensor:
    dtype, device = dtype_of(xs[0]), xs[0].device
    sources, elements = [x.contiguous() for x in xs], [x.numel() * dtype.parts for x in xs]
    lengths = torch.empty(len(xs), dtype=torch.int64, device=device)
    coding, random = (codec, parameters, dtype.id), _seed(seed, seed_at, lengths)
    shapes = [x.shape for x in xs]
    bases = _references(references, xs)
    driver.encode(MEMORY, sources, out, lengths, elements, coding, random, threads, shapes, bases)
    return lengths


def _decode(
    payloads: Tensors,
    lengths: Lengths,
    targets: Tensors,
    codec: int,
    parameters: Floats,
    trusted: bool = False,
    threads: int = 0,
    references: Tensors | None = None,
) -> None:
    dtype = dtype_of(targets[0])
    _check_payloads(payloads, lengths, targets[0])
    elements, coding = [x.numel() * dtype.parts for x in targets], (codec, parameters, dtype.id)
    bases = _references(references, targets)
    driver.decode(MEMORY, payloads, lengths, targets, elements, coding, trusted, threads, bases)


def _references(references: Tensors | None, xs: Tensors) -> list[Tensor]:
    """The references of tensors, contiguous and checked; none where the codec needs none."""
    if not references:  # compiled code gives an empty list
        return []
    if len(references) != len(xs):
        raise ValueError(f"references: expected {len(xs)} tensors, got {len(references)}")
    for base, x in zip(references, xs):  # noqa: B905 - strict=True takes longer than the check above
        if (base.dtype, base.device, base.numel()) != (x.dtype, x.device, x.numel()):
            raise ValueError(f"references: expected {_described(x)}, got {_described(base)}")
    return [base.resolve_conj().resolve_neg().contiguous() for base in references]


def _check_payloads(payloads: Tensors, lengths: Lengths, x: Tensor) -> None:
    """Raise unless payloads and their lengths are such, on the device of x."""
    for payload in payloads:
        _check_bytes("payloads", payload, x)
    for length in lengths:
        if length is not None and (length.dtype != torch.int64 or length.numel() != 1 or length.device != x.device):
            raise TypeError(f"lengths: expected int64[1] on {x.device}, got {_described(length)}")
    if len(payloads) != len(lengths):
        raise ValueError(f"lengths: expected {len(payloads)} tensors, got {len(lengths)}")


def _terms(payloads: Tensors, lengths: Lengths, weights: Floats, x: Tensor) -> list[Term]:
    if not payloads:
        raise ValueError("payloads: expected at least one tensor, got none")
    _check_payloads(payloads, lengths, x)
    return list(zip(payloads, lengths, weights, strict=True))


def _seed(seed: int, seed_at: Tensor | None, x: Tensor) -> Seed:
    """The seed as the driver takes it; raises TypeError unless an array of it is on the device of x."""
    if seed_at is None:
        return seed & MAX_SEED, None  # operators have signed integers: seeds from 2^63 on come as negative ones
    if seed_at.dtype != torch.int64 or seed_at.numel() != 1 or seed_at.device != x.device:
        raise TypeError(f"seed_at: expected int64[] on {x.device}, got {_described(seed_at)}")
    return 0, seed_at


def _room(nbytes: int, like: Tensor) -> Tensor:
    """Memory for payloads.

    On the CPU it is zero, so that a payload's buffer has the same bytes every time. It is NumPy's, which gets zeros
    from the operating system without writing them, and asks for huge pages.
    """
    return torch.from_numpy(np.zeros(nbytes, np.uint8)) if like.is_cpu else MEMORY.empty(nbytes, like)


def _check_together(name: str, xs: Tensors) -> None:
    if not xs:
        raise ValueError(f"{name}: expected at least one tensor, got none")
    if len(xs) == 1:
        return
    first = xs[0]
    for x in xs:
        if (x.dtype, x.device) != (first.dtype, first.device):
            got = f"{first.dtype} on {first.device} and {x.dtype} on {x.device}"
            raise ValueError(f"{name}: expected tensors of one dtype on one device, got {got}")


def _check_bytes(name: str, buffer: Tensor, x: Tensor) -> None:
    if buffer.dtype is torch.uint8 and buffer.device == x.device and buffer.is_contiguous():
        return
    if buffer.dtype != torch.uint8:
        raise TypeError(f"{name}: expected dtype uint8, got {name_of(buffer.dtype)}")
    if buffer.device != x.device:
        raise TypeError(f"{name}: expected a uint8 tensor on {x.device}, got one on {buffer.device}")
    _check_contiguous(name, buffer)


def _check_contiguous(name: str, x: Tensor) -> None:
    if not x.is_contiguous():
        raise ValueError(f"{name}: expected a C-contiguous tensor, got strides {x.stride()}")


def _described(x: Tensor) -> str:
    return f"{x.dtype}{list(x.shape)} on {x.device}"
