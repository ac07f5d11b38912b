"""Sums of arrays of which several processes sent payloads."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ...seeds import derived
from .. import ops
from ..adapter import seed_arguments
from ..tensors import coding_of
from .messages import Coder, Coding, places

_HALVES = (torch.float16, torch.bfloat16)
_EXTREMES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"MAX": torch.maximum, "MIN": torch.minimum}


def encode_combined(
    coder: Coder, terms: Sequence[Sequence[Tensor]], codings: Sequence[Coding], op: str, seed: int
) -> Tensor:
    """A message with the sums (or averages, ...) of what several processes sent.

    Args:
        coder: of all messages.
        terms: the payloads that each process sent.
        codings: of each of them, and of its sum.
        op: what is calculated, in float32 for 16-bit floats.
        seed: of codecs that draw random numbers.
    """
    columns = list(zip(*terms, strict=True))
    if not all(_is_fused(coding, op) for coding in codings):
        made = [torch.empty(coding.elements, dtype=coding.dtype, device=coder.device) for coding in codings]
        for x, column, coding in zip(made, columns, codings, strict=True):
            combine_into(x, coder, column, coding, op)
        return coder.encode([made], [codings], seed).buffer
    message = coder.room(coder.size(codings) or 0)
    for i, (column, coding, place) in enumerate(zip(columns, codings, places(message, codings), strict=True)):
        _encode_sum(column, coding, op, place, derived(seed, i), coder.threads)
    return message


def combine_into(out: Tensor, coder: Coder, payloads: Sequence[Tensor], coding: Coding, op: str) -> None:
    """The sum, average, ... of the arrays of payloads, in their order, in a flat tensor."""
    if _is_fused(coding, op):
        out.zero_()
        weights = [_weight(payloads, op)] * len(payloads)
        codec = coding_of(coding.codec)
        ops.accumulate(out, payloads, [None] * len(payloads), weights, *codec, trusted=True, threads=coder.threads)
        return
    total = _decoded(coder, payloads[0], coding)
    for payload in payloads[1:]:
        term = _decoded(coder, payload, coding)
        total = _EXTREMES[op](total, term) if op in _EXTREMES else total.add_(term)
    out.copy_(total.div_(len(payloads)) if op == "AVG" else total)


def _is_fused(coding: Coding, op: str) -> bool:
    return op not in _EXTREMES and coding.codec.has_sums


def _weight(payloads: Sequence[Tensor], op: str) -> float:
    return 1 / len(payloads) if op == "AVG" else 1.0


def _decoded(coder: Coder, payload: Tensor, coding: Coding) -> Tensor:
    x = torch.empty(coding.elements, dtype=coding.dtype, device=coder.device)
    coder.decode([payload], [coding], [x])
    return x.float() if coding.dtype in _HALVES else x


def _encode_sum(payloads: Sequence[Tensor], coding: Coding, op: str, place: Tensor, seed: int, threads: int) -> None:
    """The fused form: the payload of the sum in one pass over payloads."""
    count, codec = len(payloads), coding_of(coding.codec)
    own_seed, _ = seed_arguments(seed, place)
    places_and_weights = payloads, [None] * count, [_weight(payloads, op)] * count, place
    kinds = coding.elements, coding.dtype, *codec, *codec
    ops.encode_sum_out(*places_and_weights, *kinds, own_seed, trusted=True, threads=threads)
