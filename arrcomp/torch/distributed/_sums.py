"""Sums of the arrays whose payloads several ranks sent."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .. import _ops
from .._adapter import seed_arguments
from .._tensors import coding_of
from ._messages import Coder, PayloadSpec, payload_views

_HALVES = (torch.float16, torch.bfloat16)
_EXTREMES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"MAX": torch.maximum, "MIN": torch.minimum}


def encode_combined(
    coder: Coder, terms: list[list[Tensor]], specs: list[PayloadSpec], op: str, seed: int, lost: Sequence[Tensor] | None
) -> Tensor:
    """A message with the sums (or averages, maxima, minima) of what several ranks sent.

    `terms` are the payloads from each rank. 16-bit floats are reduced in float32. `lost` is error feedback: for each
    sum a flat tensor, which is added before coding, and then gets the coding error.
    """
    columns = list(zip(*terms, strict=True))
    fused = lost is None and all(_is_fused(spec, op) for spec in specs)
    size = coder.size(specs) if fused else None
    if size is None:
        sums = [_flat(coder, spec) for spec in specs]
        for x, column, spec in zip(sums, columns, specs, strict=True):
            combine_into(x, coder, column, spec, op)
        return _encode_with(lost, coder, sums, specs, seed)
    message = coder.zeros(size)
    for i, (payloads, spec, out) in enumerate(zip(columns, specs, payload_views(message, specs), strict=True)):
        own_seed, _ = seed_arguments(spec.seed(seed, i), out)
        codec, unused, weights = coding_of(spec.codec), [None] * len(payloads), _weights(payloads, op)
        kinds = spec.elements, spec.dtype, *codec, *codec
        _ops.encode_sum_out(payloads, unused, weights, out, *kinds, own_seed, trusted=True, threads=coder.threads)
    return message


def _encode_with(
    lost: Sequence[Tensor] | None, coder: Coder, sums: list[Tensor], specs: list[PayloadSpec], seed: int
) -> Tensor:
    """A message with sums, with error feedback if `lost` is given."""
    if lost is None:
        return coder.encode([sums], [specs], seed).buffer
    for x, gone in zip(sums, lost, strict=True):
        x.add_(gone)
    message = coder.encode([sums], [specs], seed).buffer
    coder.decode(coder.payloads(message, specs), specs, lost)
    for x, gone in zip(sums, lost, strict=True):
        torch.sub(x, gone, out=gone)
    return message


def combine_into(out: Tensor, coder: Coder, payloads: Sequence[Tensor], spec: PayloadSpec, op: str) -> None:
    """Reduce the arrays of payloads, in their order, into a flat tensor."""
    if _is_fused(spec, op):
        _add(out.zero_(), coder, payloads, spec, _weights(payloads, op))
        return
    total = _decoded(coder, payloads[0], spec)
    for payload in payloads[1:]:
        total = _combine(total, _decoded(coder, payload, spec), op)
    out.copy_(total.div_(len(payloads)) if op == "AVG" else total)


def add_to(x: Tensor, coder: Coder, payload: Tensor, spec: PayloadSpec, op: str) -> None:
    """Add the array of a payload to a flat tensor, or take their maximum or minimum."""
    if _is_fused(spec, op):
        _add(x, coder, [payload], spec, [1.0])
    else:
        x.copy_(_combine(x, _decoded(coder, payload, spec), op))


def _add(x: Tensor, coder: Coder, payloads: Sequence[Tensor], spec: PayloadSpec, weights: list[float]) -> None:
    unused = [None] * len(payloads)
    _ops.accumulate(x, payloads, unused, weights, *coding_of(spec.codec), trusted=True, threads=coder.threads)


def _combine(x: Tensor, y: Tensor, op: str) -> Tensor:
    return _EXTREMES[op](x.to(y.dtype), y) if op in _EXTREMES else x.to(y.dtype) + y


def _is_fused(spec: PayloadSpec, op: str) -> bool:
    return op not in _EXTREMES and spec.codec.has_sums


def _weights(payloads: Sequence[Tensor], op: str) -> list[float]:
    return [1 / len(payloads) if op == "AVG" else 1.0] * len(payloads)


def _decoded(coder: Coder, payload: Tensor, spec: PayloadSpec) -> Tensor:
    x = _flat(coder, spec)
    coder.decode([payload], [spec], [x])
    return x.float() if spec.dtype in _HALVES else x


def _flat(coder: Coder, spec: PayloadSpec) -> Tensor:
    return torch.empty(spec.elements, dtype=spec.dtype, device=coder.device)
