"""A double of the few parts of CuPy that `arrcomp.cupy` uses, with two devices in host memory, where there is no GPU.

It shows the adapter's side of the agreement with CuPy and with the core, not the GPU: that the right addresses, streams
and devices are named, in the right order, and that nothing waits. The kernels are the CPU's; CuPy's own behaviour is
what its documentation says. To be hard to please, it does what a GPU may do at worst: work that is enqueued is not done
before somebody waits for its stream, streams know nothing of each other unless an event says so, and freed memory is
given away again at once to whoever asks on the same stream.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import capsules
from arrcomp import WrongReferenceError, _core, _dtypes

DEVICES = 2
ENCODE_SCRATCH, DECODE_SCRATCH = 4096, 512

__version__ = "14.0.0"
uint8, uint64 = np.uint8, np.uint64


class CUDARuntimeError(RuntimeError):
    """CuPy's error of this name."""


class Event:
    """A point in a stream's work."""

    def __init__(self, disable_timing: bool = False) -> None:
        self.reach: Callable[[], None] = lambda: None


class Stream:
    """Work in order, done when somebody waits for it."""

    waits = 0  # how often the host waited for a device, and was told nothing before

    def __init__(self, null: bool = False, non_blocking: bool = False, device: int | None = None) -> None:
        self.device = Device().id if device is None else device
        self.ptr = 0 if null else 0x1000 * (len(_streams) + 1)
        self.pending: list[Callable[[], None]] = []
        _streams.append(self)

    def __enter__(self) -> Stream:
        _current[self.device].append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _current[self.device].pop()

    def enqueue(self, work: Callable[[], None]) -> None:
        """Put work at the end."""
        self.pending.append(work)

    def run(self, last: Callable[[], None] | None = None) -> None:
        """Do the work, up to this piece of it."""
        while self.pending and last is not self.pending[0]:
            self.pending.pop(0)()

    def synchronize(self) -> None:
        """Wait on the host."""
        Stream.waits += 1
        self.run()

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return not self.pending

    def record(self, event: Event | None = None) -> Event:
        """Let an event stand for what has been enqueued."""
        event = event or Event()
        mark: Callable[[], None] = lambda: None  # noqa: E731
        self.enqueue(mark)
        event.reach = lambda: self.run(mark) if mark in self.pending else None
        return event

    def wait_event(self, event: Event) -> None:
        """Let what is enqueued from now on wait for an event."""
        self.enqueue(event.reach)

    def launch_host_func(self, function: Callable[[Any], None], argument: Any) -> None:
        """Enqueue a function of the host."""
        self.enqueue(lambda: function(argument))


class Device:
    """A device; in a with statement, the current one."""

    def __init__(self, index: int | None = None) -> None:
        self.id = _devices[-1] if index is None else index

    def __enter__(self) -> Device:
        _devices.append(self.id)
        return self

    def __exit__(self, *error: object) -> None:
        _devices.pop()


class MemoryHook:
    """Told of every allocation inside of a with statement."""

    def __enter__(self) -> MemoryHook:
        _hooks.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _hooks.remove(self)

    def malloc_preprocess(self, **arguments: Any) -> None:
        """Before memory is taken."""


