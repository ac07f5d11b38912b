"""Memory that is kept from call to call, and the quantizer of the peers that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import Array


class Scratch:
    """Arrays by use, allocated again only when their shape or dtype changes."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def get(self, use: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array of this shape and dtype with any content."""
        kept = self._arrays.get(use)
        if kept is None or kept.shape != shape or kept.dtype != dtype:
            kept = self._arrays[use] = np.empty(shape, dtype)
        return kept


class Quantizer:
    """q = rint(x / 2E) as int32 and y = 2E q, in float32 arithmetic and without a check of the bound."""

    def __init__(self) -> None:
        self._scratch = Scratch()

    def quantize(self, array: Array, bound: float) -> NDArray[np.int32]:
        """Quantized values, flat; valid until the next call."""
        scaled = self._scratch.get("scaled", (array.size,), np.float32)
        quantized = self._scratch.get("quantized", (array.size,), np.int32)
        np.multiply(array.reshape(-1), np.float32(1 / (2 * bound)), out=scaled)
        np.rint(scaled, out=scaled)
        np.copyto(quantized, scaled, casting="unsafe")
        return quantized

    def target(self, out: Array) -> NDArray[np.int32]:
        """Memory to decode quantized values into."""
        return self._scratch.get("decoded", (out.size,), np.int32)

    def restore(self, quantized: NDArray[np.int32], bound: float, out: Array) -> Array:
        """Fill `out` with the values that stand for the quantized ones."""
        return np.multiply(quantized.reshape(out.shape), np.float32(2 * bound), out=out, casting="unsafe")
