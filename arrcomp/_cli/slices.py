"""A slice of an array, of what compression gives back of it, and of the error: pictures of `arrcomp plot`."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._api.compress import compress
from .._api.compressed import decompress
from ..codecs import Codec
from .measure import Array
from .words import codec_text

_WIDEST = 1e300  # range of values that a picture may have: Matplotlib calculates with it


class Slice(NamedTuple):
    """Two dimensions of an array, in float64; missing values are NaN."""

    title: str
    original: Array
    decoded: Array
    error: Array  # in units of the bound
    low: float  # the least and the largest of the original's values
    high: float


def has_slice(shape: Sequence[int]) -> bool:
    """Whether an array of this shape has a slice to show."""
    return len(shape) >= 2 and min(shape[-2:]) >= 2 and 0 not in shape


def compressed_slice(x: Array, codec: Codec, threads: int | None) -> Slice | None:
    """The slice in the middle of an array, along its last two axes; None where it has no finite values that differ.

    Args:
        x: an array of floats.
        codec: error-bounded, with `abs` or `rel`; it compresses the whole array.
        threads: number of threads on the CPU.
    """
    compressed = compress(x, codec, threads=threads)
    place = tuple(size // 2 for size in x.shape[:-2])
    original, decoded = _finite(x[place]), _finite(decompress(compressed, threads=threads)[place])
    if np.isnan(original).all():
        return None
    low, high = float(np.nanmin(original)), float(np.nanmax(original))
    if not 0 < high - low < _WIDEST:
        return None
    error = (decoded - original) / _bound(x, codec)
    where = ", ".join([*map(str, place), ":", ":"])
    bits = f"{8 * compressed.nbytes / x.size:.3g} bits for each value of the whole array"
    title = f"slice [{where}], {codec_text(codec)}: {bits}"
    return Slice(title, original, decoded, error, low, high)


def _finite(x: Array) -> Array:
    values = x.astype(np.float64)
    return np.where(np.isfinite(values), values, math.nan)


def _bound(x: Array, codec: Codec) -> float:
    config = codec.config()
    if "abs" in config:
        return float(config["abs"])
    values = x[np.isfinite(x)]
    return float(config["rel"]) * (float(values.max()) - float(values.min()))
