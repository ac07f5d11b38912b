"""The one caller of the core's encoders and decoders, for arrays of every framework, on the CPU and on CUDA.

All arrays of a call are contiguous, on one device, of one dtype and one codec, and checked. On the CPU a call returns
when its work is done; on CUDA the work is enqueued on the framework's current stream.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._dtypes import Bytes
from .._format.spec import Coding, Spec
from ..errors import raise_for_status, unfit_payload
from .checks import admit
from .contract import Memory, Payload
from .parts import Range, Selection

Seed = tuple[int, Any]  # a number; the array of the one that counts instead, uint64[], or None
HostTask = tuple[int, int, int]  # addresses of an array and of a buffer, aligned to 8 bytes; elements
Term = tuple[Any, Any, float]  # a payload's buffer; its length, or None where it fills the buffer; a weight

_ALIGNMENT = 8  # of payloads: the core reads and writes words


def encode(
    memory: Memory,
    sources: Sequence[Any],
    buffers: Sequence[Any],
    lengths: Any,
    elements: Sequence[int],
    coding: Coding,
    seed: Seed,
    threads: int,
    shapes: Sequence[Sequence[int]],
    references: Sequence[Any] = (),
) -> None:
    """Encode arrays into buffers of their capacity.

    Each payload's length takes 8 bytes of `lengths`. `coding` is that of their `Spec`, `threads` 0 for all cores. The
    references are contiguous too; there are some where the codec needs them.
    """
    address = memory.address
    rooms, starts = _aligned(memory, buffers)
    arrays = list(zip(map(address, sources), starts, elements))
    number, seed_array = seed
    seed_at = 0 if seed_array is None else address(seed_array)
    where = memory.stream(lengths)
    bases = [address(reference) for reference in references]
    if where is None:
        _core.encode_at(*coding, arrays, address(lengths), number, seed_at, threads, shapes, bases)
    else:
        device, stream = where
        scratch = memory.empty(_core.cuda_encode_scratch(*coding, elements, device), lengths)
        at, scratch_at = address(lengths), address(scratch)
        _core.cuda_encode(*coding, arrays, at, number, seed_at, shapes, bases, scratch_at, stream, device)
    if rooms is not buffers:
        _copy_back(rooms, buffers)


def encode_on_host(
    arrays: Sequence[HostTask],
    lengths: NDArray[np.uint64],
    coding: Coding,
    seed: tuple[int, int],
    threads: int,
    shapes: Sequence[Sequence[int]],
    references: Sequence[int] = (),
) -> None:
    """`encode` for arrays in host memory whose addresses, and those of their references, are known.

    The seed is a number, and the address of the one that counts instead, or 0.
    """
    _core.encode_at(*coding, arrays, _core.address(lengths), *seed, threads, shapes, references)


def decode(
    memory: Memory,
    payloads: Sequence[Any],
    lengths: Sequence[Any],
    targets: Sequence[Any],
    elements: Sequence[int],
    coding: Coding,
    trusted: bool,
    threads: int,
    references: Sequence[Any] = (),
) -> None:
    """Decode payloads into arrays; raises CorruptStreamError, or WrongReferenceError before anything is written.

    A length is None where a payload fills its buffer. On CUDA the check for corruption synchronizes: trusted payloads
    without references skip it. The other arguments are those of `encode`.
    """
    address = memory.address
    buffers, starts = _aligned(memory, payloads)
    arrays = []  # loops, here and in `_aligned`: Python 3.11 calls a function for each comprehension
    for at, buffer, length, target, count in zip(starts, buffers, lengths, targets, elements):
        arrays.append((at, buffer.nbytes, 0 if length is None else address(length), address(target), count))
    bases = [address(reference) for reference in references]
    where = memory.stream(targets[0])
    if where is None:
        corrupt = _core.decode_at(*coding, arrays, threads, bases)
        if corrupt >= 0:
            raise unfit_payload("payload" if len(arrays) == 1 else f"payload {corrupt}")
        return
    device, stream = where
    status = memory.empty(4, targets[0])
    scratch = memory.empty(_core.cuda_decode_scratch(*coding, elements), targets[0])
    _core.cuda_decode(*coding, arrays, address(status), bases, address(scratch), stream, device)
    _check_status(memory, status, trusted and not references)


def accumulate(
    memory: Memory, terms: Sequence[Term], into: Any, elements: int, coding: Coding, trusted: bool, threads: int
) -> None:
    """Add the arrays of payloads, times their weights, to an array; arguments and errors are those of `decode`."""
    address = memory.address
    _kept, core_terms = _core_terms(memory, terms)
    about = (coding[:2], coding[2], core_terms, elements, address(into))
    where = memory.stream(into)
    if where is None:
        _raise_corrupt(_core.accumulate_at(*about, threads))
        return
    device, stream = where
    status = memory.empty(4, into)
    scratch = memory.empty(_core.cuda_accumulate_scratch(len(terms)), into)
    _core.cuda_accumulate(*about, address(status), address(scratch), stream, device)
    _check_status(memory, status, trusted)


def encode_sum(
    memory: Memory,
    terms: Sequence[Term],
    buffer: Any,
    length: Any,
    elements: int,
    coding: Coding,
    result: tuple[int, Sequence[float]],
    seed: Seed,
    trusted: bool,
    threads: int,
) -> None:
    """Encode the weighted sum of payloads' arrays by the codec `result`; otherwise as in `encode` and `decode`."""
    address = memory.address
    _kept, core_terms = _core_terms(memory, terms)
    rooms, (at,) = _aligned(memory, [buffer])
    about = (coding[:2], coding[2], core_terms, elements, result)
    number, seed_array = seed
    seed_at = 0 if seed_array is None else address(seed_array)
    where = memory.stream(length)
    if where is None:
        _raise_corrupt(_core.encode_sum_at(*about, at, address(length), number, seed_at, threads))
    else:
        device, stream = where
        status = memory.empty(4, length)
        scratch_nbytes = _core.cuda_encode_sum_scratch(*about[:2], len(terms), elements, result, device)
        scratch = memory.empty(scratch_nbytes, length)
        addresses = (at, address(length), number, seed_at, address(status), address(scratch))
        _core.cuda_encode_sum(*about, *addresses, stream, device)
        _check_status(memory, status, trusted)
    _copy_back(rooms, [buffer])


def decode_selection(payload: Payload, spec: Spec, selection: Selection, threads: int) -> NDArray[Any]:
    """Decode values of an array in host memory: only the bytes of the payload that they need are fetched.

    A payload in a Zstandard frame is decompressed whole, the first time. Raises CorruptStreamError for what was read,
    SizeLimitError where the ranges have more values than the limit of the array.
    """
    admit(Spec(spec.codec, spec.dtype, (sum(size for _, size in selection.ranges),)), payload, None)
    result: NDArray[Any] = np.empty(selection.shape, spec.dtype.numpy)
    if not selection.parts:
        return result
    data, fetch = payload.host_parts()
    if fetch is not None:
        for spans in needed_spans(data, spec, selection.ranges):
            for span in spans:
                fetch(*span)
    for part in selection.parts:
        values = result.reshape(-1) if selection.is_range else np.empty(part.size, spec.dtype.numpy)
        start = part.first * spec.dtype.parts
        _core.decode_range(*spec.coding, data, spec.elements, start, values.view(np.uint8), threads)
        if not selection.is_range:
            selection.put(part, values, result)
    return result


def needed_spans(data: Bytes, spec: Spec, ranges: Sequence[Range]) -> Iterator[list[tuple[int, int]]]:
    """Begin and end of the bytes of a payload that ranges of its array need, in two lists.

    The bytes of the first are read before the second is asked for.
    """
    if ranges:
        yield _core.directory_ranges(*spec.coding, data.size, spec.elements)
    yield [
        span
        for first, size in ranges
        for span in _core.payload_ranges(
            *spec.coding, data, spec.elements, first * spec.dtype.parts, size * spec.dtype.itemsize
        )
    ]


def _aligned(memory: Memory, buffers: Sequence[Any]) -> tuple[Sequence[Any], list[int]]:
    """Buffers and their addresses; copies of those that begin between words, as one cut out of another may."""
    starts, between = [], 0
    for buffer in buffers:
        at = memory.address(buffer)
        starts.append(at)
        between |= at % _ALIGNMENT
    if not between:
        return buffers, starts
    copies = [b if at % _ALIGNMENT == 0 else memory.copy(b) for b, at in zip(buffers, starts)]
    return copies, [memory.address(copy) for copy in copies]


def _copy_back(rooms: Sequence[Any], buffers: Sequence[Any]) -> None:
    for room, buffer in zip(rooms, buffers):
        if room is not buffer:
            buffer[:] = room


def _core_terms(memory: Memory, terms: Sequence[Term]) -> tuple[Sequence[Any], list[tuple[int, int, int, float]]]:
    """The buffers to keep alive while the core reads them, and what it is told about them."""
    buffers, starts = _aligned(memory, [buffer for buffer, _, _ in terms])
    return buffers, [
        (at, buffer.nbytes, 0 if length is None else memory.address(length), weight)
        for at, buffer, (_, length, weight) in zip(starts, buffers, terms)
    ]


def _raise_corrupt(index: int) -> None:
    if index >= 0:
        raise unfit_payload(f"payload {index}")


def _check_status(memory: Memory, status: Any, trusted: bool) -> None:
    """Synchronize, and raise if an untrusted payload is corrupt, or a reference is a wrong one."""
    if not trusted:
        raise_for_status(int(memory.to_host(status).view(np.uint32)[0]))
