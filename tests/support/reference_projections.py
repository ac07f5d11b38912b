"""Random projections as arrcomp/projections.py describes them, as whole matrices in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arrcomp._methods.seeds import derived

Array = NDArray[np.float64]

SAMPLES, SIGNS, ENTRIES = range(3)


def matrices(kind: str, rows: int, dim: int, seed: int) -> tuple[Array, Array]:
    """S, [dim, rows], and the diagonal of W, [dim]."""
    if kind in ("rademacher", "gaussian"):
        return _dense(kind, rows, dim, seed)
    chosen, lengths = _sample(rows, dim, seed)
    if kind == "rows":
        return np.eye(rows)[chosen], lengths
    signs = np.array([1 - 2 * (derived(seed, SIGNS, i) & 1) for i in range(rows)])
    return (_transform(kind, rows) * signs)[chosen], lengths


def weight_gradient(kind: str, x: Any, gradient: Any, dim: int, seed: int) -> Array:
    """(W S Y)^T S X of a batch X and gradients Y of the output, [out_features, in_features]."""
    s, w = matrices(kind, len(x), dim, seed)
    result: Array = (w[:, None] * (s @ gradient)).T @ (s @ x)
    return result


def _sample(rows: int, dim: int, seed: int) -> tuple[NDArray[np.int64], Array]:
    """The row of each stratum, and the strata's lengths."""
    lengths = [rows // dim + (j < rows % dim) for j in range(dim)]
    starts = np.cumsum([0, *lengths[:-1]])
    drawn = [(derived(seed, SAMPLES, j) >> 32) * length >> 32 for j, length in enumerate(lengths)]
    return starts + np.array(drawn), np.array(lengths, float)


def _transform(kind: str, rows: int) -> Array:
    k, i = np.arange(rows)[:, None], np.arange(rows)
    if kind == "dft":  # the Hartley transform
        angles = 2 * np.pi * k * i / rows
        return (np.cos(angles) + np.sin(angles)) / math.sqrt(rows)
    cosines = np.cos(np.pi * k * (2 * i + 1) / (2 * rows))
    return cosines * np.where(k == 0, math.sqrt(1 / rows), math.sqrt(2 / rows))


def _dense(kind: str, rows: int, dim: int, seed: int) -> tuple[Array, Array]:
    entry = _sign if kind == "rademacher" else _normal
    s = np.array([[entry(seed, j, i) for i in range(rows)] for j in range(dim)])
    exponent = next(e for e in range(32) if 4 ** (e + 1) > dim)
    return s / 2**exponent, np.full(dim, 4**exponent / dim)


def _sign(seed: int, row: int, column: int) -> float:
    return 1 - 2 * (derived(seed, ENTRIES, row, column // 64) >> column % 64 & 1)


def _normal(seed: int, row: int, column: int) -> float:
    word = derived(seed, ENTRIES, row, column // 2)
    radius = math.sqrt(-2 * math.log(((word >> 40) + 0.5) / 2**24))
    angle = 2 * math.pi * (word >> 8 & 0xFFFFFF) / 2**24
    return radius * (math.sin(angle) if column % 2 else math.cos(angle))
