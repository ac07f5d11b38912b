"""Random projections of tensors: operators of `torch.ops.arrcomp`.

Compilers may recompute operators in the backward pass, random ones too. So a single operator draws the seed and
projects: the seed and the projection that are saved then come from the same call.
"""

import math

import torch
from torch import Tensor

from .._methods import projections
from ._library import EVERYWHERE, define
from ._seeds import derived, drawn, upper_half

_BLOCK = 1 << 20  # entries of S, or values of a transform, in memory at a time
_NARROW = (torch.float16, torch.bfloat16)


def project(x: Tensor, seed: Tensor, kind: str, dim: int, weighted: bool = False) -> Tensor:
    """S x, or W S x if `weighted`: [dim, columns] of x's dtype; `arrcomp._methods.projections` defines S and W.

    x is floating-point, [rows, columns]; the seed is int64[] on its device. Transforms of float16 and bfloat16 are
    computed in float32. Asynchronous.
    """
    if kind == "rows":
        sampled = x.index_select(0, _sampled(seed, x.shape[0], dim))
        return _weigh(sampled, x.shape[0]) if weighted else sampled
    if kind in projections.TRANSFORMS:
        return _transformed(x, seed, kind, dim, weighted)
    return _dense(x, seed, kind, dim, weighted)


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
    signs = (1 - 2 * (derived(seed, projections.SIGNS, order) & 1)).to(exact)[:, None]
    if kind == "dct":
        # The cosine transform is the Fourier transform of the even rows followed by the odd ones in reverse order
        # (J. Makhoul, "A fast cosine transform in one and two dimensions", IEEE Trans. ASSP 28, 1980).
        order = torch.cat([order[0::2], order[1::2].flip(0)])
    index, real, imaginary = _coefficients(_sampled(seed, rows, dim), kind, rows, exact)
    result = x.new_empty((dim, columns))
    step = max(1, _BLOCK // rows)
    for first in range(0, columns, step):
        block = slice(first, first + step)
        signed = x[:, block].to(exact) * signs
        if kind == "dct":
            signed = signed.index_select(0, order)
        spectrum = torch.fft.rfft(signed, dim=0, norm="ortho").index_select(0, index)
        kept = spectrum.real * real + spectrum.imag * imaginary
        result[:, block] = _weigh(kept, rows) if weighted else kept
    return result


def _coefficients(chosen: Tensor, kind: str, rows: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Indices of a transform's rows in the half spectrum, and the factors of its real and imaginary parts."""
    mirrored = chosen > rows // 2  # the other half is the conjugate
    index = torch.where(mirrored, rows - chosen, chosen)
    if kind == "dft":
        real, imaginary = torch.ones_like(chosen, dtype=dtype), -torch.ones_like(chosen, dtype=dtype)
    else:
        angle = chosen.to(torch.float64) * (math.pi / (2 * rows))
        norm = (2.0 - (chosen == 0).to(torch.float64)).sqrt()
        real, imaginary = (angle.cos() * norm).to(dtype), (angle.sin() * norm).to(dtype)
    return index, real[:, None], torch.where(mirrored, -imaginary, imaginary)[:, None]


def _dense(x: Tensor, seed: Tensor, kind: str, dim: int, weighted: bool) -> Tensor:
    rows, columns = x.shape
    scale, weight = projections.dense_scale(dim)
    result = x.new_empty((dim, columns))
    step = max(1, _BLOCK // rows)
    for first in range(0, dim, step):
        block = result[first : first + step]
        numbers = torch.arange(first, first + block.shape[0], device=x.device)
        torch.mm((_entries(seed, kind, numbers, rows) * scale).to(x.dtype), x, out=block)
    return result.mul_(weight) if weighted else result


def _entries(seed: Tensor, kind: str, numbers: Tensor, rows: int) -> Tensor:
    """Unscaled rows of S, float32[len(numbers), rows]."""
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
    """`project` with a newly drawn seed, and the seed, int64[]."""
    seed = drawn(x.device)
    return project(x, seed, kind, dim), seed


@define(
    "random_projection(Tensor x, Tensor seed, str kind, SymInt dim, bool weighted=False) -> Tensor", project, EVERYWHERE
)
def random_projection(x: Tensor, seed: Tensor, kind: str, dim: int, weighted: bool = False) -> Tensor:
    """Same as `project`."""
    return x.new_empty((dim, x.shape[1]))


@define(
    "random_sketch(Tensor x, Tensor weight, str kind, SymInt dim) -> (Tensor, Tensor)",
    sketch,
    EVERYWHERE,
    torch.Tag.nondeterministic_seeded,
)
def random_sketch(x: Tensor, weight: Tensor, kind: str, dim: int) -> tuple[Tensor, Tensor]:
    """Same as `sketch`. `weight` only keeps compilers from merging the calls of two layers."""
    return x.new_empty((dim, x.shape[1])), x.new_empty((), dtype=torch.int64)
