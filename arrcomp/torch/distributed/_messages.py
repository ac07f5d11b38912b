"""Payloads of several tensors as one message, and the messages for all processes as one buffer.

A message of fixed-rate codecs is their payloads, each from a multiple of 8 bytes on: both ends know its size. Others
have the payloads' lengths in front, int64 each.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ..._methods.seeds import derived
from ...codecs import Codec
from .. import _ops
from .._adapter import seed_arguments
from .._tensors import capacity_of, coding_of, row_of

_ALIGNMENT = 8  # what the core reads words at
_LENGTH = 8  # bytes of a payload's length


class PayloadSpec(NamedTuple):
    """How one tensor of a message is coded.

    Attributes:
        codec: its codec.
        dtype: of its elements.
        elements: their number.
        number: what its random numbers follow from beside the message's seed; None for its place in the message.
    """

    codec: Codec
    dtype: torch.dtype
    elements: int
    number: int | None = None

    @property
    def capacity(self) -> int:
        """Bytes of its longest payload."""
        return _capacity(self.codec, self.dtype, self.elements)

    @property
    def group(self) -> tuple[int, tuple[float, ...], torch.dtype]:
        """What the tensors of one call of the core have in common."""
        return self.codec.id, self.codec.core_parameters(), self.dtype

    def seed(self, seed: int, place: int) -> int:
        """The seed of its random numbers, from that of a message in which it has this place."""
        return derived(seed, place if self.number is None else self.number)


class Messages(NamedTuple):
    """Messages one after the other.

    Attributes:
        buffer: uint8[sum(sizes)].
        sizes: bytes of each, multiples of 8.
    """

    buffer: Tensor
    sizes: list[int]


@dataclass(frozen=True)
class Coder:
    """Writes and reads the messages of one operation.

    Attributes:
        fixed: whether all codecs of the operation have fixed rates.
        device: of all tensors.
        threads: for the codecs, on the CPU.
    """

    fixed: bool
    device: torch.device
    threads: int

    def size(self, specs: Sequence[PayloadSpec]) -> int | None:
        """Bytes of a message with these tensors; None where it depends on their values."""
        return _size(specs) if self.fixed else None

    def encode(self, xs: Sequence[Sequence[Tensor]], specs: Sequence[Sequence[PayloadSpec]], seed: int) -> Messages:
        """A message with the payloads of flat tensors for each of several processes."""
        every, all_specs = [x for part in xs for x in part], [spec for part in specs for spec in part]
        if self.fixed:
            sizes = [_size(part) for part in specs]
            messages = Messages(self.room(sum(sizes)), sizes)
            self._encode_into(every, all_specs, payload_views(messages.buffer, all_specs), seed)
            return messages
        numbered = enumerate(zip(every, all_specs, strict=True))
        payloads = iter([self._trimmed(x, spec, spec.seed(seed, i)) for i, (x, spec) in numbered])
        made = [self._with_lengths([next(payloads) for _ in part]) for part in xs]
        return Messages(torch.cat(made), [message.numel() for message in made])

    def payloads(self, message: Tensor, specs: Sequence[PayloadSpec]) -> list[Tensor]:
        """The payloads of a message. On CUDA this waits unless the rates are fixed."""
        if self.fixed or not specs:
            return payload_views(message, specs)
        lengths = self._lengths(message, specs)
        parts = message[_LENGTH * len(specs) :].split_with_sizes([_rounded(length) for length in lengths])
        return [part[:length] for part, length in zip(parts, lengths, strict=True)]

    def nbytes_each(self, message: Tensor, specs: Sequence[PayloadSpec]) -> list[int]:
        """How many bytes of a message each tensor takes. On CUDA this waits unless the rates are fixed."""
        if self.fixed or not specs:
            return [_rounded(spec.capacity) for spec in specs]
        return [_LENGTH + _rounded(length) for length in self._lengths(message, specs)]

    def decode(self, payloads: Sequence[Tensor], specs: Sequence[PayloadSpec], targets: Sequence[Tensor]) -> None:
        """Fill flat tensors with the arrays of payloads, with one call for all of a codec and dtype."""
        for members in _alike([spec.group for spec in specs]):
            arrays, room = [payloads[i] for i in members], [targets[i] for i in members]
            codec = coding_of(specs[members[0]].codec)
            # On CUDA a process of the same program is trusted: doubt would wait for the device.
            _ops.decode_out(arrays, [None] * len(arrays), room, *codec, trusted=True, threads=self.threads)

    def room(self, nbytes: int) -> Tensor:
        """Memory for messages, whose gaps are zero: the same bytes every time."""
        return torch.zeros(nbytes, dtype=torch.uint8, device=self.device)

    def _encode_into(self, xs: Sequence[Tensor], specs: Sequence[PayloadSpec], out: Sequence[Tensor], seed: int) -> None:
        """Encode with one call for all of a codec and dtype, but those that draw numbers, each with its own seed."""
        keys = [(spec.group, i if spec.codec.needs_seed else None) for i, spec in enumerate(specs)]
        for members in _alike(keys):
            first = members[0]
            own_seed, _ = seed_arguments(specs[first].seed(seed, first), xs[first])
            arrays, room = [xs[i] for i in members], [out[i] for i in members]
            _ops.encode_out(arrays, room, *coding_of(specs[first].codec), own_seed, threads=self.threads)

    def _trimmed(self, x: Tensor, spec: PayloadSpec, seed: int) -> Tensor:
        own_seed, _ = seed_arguments(seed, x)
        payload: Tensor
        payload, length = _ops.encode([x], *coding_of(spec.codec), own_seed, threads=self.threads)
        return payload[: int(length.item())]

    def _lengths(self, message: Tensor, specs: Sequence[PayloadSpec]) -> list[int]:
        lengths: list[int] = message[: _LENGTH * len(specs)].view(torch.int64).tolist()
        return lengths

    def _with_lengths(self, payloads: Sequence[Tensor]) -> Tensor:
        lengths = torch.tensor([payload.numel() for payload in payloads], dtype=torch.int64, device=self.device)
        padded = [torch.nn.functional.pad(payload, (0, -payload.numel() % _ALIGNMENT)) for payload in payloads]
        return torch.cat([lengths.view(torch.uint8), *padded])


def payload_views(buffer: Tensor, specs: Sequence[PayloadSpec]) -> list[Tensor]:
    """Where payloads of fixed-rate codecs are in a message, or in several of them one after the other."""
    parts = buffer.split_with_sizes([_rounded(spec.capacity) for spec in specs])
    return [part[: spec.capacity] for part, spec in zip(parts, specs, strict=True)]


@lru_cache(maxsize=1 << 14)  # asked for many times a step, of every piece of a model
def _capacity(codec: Codec, dtype: torch.dtype, elements: int) -> int:
    return capacity_of(elements, row_of(dtype), codec.id, codec.core_parameters())


def _size(specs: Sequence[PayloadSpec]) -> int:
    return sum(_rounded(spec.capacity) for spec in specs)


def _alike(keys: Sequence[Hashable]) -> Iterable[list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return groups.values()


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT
