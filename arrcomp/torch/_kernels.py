"""What the operators do: pointers of tensors for the core, on the CPU and on CUDA.

All arrays of one call have one dtype and are on one device. On CUDA the work is enqueued on PyTorch's current stream;
memory comes from PyTorch's allocator, which gives it back in the order of that stream.
"""

import ctypes
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import _core
from .._arrays import host
from .._arrays.device import check_device
from .._methods.seeds import MAX_SEED
from ..errors import unfit_payload
from ._tensors import capacities, capacity, capacity_of, dtype_of, row_of


def encode(
    xs: Sequence[Tensor],
    codec: int,
    parameters: Sequence[float],
    seed: int = 0,
    seed_at: Tensor | None = None,
    threads: int = 0,
) -> tuple[Tensor, Tensor]:
    """Payloads in one buffer, uint8[sum(capacities(xs, codec, parameters))], and their lengths, int64[len(xs)]."""
    _check_together("xs", xs)
    sizes = capacities(xs, codec, parameters)
    payloads = _room(sum(sizes), xs[0].device)
    out = [payloads] if len(xs) == 1 else payloads.split_with_sizes(sizes)
    return payloads, _encode(xs, out, codec, parameters, seed, seed_at, threads)


def encode_trimmed(
    xs: Sequence[Tensor],
    codec: int,
    parameters: Sequence[float],
    seed: int = 0,
    seed_at: Tensor | None = None,
    threads: int = 0,
) -> list[Tensor]:
    """Payloads of tensors on the CPU, each in memory of its size.

    The memory is NumPy's, which shrinks where it is: PyTorch would copy, which takes as long as encoding does.
    """
    _check_together("xs", xs)
    dtype = dtype_of(xs[0])
    alive, memory, arrays = [], [], []
    for x in xs:
        source, elements = x.contiguous(), x.numel() * dtype.parts
        room = np.empty(_core.capacity(codec, parameters, dtype.id, elements), np.uint8)
        arrays.append((source.data_ptr(), _start(room), elements))
        alive.append(source)
        memory.append(room)
    lengths = (ctypes.c_int64 * len(xs))()
    random = _random(seed, seed_at, xs[0].device)
    _core.encode_at(codec, parameters, dtype.id, arrays, ctypes.addressof(lengths), *random, threads)
    for room, length in zip(memory, lengths):  # noqa: B905
        room.resize(length, refcheck=False)
    return [torch.from_numpy(room) for room in memory]


def encode_out(
    xs: Sequence[Tensor],
    out: Sequence[Tensor],
    codec: int,
    parameters: Sequence[float],
    seed: int = 0,
    seed_at: Tensor | None = None,
    threads: int = 0,
) -> Tensor:
    """Put payloads at the starts of uint8 tensors, and return their lengths, int64[len(xs)]."""
    _check_together("xs", xs)
    if len(xs) != len(out):
        raise ValueError(f"out has {len(out)} tensors; {len(xs)} are allowed")
    for x, buffer in zip(xs, out):  # noqa: B905 - here and below, strict=True takes longer than the check above
        _check_room(buffer, x, codec, parameters)
    aligned = [_aligned(buffer) for buffer in out]
    lengths = _encode(xs, aligned, codec, parameters, seed, seed_at, threads)
    for buffer, written in zip(out, aligned):  # noqa: B905
        if written is not buffer:
            buffer.copy_(written)
    return lengths


def decode(
    payloads: Sequence[Tensor],
    lengths: Sequence[Tensor | None],
    sizes: Sequence[int],
    dimensions: Sequence[int],
    codec: int,
    parameters: Sequence[float],
    dtype: torch.dtype,
    trusted: bool = False,
    threads: int = 0,
) -> list[Tensor]:
    """Arrays of payloads, new and of these shapes."""
    device = payloads[0].device
    arrays = [torch.empty(shape, dtype=dtype, device=device) for shape in shapes(sizes, dimensions)]
    _decode(payloads, lengths, arrays, codec, parameters, trusted, threads)
    return arrays


