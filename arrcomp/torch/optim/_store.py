"""The state of an optimizer, compressed where it stands: in the dicts that it keeps for its parameters."""

import copy
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import torch
from torch import Tensor

from ..._api.compressed import Compressed
from ..._api.many import decompress_many
from ..._arrays.contract import Adapter
from ..._arrays.payload import Payload
from ..._format.spec import Spec
from ..._methods.seeds import derived
from ...codecs import Codec
from .._adapter import ADAPTER
from .._tensors import dtype_of
from ._state_codecs import StateCodecs
from ._parameters import local, with_layout_of

_ADAPTER: Adapter = ADAPTER

Entries = Sequence[
    tuple[int, Tensor, dict[str, Any]]
]  # of parameters: their numbers, they themselves, and their states


class _Job(NamedTuple):
    """A tensor to compress.

    Attributes:
        x: the tensor.
        values: what this process has of it.
        spec: of the values.
        memory: where the payload was that it was decompressed from, if it fits there again.
        seed: of random numbers; None where the codec needs none.
    """

    x: Tensor
    values: Tensor
    spec: Spec
    memory: Tensor | None
    seed: int | None

    @property
    def batch(self) -> Hashable:
        """What jobs of one call have in common."""
        return self.spec.codec, self.spec.dtype, self.values.device, self.memory is None, self.seed


class StateStore:
    """Compresses and decompresses states.

    Attributes:
        choice: of codecs.
        threads: on the CPU; 0 for all cores.
        seed: from which those of all steps and tensors follow.
        step: the number of this step.
        scratch_nbytes: the most bytes that were decompressed at a time since this was set to 0.
    """

    def __init__(self, choice: StateCodecs, threads: int, seed: int) -> None:
        self.choice, self.threads, self.seed = choice, threads, seed
        self.step = 0
        self.scratch_nbytes = 0

    def decompress(self, entries: Entries) -> dict[int, Compressed]:
        """Decompress states.

        Returns:
            What they were, by the identity of the tensors that are there now.
        """
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
        """Compress states, where there is a codec for them.

        Args:
            entries: the states.
            before: what `decompress` returned for them; payloads of one length go to where they were.

        Raises:
            TypeError: a codec does not take the data type of a state that it is for.
        """
        jobs = [job for number, parameter, entry in entries for job in self._jobs(number, parameter, entry, before)]
        batches: dict[Hashable, list[_Job]] = {}
        for job in jobs:
            batches.setdefault(job.batch, []).append(job)
        made: dict[int, Compressed] = {}
        for batch in batches.values():
            made |= {
                id(job.x): Compressed(job.spec, payload) for job, payload in zip(batch, self._coded(batch), strict=True)
            }
        self.scratch_nbytes = max(self.scratch_nbytes, sum(job.spec.nbytes for job in jobs))
        for _, _, entry in entries:
            replace(entry, Tensor, lambda x: made.get(id(x), x))

    def _jobs(
        self, number: int, parameter: Tensor, entry: dict[str, Any], before: dict[int, Compressed] | None
    ) -> list[_Job]:
        jobs = []
        for key, value in entry.items():
            for place, x in enumerate(leaves(value, Tensor)):
                codec = self.choice.codec_for(parameter, key, x)
                if codec is None:
                    continue
                values = local(x).detach()
                spec = Spec(codec, dtype_of(values), tuple(values.shape))
                seed = (
                    derived(self.seed, self.step, number, crc32(str(key).encode()), place) if codec.needs_seed else None
                )
                jobs.append(_Job(x, values, spec, _memory(before, x, spec, values), seed))
        return jobs

    def _coded(self, batch: Sequence[_Job]) -> list[Payload]:
        first = batch[0]
        _check_capture(first)
        out = None if first.memory is None else [job.memory for job in batch]
        values, specs = [job.values for job in batch], [job.spec for job in batch]
        payloads = _ADAPTER.compress(values, specs, out, self.threads, first.seed)
        if first.spec.codec.fixed_rate or not first.values.is_cuda:
            return payloads
        return [payload.trim() for payload in payloads]  # or each keeps the memory of the longest one


def leaves(value: Any, kind: type) -> list[Any]:
    """What is of a kind in nested dicts, lists and tuples."""
    if isinstance(value, kind):
        return [value]
    if type(value) in (list, tuple):
        return [leaf for part in value for leaf in leaves(part, kind)]
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part, kind)]
    return []


def replace(entry: dict[Any, Any], kind: type, function: Callable[[Any], Any]) -> None:
    """Replace what is of a kind in a dict, and in what is nested in it, in the order of `leaves`."""
    for key, value in entry.items():
        entry[key] = mapped(value, kind, function)


def mapped(value: Any, kind: type, function: Callable[[Any], Any]) -> Any:
    """A copy of nested dicts, lists and tuples, with what is of a kind replaced."""
    if isinstance(value, kind):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)([mapped(part, kind, function) for part in value])
    if isinstance(value, dict):
        twin = copy.copy(value)  # of its type
        replace(twin, kind, function)
        return twin
    return value


def _memory(before: dict[int, Compressed] | None, x: Tensor, spec: Spec, values: Tensor) -> Tensor | None:
    """The payload's memory to be used again; None where it has another size, or may get one."""
    c = None if before is None else before.get(id(x))
    if c is None or not spec.codec.fixed_rate or c.spec != spec or c.payload.adapter is not ADAPTER:
        return None
    buffer: Tensor = c.payload.buffer
    return buffer if buffer.device == values.device and buffer.numel() == spec.capacity else None


def _check_capture(job: _Job) -> None:
    """Raise RuntimeError where a CUDA graph would replay one seed for ever, or needs a length from the device."""
    if not job.values.is_cuda or not torch.cuda.is_current_stream_capturing():
        return
    codec: Codec = job.spec.codec
    if job.seed is not None or not codec.fixed_rate:
        raise RuntimeError(
            f"a CUDA graph is being captured; codecs of fixed rate without a seed are allowed, not {codec!r}"
        )
