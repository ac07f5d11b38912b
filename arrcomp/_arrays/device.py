"""Devices: where an array is, and whether the core can work there."""

from dataclasses import dataclass
from typing import Any

from .. import _core
from .._arguments import shown, wrong_type, wrong_value
from ..errors import DeviceUnavailableError


@dataclass(frozen=True)
class Device:
    """Where an array is: its framework ("numpy", "torch", "jax", "cupy"), "cpu" or "cuda", and the device's number."""

    framework: str = "numpy"
    kind: str = "cpu"
    index: int = 0

    @property
    def name(self) -> str:
        """The name that users see, for instance "cpu" or "cuda:0"."""
        return "cpu" if self.kind == "cpu" and self.index == 0 else f"{self.kind}:{self.index}"


def parse_kind(device: Any) -> tuple[str, int]:
    """Kind ("cpu" or "cuda") and number of a device.

    It is "cpu", "cuda" or "cuda:1", or an object with a `type` and an `index` (PyTorch's devices) or a `platform` and
    a `local_hardware_id` (JAX's). Raises DeviceUnavailableError for other kinds of these.
    """
    if isinstance(device, str):
        kind, colon, number = device.partition(":")
        if kind not in ("cpu", "cuda") or (colon and not (number.isascii() and number.isdigit())):
            raise wrong_value("device", "'cpu', 'cuda' or 'cuda:N'", device)
        return kind, int(number or 0)
    if hasattr(device, "type") and hasattr(device, "index"):
        return platform(device.type), device.index or 0
    if hasattr(device, "platform") and hasattr(device, "local_hardware_id"):
        return platform(device.platform), number_of(device)
    raise wrong_type("device", "a name such as 'cuda:0', a device or an array", device)


def number_of(device: Any) -> int:
    """The number of one of JAX's devices in this process: CUDA's own number of a GPU.

    Its `id` is another where JAX runs in several processes: there it counts the devices of all.
    """
    number = device.local_hardware_id  # None where JAX knows none
    return int(device.id if number is None else number)


def platform(name: str) -> str:
    """The kind of a device that PyTorch or JAX calls by this name; raises TypeError for PyTorch's meta device."""
    if name == "meta":
        raise TypeError("x: expected a tensor on 'cpu' or 'cuda', got a meta tensor, which has no data")
    if name not in ("cpu", "cuda", "gpu"):
        raise DeviceUnavailableError(
            f"device: expected 'cpu' or 'cuda', got {shown(name)}; move the array to one of them"
        )
    return "cpu" if name == "cpu" else "cuda"


def check_device(index: int) -> None:
    """Raise DeviceUnavailableError unless the core can work on this CUDA device."""
    if not _core.cuda_built():
        raise DeviceUnavailableError(
            f"cuda:{index}: this arrcomp has no CUDA kernels: a source build makes them where it sees a GPU and a CUDA "
            "compiler. Install it again with -C cmake.define.ARRCOMP_CUDA=ON, or move the array to the CPU."
        )
    count = _core.cuda_device_count()
    if not 0 <= index < count:
        raise DeviceUnavailableError(f"cuda:{index}: {count} CUDA devices are available (is a driver installed?)")
