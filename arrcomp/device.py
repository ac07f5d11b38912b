"""CUDA: memory and streams from the framework that holds the array, work enqueued by the core.

Nothing here waits for the device, except where a length, a status or bytes on the host are asked for, and where an
array's memory belongs to another framework than the stream in use.
"""

import importlib
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _core
from .codecs.base import CoreParameters
from .errors import CorruptStreamError, DeviceUnavailableError

_STATE_NBYTES = 16  # the scratch begins with the payload's length (uint64) and a status (uint32)


class Memory(Protocol):
    """A framework's memory on one device; buffers are its one-dimensional uint8 arrays."""

    framework: str
    index: int

    def empty(self, nbytes: int) -> Any:
        """A new buffer."""

    def flat(self, x: Any) -> Any:
        """The bytes of any CUDA array in C order: a view where it is C-contiguous."""

    def from_dlpack(self, x: Any) -> Any:
        """The framework's array on the memory of another one's."""

    def pointer(self, buffer: Any) -> int:
        """Address of a buffer."""

    def stream(self) -> int:
        """Handle of the current stream."""

    def to_host(self, buffer: Any) -> NDArray[np.uint8]:
        """A copy on the host; waits."""

    def copy_from_host(self, array: NDArray[np.uint8], buffer: Any) -> None:
        """Fill a buffer from the host."""


class TorchMemory:
    """PyTorch's caching allocator and current stream."""

    framework = "torch"

    def __init__(self, torch: Any, index: int) -> None:
        self.index = index
        self._torch = torch

    def empty(self, nbytes: int) -> Any:
        return self._torch.empty(nbytes, dtype=self._torch.uint8, device=f"cuda:{self.index}")

    def flat(self, x: Any) -> Any:
        tensor = x if isinstance(x, self._torch.Tensor) else self.from_dlpack(x)
        return tensor.detach().contiguous().reshape(-1).view(self._torch.uint8)

    def from_dlpack(self, x: Any) -> Any:
        return self._torch.from_dlpack(x)

    def pointer(self, buffer: Any) -> int:
        return int(buffer.data_ptr())

    def stream(self) -> int:
        return int(self._torch.cuda.current_stream(self.index).cuda_stream)

    def to_host(self, buffer: Any) -> NDArray[np.uint8]:
        result: NDArray[np.uint8] = buffer.cpu().numpy()
        return result

    def copy_from_host(self, array: NDArray[np.uint8], buffer: Any) -> None:
        # A copy, as torch takes no read-only arrays.
        buffer.copy_(self._torch.from_numpy(np.array(array)))


class CupyMemory:
    """CuPy's memory pool and current stream."""

    framework = "cupy"

    def __init__(self, cupy: Any, index: int) -> None:
        self.index = index
        self._cupy = cupy

    def empty(self, nbytes: int) -> Any:
        with self._cupy.cuda.Device(self.index):
            return self._cupy.empty(nbytes, dtype=self._cupy.uint8)

    def flat(self, x: Any) -> Any:
        with self._cupy.cuda.Device(self.index):
            array = x if isinstance(x, self._cupy.ndarray) else self.from_dlpack(x)
            return self._cupy.ascontiguousarray(array).reshape(-1).view(self._cupy.uint8)

    def from_dlpack(self, x: Any) -> Any:
        return self._cupy.from_dlpack(x)

    def pointer(self, buffer: Any) -> int:
        return int(buffer.data.ptr)

    def stream(self) -> int:
        with self._cupy.cuda.Device(self.index):
            return int(self._cupy.cuda.get_current_stream().ptr)

    def to_host(self, buffer: Any) -> NDArray[np.uint8]:
        with self._cupy.cuda.Device(self.index):
            result: NDArray[np.uint8] = self._cupy.asnumpy(buffer)
        return result

    def copy_from_host(self, array: NDArray[np.uint8], buffer: Any) -> None:
        with self._cupy.cuda.Device(self.index):
            buffer.set(array)


_MEMORIES: dict[str, type[TorchMemory] | type[CupyMemory]] = {"torch": TorchMemory, "cupy": CupyMemory}


