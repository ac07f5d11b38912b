"""What is measured on a GPU: data, and the codecs that each is encoded with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import _dtypes
from arrcomp._cli.demo_data import demo_arrays
from arrcomp.codecs import Codec

Array = NDArray[Any]

MEBIBYTE = 1 << 20
SEED = 7


def normal(rng: np.random.Generator, count: int, dtype: Any = np.float32) -> Array:
    """Weights as initialised, N(0, 0.02)."""
    wide: Any = np.float64 if dtype is np.float64 else np.float32
    values = rng.standard_normal(count, dtype=wide)
    values *= 0.02
    return values.astype(dtype, copy=False)


def demo(name: str, count: int) -> Array:
    """One of the demonstration's arrays, again and again: no codec looks for repetitions."""
    return np.resize(demo_arrays()[name], count)


def waves(count: int) -> Array:
    """A smooth field of slices of 64 x 64, as long as they are whole; else its values one after the other."""
    z, y, x = np.meshgrid(*3 * (np.arange(64, dtype=np.float32) * (2 * np.pi / 64),), indexing="ij")
    field = (np.sin(x + 2 * y) * np.cos(3 * z) + 0.3 * np.sin(5 * y - z) + 0.1 * np.cos(7 * x)).astype(np.float32)
    values = np.resize(field, count)
    return values if count % field[0].size else values.reshape(-1, *field[0].shape)


WEIGHTS = "N(0, 0.02) float32"
DATA: dict[str, Callable[[np.random.Generator, int], Array]] = {
    WEIGHTS: normal,
    "N(0, 0.02) float64": lambda rng, count: normal(rng, count, np.float64),
    "N(0, 0.02) bfloat16": lambda rng, count: normal(rng, count, ml_dtypes.bfloat16),
    "N(0, 0.02) float16": lambda rng, count: normal(rng, count, np.float16),
    "sparse gradients float32": lambda _, count: demo("embedding_gradients", count),
    "smooth field float32": lambda _, count: demo("smooth_field", count),
    "waves float32": lambda _, count: waves(count),
}


