"""Arrays on the device, encoded and decoded into memory taken before; everything is compared with the CPU's bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import _core, _dtypes
from arrcomp._arrays.numpy import numpy_bytes
from arrcomp.codecs import Codec
from kernels.cases import SEED

Array = NDArray[Any]

POISON = 0xA5  # what a kernel does not write is seen


class WrongResultError(Exception):
    """The GPU's result is not the CPU's."""


def check_equal(what: str, found: Array, expected: Array) -> None:
    """Raise WrongResultError unless two byte arrays are equal."""
    if found.size != expected.size:
        raise WrongResultError(f"{what}: {found.size} bytes, the CPU's has {expected.size}")
    different = np.flatnonzero(found != expected)
    if different.size:
        raise WrongResultError(f"{what}: {different.size} of {found.size} bytes differ, the first at {different[0]}")


class Slot:
    """One array on the device, with room for its payload and for what comes back. Calls on one stream share scratch."""

    def __init__(self, framework: Any, codec: Codec, array: Array, scratch: Any = None) -> None:
        self.memory, self.asked = framework, codec
        memory = self.memory
        dtype = _dtypes.by_numpy(array.dtype)
        self.elements = array.size * dtype.parts
        self.coding = (codec.id, codec.core_parameters(), dtype.id)
        self.source, self.target = memory.empty(array.nbytes), memory.empty(array.nbytes)
        memory.fill(self.source, numpy_bytes(array))
        self.payload = memory.empty(_core.capacity(*self.coding, self.elements))
        self.length, self.status = memory.empty(8), memory.empty(4)
        if scratch is None:
            calls = memory.calls
            encode = calls.encode_scratch(self.coding, [self.elements])
            scratch = memory.empty(max(encode, calls.decode_scratch(self.coding, [self.elements]), 8))
        self.scratch = scratch
        self.nbytes = 0  # of the payload, once it is checked

    def encode(self) -> None:
        """Enqueue encoding."""
        source, payload, length, scratch = self._pointers(self.source, self.payload, self.length, self.scratch)
        self.memory.calls.encode(self.coding, [(source, payload, self.elements)], length, SEED, scratch)

    def decode(self) -> None:
        """Enqueue decoding of what `encode` left, whose length is on the device."""
        payload, length, target, status = self._pointers(self.payload, self.length, self.target, self.status)
        array = (payload, self.payload.shape[0], length, target, self.elements)
        self.memory.calls.decode(self.coding, [array], status, self.memory.pointer(self.scratch))

    def poison(self) -> None:
        """Fill payload, length, target and status with what no kernel wrote."""
        for buffer in (self.payload, self.length, self.target, self.status):
            buffer[:] = POISON

    def check_encoded(self, expected: arrcomp.Compressed) -> None:
        """Raise WrongResultError unless the last `encode` left this payload; waits."""
        length = int(self.memory.to_host(self.length).view(np.uint64)[0])
        if length > self.payload.shape[0]:
            raise WrongResultError(f"payload: {length} bytes of {self.payload.shape[0]}")
        check_equal("payload", self.memory.to_host(self.payload[:length]), expected.host_payload())
        self.nbytes = length

    def check_decoded(self, expected: Array) -> None:
        """Raise WrongResultError unless the last `decode` gave these elements; waits."""
        if self.memory.to_host(self.status).view(np.uint32)[0]:
            raise WrongResultError("decoding: the status says that the payload is corrupt")
        check_equal("array", self.memory.to_host(self.target), numpy_bytes(expected))

    def check(self, array: Array) -> None:
        """Encode and decode `array`, the source's; raise WrongResultError unless all bytes are the CPU's."""
        expected = arrcomp.compress(array, self.asked, seed=SEED)
        self.poison()
        self.encode()
        self.check_encoded(expected)
        self.decode()
        self.check_decoded(arrcomp.decompress(expected))

    def _pointers(self, *buffers: Any) -> tuple[int, ...]:
        return tuple(self.memory.pointer(buffer) for buffer in buffers)


def checked_slots(framework: Any, codec: Codec, arrays: Sequence[Array]) -> list[Slot]:
    """A slot for each array, all checked; they share scratch memory.

    Raises:
        WrongResultError: a result is not the CPU's.
    """
    slots: list[Slot] = []
    for array in arrays:
        slots.append(Slot(framework, codec, array, slots[0].scratch if slots else None))
        slots[-1].check(array)
    return slots