def memory(framework: str, index: int) -> Memory:
    """A device's memory from this framework, or for one without memory to hand out, from PyTorch or else CuPy.

    Raises:
        DeviceUnavailableError: the build has no CUDA, the machine no such device, or neither framework can be used.
    """
    if not _core.cuda_built():
        raise DeviceUnavailableError(
            f"cuda:{index}: this arrcomp was built without CUDA; install one built where a CUDA compiler is found "
            "(ARRCOMP_CUDA=ON), or move the array to the CPU"
        )
    count = _core.cuda_device_count()
    if not 0 <= index < count:
        raise DeviceUnavailableError(f"cuda:{index}: {count} CUDA devices are available (is a driver installed?)")
    for name in (framework,) if framework in _MEMORIES else tuple(_MEMORIES):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if name != "torch" or module.cuda.is_available():
            return _MEMORIES[name](module, index)
    raise DeviceUnavailableError(
        f"cuda:{index}: device memory comes from PyTorch or CuPy; install torch (with CUDA) or cupy"
    )


class DevicePayload:
    """A payload on a device; its length is there too, until somebody asks."""

    def __init__(self, memory: Memory, buffer: Any, state: Any) -> None:
        self.memory = memory
        self.buffer = buffer
        self._state = state
        self._nbytes: int | None = None

    @property
    def nbytes(self) -> int:
        """Length in bytes; waits for the device the first time."""
        if self._nbytes is None:
            state = self.memory.to_host(self._state)
            status = int(state[8:12].view(np.uint32)[0])
            if status:
                raise RuntimeError(f"encoding failed on cuda:{self.memory.index} with status {status}")
            self._nbytes = int(state[:8].view(np.uint64)[0])
        return self._nbytes

    def to_host(self) -> NDArray[np.uint8]:
        """A copy of the payload on the host; waits."""
        return self.memory.to_host(self.buffer[: self.nbytes])


def encode(
    memory: Memory, dtype_id: int, elements: int, source: Any, parameters: CoreParameters, out: Any
) -> DevicePayload:
    """Enqueue encoding of `source` into `out`, both buffers of `memory`'s device."""
    scratch = memory.empty(_core.cuda_scratch(dtype_id, elements, memory.index))
    _core.encode_cuda(
        dtype_id,
        memory.pointer(source),
        elements,
        int(parameters.bound_kind),
        parameters.bound,
        parameters.fast,
        memory.pointer(out),
        memory.pointer(scratch),
        memory.stream(),
        memory.index,
    )
    # A copy in stream order, so that the scratch goes back to the pool at once.
    state = memory.empty(_STATE_NBYTES)
    state[:] = scratch[:_STATE_NBYTES]
    return DevicePayload(memory, out, state)


def decode(memory: Memory, dtype_id: int, elements: int, payload: DevicePayload | NDArray[np.uint8], out: Any) -> None:
    """Enqueue decoding into `out`, a buffer of `memory`'s device.

    Raises:
        CorruptStreamError: a payload from the host is not one of so many elements of this type. (One that was made on
            the device is not doubted, so there is no need to wait.)
    """
    if isinstance(payload, DevicePayload) and payload.memory.index == memory.index:
        owner, buffer, nbytes = payload.memory, payload.buffer, payload.nbytes
        trusted = owner.framework == memory.framework
    else:
        host = payload.to_host() if isinstance(payload, DevicePayload) else payload
        owner, buffer, nbytes = memory, memory.empty(host.size), host.size
        memory.copy_from_host(host, buffer)
        trusted = False
    status = memory.empty(4)
    _core.decode_cuda(
        dtype_id,
        owner.pointer(buffer),
        nbytes,
        elements,
        memory.pointer(out),
        memory.pointer(status),
        memory.stream(),
        memory.index,
    )
    # Waiting also keeps another framework from reusing the payload's memory too early.
    if not trusted and memory.to_host(status).view(np.uint32)[0]:
        raise CorruptStreamError("payload: the decoder on the device found it corrupt")
