"""Whose array is this? The only module that asks: arrays of any framework in and out, as bytes.

A framework is imported only once an array, or a `Compressed` made from one, says which.
"""

import importlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, device, dtypes
from .errors import DeviceUnavailableError

Bytes = NDArray[np.uint8]

_CLASSES = {"torch": "Tensor", "jax": "Array", "cupy": "ndarray"}
_PLATFORMS = {"cpu": "cpu", "cuda": "cuda", "gpu": "cuda"}  # as torch and JAX name them
_DLPACK_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 13: "cuda"}  # kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged
_ALLOWED = "a NumPy, PyTorch, JAX or CuPy array, or an object with __dlpack__ and __dlpack_device__, is allowed"


@dataclass(frozen=True)
class Home:
    """Where an array lives.

    Attributes:
        framework: "numpy", "torch", "jax" or "cupy".
        kind: "cpu" or "cuda".
        index: number of the device.
    """

    framework: str = "numpy"
    kind: str = "cpu"
    index: int = 0

    @property
    def device(self) -> str:
        """The device's name, for instance "cpu" or "cuda:0"."""
        return "cpu" if self.kind == "cpu" and self.index == 0 else f"{self.kind}:{self.index}"


@dataclass(frozen=True)
class Source:
    """An array to read.

    Attributes:
        dtype, shape: of the array.
        home: where what is made from it goes back to.
        kind, index: the device that holds the bytes.
        read: gives the bytes in C order, without a copy where the array allows it: a NumPy array for "cpu", a flat
            device array of `device.memory(home.framework, index)` for "cuda".
    """

    dtype: dtypes.DType
    shape: tuple[int, ...]
    home: Home
    kind: str
    index: int
    read: Callable[[], Any]

    @property
    def elements(self) -> int:
        """Elements that a payload codes: a complex value is two."""
        return math.prod(self.shape) * self.dtype.parts


@dataclass(frozen=True)
class Target:
    """An array to fill.

    Attributes:
        buffer: its bytes, as `Source.read` gives them, writable.
        home: where it lives.
        result: gives the array, once the bytes are there.
    """

    buffer: Any
    home: Home
    result: Callable[[], Any]


def home_of(x: Any) -> Home:
    """Framework and device of an array.

    Raises:
        TypeError: it is not an array, or one without data.
        DeviceUnavailableError: it is on a device that is neither the CPU nor CUDA.
    """
    framework = _framework(x)
    if framework == "torch":
        return Home("torch", _platform(x.device.type), x.device.index or 0)
    if framework == "jax":
        place = _jax_device(x)
        return Home("jax", _platform(place.platform), place.id)
    if framework == "cupy":
        return Home("cupy", "cuda", x.device.id)
    return Home()


def open_source(x: Any) -> Source:
    """Look at an array, without copying anything yet.

    Raises:
        TypeError: it is not an array, has no data (sparse, meta, traced), or its dtype is not supported.
        DeviceUnavailableError: it is on a device that is neither the CPU nor CUDA.
    """
    framework = _framework(x)
    if framework == "dlpack":
        return _dlpack_source(x)
    home = home_of(x)
    if framework == "torch":
        _check_torch(x, "x")
    dtype = _torch_dtype(x) if framework == "torch" else _numpy_dtype(x)
    read = _CUDA_READERS[framework] if home.kind == "cuda" else _CPU_READERS[framework]
    return Source(dtype, tuple(x.shape), home, home.kind, home.index, lambda: read(x, home))


def to_cuda(x: NDArray[Any], index: int) -> Any:
    """A NumPy array copied to a CUDA device, as an array of PyTorch or CuPy, whichever is installed."""
    source = open_source(x)
    memory = device.memory(source.home.framework, index)
    target = allocate(Home(memory.framework, "cuda", index), source.dtype, source.shape)
    memory.copy_from_host(source.read(), target.buffer)
    return target.result()


def numpy_bytes(x: NDArray[Any]) -> Bytes:
    """The bytes of a NumPy array in C order and native byte order; a view where the array is so already."""
    x = np.asarray(x)
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def allocate(home: Home, dtype: dtypes.DType, shape: tuple[int, ...]) -> Target:
    """A new array, not initialized.

    Raises:
        TypeError: the framework has no such dtype.
        ImportError: the framework is not installed.
        DeviceUnavailableError: the device is not there.
    """
    if home.framework == "jax":
        return _allocate_jax(home, dtype, shape)
    if home.framework == "torch":
        torch = _import("torch")
        kind = _torch_type(torch, dtype)
        if home.kind == "cuda":
            device.memory("torch", home.index)
        tensor = torch.empty(shape, dtype=kind, device=home.device)
        return Target(_torch_bytes(tensor), home, lambda: tensor)
    if home.framework == "cupy":
        cupy = _import("cupy")
        memory = device.memory("cupy", home.index)
        with cupy.cuda.Device(home.index):
            array = cupy.empty(shape, dtype=dtype.numpy)
        return Target(memory.flat(array), home, lambda: array)
    result = np.empty(shape, dtype.numpy)
    return Target(result.reshape(-1).view(np.uint8), home, lambda: result)


