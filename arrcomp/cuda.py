"""CUDA: what the adapters of all frameworks share. Work is enqueued on the framework's stream; nothing waits."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from . import _core
from .errors import DeviceUnavailableError
from .spec import Spec


class Memory(Protocol):
    """A framework's memory and current stream on one device; buffers are its one-dimensional uint8 arrays."""

    index: int

    def empty(self, nbytes: int) -> Any:
        """A new buffer, from the framework's allocator on the current stream."""

    def pointer(self, buffer: Any) -> int:
        """Address of an array."""

    def stream(self) -> int:
        """Handle of the current stream."""


def parse_device(device: Any) -> tuple[str, int]:
    """Kind ("cpu" or "cuda") and number of a device.

    Args:
        device: "cpu", "cuda", "cuda:1", or an object with a `type` and an `index` (PyTorch's devices) or a `platform`
            and an `id` (JAX's).

    Raises:
        TypeError: it is none of these.
        ValueError: the name is not one of those.
        DeviceUnavailableError: it is of another kind.
    """
    if isinstance(device, str):
        kind, colon, number = device.partition(":")
        if kind not in ("cpu", "cuda") or (colon and not (number.isascii() and number.isdigit())):
            raise ValueError(f"device {device!r}: 'cpu', 'cuda' or 'cuda:N' is allowed")
        return kind, int(number or 0)
    if hasattr(device, "type") and hasattr(device, "index"):
        return platform(device.type), device.index or 0
    if hasattr(device, "platform") and hasattr(device, "id"):
        return platform(device.platform), device.id
    raise TypeError(f"device is a {type(device).__name__}; a name as 'cuda:0', a device or an array is allowed")


def platform(name: str) -> str:
    """A device's kind as PyTorch and JAX name it, in our words.

    Raises:
        TypeError: PyTorch's meta device.
        DeviceUnavailableError: it is neither the CPU nor CUDA.
    """
    if name == "meta":
        raise TypeError("x is a meta tensor, which has no data; a tensor on 'cpu' or 'cuda' is allowed")
    if name not in ("cpu", "cuda", "gpu"):
        raise DeviceUnavailableError(f"device {name!r}: arrcomp runs on 'cpu' and 'cuda'; move the array there")
    return "cpu" if name == "cpu" else "cuda"


def check_device(index: int) -> None:
    """Raise DeviceUnavailableError unless the core can work on this device."""
    if not _core.cuda_built():
        raise DeviceUnavailableError(
            f"cuda:{index}: this arrcomp was built without CUDA; install one built where a CUDA compiler is found "
            "(ARRCOMP_CUDA=ON), or move the array to the CPU"
        )
    count = _core.cuda_device_count()
    if not 0 <= index < count:
        raise DeviceUnavailableError(f"cuda:{index}: {count} CUDA devices are available (is a driver installed?)")


def encode(memory: Memory, sources: Sequence[Any], buffers: Sequence[Any], lengths: Any, specs: Sequence[Spec]) -> None:
    """Enqueue encoding of contiguous arrays into buffers; their lengths go to `lengths`, 8 bytes each."""
    codec, dtype = specs[0].codec, specs[0].dtype
    elements = [spec.elements for spec in specs]
    scratch = memory.empty(_core.cuda_encode_scratch(dtype.id, elements, memory.index))
    arrays = list(zip(map(memory.pointer, sources), map(memory.pointer, buffers), elements, strict=True))
    _core.cuda_encode(
        codec.id,
        codec.core_parameters(),
        dtype.id,
        arrays,
        memory.pointer(lengths),
        memory.pointer(scratch),
        memory.stream(),
        memory.index,
    )


def decode(
    memory: Memory, buffers: Sequence[Any], lengths: Sequence[Any], targets: Sequence[Any], specs: Sequence[Spec]
) -> Any:
    """Enqueue decoding into contiguous arrays.

    Args:
        memory: of the device.
        buffers: with the payloads at their starts.
        lengths: of each payload, on the device; None where it is all of its buffer.
        targets: the arrays.
        specs: of each.

    Returns:
        A buffer of 4 bytes: all zero, once the work is done, unless a payload is corrupt.
    """
    codec, dtype = specs[0].codec, specs[0].dtype
    status = memory.empty(4)
    scratch = memory.empty(_core.cuda_decode_scratch(len(specs)))
    address: Callable[[Any], int] = lambda length: 0 if length is None else memory.pointer(length)  # noqa: E731
    arrays = [
        (memory.pointer(buffer), buffer.shape[0], address(length), memory.pointer(target), spec.elements)
        for buffer, length, target, spec in zip(buffers, lengths, targets, specs, strict=True)
    ]
    _core.cuda_decode(
        codec.id,
        codec.core_parameters(),
        dtype.id,
        arrays,
        memory.pointer(status),
        memory.pointer(scratch),
        memory.stream(),
        memory.index,
    )
    return status
