"""Host memory: NumPy's arrays, and bytes that other adapters share with it."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, dtypes, limits
from .adapter import Bytes, Home
from .errors import CorruptStreamError, unfit_payload
from .payload import Payload
from .spec import Spec

_HOME = Home()


def numpy_bytes(x: Any) -> Bytes:
    """The bytes of a NumPy array in C order and native byte order; a view where the array is so already."""
    x = np.asarray(x)
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def empty(spec: Spec) -> tuple[Any, Bytes]:
    """A new NumPy array, and its bytes."""
    array = np.empty(spec.shape, spec.dtype.numpy)
    return array, array.reshape(-1).view(np.uint8)


def address(data: Any) -> int:
    """Where a NumPy array begins."""
    start: int = data.__array_interface__["data"][0]
    return start


def check_capacity(given: int, spec: Spec) -> None:
    """Raise ValueError unless a buffer of so many bytes holds every payload."""
    if given < spec.capacity:
        raise ValueError(f"out has {given} bytes; at least {spec.capacity} (max_compressed_size) are allowed")


def check_matches(dtype: dtypes.DType, shape: tuple[int, ...], spec: Spec, name: str = "out") -> None:
    """Raise unless an array to be filled has the dtype and shape of the one that was compressed."""
    if dtype != spec.dtype:
        raise TypeError(f"{name} has dtype {dtype.name}; {spec.dtype.name} is allowed")
    if shape != spec.shape:
        raise ValueError(f"{name} has shape {shape}; {spec.shape} is allowed")


def check_apart(first: int, first_nbytes: int, second: int, second_nbytes: int, message: str) -> None:
    """Raise ValueError if two pieces of memory, by address, overlap."""
    if first_nbytes and second_nbytes and first < second + second_nbytes and second < first + first_nbytes:
        raise ValueError(message)


def writable_bytes(out: Any) -> Bytes:
    """The caller's buffer of bytes in host memory.

    Args:
        out: a uint8 NumPy array, a bytearray, a memoryview, or another library's array in host memory that NumPy can
            view.

    Raises:
        TypeError: it is none of these.
        ValueError: it is read-only or not contiguous.
    """
    array = _viewed(out)
    if array.dtype != np.uint8:
        raise TypeError(f"out has dtype {array.dtype}; uint8 is allowed")
    _check_fillable(array)
    return array.reshape(-1)


def _viewed(out: Any) -> NDArray[Any]:
    if isinstance(out, (bytes, bytearray, memoryview)):
        return np.frombuffer(out, np.uint8)
    if isinstance(out, np.ndarray):
        return out
    if hasattr(out, "__array__") and hasattr(out, "__dlpack__"):
        array = np.asarray(out)
        if not array.flags.owndata:
            return array
    raise TypeError(f"out is no array in host memory but a {type(out).__name__}; a uint8 array is allowed")


def _check_fillable(array: Any, name: str = "out") -> None:
    obstacle = ""
    if not array.flags.c_contiguous:
        obstacle = "is not C-contiguous"
    elif not array.dtype.isnative:
        obstacle = f"has dtype {array.dtype.str}"
    elif not array.flags.writeable:
        obstacle = "is read-only"
    if obstacle:
        raise ValueError(f"{name} {obstacle}; a writable array in C order and native byte order is allowed")


class NumpyAdapter:
    """NumPy's arrays."""

    name = "numpy"

    def home(self, x: Any) -> Home:
        return _HOME

    def group(self, x: Any) -> Hashable:
        return None

    def default_home(self) -> Home:
        return _HOME

    def look(self, x: Any) -> tuple[dtypes.DType, tuple[int, ...]]:
        return dtypes.by_numpy(x.dtype), x.shape

    def is_finite(self, x: Any) -> bool:
        return bool(np.isfinite(x).all())

    def compress(
        self, xs: Sequence[Any], specs: Sequence[Spec], out: Sequence[Any] | None, threads: int, seed: Any
    ) -> list[Payload]:
        sources = [numpy_bytes(x) for x in xs]
        capacities = [spec.capacity for spec in specs]
        if out is None:
            buffers = [np.empty(capacity, np.uint8) for capacity in capacities]
        else:
            buffers = [writable_bytes(buffer) for buffer in out]
            for source, buffer, spec in zip(sources, buffers, specs, strict=True):
                check_capacity(buffer.size, spec)
                check_apart_arrays(source, buffer, "out overlaps x; separate memory is allowed")
        lengths = _encode(sources, buffers, specs, seed_number(seed), threads)
        if out is None:
            for buffer, length in zip(buffers, lengths, strict=True):
                _shrunk(buffer, length)
        else:
            buffers = [buffer[:length] for buffer, length in zip(buffers, lengths, strict=True)]
        return [Payload(self, buffer, trusted=True) for buffer in buffers]

    def decompress(
        self, payloads: Sequence[Payload], specs: Sequence[Spec], out: Sequence[Any] | None, threads: int
    ) -> list[Any]:
        check_doubted(payloads, specs)
        pairs = [empty(spec) for spec in specs] if out is None else list(map(_target, out, specs))
        targets = [target for _, target in pairs]
        if out is not None:
            for payload, target in zip(payloads, targets, strict=True):
                check_apart_arrays(payload.buffer, target, overlap("out"))
        decode(payloads, targets, specs, threads)
        return [array for array, _ in pairs]

    def accumulate(self, payload: Payload, spec: Spec, weight: float, into: Any, threads: int) -> Any:
        _, target = _target(into, spec, "into")
        check_apart_arrays(payload.buffer, target, overlap("into"))
        add(payload, spec, weight, target, threads)
        return into

    def compress_sum(
        self,
        payloads: Sequence[Payload],
        spec: Spec,
        weights: Sequence[float],
        result: Spec,
        out: Any,
        threads: int,
        seed: Any,
    ) -> Payload:
        buffer = np.empty(result.capacity, np.uint8) if out is None else writable_bytes(out)
        check_capacity(buffer.size, result)
        for payload in payloads:
            check_apart_arrays(payload.buffer, buffer, overlap("out"))
        length = encode_sum(payloads, spec, weights, result, buffer, threads, seed)
        return Payload(self, buffer[:length] if out is not None else _shrunk(buffer, length), trusted=True)

    def read_length(self, length: Any) -> int:
        return int(length.view(np.uint64)[0])

    def head(self, buffer: Any, nbytes: int) -> Any:
        return buffer[:nbytes]

    def to_host(self, buffer: Any) -> Bytes:
        data: Bytes = buffer
        return data

    def from_host(self, data: Bytes, home: Home) -> tuple[Any, Any]:
        return data, None

    def from_dlpack(self, x: Any) -> Any:
        raise AssertionError("NumPy has no arrays on CUDA devices")

    def put(self, x: Any, index: int) -> Any:
        raise AssertionError("NumPy has no arrays on CUDA devices")

    def move(self, buffer: Any, home: Home) -> Any:
        return buffer

    def copy(self, buffer: Any) -> Any:
        return buffer.copy()

    def reduce(self, spec: Spec, payload: Payload) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from .compressed import Compressed, from_bytes

        return from_bytes, (Compressed(spec, payload).to_bytes(),)