def decode_out(
    payloads: Sequence[Tensor],
    lengths: Sequence[Tensor | None],
    out: Sequence[Tensor],
    codec: int,
    parameters: Sequence[float],
    trusted: bool = False,
    threads: int = 0,
) -> None:
    """Fill contiguous tensors with the arrays of payloads."""
    _check_together("out", out)
    for payload, target in zip(payloads, out, strict=True):
        if not target.is_contiguous():
            raise ValueError("out is not C-contiguous; a writable array in C order and native byte order is allowed")
        host.check_apart(payload.data_ptr(), payload.numel(), target.data_ptr(), target.nbytes, host.overlap("out"))
    _decode(payloads, lengths, out, codec, parameters, trusted, threads)


def roundtrip(
    x: Tensor,
    codec: int,
    parameters: Sequence[float],
    seed: int = 0,
    seed_at: Tensor | None = None,
    threads: int = 0,
) -> Tensor:
    """What comes back of an array, in a new tensor."""
    payload = _room(capacity(x, codec, parameters), x.device)
    length = _encode([x], [payload], codec, parameters, seed, seed_at, threads)
    result = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    _decode([payload], [length], [result], codec, parameters, True, threads)
    return result


def accumulate(
    into: Tensor,
    payloads: Sequence[Tensor],
    lengths: Sequence[Tensor | None],
    weights: Sequence[float],
    codec: int,
    parameters: Sequence[float],
    trusted: bool = False,
    threads: int = 0,
) -> None:
    """Add the arrays of payloads, times their weights, to a contiguous tensor."""
    dtype = dtype_of(into)
    if not into.is_contiguous():
        raise ValueError("into is not C-contiguous; a writable array in C order and native byte order is allowed")
    for payload in payloads:
        message = host.overlap("into")
        host.check_apart(payload.data_ptr(), payload.numel(), into.data_ptr(), into.nbytes, message)
    _alive, terms = _terms(payloads, lengths, weights, into)
    place = (terms, into.numel() * dtype.parts, into.data_ptr())
    coding = (codec, parameters)
    if into.is_cpu:
        _raise_corrupt(_core.accumulate_at(coding, dtype.id, *place, threads), len(terms))
        return
    index, stream = cuda_place(into.device)
    status = torch.empty(1, dtype=torch.int32, device=into.device)
    scratch = _room(_core.cuda_accumulate_scratch(len(terms)), into.device)
    _core.cuda_accumulate(coding, dtype.id, *place, status.data_ptr(), scratch.data_ptr(), stream, index)
    _raise_if(status, trusted)


def encode_sum(
    payloads: Sequence[Tensor],
    lengths: Sequence[Tensor | None],
    weights: Sequence[float],
    elements: int,
    dtype: torch.dtype,
    terms_codec: int,
    terms_parameters: Sequence[float],
    codec: int,
    parameters: Sequence[float],
    seed: int = 0,
    seed_at: Tensor | None = None,
    trusted: bool = False,
    threads: int = 0,
) -> tuple[Tensor, Tensor]:
    """The payload of a sum of payloads' arrays, in memory of the longest one, and its length, int64[1]."""
    out = _room(capacity_of(elements, row_of(dtype), codec, parameters), payloads[0].device)
    length = encode_sum_out(
        payloads, lengths, weights, out, elements, dtype, terms_codec, terms_parameters, codec, parameters,
        seed, seed_at, trusted, threads,
    )  # fmt: skip
    return out, length


def encode_sum_out(
    payloads: Sequence[Tensor],
    lengths: Sequence[Tensor | None],
    weights: Sequence[float],
    out: Tensor,
    elements: int,
    dtype: torch.dtype,
    terms_codec: int,
    terms_parameters: Sequence[float],
    codec: int,
    parameters: Sequence[float],
    seed: int = 0,
    seed_at: Tensor | None = None,
    trusted: bool = False,
    threads: int = 0,
) -> Tensor:
    """Put the payload of a sum of payloads' arrays at the start of a uint8 tensor, and return its length, int64[1]."""
    row, device = row_of(dtype), out.device
    _check_bytes("out", out, payloads[0])
    needed = capacity_of(elements, row, codec, parameters)
    if out.numel() < needed:
        raise ValueError(f"out has {out.numel()} bytes; at least {needed} (max_compressed_size) are allowed")
    for payload in payloads:
        host.check_apart(payload.data_ptr(), payload.numel(), out.data_ptr(), out.numel(), host.overlap("out"))
    _alive, terms = _terms(payloads, lengths, weights, out)
    room = _aligned(out)
    length = torch.empty(1, dtype=torch.int64, device=device)
    coding, result = (terms_codec, terms_parameters), (codec, parameters)
    places = (room.data_ptr(), length.data_ptr(), *_random(seed, seed_at, device))
    if out.is_cpu:
        _raise_corrupt(_core.encode_sum_at(coding, row.id, terms, elements, result, *places, threads), len(terms))
    else:
        index, stream = cuda_place(device)
        status = torch.empty(1, dtype=torch.int32, device=device)
        scratch = _room(_core.cuda_encode_sum_scratch(coding, row.id, len(terms), elements, result, index), device)
        device_places = (*places, status.data_ptr(), scratch.data_ptr(), stream, index)
        _core.cuda_encode_sum(coding, row.id, terms, elements, result, *device_places)
        _raise_if(status, trusted)
    if room is not out:
        out.copy_(room)
    return length


