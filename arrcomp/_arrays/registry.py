"""The adapter of an array: the only module that imports frameworks' adapters.

An adapter is imported once an array of its framework, or a `Compressed` made from one, is there.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core, _dtypes
from .._arguments import type_name, wrong_type, wrong_value
from ..errors import DeviceUnavailableError
from .contract import Adapter, Encoded
from .device import Device, check_device, parse_kind
from .numpy import ADAPTER as NUMPY
from .numpy import check_unmasked

_CLASSES = {"torch": "Tensor", "jax": "Array", "cupy": "ndarray"}
FRAMEWORKS = ("numpy", *_CLASSES)
_GPU_FRAMEWORKS = ("torch", "cupy", "jax")  # asked in this order where the array's own framework has no GPU arrays
_DLPACK_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 13: "cuda"}  # kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged
_MANAGED = 13
_LIKE = f"an array, or a name of {', '.join(FRAMEWORKS)}"

_adapters: dict[str, Adapter] = {"numpy": NUMPY}


def adapter_of(x: Any, name: str = "x") -> tuple[Adapter, Any]:
    """The adapter of the argument `name`, and the array.

    Of an unknown DLPack producer, the array is a known framework's view of its memory. Other objects with `__array__`
    become NumPy arrays.

    Raises TypeError for what is no array, DeviceUnavailableError on a device that is neither the CPU nor CUDA.
    """
    framework = framework_of(x, name)
    if framework == "dlpack":
        return _view_of_producer(x, name)
    if framework == "other":
        return NUMPY, np.asarray(x)
    return adapter_named(framework), x


def adapter_named(framework: str) -> Adapter:
    """A framework's adapter; raises ImportError where the framework is not installed."""
    adapter = _adapters.get(framework)
    if adapter is not None:
        return adapter
    try:
        found: Adapter = _module(framework).ADAPTER
    except ImportError as error:
        hint = f"the array is one of its own: install {framework}, or pass like= with an array of another framework"
        raise ImportError(f"{framework} cannot be imported ({error}), and {hint}") from None
    _adapters[framework] = found
    return found


def _module(framework: str) -> Any:
    # Statements, which compilers can trace.
    if framework == "torch":
        from ..torch import _adapter as torch_adapter

        return torch_adapter
    if framework == "jax":
        from ..jax import _adapter as jax_adapter

        return jax_adapter
    from ..cupy import _adapter as cupy_adapter

    return cupy_adapter


def framework_of(x: Any, name: str = "x") -> str:
    """Framework of the argument `name`; "dlpack" for other producers, "other" for what else NumPy converts.

    Raises TypeError for what is no array.
    """
    framework = _known_framework(x)
    if framework is not None:
        if framework == "numpy":
            check_unmasked(x, name)
        return framework
    if _is_producer(x):
        return "dlpack"
    if _is_convertible(x):
        return "other"
    if isinstance(x, Encoded):
        raise TypeError(f"{name}: expected an array, got {type(x).__name__}; its decompress() makes the array")
    expected = "a NumPy, PyTorch, JAX or CuPy array, or an object with __dlpack__ or __array__"
    hint = f"; numpy.asarray({name}) makes an array of it" if isinstance(x, (list, tuple, int, float, complex)) else ""
    raise TypeError(f"{name}: expected {expected}, got {type_name(x)}{hint}")


def is_array(x: Any) -> bool:
    """Whether `compress` would take it for an array."""
    return _known_framework(x) is not None or _is_producer(x) or _is_convertible(x)


def _known_framework(x: Any) -> str | None:
    """Name of the framework that x is of; None for other producers and for what is not an array."""
    if isinstance(x, (np.ndarray, np.generic)):
        return "numpy"
    for framework, name in _CLASSES.items():
        # Whoever holds an array has imported its framework.
        kind = getattr(sys.modules.get(framework), name, None)
        if kind is not None and isinstance(x, kind):
            return framework
    return None


def locate(x: Any, name: str = "x") -> tuple[Adapter, Device]:
    """Adapter and device of an array, with the errors of `adapter_of`; NumPy's for other producers in host memory."""
    adapter, array = adapter_of(x, name)
    return adapter, adapter.device(array)


