"""Ways to send an array to who has another one of its dtype and shape, the reference.

Each uses one thread. What NumPy does for it counts, and uses memory that is allocated once.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np

import arrcomp

from . import Array, Payload, as_unsigned
from .scratch import Scratch

Z4AI_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


class Delta(Protocol):
    """One way, in one setting."""

    bounded: bool

    def supports(self, array: Array) -> bool:
        """Whether it takes this array's dtype."""

    def compress(self, array: Array, reference: Array, bound: float) -> Payload:
        """Compress a C-contiguous array; within an absolute bound where `bounded` and the bound is not 0."""

    def apply(self, payload: Payload, target: Array) -> Array:
        """The array, of the reference in `target`, which is changed in place where the library can do so."""


class Arrcomp:
    """arrcomp, against the reference or without it."""

    bounded = True

    def __init__(self, speed: str = "default", reference: bool = True) -> None:
        self._speed: Any = speed
        self._referring = reference

    def supports(self, array: Array) -> bool:
        return True

    def compress(self, array: Array, reference: Array, bound: float) -> Payload:
        bounded = arrcomp.ErrorBounded(abs=bound, speed=self._speed) if bound else None
        codec = bounded or arrcomp.Lossless(speed=self._speed)
        given = {"reference": reference} if self._referring else {}
        compressed = arrcomp.compress(array, codec, threads=1, **given)
        return Payload(compressed, compressed.nbytes)

    def apply(self, payload: Payload, target: Array) -> Array:
        given = {"reference": target} if self._referring else {}
        return arrcomp.decompress(payload.data, out=target, threads=1, **given)


class SparsePatch:
    """Places and values of what changed, and their number: 4 bytes and an element each, as in vLLM's sparse updates."""

    bounded = False

    def supports(self, array: Array) -> bool:
        return array.size < 2**31

    def compress(self, array: Array, reference: Array, bound: float) -> Payload:
        new = as_unsigned(array).reshape(-1)
        places = np.flatnonzero(new != as_unsigned(reference).reshape(-1)).astype(np.int32)
        values = new[places]
        return Payload((places, values), 8 + places.nbytes + values.nbytes)

    def apply(self, payload: Payload, target: Array) -> Array:
        places, values = payload.data
        as_unsigned(target).reshape(-1)[places] = values
        return target


class XorZstandard:
    """Zstandard of the bytes of an exclusive or: as they are, or all first bytes of the elements, all second ones..."""

    bounded = False

    def __init__(self, planes: bool = False) -> None:
        import zstandard

        self._planes = planes
        self._compressor = zstandard.ZstdCompressor(level=3)
        self._decompressor = zstandard.ZstdDecompressor()
        self._scratch = Scratch()

    def supports(self, array: Array) -> bool:
        return True

    def compress(self, array: Array, reference: Array, bound: float) -> Payload:
        new, old = as_unsigned(array).reshape(-1), as_unsigned(reference).reshape(-1)
        changed = np.bitwise_xor(new, old, out=self._scratch.get("changed", new.shape, new.dtype)).view(np.uint8)
        if self._planes:
            planes = self._scratch.get("planes", (new.itemsize, new.size), np.uint8)
            np.copyto(planes, changed.reshape(new.size, new.itemsize).T)
            changed = planes
        data = self._compressor.compress(changed)
        return Payload(data, len(data))

    def apply(self, payload: Payload, target: Array) -> Array:
        into = as_unsigned(target).reshape(-1)
        changed = np.frombuffer(self._decompressor.decompress(payload.data), np.uint8)
        if self._planes:
            elements = self._scratch.get("elements", (into.size, into.itemsize), np.uint8)
            np.copyto(elements, changed.reshape(into.itemsize, into.size).T)
            changed = elements.reshape(-1)
        np.bitwise_xor(into, changed.view(into.dtype), out=into)
        return target


class ZipNNDelta:
    """ZipNN's delta of bytes: its byte groups and Huffman codes, of an exclusive or."""

    bounded = False

    def __init__(self) -> None:
        from zipnn import ZipNN

        settings = {"input_format": "byte", "threads": 1, "delta_compressed_type": "byte"}
        self._by_dtype = {name: ZipNN(bytearray_dtype=name, **settings) for name in ("float32", "bfloat16", "float16")}

    def supports(self, array: Array) -> bool:
        return array.dtype.name in self._by_dtype

    def compress(self, array: Array, reference: Array, bound: float) -> Payload:
        given = memoryview(as_unsigned(array)).cast("B"), memoryview(as_unsigned(reference)).cast("B")
        data = self._by_dtype[array.dtype.name].compress(given[0], delta_second_data=given[1])
        return Payload(data, len(data))

    def apply(self, payload: Payload, target: Array) -> Array:
        given = memoryview(as_unsigned(target)).cast("B")
        data = self._by_dtype[target.dtype.name].decompress(payload.data, delta_second_data=given)
        return np.frombuffer(data, target.dtype).reshape(target.shape)


class Z4aiDelta:
    """z4ai's delta: its own codec, of an exclusive or, with a digest of the reference."""

    bounded = False

    def __init__(self) -> None:
        import z4ai

        self._library = z4ai

    def supports(self, array: Array) -> bool:
        return array.dtype.name in Z4AI_DTYPES

    def compress(self, array: Array, reference: Array, bound: float) -> Payload:
        given = {"reference": as_unsigned(reference), "dtype": Z4AI_DTYPES[array.dtype.name], "threads": 1}
        data = self._library.compress_delta(as_unsigned(array), **given)
        return Payload(data, len(data))

    def apply(self, payload: Payload, target: Array) -> Array:
        data = self._library.decompress_delta(payload.data, reference=as_unsigned(target))
        return np.frombuffer(data, target.dtype).reshape(target.shape)


_WAYS: Mapping[str, tuple[str, Callable[[], Delta]]] = {  # the library that each needs, and what makes it
    "arrcomp": ("arrcomp", Arrcomp),
    "arrcomp, fast": ("arrcomp", partial(Arrcomp, "fast")),
    "arrcomp, no reference": ("arrcomp", partial(Arrcomp, reference=False)),
    "index + value": ("numpy", SparsePatch),
    "XOR, zstd-3": ("zstandard", XorZstandard),
    "XOR, byte planes, zstd-3": ("zstandard", partial(XorZstandard, planes=True)),
    "zipnn, delta": ("zipnn", ZipNNDelta),
    "z4ai, delta": ("z4ai", Z4aiDelta),
}
NAMES = tuple(_WAYS)


def ways() -> dict[str, Delta]:
    """By their names all ways whose libraries are installed."""
    return {name: made() for name, (library, made) in _WAYS.items() if importlib.util.find_spec(library) is not None}
