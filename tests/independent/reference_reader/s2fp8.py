"""Section 5.4: codec 6."""

from __future__ import annotations

from typing import Any

import numpy as np

from .buckets import Codes, Layout
from .config import Parameters
from .dtypes import Dtype
from .elements import Floats

CODEC = 6, "s2fp8"

LOGARITHM = ("0x1.6e09bp+0", "-0x1.3bfccep-1", "0x1.8eb6eep-3")
POWER = ("1", "0x1.62e12cp-1", "0x1.ec0378p-3", "0x1.c9fc46p-5", "0x1.3a02ccp-7")


def polynomial(x: Floats, coefficients: list[Any]) -> Any:
    """P(x; coefficients), in pairs."""
    if len(coefficients) == 1:
        return coefficients[0]
    pairs = [c0 + x * c1 for c0, c1 in zip(coefficients[::2], coefficients[1::2], strict=False)]
    return polynomial(x * x, pairs + coefficients[len(pairs) * 2 :])


def power(t: Floats, a: type[Any]) -> Floats:
    """2^t, as the page calculates it."""
    n = np.rint(t)
    return np.asarray(np.ldexp(polynomial(t - n, [a(float.fromhex(c)) for c in POWER]), n.astype(np.int32)))


def layout(config: Parameters, dtype: Dtype, _: int) -> Layout:
    """How a payload of this configuration is laid out."""
    size = config.integer("bucket_size", 16, 2**40) if config.has_value("bucket_size") else 0
    config.choice("rounding", ("nearest", "stochastic"), "nearest")
    a = dtype.arithmetic

    def values(found: Codes) -> Floats:
        alpha, largest = found.bucket
        negative = found.codes >> np.uint64(7) == 1
        low = np.minimum(found.codes & np.uint64(127), np.uint64(123)).astype(np.int64)
        e, k = np.where(low == 1, -1, low >> 2), np.where(low == 1, 0, low & 3)
        e, k = np.where(low == 2, 0, e), np.where(low == 2, 0, k)
        e, k = np.where(low == 3, 0, e), np.where(low == 3, 2, k)
        f = k.astype(a) / a(4)
        log2 = (e - 30).astype(a) + f * polynomial(f, [a(float.fromhex(c)) for c in LOGARITHM])
        u = log2 * (a(0.5) / alpha)
        least = a(-1000 if dtype.bits == 64 else -125)
        u = np.where(u >= least, np.minimum(u, a(0)), least)
        r = np.where(low == 0, a(0), power(u, a))
        y = largest * r * r
        return np.where(negative, np.copysign(y, a(-1)), y)

    kind = np.dtype(a).str
    return Layout(8, values, for_bucket=(kind, kind), size=size)
