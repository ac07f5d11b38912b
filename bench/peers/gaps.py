"""Fields with gaps, for compressors that take none."""

from __future__ import annotations

from zlib import compress as deflate

import numpy as np

from . import Array


def filled(x: Array) -> tuple[Array, bytes]:
    """A field without gaps, and a mask that tells where these were: its packed bits, deflated; empty where none were.

    A gap gets the value before it on its line, or the mean where it has none.
    """
    missing = ~np.isfinite(x)
    if not missing.any():
        return x, b""
    lines, gaps = x.reshape(-1, x.shape[-1]).copy(), missing.reshape(-1, x.shape[-1])
    before = np.maximum.accumulate(np.where(gaps, 0, np.arange(lines.shape[1], dtype=np.int32)), axis=1)
    lines = np.take_along_axis(lines, before, axis=1)
    lines[~np.isfinite(lines)] = x[~missing].mean(dtype=np.float64) if not missing.all() else 0
    return lines.reshape(x.shape), deflate(np.packbits(missing).tobytes(), 9)
