"""arrcomp as one more compressor of the benchmark."""

from __future__ import annotations

import numpy as np

import arrcomp
from arrcomp import cpu
from peers import Array, Kind, Payload

NAME, _FAST = "arrcomp", "fast"


def is_fast(name: str) -> bool:
    """Whether a compressor of this name writes what `speed="fast"` does; all others write the same bytes."""
    return _FAST in name


class Arrcomp:
    """arrcomp with a speed, a number of threads and perhaps an instruction set, into memory allocated once."""

    def __init__(
        self, kind: Kind, speed: str = "default", threads: int = 1, instruction_set: str | None = None
    ) -> None:
        self.kind = kind
        self._speed = speed
        self._threads = threads
        self._instruction_set = instruction_set
        self._buffer = np.empty(0, np.uint8)
        notes = [speed] * (speed != "default") + [f"{threads} threads"] * (threads > 1)
        self.name = " ".join([NAME, ", ".join([*notes, *([instruction_set] if instruction_set else [])])]).strip()

    def supports(self, array: Array) -> bool:
        return self.kind == "lossless" or array.dtype.name in (arrcomp.ErrorBounded.dtypes or ())

    def compress(self, array: Array, bound: float) -> Payload:
        self._select()
        capacity = arrcomp.max_compressed_nbytes(array)
        if self._buffer.size < capacity:
            self._buffer = np.empty(capacity, np.uint8)
        compressed = arrcomp.compress(array, self._codec(bound), out=self._buffer, threads=self._threads)
        return Payload(compressed, compressed.nbytes)

    def decompress(self, payload: Payload, out: Array) -> Array:
        self._select()
        return arrcomp.decompress(payload.data, out=out, threads=self._threads)

    def _codec(self, bound: float) -> arrcomp.Codec:
        if self.kind == "lossless":
            return arrcomp.Lossless(speed=self._speed)
        return arrcomp.ErrorBounded(abs=bound, speed=self._speed)

    def _select(self) -> None:
        cpu.use_instruction_set(self._instruction_set or cpu.instruction_sets()[0])


def standard(threads: int) -> list[Arrcomp]:
    """What every array is compressed with."""
    return [Arrcomp(kind, speed, threads) for kind in ("bounded", "lossless") for speed in ("default", _FAST)]


def variants(kind: Kind) -> list[Arrcomp]:
    """Every instruction set, each with one and two threads."""
    return [
        Arrcomp(kind, speed, threads, instruction_set)
        for speed in ("default", _FAST)
        for instruction_set in cpu.instruction_sets()
        for threads in (1, 2)
    ]
