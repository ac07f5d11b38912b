"""The C library through ctypes: what it declares, with NumPy arrays and bytes in place of addresses."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

OK, INVALID_ARGUMENT, BUFFER_TOO_SMALL, CORRUPT, NEWER_FORMAT, UNKNOWN_CODEC, NOT_SUPPORTED, NO_MEMORY = range(8)

# The folder that `cmake --install` was given, and where it puts HDF5's filter.
PREFIX = Path(os.environ.get("ARRCOMP_C_PREFIX", ""))
PLUGINS = PREFIX / "lib" / "hdf5" / "plugin"


class Layout(ctypes.Structure):
    """arrcomp_layout."""

    _fields_ = [("dtype", ctypes.c_int), ("dimensions", ctypes.c_int), ("shape", ctypes.POINTER(ctypes.c_uint64))]


class Info(ctypes.Structure):
    """arrcomp_info."""

    _fields_ = [
        ("dtype", ctypes.c_int),
        ("dimensions", ctypes.c_int),
        ("shape", ctypes.c_uint64 * 64),
        ("array_bytes", ctypes.c_uint64),
        ("codec", ctypes.c_char_p),
        ("is_framed", ctypes.c_int),
    ]


def environment() -> dict[str, str]:
    """That of processes whose HDF5 finds the filter; AssertionError where it is not installed."""
    assert PLUGINS.is_dir(), f"{PLUGINS}: expected the filter, which ARRCOMP_HDF5=ON installs, got none"
    return os.environ | {"HDF5_PLUGIN_PATH": str(PLUGINS)}


class StatusError(Exception):
    """A status that is not ARRCOMP_OK, with its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Library:
    """The shared library of an installation."""

    def __init__(self, path: Path) -> None:
        self._dll = ctypes.CDLL(str(path))
        for name in ("arrcomp_version", "arrcomp_error_message"):
            getattr(self._dll, name).restype = ctypes.c_char_p

    def version(self) -> str:
        return str(self._dll.arrcomp_version().decode())

    def array_nbytes(self, layout: Layout) -> int:
        nbytes = ctypes.c_uint64()
        self._check(self._dll.arrcomp_array_bytes(ctypes.byref(nbytes), ctypes.byref(layout)))
        return nbytes.value

    def bound(self, layout: Layout, configuration: str | None) -> int:
        nbytes = ctypes.c_uint64()
        self._check(self._dll.arrcomp_compress_bound(ctypes.byref(nbytes), ctypes.byref(layout), _text(configuration)))
        return nbytes.value

    def compress(
        self,
        array: Array,
        dtype: int,
        configuration: str | None,
        *,
        seed: int = 0,
        threads: int = 1,
        room: int | None = None,
    ) -> bytes:
        """The stream of an array, written to a buffer of `room` bytes; None for `compress_bound` of them."""
        layout = layout_of(dtype, array.shape)
        room = self.bound(layout, configuration) if room is None else room
        out, nbytes = np.full(room + 1, 0xA5, np.uint8), ctypes.c_uint64()
        status = self._dll.arrcomp_compress(
            ctypes.c_void_p(out.ctypes.data), ctypes.c_uint64(room), ctypes.byref(nbytes), _address(array),
            ctypes.byref(layout), _text(configuration), ctypes.c_uint64(seed), threads,
        )  # fmt: skip
        assert out[room] == 0xA5
        self._check(status)
        return out[: nbytes.value].tobytes()

    def info(self, stream: bytes) -> Info:
        info = Info()
        self._check(self._dll.arrcomp_read_info(ctypes.byref(info), stream, ctypes.c_uint64(len(stream))))
        return info

    def decompress(self, stream: Any, nbytes: int, *, threads: int = 1) -> bytes:
        """The bytes of a stream's array, which has so many; the stream is bytes, or an array of them."""
        out = np.full(nbytes + 1, 0xA5, np.uint8)
        data = np.frombuffer(stream, np.uint8)
        status = self._dll.arrcomp_decompress(
            ctypes.c_void_p(out.ctypes.data),
            ctypes.c_uint64(nbytes),
            _address(data),
            ctypes.c_uint64(data.size),
            threads,
        )
        assert out[nbytes] == 0xA5
        self._check(status)
        return out[:nbytes].tobytes()

    def _check(self, status: int) -> None:
        if status != OK:
            raise StatusError(status, self._dll.arrcomp_error_message().decode())


def layout_of(dtype: int, shape: tuple[int, ...]) -> Layout:
    """The layout of arrays of a data type's id and a shape."""
    return Layout(dtype, len(shape), (ctypes.c_uint64 * len(shape))(*shape))


def _text(configuration: str | None) -> bytes | None:
    return None if configuration is None else configuration.encode()


def _address(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data if array.size else None)
