"""Whose array is this? The only module that asks.

A framework's adapter is imported only once an array, or a `Compressed` made from one, says which.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core, _dtypes
from .._arguments import type_name
from ..errors import DeviceUnavailableError
from . import host
from .contract import Adapter, Home
from .device import check_device, parse_device

_CLASSES = {"torch": "Tensor", "jax": "Array", "cupy": "ndarray"}
_FRAMEWORKS = ("numpy", *_CLASSES)
_GPU_FRAMEWORKS = ("torch", "cupy", "jax")  # asked in this order where the array's own framework has no GPU arrays
_DLPACK_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 13: "cuda"}  # kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged
_MANAGED = 13
_ALLOWED = "a NumPy, PyTorch, JAX or CuPy array, or an object with __dlpack__ and __dlpack_device__, is allowed"

_adapters: dict[str, Adapter] = {"numpy": host.ADAPTER}


def adapter_of(x: Any) -> tuple[Adapter, Any]:
    """The adapter of an array, and the array; of an unknown DLPack producer, a known framework's view of its memory.

    Raises:
        TypeError: it is not an array.
        DeviceUnavailableError: it is on a device that is neither the CPU nor CUDA.
    """
    framework = framework_of(x)
    if framework == "dlpack":
        return _adopted(x)
    return adapter_named(framework), x


def adapter_named(framework: str) -> Adapter:
    """A framework's adapter.

    Raises:
        ImportError: the framework is not installed.
    """
    adapter = _adapters.get(framework)
    if adapter is not None:
        return adapter
    try:
        found: Adapter = _module(framework).ADAPTER
    except ImportError as error:
        raise ImportError(
            f"the array is to be one of {framework}, which cannot be imported ({error}): install {framework}, "
            "or pass like= with an array of another framework"
        ) from None
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


def framework_of(x: Any) -> str:
    """Name of the framework that x is of; "dlpack" for other producers.

    Raises:
        TypeError: it is not an array.
    """
    name = framework_of_known(x)
    if name is not None:
        return name
    if _is_producer(x):
        return "dlpack"
    raise TypeError(f"a {type_name(x)} is no array; {_ALLOWED}")


def is_array(x: Any) -> bool:
    """Whether `compress` would take it for an array."""
    return framework_of_known(x) is not None or _is_producer(x)


def framework_of_known(x: Any) -> str | None:
    """Name of the framework that x is of; None for other producers and for what is not an array."""
    if isinstance(x, (np.ndarray, np.generic)):
        if hasattr(x, "mask") and hasattr(x, "filled"):  # asking for numpy.ma would import it
            raise TypeError("x is a masked array, whose mask would be lost; x.filled(...) is allowed")
        return "numpy"
    for framework, name in _CLASSES.items():
        # Who holds an array has imported its framework: there is no need to do it here.
        kind = getattr(sys.modules.get(framework), name, None)
        if kind is not None and isinstance(x, kind):
            return framework
    return None


def place_of(x: Any) -> tuple[Adapter, Home]:
    """Adapter and home of an array; NumPy's for other producers in host memory.

    Raises:
        TypeError: it is not an array, or one without data.
        DeviceUnavailableError: it is on a device that is neither the CPU nor CUDA.
    """
    adapter, array = adapter_of(x)
    return adapter, adapter.home(array)


def place_to_fill(out: Any) -> tuple[Adapter, Home]:
    """Adapter and home of the caller's array, which is to be written to.

    Raises:
        TypeError: it cannot be written to.
    """
    if framework_of(out) in ("jax", "dlpack"):
        raise TypeError(f"out is a {type_name(out)}; a NumPy, PyTorch or CuPy array is allowed, or like= instead")
    return place_of(out)


def place_wanted(like: Any, device: Any) -> tuple[Adapter, Home]:
    """Adapter and home for arrays that come from no framework, as those of a file.

    Args:
        like: an array, or a framework's name, "numpy", "torch", "jax" or "cupy", for where it puts new arrays; None for
            NumPy, or on CUDA for whichever framework is installed.
        device: as of `home_named`; None for the one of `like`.

    Raises:
        TypeError: `like` or `device` is of a wrong type.
        ValueError: `like` or `device` is another name.
        ImportError: the framework is not installed.
        DeviceUnavailableError: the device, or a framework for it, is not there.
    """
    if like is None:
        like = "numpy"
    allowed = f"an array, or a name of {', '.join(_FRAMEWORKS)}, is allowed"
    if isinstance(like, str):
        if like not in _FRAMEWORKS:
            raise ValueError(f"like={like!r}: {allowed}")
        adapter = adapter_named(like)
        home = adapter.default_home() if device is None else Home(like)
    elif is_array(like):
        adapter, home = place_of(like)
    else:
        raise TypeError(f"like is a {type_name(like)}; {allowed}")
    if device is None:
        return adapter, home
    home = home_named(device, home)
    return adapter_named(home.framework), home


def home_named(device: Any, here: Home) -> Home:
    """Where a device is, for an array of `here`'s framework.

    Args:
        device: "cpu", "cuda" or "cuda:1", a `torch.device`, a `jax.Device`, or an array that is on the device.
        here: where the array is now.

    Raises:
        TypeError: `device` is none of these.
        ValueError: the name is not one of those.
        DeviceUnavailableError: no framework for such a device is installed.
    """
    if is_array(device):
        return place_of(device)[1]
    kind, index = parse_device(device)
    if kind == "cpu":
        return Home("numpy" if here.framework == "cupy" else here.framework, "cpu", index)
    if here.framework != "numpy":
        return Home(here.framework, "cuda", index)
    return Home(gpu_adapter(index).name, "cuda", index)


def gpu_adapter(index: int, frameworks: Sequence[str] = _GPU_FRAMEWORKS) -> Adapter:
    """The adapter for arrays on a CUDA device that come from no framework in particular: the first that can be used.

    Raises:
        DeviceUnavailableError: there is no such device, or no framework for it.
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
    return gpu_adapter(index).put(x, index)


def _is_producer(x: Any) -> bool:
    return hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")


def pytree_children(x: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """The children of what JAX knows as a pytree's node, and what makes one like it of others; None for all else."""
    if "jax" not in sys.modules:
        return None
    found: tuple[list[Any], Callable[[list[Any]], Any]] | None = _module("jax").pytree_children(x)
    return found


def _adopted(x: Any) -> tuple[Adapter, Any]:
    number, index = x.__dlpack_device__()
    kind = _DLPACK_DEVICES.get(int(number))
    if kind == "cpu":
        data, name, shape = _core.import_dlpack(x)
        return host.ADAPTER, data.view(_dtypes.by_name(name).numpy).reshape(shape)
    if kind == "cuda":
        # PyTorch does not take managed memory.
        adapter = gpu_adapter(int(index), ("cupy", "jax") if number == _MANAGED else _GPU_FRAMEWORKS)
        return adapter, adapter.from_dlpack(x)
    raise DeviceUnavailableError(f"x is on DLPack device type {int(number)}; arrays on the CPU or on CUDA are allowed")