def into(out: Any, dtype: dtypes.DType, shape: tuple[int, ...]) -> Target:
    """The caller's array as the one to fill.

    Raises:
        TypeError: it cannot be written to, or has another dtype.
        ValueError: it has another shape, is not C-contiguous, or is read-only.
    """
    framework = _framework(out)
    if framework in ("jax", "dlpack") or isinstance(out, np.generic):
        raise TypeError(f"out is a {_type_name(out)}; a NumPy, PyTorch or CuPy array is allowed, or like= instead")
    if framework == "torch":
        _check_torch(out, "out")
    given = _torch_dtype(out) if framework == "torch" else _numpy_dtype(out)
    if given != dtype:
        raise TypeError(f"out has dtype {given.name}; {dtype.name} is allowed")
    if tuple(out.shape) != shape:
        raise ValueError(f"out has shape {tuple(out.shape)}; {shape} is allowed")
    obstacle = _torch_obstacle(out) if framework == "torch" else _numpy_obstacle(out)
    if obstacle:
        raise ValueError(f"out {obstacle}; a writable array in C order and native byte order is allowed")
    home = home_of(out)
    if home.kind == "cuda":
        return Target(device.memory(framework, home.index).flat(out), home, lambda: out)
    buffer = _torch_bytes(out) if framework == "torch" else np.asarray(out).reshape(-1).view(np.uint8)
    return Target(buffer, home, lambda: out)


def writable_buffer(out: Any, nbytes: int, kind: str, index: int) -> Any:
    """The caller's buffer of at least `nbytes` bytes on this device, as `Source.read` gives bytes.

    Raises:
        TypeError: it is not a buffer of bytes on that device.
        ValueError: it is read-only, not contiguous, or too small.
    """
    if isinstance(out, (bytes, bytearray, memoryview)):
        out = np.frombuffer(out, np.uint8)
    home = home_of(out)
    if (home.kind, home.index) != (kind, index):
        raise TypeError(f"out is on {home.device}; a uint8 array on the device of x is allowed")
    if math.prod(out.shape) < nbytes:
        raise ValueError(f"out has {math.prod(out.shape)} bytes; at least {nbytes} (max_compressed_size) are allowed")
    return into(out, dtypes.by_name("uint8"), tuple(out.shape)).buffer


def check_apart(source: Bytes, target: Bytes, message: str) -> None:
    """Raise ValueError if two buffers in host memory overlap."""
    if source.size and target.size and np.may_share_memory(source, target):
        raise ValueError(message)


def _framework(x: Any) -> str:
    """Name of the framework that x is of; "dlpack" for other producers."""
    if isinstance(x, (np.ndarray, np.generic)):
        if hasattr(x, "mask") and hasattr(x, "filled"):  # asking for numpy.ma would import it
            raise TypeError("x is a masked array, whose mask would be lost; x.filled(...) is allowed")
        return "numpy"
    for framework, name in _CLASSES.items():
        # Who holds an array has imported its framework: there is no need to do it here.
        kind = getattr(sys.modules.get(framework), name, None)
        if kind is not None and isinstance(x, kind):
            return framework
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        return "dlpack"
    raise TypeError(f"a {_type_name(x)} is no array; {_ALLOWED}")


def _type_name(x: Any) -> str:
    kind = type(x)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _import(framework: str) -> Any:
    try:
        return importlib.import_module(framework)
    except ImportError as error:
        raise ImportError(
            f"the array is to be one of {framework}, which cannot be imported ({error}): install {framework}, "
            "or pass like= with an array of another framework"
        ) from None


def _platform(name: str) -> str:
    if name == "meta":
        raise TypeError("x is a meta tensor, which has no data; a tensor on 'cpu' or 'cuda' is allowed")
    if name not in _PLATFORMS:
        raise DeviceUnavailableError(f"device {name!r}: arrcomp runs on 'cpu' and 'cuda'; move the array there")
    return _PLATFORMS[name]


def _numpy_dtype(x: Any) -> dtypes.DType:
    try:
        return dtypes.by_numpy(x.dtype)
    except TypeError:
        return dtypes.by_name(str(x.dtype))  # says what is allowed


