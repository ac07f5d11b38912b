"""Section 5.2: codec 4."""

from __future__ import annotations

import numpy as np

from .buckets import Codes, Layout
from .config import Parameters, is_number
from .dtypes import Dtype
from .elements import Floats
from .source import need

CODEC = 4, "smaq"


def layout(config: Parameters, dtype: Dtype, n: int) -> Layout:
    """How a payload of n elements of this configuration is laid out."""
    main = config.integer("main_bits", 3, 8, 6)
    outlier = config.integer("outlier_bits", main, 12, 8)
    first = config.number("main_threshold", 2**-10, 2**10, 1)
    last = config.number("outlier_threshold", 2**-10, 2**10, 2.5)
    need(last > first, "outlier_threshold")
    extend = config.choice("overflow", ("clamp", "extend"), "extend") == "extend"
    size = 0 if config.get("block_size", 1024) is None else config.integer("block_size", 32, 2**40, 1024)
    keep_zeros = config.flag("preserve_zeros", True)
    all_positive = config.flag("all_positive", False)
    min_size = config.integer("min_size", 0, 2**40, 8)
    check_writers(config)
    a = dtype.arithmetic
    k_main, k_outlier = a(2 ** (main - 2) - 1), a(2 ** (outlier - 2) - 1)
    t = a(first)

    def values(found: Codes) -> Floats:
        mean, std = found.bucket[:2]
        threshold = found.bucket[2] if extend else np.full_like(mean, a(last))
        is_outlier = (found.codes & np.uint64(1)) == 1
        k = (found.codes >> np.uint64(2) | found.extra << np.uint64(main - 2)).astype(a)
        distance = np.where(is_outlier, k * ((threshold - t) * (a(1) / k_outlier)) + t, k * (t / k_main))
        score = np.where(found.codes >> np.uint64(1) & np.uint64(1), -distance, distance)
        limit = np.finfo(a).max / a(8)
        fits = (std * threshold <= limit) & (mean <= limit) & (-mean <= limit)
        h = np.where(fits, a(1), a(0.125))
        y = (std * h * score + mean * h) / h
        if all_positive:
            y = np.where(y < 0, a(0), y)
        if keep_zeros:
            y = np.where(found.codes == 2, a(0), y)
        return np.asarray(y)

    fields = (np.dtype(a).str,) * (3 if extend else 2)
    return Layout(main, values, for_bucket=fields, size=size, all_tail=n < min_size, extra_bits=outlier - main)


def check_writers(config: Parameters) -> None:
    """Check what only a writer needs."""
    given = config.choice("statistics", ("exact", "sampled", "range", "given"), "exact") == "given"
    mean, std = config.get("mean"), config.get("std")
    need((mean is not None) == given and (std is not None) == given, "mean, std")
    need(not given or (is_number(mean) and is_number(std) and float(std) > 0), "mean, std")
    config.integer("num_samples", 2, 4096, 16)
    config.choice("rounding", ("nearest", "stochastic", "truncate"), "stochastic")