def shapes(sizes: Sequence[int], dimensions: Sequence[int]) -> list[Sequence[int]]:
    """Shapes from the sizes of all of them one after the other, and the number of sizes in each."""
    if sum(dimensions) != len(sizes):
        raise ValueError(f"dimensions={dimensions}: their sum {len(sizes)}, the number of sizes, is allowed")
    ends = [sum(dimensions[: i + 1]) for i in range(len(dimensions))]
    return [sizes[end - count : end] for end, count in zip(ends, dimensions, strict=True)]


def _encode(
    xs: Sequence[Tensor],
    out: Sequence[Tensor],
    codec: int,
    parameters: Sequence[float],
    seed: int,
    seed_at: Tensor | None,
    threads: int,
) -> Tensor:
    dtype, device = dtype_of(xs[0]), xs[0].device
    sources = [x.contiguous() for x in xs]
    parts = dtype.parts
    arrays = [(x.data_ptr(), buffer.data_ptr(), x.numel() * parts) for x, buffer in zip(sources, out)]  # noqa: B905
    lengths = torch.empty(len(xs), dtype=torch.int64, device=device)
    random = _random(seed, seed_at, device)
    if lengths.is_cpu:
        _core.encode_at(codec, parameters, dtype.id, arrays, lengths.data_ptr(), *random, threads)
        return lengths
    index, stream = cuda_place(device)
    scratch = _room(_core.cuda_encode_scratch(codec, parameters, dtype.id, [n for _, _, n in arrays], index), device)
    results = (lengths.data_ptr(), *random, scratch.data_ptr())
    _core.cuda_encode(codec, parameters, dtype.id, arrays, *results, stream, index)
    return lengths


def _random(seed: int, seed_at: Tensor | None, device: torch.device) -> tuple[int, int]:
    """The seed and the address of the one that counts instead, or 0, as the core takes them."""
    if seed_at is None:
        return seed & MAX_SEED, 0  # operators have signed integers: the seeds from 2^63 on come as negative ones
    if seed_at.dtype != torch.int64 or seed_at.numel() != 1 or seed_at.device != device:
        raise TypeError(
            f"seed_at has {seed_at.dtype}{list(seed_at.shape)} on {seed_at.device}; int64[] on {device} is allowed"
        )
    return 0, seed_at.data_ptr()


def _decode(
    payloads: Sequence[Tensor],
    lengths: Sequence[Tensor | None],
    targets: Sequence[Tensor],
    codec: int,
    parameters: Sequence[float],
    trusted: bool,
    threads: int,
) -> None:
    dtype, device = dtype_of(targets[0]), targets[0].device
    buffers = [_aligned(payload) for payload in payloads]
    arrays = [
        (buffer.data_ptr(), buffer.numel(), _address(length, device), x.data_ptr(), x.numel() * dtype.parts)
        for buffer, length, x in zip(buffers, lengths, targets, strict=True)
    ]
    for payload in payloads:
        _check_bytes("payloads", payload, targets[0])
    if targets[0].is_cpu:
        _raise_corrupt(_core.decode_at(codec, parameters, dtype.id, arrays, threads), len(arrays))
        return
    index, stream = cuda_place(device)
    status = torch.empty(1, dtype=torch.int32, device=device)
    elements = [x.numel() * dtype.parts for x in targets]
    scratch = _room(_core.cuda_decode_scratch(codec, parameters, dtype.id, elements), device)
    _core.cuda_decode(codec, parameters, dtype.id, arrays, status.data_ptr(), scratch.data_ptr(), stream, index)
    _raise_if(status, trusted)


