"""Random numbers as section 5 of native/FORMAT.md has them, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MASK = np.uint64(0xFFFFFFFF)


def philox(counter: list[Array], key: tuple[int, int]) -> list[Array]:
    """Philox4x32-10 (J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3)."""
    words, (key0, key1) = [np.asarray(word, np.uint64) for word in counter], key
    for _ in range(10):
        left, right = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        high_left, high_right = left >> np.uint64(32), right >> np.uint64(32)
        mixed = high_right ^ words[1] ^ np.uint64(key0), high_left ^ words[3] ^ np.uint64(key1)
        words = [mixed[0], right & MASK, mixed[1], left & MASK]
        key0, key1 = (key0 + 0x9E3779B9) % 2**32, (key1 + 0xBB67AE85) % 2**32
    return words


def random_words(count: int, seed: int) -> Array:
    """The random word of each element, 32 bits in 64."""
    i = np.arange(count, dtype=np.uint64)
    counter = np.uint64(32) * (i // np.uint64(128)) + i % np.uint64(32)
    words = philox([counter, counter >> np.uint64(32), counter * 0, counter * 0], (seed % 2**32, seed >> 32))
    found: Array = np.choose((i // np.uint64(32) % np.uint64(4)).astype(np.intp), words)
    return found
