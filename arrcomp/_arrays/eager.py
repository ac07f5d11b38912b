"""The adapter of frameworks whose calls run as they are made, NumPy and CuPy: checks, then the driver."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from .._format.spec import Spec
from . import driver
from .checks import OVERLAPS_X, check_capacity, check_separate, overlaps_payload
from .contract import Adapter, Memory, Payload

_NO_CONTEXT = contextlib.nullcontext()


class EagerAdapter(Adapter, Memory, ABC):
    """What NumPy's and CuPy's adapters share."""

    def compress(
        self, xs: Sequence[Any], specs: Sequence[Spec], out: Sequence[Any] | None, threads: int, seed: Any
    ) -> list[Payload]:
        with self.on_device_of(xs[0]):
            sources = [self.contiguous(x, spec) for x, spec in zip(xs, specs, strict=True)]
            capacities = [spec.capacity for spec in specs]
            if out is None:
                buffers = self.allocate(capacities, xs[0])
            else:
                buffers = [self._out_buffer(*row) for row in zip(out, xs, sources, capacities, strict=True)]
            lengths = self.new_lengths(len(xs), xs[0])
            elements = [spec.elements for spec in specs]
            coding = driver.coding_of(specs[0])
            driver.encode(self, sources, buffers, lengths, elements, coding, self.seed_of(seed, xs[0]), threads)
            if specs[0].codec.fixed_rate:
                return [Payload(self, _cut(*row), trusted=True) for row in zip(buffers, capacities, strict=True)]
            return self.payloads(buffers, lengths, out is None)

    def decompress(
        self, payloads: Sequence[Payload], specs: Sequence[Spec], out: Sequence[Any] | None, threads: int
    ) -> list[Any]:
        self.validate(payloads, specs)
        with self.on_device_of(payloads[0].buffer):
            if out is None:
                arrays = [self.new_array(spec) for spec in specs]
            else:
                arrays = list(out)
                for array, payload, spec in zip(arrays, payloads, specs, strict=True):
                    self._check_target(array, [payload], spec, "out")
            coded = [(payload.buffer, payload.length) for payload in payloads]
            elements, coding = [spec.elements for spec in specs], driver.coding_of(specs[0])
            trusted = all(payload.trusted for payload in payloads)
            driver.decode(self, coded, arrays, elements, coding, trusted, threads)
        return arrays

    def accumulate(self, payload: Payload, spec: Spec, weight: float, into: Any, threads: int) -> Any:
        self._check_target(into, [payload], spec, "into")
        with self.on_device_of(into):
            terms = [(payload.buffer, payload.length, weight)]
            coding = driver.coding_of(spec)
            driver.accumulate(self, terms, into, spec.elements, coding, payload.trusted, threads)
        return into

    def compress_sum(
        self,
        payloads: Sequence[Payload],
        spec: Spec,
        weights: Sequence[float],
        result: Spec,
        out: Any,
        threads: int,
        seed: Any,
    ) -> Payload:
        first, capacity = payloads[0].buffer, result.capacity
        with self.on_device_of(first):
            if out is None:
                buffer = self.allocate([capacity], first)[0]
            else:
                buffer = self.checked_buffer(out, first)
                check_capacity(buffer.nbytes, capacity)
                for payload in payloads:
                    self._check_separate(buffer, payload.buffer, overlaps_payload("out"))
            length = self.new_lengths(1, first)
            terms = [(p.buffer, p.length, weight) for p, weight in zip(payloads, weights, strict=True)]
            coding, result_coding = driver.coding_of(spec), driver.coding_of(result)[:2]
            number, trusted = self.seed_of(seed, first), all(payload.trusted for payload in payloads)
            driver.encode_sum(
                self, terms, buffer, length, spec.elements, coding, result_coding, number, trusted, threads
            )
            if result.codec.fixed_rate:
                return Payload(self, _cut(buffer, capacity), trusted=True)
            return self.payloads([buffer], length, out is None)[0]

    def on_device_of(self, x: Any) -> Any:
        """A context in which the device of an array is the framework's current one."""
        return _NO_CONTEXT

    def validate(self, payloads: Sequence[Payload], specs: Sequence[Spec]) -> None:
        """Check untrusted payloads before memory is allocated for their arrays, where that needs no device."""

    @abstractmethod
    def contiguous(self, x: Any, spec: Spec) -> Any:
        """The elements of an array in C order, native byte order and aligned; the array itself where it is so."""

    @abstractmethod
    def allocate(self, sizes: Sequence[int], like: Any) -> list[Any]:
        """New buffers of these sizes on the device of an array."""

    @abstractmethod
    def new_lengths(self, count: int, like: Any) -> Any:
        """An array for so many lengths of payloads, uint64[count], on the device of an array."""

    @abstractmethod
    def new_array(self, spec: Spec) -> Any:
        """A new array on the current device."""

    @abstractmethod
    def payloads(self, buffers: Sequence[Any], lengths: Any, shrink: bool) -> list[Payload]:
        """Payloads in buffers, which may be shrunk where they are ours."""

    @abstractmethod
    def seed_of(self, seed: Any, like: Any) -> driver.Seed:
        """A seed as the driver takes it; raises TypeError where it is neither an integer nor an array of one."""

    @abstractmethod
    def checked_buffer(self, out: Any, like: Any) -> Any:
        """The caller's memory for a payload as a buffer; raises TypeError or ValueError where it cannot be one."""

    @abstractmethod
    def check_array(self, array: Any, spec: Spec, name: str) -> None:
        """Raise TypeError or ValueError unless the caller's array can be filled with the values of an array."""

    def _out_buffer(self, out: Any, x: Any, source: Any, capacity: int) -> Any:
        buffer = self.checked_buffer(out, x)
        check_capacity(buffer.nbytes, capacity)
        self._check_separate(buffer, source, OVERLAPS_X)
        return buffer

    def _check_target(self, array: Any, payloads: Sequence[Payload], spec: Spec, name: str) -> None:
        self.check_array(array, spec, name)
        for payload in payloads:
            self._check_separate(array, payload.buffer, overlaps_payload(name))

    def _check_separate(self, first: Any, second: Any, message: str) -> None:
        check_separate(self.address(first), first.nbytes, self.address(second), second.nbytes, message)


def _cut(buffer: Any, nbytes: int) -> Any:
    return buffer if buffer.nbytes == nbytes else buffer[:nbytes]