class _Block:
    """Memory of the pool; back to the stream that it came from when nobody has it."""

    def __init__(self, nbytes: int) -> None:
        for hook in _hooks:
            hook.malloc_preprocess(device_id=Device().id, size=nbytes, mem_size=nbytes)
        self.device_id = Device().id
        units = -(-nbytes // 512) * 512
        self._arena = _arenas.setdefault((get_current_stream(), units), [])
        if not self._arena:
            memory = np.empty(units + 256, np.uint8)
            start = -memory.ctypes.data % 256
            self._arena.append(memory[start : start + units])
            _memory.append((self.device_id, self._arena[-1]))
        self.bytes = self._arena.pop()
        _enqueue_copy(np.uint8(0xA5), self.bytes)  # whatever was there

    def __del__(self) -> None:
        self._arena.append(self.bytes)


class _Pointer:
    def __init__(self, ptr: int, mem: Any) -> None:
        self.ptr = ptr
        self.mem = mem
        self.device_id = mem.device_id


class ndarray:  # noqa: N801
    """An array of a device; its elements are in host memory, out of reach for code that does not wait."""

    def __init__(self, elements: Any, mem: Any) -> None:
        self.elements = elements
        self.mem = mem
        self.dtype, self.shape, self.ndim = elements.dtype, elements.shape, elements.ndim
        self.size, self.nbytes, self.strides = elements.size, elements.nbytes, elements.strides
        self.flags = types.SimpleNamespace(c_contiguous=elements.flags.c_contiguous)
        self.device = Device(mem.device_id)
        self.data = _Pointer(elements.ctypes.data if elements.size else 0, mem)

    def reshape(self, *shape: Any) -> ndarray:
        """A view; of what is contiguous, as nothing else is needed."""
        assert self.flags.c_contiguous
        return ndarray(self.elements.reshape(*shape), self.mem)

    def view(self, dtype: Any) -> ndarray:
        """The same memory as another dtype."""
        return ndarray(self.elements.view(dtype), self.mem)

    def astype(self, dtype: Any) -> ndarray:
        """A copy as another dtype on the current device, enqueued."""
        twin = empty(self.shape, dtype)
        _enqueue_copy(self.elements, twin.elements)
        return twin

    def __getitem__(self, index: Any) -> ndarray:
        return ndarray(self.elements[index, ...] if isinstance(index, int) else self.elements[index], self.mem)

    def copy(self) -> ndarray:
        """A copy on the current device, enqueued."""
        twin = empty(self.shape, self.dtype)
        _enqueue_copy(self.elements, twin.elements)
        return twin

    def __dlpack_device__(self) -> tuple[int, int]:
        return capsules.CUDA, self.device.id

    def __dlpack__(self, *, stream: int, **options: Any) -> Any:
        producer = capsules.Producer(self.elements, device=self.__dlpack_device__())
        with Device(self.device.id):
            written = get_current_stream().record()
        if stream != get_current_stream().ptr:
            next(known for known in _streams if known.ptr == (0 if stream == 1 else stream)).wait_event(written)
        return producer.capsule(versioned=True)


def empty(shape: Any, dtype: Any) -> ndarray:
    """A new array from the pool."""
    dtype = np.dtype(dtype)
    nbytes = int(np.prod(shape)) * dtype.itemsize
    if nbytes == 0:
        return ndarray(np.empty(shape, dtype), types.SimpleNamespace(device_id=Device().id))
    block = _Block(nbytes)
    return ndarray(block.bytes[:nbytes].view(dtype).reshape(shape), block)


def ascontiguousarray(x: ndarray) -> ndarray:
    """A copy in C order where it is not."""
    return x if x.flags.c_contiguous else x.copy()


def asarray(x: Any) -> ndarray:
    """A copy from the host, enqueued."""
    twin = empty(x.shape, x.dtype)
    _enqueue_copy(np.array(x), twin.elements)
    return twin


def asnumpy(x: ndarray) -> Any:
    """A copy on the host; waits for the current stream."""
    get_current_stream().synchronize()
    return x.elements.copy()


def from_dlpack(x: Any) -> ndarray:
    """The array of a producer, which is told the current stream, as CuPy 14 does it."""
    with Device(x.__dlpack_device__()[1]):
        stream = get_current_stream().ptr or 1
        try:
            capsule = x.__dlpack__(stream=stream, max_version=(1, 0), copy=None)
        except TypeError:
            capsule = x.__dlpack__(stream=stream)
    owner, elements, device = capsules.read_cuda_capsule(capsule)
    owner.device_id = device[1]
    return ndarray(elements, owner)


def get_current_stream() -> Stream:
    """The current device's current stream."""
    return _current[_devices[-1]][-1]


def _enqueue_copy(source: Any, target: Any) -> None:
    get_current_stream().enqueue(lambda: np.copyto(target, source, casting="unsafe"))


# The core's functions


def _stream_of(handle: int, device: int) -> Stream:
    known = [stream for stream in _streams if (stream.ptr, stream.device) == (handle, device)]
    assert len(known) == 1, f"stream {handle:#x} is none of device {device}'s"
    return known[0]


def cuda_decode_scratch(codec_id: int, parameters: Any, dtype_id: int, elements: Any) -> int:
    """`_core.cuda_decode_scratch`: nothing for a single array, as there."""
    return DECODE_SCRATCH if len(elements) > 1 else 0


def _check_memory(address: int, nbytes: int, device: int) -> None:
    inside = any(
        owner == device and block.ctypes.data <= address and address + nbytes <= block.ctypes.data + block.size
        for owner, block in _memory
    )
    assert inside or nbytes == 0, f"{nbytes} bytes at {address:#x} are not memory of device {device}"


def _element_nbytes(dtype_id: int) -> int:
    dtype = _dtypes.by_id(dtype_id)
    assert dtype is not None
    return dtype.itemsize // dtype.parts


def cuda_encode(
    codec_id: int,
    parameters: Any,
    dtype_id: int,
    arrays: Any,
    lengths: int,
    seed: int,
    seed_at: int,
    shapes: Any,
    references: Any,
    scratch: int,
    stream: int,
    device: int,
) -> None:
    """`_core.cuda_encode` on the double's memory and streams."""
    _check_memory(scratch, ENCODE_SCRATCH, device)
    _check_memory(lengths, 8 * len(arrays), device)
    _check_memory(seed_at, 8 if seed_at else 0, device)
    assert seed_at % 8 == 0
    for source, payload, elements in arrays:
        _check_memory(payload, _core.capacity(codec_id, parameters, dtype_id, elements), device)
        assert payload % 8 == 0
        assert source % _element_nbytes(dtype_id) == 0
    _check_references(references, [elements for _, _, elements in arrays], dtype_id, device)

    def work() -> None:
        ctypes.memset(scratch, 0x5A, ENCODE_SCRATCH)
        _core.encode_at(codec_id, parameters, dtype_id, arrays, lengths, seed, seed_at, 1, shapes, references)

    _stream_of(stream, device).enqueue(work)


def _check_references(references: Any, elements: list[int], dtype_id: int, device: int) -> None:
    for reference, count in zip(references, elements, strict=False):
        _check_memory(reference, count * _element_nbytes(dtype_id), device)
        assert reference % _element_nbytes(dtype_id) == 0


def cuda_decode(
    codec_id: int,
    parameters: Any,
    dtype_id: int,
    arrays: Any,
    status: int,
    references: Any,
    scratch: int,
    stream: int,
    device: int,
) -> None:
    """`_core.cuda_decode` on the double's memory and streams."""
    nbytes = cuda_decode_scratch(codec_id, parameters, dtype_id, arrays)
    _check_memory(scratch, nbytes, device)
    _check_memory(status, 4, device)
    for payload, limit, _, target, elements in arrays:
        _check_memory(payload, limit, device)
        _check_memory(target, elements * _element_nbytes(dtype_id), device)
        assert payload % 8 == 0
        assert target % _element_nbytes(dtype_id) == 0
    _check_references(references, [array[-1] for array in arrays], dtype_id, device)

    def work() -> None:
        ctypes.memset(scratch, 0x5A, nbytes)
        try:
            found = int(_core.decode_at(codec_id, parameters, dtype_id, arrays, 1, references) >= 0)
        except WrongReferenceError:
            found = 2
        ctypes.c_uint32.from_address(status).value = found

    _stream_of(stream, device).enqueue(work)


def cuda_accumulate_scratch(terms: int) -> int:
    """`_core.cuda_accumulate_scratch`: nothing for a single term, as there."""
    return DECODE_SCRATCH if terms > 1 else 0


def _check_terms(terms: Any, device: int) -> None:
    for payload, limit, length, _ in terms:
        _check_memory(payload, limit, device)
        _check_memory(length, 8 if length else 0, device)
        assert payload % 8 == 0


def cuda_accumulate(
    codec: Any,
    dtype_id: int,
    terms: Any,
    elements: int,
    target: int,
    status: int,
    scratch: int,
    stream: int,
    device: int,
) -> None:
    """`_core.cuda_accumulate` on the double's memory and streams."""
    nbytes = cuda_accumulate_scratch(len(terms))
    _check_memory(scratch, nbytes, device)
    _check_memory(status, 4, device)
    _check_memory(target, elements * _element_nbytes(dtype_id), device)
    _check_terms(terms, device)
    assert target % _element_nbytes(dtype_id) == 0

    def work() -> None:
        ctypes.memset(scratch, 0x5A, nbytes)
        corrupt = _core.accumulate_at(codec, dtype_id, terms, elements, target, 1)
        ctypes.c_uint32.from_address(status).value = corrupt >= 0

    _stream_of(stream, device).enqueue(work)


def cuda_encode_sum(
    codec: Any,
    dtype_id: int,
    terms: Any,
    elements: int,
    result: Any,
    payload: int,
    length: int,
    seed: int,
    seed_at: int,
    status: int,
    scratch: int,
    stream: int,
    device: int,
) -> None:
    """`_core.cuda_encode_sum` on the double's memory and streams."""
    _check_memory(scratch, ENCODE_SCRATCH, device)
    _check_memory(status, 4, device)
    _check_memory(length, 8, device)
    _check_memory(seed_at, 8 if seed_at else 0, device)
    codec_id, parameters = result
    _check_memory(payload, _core.capacity(codec_id, parameters, dtype_id, elements), device)
    _check_terms(terms, device)
    assert payload % 8 == 0

    def work() -> None:
        ctypes.memset(scratch, 0x5A, ENCODE_SCRATCH)
        places = (payload, length, seed, seed_at)
        corrupt = _core.encode_sum_at(codec, dtype_id, terms, elements, result, *places, 1)
        ctypes.c_uint32.from_address(status).value = corrupt >= 0

    _stream_of(stream, device).enqueue(work)


cuda = types.SimpleNamespace(
    Device=Device,
    Event=Event,
    MemoryHook=MemoryHook,
    Stream=Stream,
    get_current_stream=get_current_stream,
    is_available=lambda: True,
    runtime=types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: DEVICES),
)
_devices = [0]  # the current one is the last
_streams: list[Stream] = []
_hooks: list[MemoryHook] = []
_arenas: dict[tuple[Stream, int], list[Any]] = {}
_memory: list[tuple[int, Any]] = []
_current = {index: [Stream(null=True, device=index)] for index in range(DEVICES)}


