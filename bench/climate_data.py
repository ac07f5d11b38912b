"""A made data set like the weather's, of any size: smooth random fields that move, noise, and land without values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

_PATTERNS = 8
_NOISE = 0.02
_LAND = 0.5  # of the first pattern, above which there is land: a third of it


@dataclass(frozen=True)
class Shape:
    """Time, level, latitude and longitude, in chunks of some times of one level each."""

    times: int
    levels: int = 4
    latitudes: int = 360
    longitudes: int = 720
    times_of_chunk: int = 24

    @classmethod
    def of(cls, nbytes: float, **sizes: int) -> Shape:
        """The shape of about so many bytes of float32, in whole chunks."""
        one = cls(1, **sizes)
        slab = 4 * one.levels * one.latitudes * one.longitudes
        return cls(max(1, round(nbytes / slab / one.times_of_chunk)) * one.times_of_chunk, **sizes)

    @property
    def axes(self) -> tuple[int, int, int, int]:
        """Sizes of the axes."""
        return self.times, self.levels, self.latitudes, self.longitudes

    @property
    def chunks(self) -> tuple[int, int, int, int]:
        """Sizes of a chunk's axes."""
        return self.times_of_chunk, 1, self.latitudes, self.longitudes


def lazy(shape: Shape) -> da.Array:
    """The data set, of which each chunk is made when it is needed."""
    return da.map_blocks(
        _block, shape=shape, chunks=da.core.normalize_chunks(shape.chunks, shape.axes), dtype=np.float32,
        meta=np.empty((0, 0, 0, 0), np.float32),
    )  # fmt: skip


def _block(shape: Shape, block_info: Any = None) -> NDArray[np.float32]:
    (first, last), (level, _), *_ = block_info[None]["array-location"]
    patterns = _patterns(shape.latitudes, shape.longitudes)
    rng = np.random.default_rng([first, level])
    block = rng.standard_normal((last - first, 1, *patterns.shape[1:]), np.float32)
    block *= np.float32(_NOISE)
    for number in range(last - first):
        turns = (first + number) / 40 * np.arange(1, _PATTERNS) + np.arange(1, _PATTERNS)
        weights = np.concatenate([[1], np.sin(turns) / (1 + 0.3 * level)])
        block[number, 0] += 250 + 10 * np.tensordot(weights.astype(np.float32), patterns, 1)
    block[:, :, patterns[0] > _LAND] = np.nan
    return block


@cache
def _patterns(latitudes: int, longitudes: int) -> NDArray[np.float32]:
    """Random fields of mean 0 and deviation 1 whose amplitudes fall with the wave number to the power of -2.5."""
    rng = np.random.default_rng(0)
    wave = np.hypot(np.fft.fftfreq(latitudes)[:, None] * latitudes, np.fft.fftfreq(longitudes) * longitudes)
    wave[0, 0] = np.inf
    made = [np.fft.ifft2(np.fft.fft2(rng.standard_normal(wave.shape)) * wave**-2.5).real for _ in range(_PATTERNS)]
    return np.stack([(one / one.std()).astype(np.float32) for one in made])