def _check_torch(x: Any, name: str) -> None:
    torch = sys.modules["torch"]
    if x.layout is not torch.strided:
        raise TypeError(f"{name} has layout {x.layout}; a dense tensor is allowed, for instance {name}.to_dense()")


def _torch_dtype(x: Any) -> dtypes.DType:
    dtype = dtypes.by_name(str(x.dtype).removeprefix("torch."))
    _torch_type(sys.modules["torch"], dtype)
    return dtype


def _torch_type(torch: Any, dtype: dtypes.DType) -> Any:
    # torch names some types below 8 bits, but has no arrays of them with one value to a byte.
    kind = None if dtype.name in ("int4", "uint4") else getattr(torch, dtype.name, None)
    if kind is None:
        raise TypeError(f"dtype {dtype.name}: PyTorch has no such tensors; like=numpy.empty(0) works")
    return kind


def _torch_obstacle(tensor: Any) -> str:
    """Why a tensor cannot be filled in place; empty if it can."""
    if tensor.requires_grad:
        return "requires grad (detach it)"
    if tensor.is_conj() or tensor.is_neg():
        return "is lazily conjugated or negated"
    return "" if tensor.is_contiguous() else "is not C-contiguous"


def _numpy_obstacle(array: Any) -> str:
    """Why a NumPy or CuPy array cannot be filled in place; empty if it can."""
    if not array.flags.c_contiguous:
        return "is not C-contiguous"
    if not array.dtype.isnative:
        return f"has dtype {array.dtype.str}"
    return "is read-only" if isinstance(array, np.ndarray) and not array.flags.writeable else ""


def _torch_bytes(tensor: Any) -> Any:
    torch = sys.modules["torch"]
    flat = tensor.detach().reshape(-1).view(torch.uint8)
    return flat if tensor.is_cuda else flat.numpy()


def _resolved(tensor: Any) -> Any:
    # DLPack would hand over the plain memory behind a lazily conjugated or negated tensor.
    return tensor.detach().resolve_conj().resolve_neg()


def _jax_device(x: Any) -> Any:
    if isinstance(x, sys.modules["jax"].core.Tracer):
        raise TypeError("x is traced by JAX and has no data; a concrete array, outside of jit, is allowed")
    devices = x.devices()
    if len(devices) != 1:
        raise TypeError(f"x is spread over {len(devices)} devices; an array on one is allowed (x.addressable_shards)")
    return next(iter(devices))


def _allocate_jax(home: Home, dtype: dtypes.DType, shape: tuple[int, ...]) -> Target:
    jax = _import("jax")
    if jax.dtypes.canonicalize_dtype(dtype.numpy) != dtype.numpy:
        raise TypeError(f"dtype {dtype.name}: JAX has such arrays only with jax_enable_x64; like=numpy.empty(0) works")
    if home.kind == "cpu":
        result = np.empty(shape, dtype.numpy)
        place = jax.devices("cpu")[home.index]
        return Target(result.reshape(-1).view(np.uint8), home, lambda: jax.device_put(result, place))
    memory = device.memory("jax", home.index)
    inner = allocate(Home(memory.framework, "cuda", home.index), dtype, shape)
    return Target(inner.buffer, home, lambda: jax.dlpack.from_dlpack(inner.result()))


def _dlpack_source(x: Any) -> Source:
    number, index = x.__dlpack_device__()
    kind = _DLPACK_DEVICES.get(int(number))
    if kind == "cpu":
        data, name, shape = _core.import_dlpack(x)
        return Source(dtypes.by_name(name), tuple(shape), Home(), "cpu", 0, lambda: data)
    if kind == "cuda":
        adopted = open_source(device.memory("numpy", index).from_dlpack(x))
        return Source(adopted.dtype, adopted.shape, Home(), "cuda", index, adopted.read)
    raise DeviceUnavailableError(f"x is on DLPack device type {int(number)}; arrays on the CPU or on CUDA are allowed")


_CPU_READERS: dict[str, Callable[[Any, Home], Bytes]] = {
    "numpy": lambda x, home: numpy_bytes(x),
    "jax": lambda x, home: numpy_bytes(x),  # a view where JAX is on the CPU; waits for x
    "torch": lambda x, home: _core.import_dlpack(_resolved(x))[0],
}
_CUDA_READERS: dict[str, Callable[[Any, Home], Any]] = {
    "torch": lambda x, home: device.memory("torch", home.index).flat(_resolved(x)),
    "cupy": lambda x, home: device.memory("cupy", home.index).flat(x),
    "jax": lambda x, home: device.memory("jax", home.index).flat(x),
}
