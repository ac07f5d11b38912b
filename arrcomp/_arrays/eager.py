"""The adapter of frameworks whose calls run as they are made, NumPy and CuPy: checks, then the driver."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from .._core import capacity
from .._format.spec import Spec
from . import driver
from .checks import check_capacity, check_same_or_separate, check_separate
from .contract import Adapter, Floats, Memory, Payload

NO_SEED: driver.Seed = (0, None)


class EagerAdapter(Adapter, Memory, ABC):
    """What NumPy's and CuPy's adapters share."""

    def compress(
        self,
        xs: Sequence[Any],
        specs: Sequence[Spec],
        out: Sequence[Any] | None,
        threads: int,
        seed: Any,
        references: Sequence[Any] | None = None,
    ) -> list[Payload]:
        sources, elements = [self.contiguous(x) for x in xs], [spec.elements for spec in specs]
        coding = specs[0].coding
        capacities = [capacity(*coding, count) for count in elements]
        if out is None:
            buffers = self.allocate(capacities, xs[0])
        else:
            buffers = [
                self._out_buffer(own, x, [source], n, "x") for own, x, source, n in zip(out, xs, sources, capacities)
            ]
        lengths = self.new_lengths(len(xs), xs[0])
        random = NO_SEED if seed is None else self.seed_of(seed, xs[0])
        shapes = [spec.shape for spec in specs]
        bases = () if references is None else [self.contiguous(reference) for reference in references]
        if out is not None:
            for buffer, base in zip(buffers, bases):
                check_separate(self, buffer, base, "out", "reference")
        driver.encode(self, sources, buffers, lengths, elements, coding, random, threads, shapes, bases)
        return self.payloads(buffers, lengths, specs, out is None)

    def decompress(
        self,
        payloads: Sequence[Payload],
        specs: Sequence[Spec],
        out: Sequence[Any] | None,
        threads: int,
        references: Sequence[Any] | None = None,
    ) -> list[Any]:
        # One loop and no more: calls with small arrays would spend much of their time on several.
        buffers, lengths, elements, trusted = [], [], [], True
        for payload, spec in zip(payloads, specs):
            buffers.append(payload.buffer)
            lengths.append(payload.length)
            elements.append(spec.elements)
            trusted = trusted and payload.trusted
        if not trusted:
            self.validate(payloads, specs)
        if out is None:
            arrays = [self.new_array(spec) for spec in specs]
        else:
            arrays = list(out)
            for array, payload, spec in zip(arrays, payloads, specs):
                self._check_target(array, payload, spec, "out")
        bases = () if references is None else [self.contiguous(reference) for reference in references]
        if out is not None:
            for array, base in zip(arrays, bases):
                check_same_or_separate(self, array, base)
        driver.decode(self, buffers, lengths, arrays, elements, specs[0].coding, trusted, threads, bases)
        return arrays

    def accumulate(self, payload: Payload, spec: Spec, weight: float, into: Any, threads: int) -> Any:
        self._check_target(into, payload, spec, "into")
        terms = [(payload.buffer, payload.length, weight)]
        driver.accumulate(self, terms, into, spec.elements, spec.coding, payload.trusted, threads)
        return into

    def compress_sum(
        self, payloads: Sequence[Payload], spec: Spec, weights: Floats, result: Spec, out: Any, threads: int, seed: Any
    ) -> Payload:
        first, needed = payloads[0].buffer, result.capacity
        if out is None:
            buffer = self.allocate([needed], first)[0]
        else:
            buffer = self._out_buffer(out, first, [p.buffer for p in payloads], needed, "the compressed array")
        length = self.new_lengths(1, first)
        terms = [(p.buffer, p.length, weight) for p, weight in zip(payloads, weights)]
        coding, sum_coding = spec.coding, result.coding[:2]
        random, trusted = self.seed_of(seed, first), all(payload.trusted for payload in payloads)
        driver.encode_sum(self, terms, buffer, length, spec.elements, coding, sum_coding, random, trusted, threads)
        return self.payloads([buffer], length, [result], out is None)[0]

    def validate(self, payloads: Sequence[Payload], specs: Sequence[Spec]) -> None:
        """Check untrusted payloads before memory is allocated for their arrays, where that needs no device."""

    @abstractmethod
    def contiguous(self, x: Any) -> Any:
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
    def payloads(self, buffers: Sequence[Any], lengths: Any, specs: Sequence[Spec], shrink: bool) -> list[Payload]:
        """Payloads at the starts of buffers, which may be shrunk where they are ours."""

    @abstractmethod
    def seed_of(self, seed: Any, like: Any) -> driver.Seed:
        """A seed as the driver takes it; raises TypeError where it is neither an integer nor an array of one."""

    @abstractmethod
    def checked_buffer(self, out: Any, like: Any) -> Any:
        """The caller's memory for a payload as a buffer; raises TypeError or ValueError where it cannot be one."""

    @abstractmethod
    def check_array(self, array: Any, spec: Spec, name: str) -> None:
        """Raise TypeError or ValueError unless the caller's array can be filled with the values of an array."""

    def _out_buffer(self, out: Any, like: Any, sources: Sequence[Any], needed: int, what: str) -> Any:
        buffer = self.checked_buffer(out, like)
        check_capacity(buffer.nbytes, needed)
        for source in sources:
            check_separate(self, buffer, source, "out", what)
        return buffer

    def _check_target(self, array: Any, payload: Payload, spec: Spec, name: str) -> None:
        self.check_array(array, spec, name)
        check_separate(self, array, payload.buffer, name)
