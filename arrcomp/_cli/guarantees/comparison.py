"""How an array came back, and what comparing it takes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.numpy import numpy_bytes

BLOCK = 1 << 18  # values compared at a time


@dataclass(frozen=True)
class Comparison:
    """How an array came back.

    Attributes:
        violations: number of values that break the promise.
        largest_error: the largest |x - y| over finite x; infinite if a value that must come back bit for bit did not.
        allowed_error: the bound in the same terms; 0 for lossless codecs, NaN for a bound that depends on each
            value.
    """

    violations: int
    largest_error: float
    allowed_error: float

    @property
    def holds(self) -> bool:
        """Whether every value keeps the promise."""
        return self.violations == 0


def blocks(x: NDArray[Any], y: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Both arrays, block by block."""
    for start in range(0, x.size, BLOCK):
        yield x[start : start + BLOCK], y[start : start + BLOCK]


def bits_differ(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Which elements have other bits."""
    differ: NDArray[np.bool_] = (numpy_bytes(a) != numpy_bytes(b)).reshape(a.size, a.itemsize).any(axis=1)
    return differ


def compare_bits(x: NDArray[Any], y: NDArray[Any]) -> Comparison:
    """Every bit must be the same."""
    violations = sum(int(bits_differ(a, b).sum()) for a, b in blocks(x, y))
    return Comparison(violations, math.inf if violations else 0.0, 0.0)


def distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """|a - b| exactly, as a float64 and what rounding took from it (D. Knuth, TAOCP 2, section 4.2.2, TwoSum)."""
    with np.errstate(all="ignore"):
        total = a - b
        part = total - a
        residue = (a - (total - part)) + (-b - part)
        return np.abs(total), np.where(total < 0, -residue, residue)
