"""Compression of an optimizer's state in place: in the dicts that it keeps for its parameters."""

import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import torch
from torch import Tensor

from ..._api.compressed import Compressed
from ..._api.many import decompress_many
from ..._arguments import shown
from ..._arrays.contract import Adapter, Payload
from ..._format.spec import Spec
from ..._methods.seeds import derived
from ...codecs import Codec
from .._adapter import ADAPTER
from .._tensors import dtype_of
from ._parameters import local, with_layout_of
from ._state_codecs import StateCodecs

_ADAPTER: Adapter = ADAPTER

State = dict[str, Any]
Entries = Sequence[tuple[int, Tensor, State]]  # a parameter's index, the parameter, and its state


class _Job(NamedTuple):
    """A tensor to compress."""

    x: Tensor
    values: Tensor  # this process's shard of it
    spec: Spec  # of the shard
    memory: Tensor | None  # the buffer of its earlier payload, if the new one fits
    seed: int | None  # None if the codec needs none

    @property
    def batch(self) -> Hashable:
        """The key of the jobs that one call can compress together."""
        return self.spec.codec, self.spec.dtype, self.values.device, self.memory is None, self.seed


class StateStore:
    """Compresses and decompresses states. Steps and tensors derive their own seeds from `seed`."""

    def __init__(self, codecs: StateCodecs, threads: int, seed: int) -> None:
        self.codecs, self.threads, self.seed = codecs, threads, seed
        self.step = 0  # number of the current step
        self.scratch_nbytes = 0  # the most bytes decompressed at a time since it was set to 0

    def decompress(self, entries: Entries) -> dict[int, Compressed]:
        """Decompress states, and return the compressed ones by the ids of the tensors that replaced them."""
        compressed = leaves([entry for _, _, entry in entries], Compressed)
        arrays = decompress_many(compressed, threads=self.threads or None)
        pairs = iter(zip(compressed, arrays, strict=True))
        before: dict[int, Compressed] = {}

        def opened(parameter: Tensor, _: Compressed) -> Tensor:
            c, array = next(pairs)
            x = with_layout_of(array, parameter)
            before[id(x)] = c
            return x

        for _, parameter, entry in entries:
            replace(entry, Compressed, partial(opened, parameter))
        return before

    def compress(self, entries: Entries, before: dict[int, Compressed] | None = None) -> None:
        """Compress the states that have a codec. Fixed-rate payloads reuse the memory of what `decompress` returned."""
        jobs = [job for number, parameter, entry in entries for job in self._jobs(number, parameter, entry, before)]
        batches: dict[Hashable, list[_Job]] = {}
        for job in jobs:
            batches.setdefault(job.batch, []).append(job)
        made: dict[int, Compressed] = {}
        for batch in batches.values():
            for job, payload in zip(batch, self._coded(batch), strict=True):
                made[id(job.x)] = Compressed(job.spec, payload)
        self.scratch_nbytes = max(self.scratch_nbytes, sum(job.spec.nbytes for job in jobs))
        for _, _, entry in entries:
            replace(entry, Tensor, lambda x: made.get(id(x), x))

    def _jobs(
        self, number: int, parameter: Tensor, entry: State, before: dict[int, Compressed] | None
    ) -> Iterator[_Job]:
        for key, value in entry.items():
            for index, x in enumerate(leaves(value, Tensor)):
                codec = self.codecs.codec_for(parameter, key, x)
                if codec is not None:
                    values = local(x).detach()
                    spec = Spec(codec, dtype_of(values), tuple(values.shape))
                    place = (self.step, number, crc32(str(key).encode()), index)
                    seed = derived(self.seed, *place) if codec.needs_seed else None
                    yield _Job(x, values, spec, _memory(before, x, spec, values), seed)

    def _coded(self, batch: Sequence[_Job]) -> list[Payload]:
        first = batch[0]
        _check_capture(first)
        out = None if first.memory is None else [job.memory for job in batch]
        values, specs = [job.values for job in batch], [job.spec for job in batch]
        payloads = _ADAPTER.compress(values, specs, out, self.threads, first.seed)
        if first.spec.codec.fixed_rate or not first.values.is_cuda:
            return payloads
        return [payload.trim() for payload in payloads]  # otherwise each would occupy its capacity


def leaves(value: Any, kind: type) -> list[Any]:
    """The objects of a type in nested dicts, lists and tuples."""
    if isinstance(value, kind):
        return [value]
    if type(value) in (list, tuple):
        return [leaf for child in value for leaf in leaves(child, kind)]
    if isinstance(value, dict):
        return [leaf for child in value.values() for leaf in leaves(child, kind)]
    return []


def replace(entry: dict[Any, Any], kind: type, function: Callable[[Any], Any]) -> None:
    """Replace the objects of a type in a dict and its nested containers, in the order of `leaves`."""
    for key, value in entry.items():
        entry[key] = mapped(value, kind, function)


def mapped(value: Any, kind: type, function: Callable[[Any], Any]) -> Any:
    """A copy of nested dicts, lists and tuples, with the objects of a type replaced."""
    if isinstance(value, kind):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)([mapped(child, kind, function) for child in value])
    if isinstance(value, dict):
        twin = copy.copy(value)  # keeps the type
        replace(twin, kind, function)
        return twin
    return value


def _memory(before: dict[int, Compressed] | None, x: Tensor, spec: Spec, values: Tensor) -> Tensor | None:
    """The earlier payload's buffer, if the new payload has the same size; else None."""
    c = None if before is None else before.get(id(x))
    if c is None or not spec.codec.fixed_rate or c.spec != spec or c.payload.adapter is not ADAPTER:
        return None
    buffer: Tensor = c.payload.buffer
    return buffer if buffer.device == values.device and buffer.numel() == spec.capacity else None


def _check_capture(job: _Job) -> None:
    """Raise RuntimeError if a CUDA graph is captured that would always replay one seed, or must read a length."""
    if not job.values.is_cuda or not torch.cuda.is_current_stream_capturing():
        return
    codec: Codec = job.spec.codec
    if job.seed is not None or not codec.fixed_rate:
        expected = "a fixed rate and no stochastic rounding while a CUDA graph is captured"
        raise RuntimeError(f"codec: expected {expected}, got {shown(codec)}")
