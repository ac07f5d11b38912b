"""Times sums of payloads on the GPU: one added to an array, and several encoded again, as an all-reduce does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import _core
from arrcomp._arrays.numpy import numpy_bytes
from kernels.cases import SEED, normal
from kernels.device import Gpu
from kernels.slots import POISON, Slot, WrongResultError, check_equal

Array = NDArray[Any]

CODECS = {"QSGD 8 bits": arrcomp.QSGD(bits=8), "QSGD 4 bits": arrcomp.QSGD(bits=4)}
TERMS = 8


class Sum:
    """Payloads on the device, an array that one is added to, and room for the sum of all."""

    def __init__(self, gpu: Gpu, codec: arrcomp.Codec, arrays: list[Array]) -> None:
        self.memory, self.arrays = gpu.framework, arrays
        memory, calls = self.memory, self.memory.calls
        self.slots = [Slot(memory, codec, array) for array in arrays]
        for slot in self.slots:
            slot.encode()
        self.coding, self.elements = self.slots[0].coding, self.slots[0].elements
        self.into = memory.empty(arrays[0].nbytes)
        self.payload = memory.empty(_core.capacity(*self.coding, self.elements))
        self.length, self.status = memory.empty(8), memory.empty(4)
        scratch = calls.encode_sum_scratch(self.coding, len(arrays), self.elements)
        self.scratch = memory.empty(max(scratch, calls.accumulate_scratch(1), 8))

    def _terms(self, slots: list[Slot]) -> list[tuple[int, int, int, float]]:
        at = self.memory.pointer
        return [(at(slot.payload), slot.payload.shape[0], at(slot.length), 1.0) for slot in slots]

    def accumulate(self) -> None:
        """Enqueue the addition of the first payload to the array."""
        into, status, scratch = (self.memory.pointer(b) for b in (self.into, self.status, self.scratch))
        terms = self._terms(self.slots[:1])
        self.memory.calls.accumulate(self.coding, terms, self.elements, into, status, scratch)

    def encode_sum(self) -> None:
        """Enqueue the encoding of the sum of all payloads."""
        payload, length, status, scratch = (
            self.memory.pointer(b) for b in (self.payload, self.length, self.status, self.scratch)
        )
        terms = self._terms(self.slots)
        self.memory.calls.encode_sum(self.coding, terms, self.elements, (payload, length), SEED, status, scratch)

    def check(self, codec: arrcomp.Codec) -> None:
        """Raise WrongResultError unless both are the CPU's; waits."""
        terms = [arrcomp.compress(array, codec, seed=SEED) for array in self.arrays]
        self.memory.fill(self.into, numpy_bytes(self.arrays[0]))
        self.payload[:] = POISON
        self.accumulate()
        check_equal("sum", self.memory.to_host(self.into), numpy_bytes(_accumulated(terms[0], self.arrays[0])))
        self.encode_sum()
        expected = arrcomp.compress_sum(terms, codec, seed=SEED).host_payload()
        length = int(self.memory.to_host(self.length).view(np.uint64)[0])
        if length > self.payload.shape[0]:
            raise WrongResultError(f"payload of the sum: {length} bytes of {self.payload.shape[0]}")
        check_equal("payload of the sum", self.memory.to_host(self.payload[:length]), expected)
        if self.memory.to_host(self.status).view(np.uint32)[0]:
            raise WrongResultError("summing: the status says that a payload is corrupt")


def _accumulated(term: arrcomp.Compressed, into: Array) -> Array:
    target = into.copy()
    arrcomp.accumulate(term, target)
    return target


def measure_sums(gpu: Gpu, nbytes: int) -> Iterator[dict[str, Any]]:
    """A line for each codec, of arrays of so many bytes."""
    rng = np.random.default_rng(0)
    arrays = [normal(rng, nbytes // 4) for _ in range(TERMS)]
    for name, codec in CODECS.items():
        total = Sum(gpu, codec, arrays)
        line: dict[str, Any] = {"kind": "sum", "what": f"{name}, {TERMS} terms", "nbytes": nbytes}
        try:
            total.check(codec)
        except WrongResultError as error:
            yield line | {"wrong": str(error)}
            continue
        payload = int(gpu.framework.to_host(total.length).view(np.uint64)[0])
        moved = {"accumulate": 2 * nbytes + payload, "encode_sum": (TERMS + 1) * payload}
        for half, touched in moved.items():
            work = [getattr(total, half)]
            timing = gpu.time(work)
            line[half] = timing | {"moved": touched / timing["seconds"], "kernels": gpu.kernels(work)}
        yield line
