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
    coder: Coder,
    terms: Sequence[Sequence[Tensor]],
    specs: Sequence[PayloadSpec],
    op: str,
    seed: int,
    lost: Sequence[Tensor] | None = None,
) -> Tensor:
    """A message with the sums (or averages, maxima, minima) of what several ranks sent.

    Args:
        coder: of all messages.
        terms: the payloads from each rank.
        specs: of each payload, and of its sum.
        op: the reduction, computed in float32 for 16-bit floats.
        seed: for stochastic rounding.
        lost: error feedback: for each sum a flat tensor, which is added before coding, and then gets the coding error;
            or None.
    """
    columns = list(zip(*terms, strict=True))
    fused = lost is None and all(_is_fused(spec, op) for spec in specs)
    size = coder.size(specs) if fused else None
    if size is None:
        made = [torch.empty(spec.elements, dtype=spec.dtype, device=coder.device) for spec in specs]
        for x, column, spec in zip(made, columns, specs, strict=True):
            combine_into(x, coder, column, spec, op)
        return _encode_with(lost, coder, made, specs, seed)
    message = coder.zeros(size)
    for i, (column, spec, out) in enumerate(zip(columns, specs, payload_views(message, specs), strict=True)):
        _encode_sum(column, spec, op, out, spec.seed(seed, i), coder.threads)
    return message


def _encode_with(
    lost: Sequence[Tensor] | None, coder: Coder, sums: Sequence[Tensor], specs: Sequence[PayloadSpec], seed: int
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
        out.zero_()
        weights = [_weight(payloads, op)] * len(payloads)
        codec = coding_of(spec.codec)
        _ops.accumulate(out, payloads, [None] * len(payloads), weights, *codec, trusted=True, threads=coder.threads)
        return
    total = _decoded(coder, payloads[0], spec)
    for payload in payloads[1:]:
        total = _combine(total, _decoded(coder, payload, spec), op)
    out.copy_(total.div_(len(payloads)) if op == "AVG" else total)


def add_to(x: Tensor, coder: Coder, payload: Tensor, spec: PayloadSpec, op: str) -> None:
    """Add the array of a payload to a flat tensor, or take their maximum or minimum."""
    if _is_fused(spec, op):
        codec = coding_of(spec.codec)
        _ops.accumulate(x, [payload], [None], [1.0], *codec, trusted=True, threads=coder.threads)
    else:
        x.copy_(_combine(x, _decoded(coder, payload, spec), op))


def _combine(x: Tensor, y: Tensor, op: str) -> Tensor:
    return _EXTREMES[op](x.to(y.dtype), y) if op in _EXTREMES else x.to(y.dtype) + y


def _is_fused(spec: PayloadSpec, op: str) -> bool:
    return op not in _EXTREMES and spec.codec.has_sums


def _weight(payloads: Sequence[Tensor], op: str) -> float:
    return 1 / len(payloads) if op == "AVG" else 1.0


def _decoded(coder: Coder, payload: Tensor, spec: PayloadSpec) -> Tensor:
    x = torch.empty(spec.elements, dtype=spec.dtype, device=coder.device)
    coder.decode([payload], [spec], [x])
    return x.float() if spec.dtype in _HALVES else x


def _encode_sum(payloads: Sequence[Tensor], spec: PayloadSpec, op: str, out: Tensor, seed: int, threads: int) -> None:
    """The payload of the sum, in one pass over payloads."""
    count, codec = len(payloads), coding_of(spec.codec)
    own_seed, _ = seed_arguments(seed, out)
    operands = payloads, [None] * count, [_weight(payloads, op)] * count, out
    kinds = spec.elements, spec.dtype, *codec, *codec
    _ops.encode_sum_out(*operands, *kinds, own_seed, trusted=True, threads=threads)
