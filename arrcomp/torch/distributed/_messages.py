"""Messages: the payloads of several tensors, and one buffer with the messages for all ranks.

A message of fixed-rate codecs is their payloads, aligned to 8 bytes: both sides know its size. Other messages begin
with the payloads' lengths, int64 each.
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

_ALIGNMENT = 8  # that the core needs
_LENGTH = 8  # bytes of a payload's length


class PayloadSpec(NamedTuple):
    """Static properties of the payload of one tensor of a message; `number` derives its seed (None: its index)."""

    codec: Codec
    dtype: torch.dtype
    elements: int
    number: int | None = None

    @property
    def capacity(self) -> int:
        """Bytes of the longest payload."""
        return _capacity(self.codec, self.dtype, self.elements)

    @property
    def group(self) -> tuple[int, tuple[float, ...], torch.dtype]:
        """The key of tensors that one call of the core can take."""
        return self.codec.id, self.codec.core_parameters(), self.dtype

    def seed(self, seed: int, index: int) -> int:
        """The tensor's seed, derived from the message's seed and the tensor's index in the message."""
        return derived(seed, index if self.number is None else self.number)


class Messages(NamedTuple):
    """Concatenated messages: uint8[sum(sizes)], and the bytes of each, multiples of 8."""

    buffer: Tensor
    sizes: list[int]


@dataclass(frozen=True)
class Coder:
    """Writes and reads the messages of one operation, whose codecs may all have `fixed` rates."""

    fixed: bool
    device: torch.device
    threads: int

    def size(self, specs: Sequence[PayloadSpec]) -> int | None:
        """Bytes of a message with these tensors; None if it depends on their values."""
        return _size(specs) if self.fixed else None

    def encode(self, xs: Sequence[Sequence[Tensor]], specs: Sequence[Sequence[PayloadSpec]], seed: int) -> Messages:
        """A message with the payloads of flat tensors for each of several ranks."""
        every, all_specs = [x for row in xs for x in row], [spec for row in specs for spec in row]
        if self.fixed:
            sizes = [_size(row) for row in specs]
            messages = Messages(self.zeros(sum(sizes)), sizes)
            self._encode_into(every, all_specs, payload_views(messages.buffer, all_specs), seed)
            return messages
        numbered = enumerate(zip(every, all_specs, strict=True))
        payloads = iter([self._trimmed(x, spec, spec.seed(seed, i)) for i, (x, spec) in numbered])
        made = [self._with_lengths([next(payloads) for _ in row]) for row in xs]
        return Messages(torch.cat(made), [message.numel() for message in made])

    def payloads(self, message: Tensor, specs: Sequence[PayloadSpec]) -> list[Tensor]:
        """The payloads of a message. Synchronizes CUDA unless the rates are fixed."""
        if self.fixed or not specs:
            return payload_views(message, specs)
        lengths = _lengths(message, specs)
        padded = message[_LENGTH * len(specs) :].split_with_sizes([_rounded(length) for length in lengths])
        return [payload[:length] for payload, length in zip(padded, lengths, strict=True)]

    def nbytes_each(self, message: Tensor, specs: Sequence[PayloadSpec]) -> list[int]:
        """Bytes of each tensor in a message. Synchronizes CUDA unless the rates are fixed."""
        if self.fixed or not specs:
            return [_rounded(spec.capacity) for spec in specs]
        return [_LENGTH + _rounded(length) for length in _lengths(message, specs)]

    def decode(self, payloads: Sequence[Tensor], specs: Sequence[PayloadSpec], targets: Sequence[Tensor]) -> None:
        """Decode payloads into flat tensors, with one call for each codec and dtype."""
        for members in _grouped([spec.group for spec in specs]):
            arrays, out = [payloads[i] for i in members], [targets[i] for i in members]
            codec = coding_of(specs[members[0]].codec)
            # Ranks of the same program are trusted: validation would synchronize CUDA.
            _ops.decode_out(arrays, [None] * len(arrays), out, *codec, trusted=True, threads=self.threads)

    def zeros(self, nbytes: int) -> Tensor:
        """A buffer for messages; zeros in the gaps make messages reproducible."""
        return torch.zeros(nbytes, dtype=torch.uint8, device=self.device)

    def _encode_into(self, xs: list[Tensor], specs: list[PayloadSpec], out: list[Tensor], seed: int) -> None:
        """Encode with one call for each codec and dtype; with stochastic rounding, for each tensor."""
        keys = [(spec.group, i if spec.codec.needs_seed else None) for i, spec in enumerate(specs)]
        for members in _grouped(keys):
            first = members[0]
            own_seed, _ = seed_arguments(specs[first].seed(seed, first), xs[first])
            arrays, buffers = [xs[i] for i in members], [out[i] for i in members]
            _ops.encode_out(arrays, buffers, *coding_of(specs[first].codec), own_seed, threads=self.threads)

    def _trimmed(self, x: Tensor, spec: PayloadSpec, seed: int) -> Tensor:
        own_seed, _ = seed_arguments(seed, x)
        payload: Tensor
        payload, length = _ops.encode([x], *coding_of(spec.codec), own_seed, threads=self.threads)
        return payload[: int(length.item())]

    def _with_lengths(self, payloads: Sequence[Tensor]) -> Tensor:
        lengths = torch.tensor([payload.numel() for payload in payloads], dtype=torch.int64, device=self.device)
        padded = [torch.nn.functional.pad(payload, (0, -payload.numel() % _ALIGNMENT)) for payload in payloads]
        return torch.cat([lengths.view(torch.uint8), *padded])


def _lengths(message: Tensor, specs: Sequence[PayloadSpec]) -> list[int]:
    lengths: list[int] = message[: _LENGTH * len(specs)].view(torch.int64).tolist()
    return lengths


def payload_views(buffer: Tensor, specs: Sequence[PayloadSpec]) -> list[Tensor]:
    """Views of the payloads of fixed-rate codecs in concatenated messages."""
    padded = buffer.split_with_sizes([_rounded(spec.capacity) for spec in specs])
    return [payload[: spec.capacity] for payload, spec in zip(padded, specs, strict=True)]


@lru_cache(maxsize=1 << 14)  # called several times a step for each range of a model
def _capacity(codec: Codec, dtype: torch.dtype, elements: int) -> int:
    return capacity_of(elements, row_of(dtype), codec.id, codec.core_parameters())


def _size(specs: Sequence[PayloadSpec]) -> int:
    return sum(_rounded(spec.capacity) for spec in specs)


def _grouped(keys: Sequence[Hashable]) -> Iterable[list[int]]:
    """The indices of equal keys."""
    groups: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return groups.values()


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT
