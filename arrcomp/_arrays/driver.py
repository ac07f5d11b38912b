"""The one caller of the core's encoders and decoders, for arrays of every framework, on the CPU and on CUDA.

All arrays of a call are contiguous, on one device, of one dtype and one codec, and checked. On the CPU a call returns
when its work is done; on CUDA the work is enqueued on the framework's current stream.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._format.spec import Spec
from ..errors import unfit_payload
from .checks import admit
from .contract import Memory, Payload

Coding = tuple[int, Sequence[float], int]  # codec id, parameters, dtype id
Seed = tuple[int, Any]  # a number; the array of the one that counts instead, uint64[], or None
Coded = tuple[Any, Any]  # a payload's buffer; its length, or None where it fills the buffer
Term = tuple[Any, Any, float]  # the same, and a weight

_ALIGNMENT = 8  # of payloads: the core reads and writes words


def coding_of(spec: Spec) -> Coding:
    """What the core is told about an array's codec and dtype."""
    return spec.codec.id, spec.codec.core_parameters(), spec.dtype.id


def encode(
    memory: Memory,
    sources: Sequence[Any],
    buffers: Sequence[Any],
    lengths: Any,
    elements: Sequence[int],
    coding: Coding,
    seed: Seed,
    threads: int,
) -> None:
    """Encode arrays.

    Args:
        memory: of the framework.
        sources: the arrays.
        buffers: one for each payload, of its capacity.
        lengths: 8 bytes for each payload's length.
        elements: of each array.
        coding: see `coding_of`.
        seed: of random numbers.
        threads: on the CPU; 0 for all cores.
    """
    address = memory.address
    rooms = [_aligned(memory, buffer) for buffer in buffers]
    arrays = [(address(x), at, count) for x, (_, at), count in zip(sources, rooms, elements, strict=True)]
    where = memory.stream(lengths)
    if where is None:
        _core.encode_at(*coding, arrays, address(lengths), *_seed_arguments(memory, seed), threads)
    else:
        device, stream = where
        scratch = memory.empty(_core.cuda_encode_scratch(*coding, elements, device), lengths)
        _core.cuda_encode(
            *coding, arrays, address(lengths), *_seed_arguments(memory, seed), address(scratch), stream, device
        )
    for buffer, (room, _) in zip(buffers, rooms, strict=True):
        if room is not buffer:
            buffer[:] = room


def decode(
    memory: Memory,
    payloads: Sequence[Coded],
    targets: Sequence[Any],
    elements: Sequence[int],
    coding: Coding,
    trusted: bool,
    threads: int,
) -> None:
    """Decode payloads into arrays.

    Args:
        memory: of the framework.
        payloads: of each array.
        targets: the arrays.
        elements: of each array.
        coding: see `coding_of`.
        trusted: on CUDA, whether to skip the check for corruption, which synchronizes.
        threads: on the CPU; 0 for all cores.

    Raises:
        CorruptStreamError: a payload is corrupt.
    """
    address = memory.address
    buffers = [_aligned(memory, buffer) for buffer, _ in payloads]
    arrays = [
        (at, buffer.nbytes, 0 if length is None else address(length), address(target), count)
        for (buffer, at), (_, length), target, count in zip(buffers, payloads, targets, elements, strict=True)
    ]
    where = memory.stream(targets[0])
    if where is None:
        corrupt = _core.decode_at(*coding, arrays, threads)
        if len(arrays) == 1 and corrupt == 0:
            raise unfit_payload()
        _raise_corrupt(corrupt)
        return
    device, stream = where
    status = memory.empty(4, targets[0])
    scratch = memory.empty(_core.cuda_decode_scratch(*coding, elements), targets[0])
    _core.cuda_decode(*coding, arrays, address(status), address(scratch), stream, device)
    _check_status(memory, status, trusted)


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
    """Encode the weighted sum of payloads' arrays.

    Args:
        memory: of the framework.
        terms: the payloads and their weights.
        buffer: for the payload, of its capacity.
        length: 8 bytes for its length.
        elements: of each array.
        coding: of the terms.
        result: codec id and parameters of the sum.
        seed: of random numbers.
        trusted: same as in `decode`.
        threads: on the CPU; 0 for all cores.

    Raises:
        CorruptStreamError: one of the payloads is corrupt.
    """
    address = memory.address
    _kept, core_terms = _core_terms(memory, terms)
    room, at = _aligned(memory, buffer)
    about = (coding[:2], coding[2], core_terms, elements, result)
    where = memory.stream(length)
    if where is None:
        _raise_corrupt(_core.encode_sum_at(*about, at, address(length), *_seed_arguments(memory, seed), threads))
    else:
        device, stream = where
        status = memory.empty(4, length)
        scratch_nbytes = _core.cuda_encode_sum_scratch(*about[:2], len(terms), elements, result, device)
        scratch = memory.empty(scratch_nbytes, length)
        addresses = (at, address(length), *_seed_arguments(memory, seed), address(status), address(scratch))
        _core.cuda_encode_sum(*about, *addresses, stream, device)
        _check_status(memory, status, trusted)
    if room is not buffer:
        buffer[:] = room


def decode_range(payload: Payload, spec: Spec, first: int, shape: tuple[int, ...], threads: int) -> NDArray[Any]:
    """Decode a range of an array in host memory.

    A payload in a Zstandard frame is decompressed whole, the first time.

    Args:
        payload: of the array; only the bytes that the range needs are fetched.
        spec: of the array.
        first: index of the range's first value in the flat array.
        shape: of the result, whose values follow one another in the flat array.
        threads: 0 for all cores.

    Raises:
        CorruptStreamError: what was read of the payload is corrupt.
        SizeLimitError: the range is larger than is allowed for the array.
    """
    admit(Spec(spec.codec, spec.dtype, shape), payload, None)
    array: NDArray[Any] = np.empty(shape, spec.dtype.numpy)
    target = array.reshape(-1).view(np.uint8)
    if target.size:
        start, coding = first * spec.dtype.parts, coding_of(spec)
        data, fetch = payload.host_parts()
        if fetch is not None:
            for span in _core.part_index(*coding, data.size, spec.elements):
                fetch(*span)
            for span in _core.part_spans(*coding, data, spec.elements, start, target.size):
                fetch(*span)
        _core.decode_part(*coding, data, spec.elements, start, target, threads)
    return array


def _aligned(memory: Memory, buffer: Any) -> tuple[Any, int]:
    """A buffer, or a copy where it begins between words (as one cut out of another may), and its address."""
    at = memory.address(buffer)
    if at % _ALIGNMENT:
        buffer = memory.copy(buffer)
        at = memory.address(buffer)
    return buffer, at


def _seed_arguments(memory: Memory, seed: Seed) -> tuple[int, int]:
    number, array = seed
    return number, 0 if array is None else memory.address(array)


def _core_terms(memory: Memory, terms: Sequence[Term]) -> tuple[list[Any], list[tuple[int, int, int, float]]]:
    """The buffers to keep alive while the core reads them, and what it is told about them."""
    kept, told = [], []
    for given, length, weight in terms:
        buffer, at = _aligned(memory, given)
        kept.append(buffer)
        told.append((at, buffer.nbytes, 0 if length is None else memory.address(length), weight))
    return kept, told


def _raise_corrupt(index: int) -> None:
    if index >= 0:
        raise unfit_payload(f"payload {index}")


def _check_status(memory: Memory, status: Any, trusted: bool) -> None:
    """Synchronize, and raise if an untrusted payload is corrupt."""
    if not trusted and memory.to_host(status).any():
        raise unfit_payload()
