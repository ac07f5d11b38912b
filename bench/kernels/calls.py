"""The core's calls on arrays by address: those of the GPU, and, for rehearsals, the CPU's in the same words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from arrcomp import _core

Coding = tuple[int, Sequence[float], int]  # a codec's id and parameters, and the id of a data type
CodecNumbers = tuple[int, Sequence[float]]
ToEncode = Sequence[tuple[int, int, int]]
ToDecode = Sequence[tuple[int, int, int, int, int]]
Terms = Sequence[tuple[int, int, int, float]]


class CudaCalls:
    """Enqueues on the current stream of a framework."""

    def __init__(self, index: int, stream: Callable[[], int]) -> None:
        self._index, self._stream = index, stream

    def _end(self) -> tuple[int, int]:
        return self._stream(), self._index

    def encode_scratch(self, coding: Coding, elements: Sequence[int]) -> int:
        return _core.cuda_encode_scratch(*coding, elements, self._index)

    def encode(self, coding: Coding, arrays: ToEncode, lengths: int, seed: int, scratch: int) -> None:
        _core.cuda_encode(*coding, arrays, lengths, seed, 0, (), (), scratch, *self._end())

    def decode_scratch(self, coding: Coding, elements: Sequence[int]) -> int:
        return _core.cuda_decode_scratch(*coding, elements)

    def decode(self, coding: Coding, arrays: ToDecode, status: int, scratch: int) -> None:
        _core.cuda_decode(*coding, arrays, status, (), scratch, *self._end())

    def accumulate_scratch(self, terms: int) -> int:
        return _core.cuda_accumulate_scratch(terms)

    def accumulate(self, coding: Coding, terms: Terms, elements: int, target: int, status: int, scratch: int) -> None:
        _core.cuda_accumulate(coding[:2], coding[2], terms, elements, target, status, scratch, *self._end())

    def encode_sum_scratch(self, coding: Coding, terms: int, elements: int) -> int:
        return _core.cuda_encode_sum_scratch(coding[:2], coding[2], terms, elements, coding[:2], self._index)

    def encode_sum(
        self, coding: Coding, terms: Terms, elements: int, room: tuple[int, int], seed: int, status: int, scratch: int
    ) -> None:
        end = (seed, 0, status, scratch, *self._end())
        _core.cuda_encode_sum(coding[:2], coding[2], terms, elements, coding[:2], *room, *end)

    def activate(self, function: str, steps: Sequence[float], dtype_id: int, array: tuple[int, int, int, int]) -> None:
        _core.cuda_activate(function, (), steps, dtype_id, *array, *self._end())

    def step_grad(self, steps: Sequence[float], dtype_id: int, array: tuple[int, int, int, int]) -> None:
        _core.cuda_step_grad(steps, dtype_id, *array, *self._end())


def _set_status(status: int, corrupt: bool) -> None:
    ctypes.c_uint32.from_address(status).value = corrupt


class HostCalls:
    """The same on the CPU: done when a call returns."""

    def encode_scratch(self, coding: Coding, elements: Sequence[int]) -> int:
        return 8 * len(elements)

    def encode(self, coding: Coding, arrays: ToEncode, lengths: int, seed: int, scratch: int) -> None:
        _core.encode_at(*coding, arrays, lengths, seed, 0, 0, (), ())

    def decode_scratch(self, coding: Coding, elements: Sequence[int]) -> int:
        return 8 * len(elements)

    def decode(self, coding: Coding, arrays: ToDecode, status: int, scratch: int) -> None:
        _set_status(status, _core.decode_at(*coding, arrays, 0, ()) >= 0)

    def accumulate_scratch(self, terms: int) -> int:
        return 8 * terms

    def accumulate(self, coding: Coding, terms: Terms, elements: int, target: int, status: int, scratch: int) -> None:
        _set_status(status, _core.accumulate_at(coding[:2], coding[2], terms, elements, target, 0) >= 0)

    def encode_sum_scratch(self, coding: Coding, terms: int, elements: int) -> int:
        return 8 * terms

    def encode_sum(
        self, coding: Coding, terms: Terms, elements: int, room: tuple[int, int], seed: int, status: int, scratch: int
    ) -> None:
        found = _core.encode_sum_at(coding[:2], coding[2], terms, elements, coding[:2], *room, seed, 0, 0)
        _set_status(status, found >= 0)

    def activate(self, function: str, steps: Sequence[float], dtype_id: int, array: tuple[int, int, int, int]) -> None:
        _core.activate_at(function, (), steps, dtype_id, *array, 0)

    def step_grad(self, steps: Sequence[float], dtype_id: int, array: tuple[int, int, int, int]) -> None:
        _core.step_grad_at(steps, dtype_id, *array, 0)