ADAPTER = NumpyAdapter()


def overlap(name: str) -> str:
    """What is wrong where the argument `name` and a compressed array share memory."""
    return f"{name} overlaps the compressed array; separate memory is allowed"


def check_apart_arrays(first: Bytes, second: Bytes, message: str) -> None:
    """Raise ValueError if two NumPy arrays, each without gaps, overlap."""
    if np.may_share_memory(first, second):  # by their bounds, ten times faster than asking for addresses
        raise ValueError(message)


def check_doubted(payloads: Sequence[Payload], specs: Sequence[Spec]) -> None:
    """Look at what payloads that this process did not make begin with, before memory is allocated for their arrays.

    The payloads are in host memory.

    Raises:
        CorruptStreamError: something is corrupt there; the message names it.
    """
    for number, payload in enumerate(payloads):
        if payload.trusted:
            continue
        spec = specs[number]
        coding = (spec.codec.id, spec.codec.core_parameters(), spec.dtype.id)
        try:
            _core.check_payload(*coding, payload.to_host(), spec.elements)
        except CorruptStreamError as error:
            if len(payloads) == 1:
                raise
            raise CorruptStreamError(f"payload {number}: {error}") from None


def decode(payloads: Sequence[Payload], targets: Sequence[Bytes], specs: Sequence[Spec], threads: int) -> None:
    """Decode payloads in host memory, of any adapter, into bytes of arrays.

    Raises:
        CorruptStreamError: a payload is corrupt.
    """
    codec, dtype = specs[0].codec, specs[0].dtype
    parameters = codec.core_parameters()
    if len(specs) == 1:
        data, elements = payloads[0].to_host(), specs[0].elements
        _core.decode(codec.id, parameters, dtype.id, data, elements, targets[0], threads)
        return
    hosts = _aligned(payloads)
    arrays = [
        (address(data), data.size, 0, address(target), spec.elements)
        for data, target, spec in zip(hosts, targets, specs, strict=True)
    ]
    _raise_corrupt(_core.decode_at(codec.id, parameters, dtype.id, arrays, threads))