@contextlib.contextmanager
def installed() -> Iterator[Any]:
    """Inside, this module is `cupy`, and the core has two CUDA devices."""
    with pytest.MonkeyPatch.context() as patch:
        _forget_adapter()
        module = sys.modules[__name__]
        module.__spec__ = importlib.machinery.ModuleSpec("cupy", None)
        patch.setitem(sys.modules, "cupy", module)
        patch.setattr(_core, "cuda_built", lambda: True)
        patch.setattr(_core, "cuda_device_count", lambda: DEVICES)
        patch.setattr(_core, "cuda_encode_scratch", lambda *arguments: ENCODE_SCRATCH)
        patch.setattr(_core, "cuda_decode_scratch", cuda_decode_scratch)
        patch.setattr(_core, "cuda_encode", cuda_encode)
        patch.setattr(_core, "cuda_decode", cuda_decode)
        patch.setattr(_core, "cuda_accumulate_scratch", cuda_accumulate_scratch)
        patch.setattr(_core, "cuda_accumulate", cuda_accumulate)
        patch.setattr(_core, "cuda_encode_sum_scratch", lambda *arguments: ENCODE_SCRATCH)
        patch.setattr(_core, "cuda_encode_sum", cuda_encode_sum)
        yield module
        _forget_adapter()


def _forget_adapter() -> None:
    import arrcomp
    from arrcomp._arrays import registry

    for name in [name for name in sys.modules if name.startswith("arrcomp.cupy")]:
        del sys.modules[name]
    vars(arrcomp).pop("cupy", None)
    registry._adapters.pop("cupy", None)
