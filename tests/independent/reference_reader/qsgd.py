"""Section 5.1: codec 3."""

from __future__ import annotations

import numpy as np

from .buckets import Codes, Layout
from .config import Parameters
from .dtypes import Dtype
from .elements import Floats

CODEC = 3, "qsgd"


def layout(config: Parameters, dtype: Dtype, _: int) -> Layout:
    """How a payload of this configuration is laid out."""
    bits = config.integer("bits", 1, 8, 4)
    size = config.integer("bucket_size", 16, 2**40, 512)
    norm = config.choice("norm", ("minmax", "l2", "linf"), "minmax")
    skip = config.flag("skip_incomplete", False)
    coding = config.choice("coding", ("packed", "entropy"), "packed")
    config.choice("rounding", ("nearest", "stochastic"), "nearest")
    a = dtype.arithmetic
    minmax = norm == "minmax"
    steps = a(2**bits - 1 if minmax or bits == 1 else 2**bits - 2)
    too_large = np.finfo(a).max / (a(2) * steps)

    def values(found: Codes) -> Floats:
        code = found.codes.astype(a)
        unit = found.bucket[0]
        p = np.where(unit > too_large, a(0.5), a(1))
        if minmax:
            y = unit * p * code + found.bucket[1] * p
        else:
            s = a(2) * code - a(1) if bits == 1 else code - a(2 ** (bits - 1) - 1)
            y = unit * p * s
        return np.asarray(y / p)

    kind = np.dtype(a).str
    fields = (kind, kind) if minmax else (kind,)
    return Layout(bits, values, for_bucket=fields, size=size, no_short_bucket=skip, entropy=coding == "entropy")