def _terms(
    payloads: Sequence[Tensor], lengths: Sequence[Tensor | None], weights: Sequence[float], x: Tensor
) -> tuple[list[Tensor], list[tuple[int, int, int, float]]]:
    """The tensors that hold payloads while they are added, and what the core is told; x is where they must be."""
    if not payloads:
        raise ValueError("payloads is empty; at least one tensor is allowed")
    for payload in payloads:
        _check_bytes("payloads", payload, x)
    buffers = [_aligned(payload) for payload in payloads]
    terms = [
        (buffer.data_ptr(), buffer.numel(), _address(length, x.device), weight)
        for buffer, length, weight in zip(buffers, lengths, weights, strict=True)
    ]
    return buffers, terms


def _raise_corrupt(index: int, payloads: int = 1) -> None:
    if index >= 0:
        which = "payload" if payloads == 1 else f"payload {index}"
        raise unfit_payload(which)


def _raise_if(status: Tensor, trusted: bool) -> None:
    """Wait for the verdict on payloads that this process did not make."""
    if not trusted and status.item():
        raise unfit_payload()


def cuda_place(device: torch.device) -> tuple[int, int]:
    """Number of a CUDA device, and PyTorch's current stream there."""
    index = device.index
    check_device(index)
    return index, torch.cuda.current_stream(index).cuda_stream


def _start(array: NDArray[np.uint8]) -> int:
    """Address of memory; NumPy's own ways to tell it take longer."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array)) if array.size else 0  # type: ignore[arg-type]


def _room(nbytes: int, device: torch.device) -> Tensor:
    """Memory for payloads.

    On the CPU it is zero, so that a payload's buffer has the same bytes every time; it is NumPy's, which gets that from
    the operating system without touching it, and asks for huge pages.
    """
    if device.type == "cpu":
        return torch.from_numpy(np.zeros(nbytes, np.uint8))
    return torch.empty(nbytes, dtype=torch.uint8, device=device)


def _aligned(payload: Tensor) -> Tensor:
    """The payload where the core reads and writes words; it stays where it is unless somebody cut it out of another."""
    return payload if payload.data_ptr() % 8 == 0 else payload.clone()


def _check_together(name: str, xs: Sequence[Tensor]) -> None:
    if not xs:
        raise ValueError(f"{name} is empty; at least one tensor is allowed")
    if len(xs) == 1:
        return
    first = xs[0]
    for x in xs:
        if (x.dtype, x.device) != (first.dtype, first.device):
            raise ValueError(
                f"{name} has {x.dtype} on {x.device} beside {first.dtype} on {first.device}; one of each is allowed"
            )


def _check_room(out: Tensor, x: Tensor, codec: int, parameters: Sequence[float]) -> None:
    """Raise unless the caller's memory can take the payload of x."""
    _check_bytes("out", out, x)
    given, needed = out.numel(), capacity(x, codec, parameters)
    if given < needed:
        raise ValueError(f"out has {given} bytes; at least {needed} (max_compressed_size) are allowed")
    host.check_apart(out.data_ptr(), given, x.data_ptr(), x.nbytes, "out overlaps x; separate memory is allowed")


def _check_bytes(name: str, buffer: Tensor, x: Tensor) -> None:
    if buffer.dtype is torch.uint8 and buffer.device == x.device and buffer.is_contiguous():
        return
    if buffer.dtype != torch.uint8:
        raise TypeError(f"{name} has dtype {str(buffer.dtype).removeprefix('torch.')}; uint8 is allowed")
    if buffer.device != x.device:
        raise TypeError(f"{name} is on {buffer.device}; a uint8 tensor on {x.device} is allowed")
    raise ValueError(f"{name} is not C-contiguous; a tensor in C order is allowed")


def _address(length: Tensor | None, device: torch.device) -> int:
    """Where a payload's length is; 0 if it has none."""
    if length is None:
        return 0
    if length.dtype != torch.int64 or length.numel() != 1 or length.device != device:
        raise TypeError(
            f"lengths has {length.dtype}{list(length.shape)} on {length.device}; int64[1] on {device} is allowed"
        )
    return length.data_ptr()