def decode_part(payload: Payload, spec: Spec, first: int, shape: tuple[int, ...], threads: int) -> NDArray[Any]:
    """Values `first`, `first + 1`, ... of the flat array of a payload: as many as `shape` holds, in that shape.

    A payload in a Zstandard frame is taken out of it whole, the first time.

    Raises:
        CorruptStreamError: what was read of the payload is corrupt.
        SizeLimitError: the part is larger than is allowed of the array.
    """
    part = Spec(spec.codec, spec.dtype, shape)
    limits.admit(part, payload, None)
    array: NDArray[Any]
    array, target = empty(part)
    if target.size:
        start = first * spec.dtype.parts
        coding = (spec.codec.id, spec.codec.core_parameters(), spec.dtype.id)
        data, fetch = payload.host_parts()
        if fetch is not None:
            for span in _core.directory_ranges(*coding, data.size, spec.elements):
                fetch(*span)
            for span in _core.payload_ranges(*coding, data, spec.elements, start, target.size):
                fetch(*span)
        _core.decode_range(*coding, data, spec.elements, start, target, threads)
    return array


def add(payload: Payload, spec: Spec, weight: float, target: Bytes, threads: int) -> None:
    """Add the array of a payload in host memory, of any adapter, to an array's bytes.

    Raises:
        CorruptStreamError: the payload is corrupt.
    """
    with_memory = _aligned([payload])
    terms = _terms(with_memory, [weight])
    coding = (spec.codec.id, spec.codec.core_parameters())
    _raise_corrupt(_core.accumulate_at(coding, spec.dtype.id, terms, spec.elements, address(target), threads))


def encode_sum(
    payloads: Sequence[Payload],
    spec: Spec,
    weights: Sequence[float],
    result: Spec,
    buffer: Bytes,
    threads: int,
    seed: Any,
) -> int:
    """Put the payload of a sum of payloads in host memory at the start of a buffer, and give its length.

    Raises:
        CorruptStreamError: one of the payloads is corrupt.
    """
    with_memory = _aligned(payloads)
    room = buffer if address(buffer) % 8 == 0 else np.empty(result.capacity, np.uint8)
    length = np.empty(1, np.uint64)
    coding = (spec.codec.id, spec.codec.core_parameters())
    result_coding = (result.codec.id, result.codec.core_parameters())
    places = (address(room), address(length), seed_number(seed), 0)
    terms = _terms(with_memory, weights)
    _raise_corrupt(_core.encode_sum_at(coding, spec.dtype.id, terms, spec.elements, result_coding, *places, threads))
    if room is not buffer:
        buffer[: int(length[0])] = room[: int(length[0])]
    return int(length[0])


def _aligned(payloads: Sequence[Payload]) -> list[Bytes]:
    """Payloads in host memory where the core can read them: it reads words of 4 bytes."""
    hosts = [payload.to_host() for payload in payloads]
    return [data if address(data) % 8 == 0 else data.copy() for data in hosts]


def _terms(payloads: Sequence[Bytes], weights: Sequence[float]) -> list[tuple[int, int, int, float]]:
    return [(address(data), data.size, 0, weight) for data, weight in zip(payloads, weights, strict=True)]


def _raise_corrupt(index: int) -> None:
    if index >= 0:
        raise unfit_payload(f"payload {index}")


def _shrunk(buffer: Bytes, nbytes: int) -> Bytes:
    buffer.resize(nbytes, refcheck=False)  # gives the rest back without a copy
    return buffer


def seed_number(seed: Any) -> int:
    """A seed as the core takes it: an integer, or what is in an array of one, as 64 bits without sign; 0 for None.

    Raises:
        TypeError: the array is not of integers.
    """
    if seed is None or isinstance(seed, int):
        return seed or 0
    if np.asarray(seed).dtype.kind not in "iu":
        raise TypeError(f"seed is an array of {np.asarray(seed).dtype}; an integer, or an array of one, is allowed")
    return int(seed) % (1 << 64)


def _encode(
    sources: Sequence[Bytes], buffers: Sequence[Bytes], specs: Sequence[Spec], seed: int, threads: int
) -> Sequence[int]:
    codec, dtype = specs[0].codec, specs[0].dtype
    parameters = codec.core_parameters()
    if len(specs) == 1:
        elements = specs[0].elements
        return [_core.encode(codec.id, parameters, dtype.id, sources[0], elements, buffers[0], seed, threads)]
    lengths = np.empty(len(specs), np.uint64)
    elements_of_each = (spec.elements for spec in specs)
    arrays = list(zip(map(address, sources), map(address, buffers), elements_of_each, strict=True))
    _core.encode_at(codec.id, parameters, dtype.id, arrays, address(lengths), seed, 0, threads)
    return [int(length) for length in lengths]


def _target(out: Any, spec: Spec, name: str = "out") -> tuple[Any, Bytes]:
    if not isinstance(out, np.ndarray):
        hint = ", or like= instead" if name == "out" else ""
        raise TypeError(f"{name} is a {type(out).__name__}; a NumPy, PyTorch or CuPy array is allowed{hint}")
    check_matches(dtypes.by_numpy(out.dtype), out.shape, spec, name)
    _check_fillable(out, name)
    return out, out.reshape(-1).view(np.uint8)
