"""CUDA: what the adapters of all frameworks share: names of devices, and whether the core can work on one."""

from typing import Any

from .. import _core
from ..errors import DeviceUnavailableError


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