@lru_cache(maxsize=1)
def values_of(name: str, nbytes: int) -> Array:
    """So many bytes of this data; cases of the same data follow each other."""
    itemsize = _dtypes.by_name(name.rpartition(" ")[2]).itemsize
    return DATA[name](np.random.default_rng(0), nbytes // itemsize)


@dataclass(frozen=True)
class Case:
    """Data and a codec.

    Attributes:
        codec: what encodes it.
        data: a name of DATA.
        by_size: whether it is measured at all sizes, and not at three alone.
    """

    codec: Codec
    data: str = WEIGHTS
    by_size: bool = False


_BFLOAT16, _FLOAT16, _FLOAT64 = (f"N(0, 0.02) {name}" for name in ("bfloat16", "float16", "float64"))

# By the name in figures and on the page.
CASES: dict[str, Case] = {
    "ErrorBounded 1e-2": Case(arrcomp.ErrorBounded(abs=1e-2)),
    "ErrorBounded 1e-3": Case(arrcomp.ErrorBounded(abs=1e-3), by_size=True),
    "ErrorBounded 1e-4": Case(arrcomp.ErrorBounded(abs=1e-4)),
    "ErrorBounded 1e-3 fast": Case(arrcomp.ErrorBounded(abs=1e-3, speed="fast"), by_size=True),
    "ErrorBounded rel 1e-3": Case(arrcomp.ErrorBounded(rel=1e-3)),
    "ErrorBounded pointwise 1e-2": Case(arrcomp.ErrorBounded(pointwise=1e-2)),
    "ErrorBounded rel 1e-3, sparse gradients": Case(arrcomp.ErrorBounded(rel=1e-3), "sparse gradients float32"),
    "ErrorBounded rel 1e-3, smooth field": Case(arrcomp.ErrorBounded(rel=1e-3), "smooth field float32"),
    "ErrorBounded rel 1e-3 auto, waves": Case(arrcomp.ErrorBounded(rel=1e-3, predictor="auto"), "waves float32"),
    "ErrorBounded 1e-3 lorenzo, waves": Case(arrcomp.ErrorBounded(abs=1e-3, predictor="lorenzo"), "waves float32"),
    "Lossless interpolation, waves": Case(arrcomp.Lossless(predictor="interpolation"), "waves float32"),
    "ErrorBounded 1e-6, float64": Case(arrcomp.ErrorBounded(abs=1e-6), _FLOAT64),
    "Lossless": Case(arrcomp.Lossless(), by_size=True),
    "Lossless fast": Case(arrcomp.Lossless(speed="fast")),
    "Lossless, bfloat16": Case(arrcomp.Lossless(), _BFLOAT16, by_size=True),
    "Lossless fast, bfloat16": Case(arrcomp.Lossless(speed="fast"), _BFLOAT16),
    "Lossless, float16": Case(arrcomp.Lossless(), _FLOAT16),
    "BaseDelta": Case(arrcomp.BaseDelta(), by_size=True),
    "BaseDelta 2 bases, bfloat16": Case(arrcomp.BaseDelta(bases=2), _BFLOAT16),
    "QSGD 8 bits": Case(arrcomp.QSGD(bits=8)),
    "QSGD 4 bits": Case(arrcomp.QSGD(bits=4), by_size=True),
    "QSGD 2 bits": Case(arrcomp.QSGD(bits=2)),
    "QSGD 4 bits, bfloat16": Case(arrcomp.QSGD(bits=4), _BFLOAT16),
    "QSGD 4 bits l2 stochastic": Case(arrcomp.QSGD(bits=4, norm="l2", rounding="stochastic")),
    "QSGD 4 bits, buckets of 2^20": Case(arrcomp.QSGD(bits=4, bucket_size=1 << 20)),
    "QSGD 4 bits entropy": Case(arrcomp.QSGD(bits=4, coding="entropy")),
    "SmaQ nearest": Case(arrcomp.SmaQ(rounding="nearest"), by_size=True),
    "SmaQ stochastic": Case(arrcomp.SmaQ(rounding="stochastic")),
    "FloatFormat bf16": Case(arrcomp.FloatFormat("bf16")),
    "FloatFormat fp8_e4m3": Case(arrcomp.FloatFormat("fp8_e4m3"), by_size=True),
    "FloatFormat fp8_e4m3, buckets": Case(arrcomp.FloatFormat("fp8_e4m3", scaling="bucket")),
    "FloatFormat fp8_e4m3, bfloat16": Case(arrcomp.FloatFormat("fp8_e4m3"), _BFLOAT16),
    "FloatFormat mxfp8": Case(arrcomp.FloatFormat("mxfp8")),
    "FloatFormat mxfp4": Case(arrcomp.FloatFormat("mxfp4"), by_size=True),
    "FloatFormat mxfp4 stochastic": Case(arrcomp.FloatFormat("mxfp4", rounding="stochastic")),
    "FloatFormat nvfp4": Case(arrcomp.FloatFormat("nvfp4")),
    "S2FP8": Case(arrcomp.S2FP8(), by_size=True),
    "S2FP8, buckets of 512": Case(arrcomp.S2FP8(bucket_size=512)),
    "S2FP8 stochastic": Case(arrcomp.S2FP8(rounding="stochastic")),
    "Codebook NF4": Case(arrcomp.Codebook.nf4(), by_size=True),
    "Codebook dynamic8": Case(arrcomp.Codebook.dynamic8()),
}

HEADLINE = "ErrorBounded 1e-3"  # of the measurements with one case
SIZES = tuple(MEBIBYTE << n for n in (0, 2, 4, 6, 8, 10))  # 1 MiB to 1 GiB
FEW_SIZES = tuple(MEBIBYTE << n for n in (0, 4, 8))
REHEARSED_SIZES = (1 << 14, 1 << 18)


def sizes_of(case: Case, largest: int) -> list[int]:
    """Bytes of the arrays that a case is measured with, up to `largest`."""
    return [size for size in (SIZES if case.by_size else FEW_SIZES) if size <= largest]
