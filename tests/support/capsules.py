"""DLPack capsules made by hand, and a producer that holds its consumer to the specification."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
READ_ONLY, COPIED = 1, 2  # flags
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLDataTypeCode by NumPy's kind
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class OnlyDLPack:
    """An array of some library that nobody knows: nothing but the two methods of the protocol."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Unversioned(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_api = ctypes.pythonapi
_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = (ctypes.c_void_p,)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)


def _structure(name: bytes, address: int) -> Any:
    return (_Versioned if name.endswith(b"versioned") else _Unversioned).from_address(address)


def _destroy(capsule: int) -> None:
    """What the specification asks of a capsule that goes away: one that nobody used gives its tensor back."""
    name = _api.PyCapsule_GetName(capsule)
    if not name.startswith(b"used_"):
        address = _api.PyCapsule_GetPointer(capsule, name)
        _structure(name, address).deleter(address)


_destructor = _DESTRUCTOR(_destroy)
_NAMES = (b"dltensor", b"dltensor_versioned", b"used_dltensor", b"used_dltensor_versioned")  # capsules keep no copies
_lent: dict[int, Any] = {}  # what consumers hold, by address; it outlives its producer


class Producer:
    """An array with nothing but `__dlpack__` and `__dlpack_device__`, which records how it was asked.

    Args:
        array: what is exported.
        device: (DLDeviceType, number) that it says to be on.
        keywords: that its `__dlpack__` knows, as producers of different ages do.
        flags, version: of versioned capsules, which it gives where `max_version` allows.
        dtype: (code, bits, lanes) instead of the array's.
        null_strides: whether to leave the strides out, as for an array in C order.
        byte_offset: how far behind the tensor's address the array begins.
        error: to be raised instead.

    Attributes:
        asked: the arguments of every call.
        lent: tensors that consumers, or capsules, have not given back.
        deleted: tensors that were given back.
    """

    def __init__(
        self,
        array: NDArray[Any],
        *,
        device: tuple[int, int] = (CPU, 0),
        keywords: tuple[str, ...] = ("stream", "max_version", "dl_device", "copy"),
        flags: int = 0,
        version: tuple[int, int] = (1, 0),
        dtype: tuple[int, int, int] | None = None,
        null_strides: bool = False,
        byte_offset: int = 0,
        error: Exception | None = None,
    ) -> None:
        self.array = array
        self.device = device
        self.keywords = keywords
        self.flags = flags
        self.version = version
        self.dtype = dtype or (_CODES[array.dtype.kind], array.dtype.itemsize * 8, 1)
        self.null_strides = null_strides
        self.byte_offset = byte_offset
        self.error = error
        self.asked: list[dict[str, Any]] = []
        self.lent = 0
        self.deleted = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        for name in options:
            if name not in self.keywords:
                raise TypeError(f"__dlpack__() got an unexpected keyword argument {name!r}")
        _check_options(options, self.device[0])
        self.asked.append(options)
        if self.error is not None:
            raise self.error
        return self.capsule((options.get("max_version") or (0, 0))[0] >= 1)

    def capsule(self, versioned: bool) -> Any:
        """A new capsule."""
        array, rank = self.array, self.array.ndim
        shape = (ctypes.c_int64 * rank)(*array.shape)
        strides = (ctypes.c_int64 * rank)(*(step // array.dtype.itemsize for step in array.strides))
        tensor = _Tensor(
            array.ctypes.data - self.byte_offset,
            *self.device,
            rank,
            *self.dtype,
            shape,
            None if self.null_strides else strides,
            self.byte_offset,
        )
        deleter = _DELETER(self._delete)
        if versioned:
            managed: Any = _Versioned(*self.version, None, deleter, self.flags, tensor)
        else:
            managed = _Unversioned(tensor, None, deleter)
        address = ctypes.addressof(managed)
        _lent[address] = (managed, shape, strides, deleter, array)
        self.lent += 1
        return _api.PyCapsule_New(address, _NAMES[versioned], _destructor)

    def _delete(self, address: int) -> None:
        assert address in _lent, "a tensor was given back twice"
        self._kept = _lent.pop(address)  # as its deleter is running
        self.lent -= 1
        self.deleted += 1


def _check_options(options: dict[str, Any], device_type: int) -> None:
    stream = options.get("stream")
    if device_type in (CUDA, CUDA_MANAGED):
        assert type(stream) is int, "the consumer does not say on which stream it goes on"
        assert stream == -1 or stream > 0, f"stream {stream} is ambiguous"
    else:
        assert stream is None, "host memory has no stream"
    version = options.get("max_version")
    assert version is None or (type(version) is tuple and list(map(type, version)) == [int, int])
    assert isinstance(options.get("dl_device"), tuple | None)
    assert options.get("copy") in (None, True, False)


def read_cuda_capsule(capsule: Any) -> tuple[Any, NDArray[Any], tuple[int, int]]:
    """Consume a capsule as a GPU framework does: what owns the memory, the array on it, and its device."""
    name = _api.PyCapsule_GetName(id(capsule))
    if name not in _NAMES[:2]:
        raise ValueError("a capsule cannot be consumed twice")
    address = _api.PyCapsule_GetPointer(id(capsule), name)
    _api.PyCapsule_SetName(capsule, _NAMES[2:][_NAMES.index(name)])
    owner = _Owner(_structure(name, address), address)
    tensor = owner.managed.tensor
    kind = {code: kind for kind, code in _CODES.items()}.get(tensor.code)
    if kind is None:
        raise NotImplementedError(f"data type code {tensor.code}")
    dtype = np.dtype(f"{kind}{tensor.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(step * dtype.itemsize for step in tensor.strides[: tensor.ndim]) if tensor.strides else None
    extent = sum((size - 1) * step for size, step in zip(shape, strides or (), strict=False)) + dtype.itemsize
    nbytes = (extent if strides else int(np.prod(shape)) * dtype.itemsize) if 0 not in shape else 0
    memory: Any = (ctypes.c_uint8 * nbytes).from_address(tensor.data + tensor.byte_offset)
    array: NDArray[Any] = np.ndarray(shape, dtype, memory, strides=strides)
    return owner, array, (tensor.device_type, tensor.device_id)


class _Owner:
    """Gives a tensor back when it goes away."""

    def __init__(self, managed: Any, address: int) -> None:
        self.managed = managed
        self._address = address

    def __del__(self) -> None:
        self.managed.deleter(self._address)
