"""Random projections of tensors: operators of `torch.ops.arrcomp`.

Compilers may calculate again in the backward pass what the forward pass need not give, at random or not, operator by
operator. So one of them draws a seed and projects, and what both passes have to agree in comes from one call.
"""

import math
from typing import Any

import torch
from torch import Tensor

from .._methods import projections
from ._library import EVERYWHERE, define
from ._seeds import derived, drawn, upper_half

_BLOCK = 1 << 20  # entries of S, or values in a transform, that are in memory at a time
_NARROW = (torch.float16, torch.bfloat16)


def project(x: Tensor, seed: Tensor, kind: str, dim: int, weighted: bool = False) -> Tensor:
    """S x, or with its weights W S x; `arrcomp._methods.projections` says what S and W are.

    Args:
        x: a floating-point tensor, [rows, columns].
        seed: int64[], on the device of x. Nothing waits for its value.
        kind: one of `projections.KINDS`.
        dim: rows of S, from 1 to those of x.
        weighted: whether weights are multiplied in.

    Returns:
        A tensor of x's dtype, [dim, columns]. Transforms of float16 and bfloat16 are calculated in float32.
    """
    if kind == "rows":
        sampled = x.index_select(0, _sampled(seed, x.shape[0], dim))
        return _weigh(sampled, x.shape[0]) if weighted else sampled
    if kind in projections.TRANSFORMS:
        return _transformed(x, seed, kind, dim, weighted)
    return _dense(x, seed, kind, dim, weighted)


def _fake_project(x: Tensor, seed: Tensor, kind: str, dim: int, weighted: bool = False) -> Tensor:
    return x.new_empty((dim, x.shape[1]))


def _sampled(seed: Tensor, rows: int, dim: int) -> Tensor:
    """A row of each stratum, int64[dim], in ascending order."""
    run = torch.arange(dim, device=seed.device)
    length, longer = projections.strata(rows, dim)
    words = upper_half(derived(seed, projections.SAMPLES, run))
    chosen: Tensor = run * length + (words * (length + (run < longer) if longer else length) >> 32)
    return chosen + run.clamp(max=longer) if longer else chosen


def _weigh(projected: Tensor, rows: int) -> Tensor:
    """Multiply sampled rows by the lengths of their strata, in place."""
    length, longer = projections.strata(rows, projected.shape[0])
    projected[:longer] *= length + 1
    projected[longer:] *= length
    return projected


def _transformed(x: Tensor, seed: Tensor, kind: str, dim: int, weighted: bool) -> Tensor:
    rows, columns = x.shape
    exact = torch.float32 if x.dtype in _NARROW else x.dtype
    order = torch.arange(rows, device=x.device)
    signs = derived(seed, projections.SIGNS, order) & 1
    signs = (1 - 2 * signs).to(exact)[:, None]
    if kind == "dct":
        # The cosine transform is the Fourier transform of the even rows, then the odd ones from the last to the first
        # (J. Makhoul, "A fast cosine transform in one and two dimensions", IEEE Trans. ASSP 28, 1980).
        order = torch.cat([order[0::2], order[1::2].flip(0)])
    place, real, imaginary = _coefficients(_sampled(seed, rows, dim), kind, rows, exact)
    result = x.new_empty((dim, columns))
    step = max(1, _BLOCK // rows)
    for first in range(0, columns, step):
        part = slice(first, first + step)
        signed = x[:, part].to(exact) * signs
        if kind == "dct":
            signed = signed.index_select(0, order)
        spectrum = torch.fft.rfft(signed, dim=0, norm="ortho").index_select(0, place)
        kept = spectrum.real * real + spectrum.imag * imaginary
        result[:, part] = _weigh(kept, rows) if weighted else kept
    return result


def _coefficients(chosen: Tensor, kind: str, rows: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Where rows of a transform are in half a spectrum, and by what its real and imaginary part are multiplied."""
    mirrored = chosen > rows // 2  # the other half is the conjugate of this one
    place = torch.where(mirrored, rows - chosen, chosen)
    if kind == "dft":
        real, imaginary = torch.ones_like(chosen, dtype=dtype), -torch.ones_like(chosen, dtype=dtype)
    else:
        angle = chosen.to(torch.float64) * (math.pi / (2 * rows))
        norm = (2.0 - (chosen == 0).to(torch.float64)).sqrt()
        real, imaginary = (angle.cos() * norm).to(dtype), (angle.sin() * norm).to(dtype)
    return place, real[:, None], torch.where(mirrored, -imaginary, imaginary)[:, None]


def _dense(x: Tensor, seed: Tensor, kind: str, dim: int, weighted: bool) -> Tensor:
    rows, columns = x.shape
    scale, weight = projections.dense_scale(dim)
    result = x.new_empty((dim, columns))
    step = max(1, _BLOCK // rows)
    for first in range(0, dim, step):
        part = result[first : first + step]
        numbers = torch.arange(first, first + part.shape[0], device=x.device)
        torch.mm((_entries(seed, kind, numbers, rows) * scale).to(x.dtype), x, out=part)
    return result.mul_(weight) if weighted else result


def _entries(seed: Tensor, kind: str, numbers: Tensor, rows: int) -> Tensor:
    """Rows of S before they are scaled, float32[len(numbers), rows]."""
    in_word = projections.ENTRIES_OF_WORD[kind]
    words = torch.arange(-(-rows // in_word), device=seed.device)
    bits = derived(derived(seed, projections.ENTRIES, numbers)[:, None], words)
    if kind == "rademacher":
        entries = 1 - 2 * (bits[..., None] >> torch.arange(64, device=seed.device) & 1).to(torch.float32)
    else:
        uniform = ((upper_half(bits) >> 8).to(torch.float32) + 0.5) * 2.0**-24
        radius = (-2 * uniform.log()).sqrt()
        angle = ((bits & 0xFFFFFFFF) >> 8).to(torch.float32) * (2.0**-23 * math.pi)
        entries = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1)
    return entries.flatten(1)[:, :rows]


def sketch(x: Tensor, weight: Tensor, kind: str, dim: int) -> tuple[Tensor, Tensor]:
    """`project` with a seed of its own, and the seed, int64[]."""
    seed = drawn(x.device)
    return project(x, seed, kind, dim), seed


def _fake_sketch(x: Tensor, weight: Tensor, kind: str, dim: int) -> tuple[Tensor, Tensor]:
    return _fake_project(x, x, kind, dim), x.new_empty((), dtype=torch.int64)


# S x, [dim, columns], of x [rows, columns] and seed int64[]; multiplied by the weights of its rows where `weighted`.
random_projection: Any = define(
    "random_projection(Tensor x, Tensor seed, str kind, SymInt dim, bool weighted=False) -> Tensor",
    project,
    _fake_project,
    EVERYWHERE,
)

# S x, and its seed, int64[], which is another one at each call; compilers tell calls apart by `weight`.
random_sketch: Any = define(
    "random_sketch(Tensor x, Tensor weight, str kind, SymInt dim) -> (Tensor, Tensor)",
    sketch,
    _fake_sketch,
    EVERYWHERE,
    torch.Tag.nondeterministic_seeded,
)
