"""NumPy's arrays."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core, _dtypes
from .._arguments import wrong_type
from .._dtypes import Bytes, DType
from .._format.spec import Spec
from .checks import check_fillable, check_matches, validate_untrusted
from .contract import Payload
from .device import Device
from .driver import Seed
from .eager import EagerAdapter

_DEVICE = Device()
_FINITE_VALUES = 1 << 24  # that are looked at together, which takes a byte each


class NumpyAdapter(EagerAdapter):
    """NumPy's arrays."""

    name = "numpy"

    def device(self, x: Any) -> Device:
        return _DEVICE

    def default_device(self) -> Device:
        return _DEVICE

    def batch_key(self, x: Any) -> Hashable:
        return None

    def dtype_and_shape(self, x: Any) -> tuple[DType, tuple[int, ...]]:
        return _dtypes.by_numpy(x.dtype), x.shape

    def check_dtype(self, dtype: DType) -> None:
        pass  # it has all of the format's

    def is_finite(self, x: Any) -> bool:
        steps = range(0, x.size, _FINITE_VALUES)
        return all(np.isfinite(values_of(x, first, first + _FINITE_VALUES)).all() for first in steps)

    def host_bytes(self, x: Any) -> Bytes:
        return numpy_bytes(x)

    validate = staticmethod(validate_untrusted)
    address = staticmethod(_core.address)

    def stream(self, x: Any) -> None:
        return None

    def empty(self, nbytes: int, like: Any) -> Bytes:
        return np.empty(nbytes, np.uint8)

    def copy(self, buffer: Any) -> Any:
        return buffer.copy()

    def to_host(self, buffer: Any) -> Bytes:
        data: Bytes = buffer
        return data

    def contiguous(self, x: Any) -> NDArray[Any]:
        if type(x) is np.ndarray and x.flags.c_contiguous and x.dtype.isnative:
            return x
        return numpy_bytes(x)

    def allocate(self, sizes: Sequence[int], like: Any) -> list[Bytes]:
        return [np.empty(size, np.uint8) for size in sizes]

    def new_lengths(self, count: int, like: Any) -> NDArray[np.uint64]:
        return np.empty(count, np.uint64)

    def new_array(self, spec: Spec) -> NDArray[Any]:
        return np.empty(spec.shape, spec.dtype.numpy)

    def payloads(self, buffers: Sequence[Any], lengths: Any, specs: Sequence[Spec], shrink: bool) -> list[Payload]:
        if shrink:
            own = self.trim(buffers, lengths)
        else:
            own = [buffer[:length] for buffer, length in zip(buffers, lengths.tolist())]
        return [Payload(self, buffer, trusted=True) for buffer in own]

    def trim(self, buffers: Sequence[Bytes], lengths: NDArray[np.uint64]) -> Sequence[Bytes]:
        """Buffers of our own, shrunk in place to so many bytes, without a copy."""
        for buffer, length in zip(buffers, lengths.tolist()):
            buffer.resize(length, refcheck=False)
        return buffers

    def seed_of(self, seed: Any, like: Any) -> Seed:
        if seed is None or isinstance(seed, int):
            return seed or 0, None
        if np.asarray(seed).dtype.kind not in "iu":
            raise TypeError(f"seed: expected an integer, or an array of one, got an array of {np.asarray(seed).dtype}")
        return int(seed) % (1 << 64), None

    def checked_buffer(self, out: Any, like: Any) -> Bytes:
        return writable_bytes(out)

    def check_array(self, array: Any, spec: Spec, name: str) -> None:
        if not isinstance(array, np.ndarray):
            hint = ", or like= instead" if name == "out" else ""
            raise wrong_type(name, f"a NumPy, PyTorch or CuPy array{hint}", array)
        check_matches(_dtypes.by_numpy(array.dtype), array.shape, spec, name)
        check_fillable(array, name)

    def read_length(self, length: Any) -> int:
        return int(length.view(np.uint64)[0])

    def head(self, buffer: Any, nbytes: int) -> Any:
        return buffer[:nbytes]

    def from_host(self, data: Bytes, device: Device) -> tuple[Any, Any]:
        return data, None

    def from_dlpack(self, x: Any) -> Any:
        raise AssertionError("NumPy has no arrays on CUDA devices")

    def upload(self, x: Any, index: int) -> Any:
        raise AssertionError("NumPy has no arrays on CUDA devices")

    def to_device(self, buffer: Any, device: Device) -> Any:
        return buffer


ADAPTER = NumpyAdapter()


def numpy_bytes(x: Any) -> Bytes:
    """The bytes of a NumPy array in C order and native byte order; a view where the array is so already."""
    x = np.asarray(x)
    x = x.astype(_dtypes.native(x.dtype), copy=False)
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def values_of(x: NDArray[Any], first: int, last: int) -> NDArray[Any]:
    """Values of a NumPy array from a begin to an end, in C order: a view where they lie so, else a copy."""
    x = np.asarray(x)
    return x.reshape(-1)[first:last] if x.flags.c_contiguous else x.flat[first:last]


def check_unmasked(x: Any, name: str) -> None:
    """Raise TypeError where a NumPy array has a mask, which would be lost."""
    if hasattr(x, "mask") and hasattr(x, "filled"):  # isinstance would import numpy.ma
        hint = f"pass {name}.filled(...)" if name == "x" else "pass its data"
        raise TypeError(f"{name}: expected an array without a mask, got a masked array; {hint}")


def writable_bytes(out: Any) -> Bytes:
    """The caller's memory for a payload, in host memory.

    `out` is a uint8 NumPy array, a bytearray, a memoryview, or an array of another library in host memory of which
    NumPy can make a view. Raises TypeError for others, ValueError where it is read-only or not contiguous.
    """
    array = _view(out)
    if array.dtype != np.uint8:
        raise TypeError(f"out: expected dtype uint8, got {array.dtype}")
    check_fillable(array, "out")
    return array.reshape(-1)


def _view(out: Any) -> NDArray[Any]:
    if isinstance(out, memoryview) and not out.c_contiguous:
        raise ValueError(f"out: expected a C-contiguous array, got strides {out.strides}")
    if isinstance(out, (bytes, bytearray, memoryview)):
        return np.frombuffer(out, np.uint8)
    if isinstance(out, np.ndarray):
        check_unmasked(out, "out")
        return np.asarray(out)  # a matrix has no flat view
    if hasattr(out, "__array__") and hasattr(out, "__dlpack__"):
        array = np.asarray(out)
        if not array.flags.owndata:
            return array
    raise wrong_type("out", "a uint8 array in host memory", out)