def locate_target(out: Any) -> tuple[Adapter, Device]:
    """Adapter and device of the caller's array, which is to be written to; raises TypeError where it cannot be."""
    if framework_of(out, "out") in ("jax", "dlpack", "other"):
        raise wrong_type("out", "a NumPy, PyTorch or CuPy array, or like= instead", out)
    return locate(out, "out")


def locate_new(like: Any, device: Any) -> tuple[Adapter, Device]:
    """Adapter and device for new arrays that come from no framework, such as those of a file.

    Args:
        like: an array, or a framework's name, "numpy", "torch", "jax" or "cupy", for where it creates arrays; None for
            NumPy, or on CUDA for whichever framework is installed.
        device: same as in `parse_device`; None for the one of `like`.

    Raises:
        TypeError, ValueError: `like` or `device` is of a wrong type, or another name.
        ImportError, DeviceUnavailableError: the framework, the device, or a framework for it, is not there.
    """
    if like is None:
        like = "numpy"
    if isinstance(like, str):
        if like not in FRAMEWORKS:
            raise wrong_value("like", _LIKE, like)
        adapter = adapter_named(like)
        here = adapter.default_device() if device is None else Device(like)
    elif is_array(like):
        adapter, here = locate(like, "like")
    else:
        raise wrong_type("like", _LIKE, like)
    if device is None:
        return adapter, here
    there = parse_device(device, here)
    return adapter_named(there.framework), there


def parse_device(device: Any, here: Device) -> Device:
    """The device of a name, a `torch.device`, a `jax.Device` or an array, for an array that is now at `here`.

    Raises TypeError, ValueError for others, DeviceUnavailableError where no framework for the device is installed.
    """
    if is_array(device):
        return locate(device, "device")[1]
    kind, index = parse_kind(device)
    if kind == "cpu":
        return Device("numpy" if here.framework == "cupy" else here.framework, "cpu", index)
    if here.framework != "numpy":
        return Device(here.framework, "cuda", index)
    return Device(gpu_adapter(index).name, "cuda", index)


def gpu_adapter(index: int, frameworks: Sequence[str] = _GPU_FRAMEWORKS) -> Adapter:
    """The adapter for arrays on a CUDA device that come from no framework: the first that can be used.

    Raises DeviceUnavailableError where there is no such device, or no framework for it.
    """
    check_device(index)
    for framework in frameworks:
        try:
            usable = _module(framework).has_cuda()
        except ImportError:
            continue
        if usable:
            return adapter_named(framework)
    raise DeviceUnavailableError(
        f"cuda:{index}: device memory comes from PyTorch, CuPy or JAX; install torch, cupy or jax with CUDA"
    )


def to_cuda(x: NDArray[Any], index: int) -> Any:
    """A NumPy array copied to a CUDA device, as an array of whichever framework is installed."""
    return gpu_adapter(index).upload(x, index)


def pytree_children(x: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """The children of a pytree's node that JAX knows, and a function that rebuilds it; None for everything else."""
    if "jax" not in sys.modules:
        return None
    found: tuple[list[Any], Callable[[list[Any]], Any]] | None = _module("jax").pytree_children(x)
    return found


def _is_convertible(x: Any) -> bool:
    return hasattr(type(x), "__array__") and not isinstance(x, Encoded)


def _is_producer(x: Any) -> bool:
    return hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")


def _view_of_producer(x: Any, name: str) -> tuple[Adapter, Any]:
    number, index = x.__dlpack_device__()
    kind = _DLPACK_DEVICES.get(int(number))
    if kind == "cpu":
        data, dtype, shape = _core.import_dlpack(x)
        return NUMPY, data.view(_dtypes.by_name(dtype).numpy).reshape(shape)
    if kind == "cuda":
        # PyTorch does not take managed memory.
        adapter = gpu_adapter(int(index), ("cupy", "jax") if number == _MANAGED else _GPU_FRAMEWORKS)
        return adapter, adapter.from_dlpack(x)
    raise DeviceUnavailableError(
        f"{name}: expected an array on the CPU or on CUDA, got DLPack device type {int(number)}"
    )
