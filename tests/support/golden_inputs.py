"""The arrays behind the golden streams, rebuilt by integer arithmetic: no library's random numbers or functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import arrcomp
import checks

Array = NDArray[Any]

FOLDER = Path(__file__).resolve().parents[1] / "golden"


class Golden(NamedTuple):
    """An array and the codec that compressed it, against a reference if there is one.

    The payload is in a frame if there is a level.
    """

    make: Callable[[], Array]
    codec: arrcomp.Codec
    zstd_level: int | None = None
    make_reference: Callable[[], Array] | None = None

    def options(self) -> dict[str, Any]:
        """What reading and writing need besides: `reference`."""
        return {} if self.make_reference is None else {"reference": self.make_reference()}


def _any_length(count: int, seed: int, least_shift: int) -> NDArray[np.uint64]:
    """Random integers of any length up to 64 bits less `least_shift`."""
    words = random_words(2 * count, seed)
    return words[:count] >> (np.uint64(least_shift) + words[count:] % np.uint64(64 - least_shift))


def random_words(count: int, seed: int) -> NDArray[np.uint64]:
    """Random 64-bit words (SplitMix64: G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014)."""
    z = (np.arange(1, count + 1, dtype=np.uint64) + (np.uint64(seed) << np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def bell_integers(count: int, seed: int) -> NDArray[np.int64]:
    """Nearly normal integers with mean 0 and standard deviation 65536: sums of twelve 16-bit numbers."""
    words = random_words(3 * count, seed).reshape(3, count)
    parts = np.stack([words >> np.uint64(16 * i) & np.uint64(0xFFFF) for i in range(4)])
    centred: NDArray[np.int64] = parts.astype(np.int64).sum(axis=(0, 1)) - 6 * 65535
    return centred


def smooth_integers(count: int) -> NDArray[np.int64]:
    """Parabolic arcs of two lengths, between 0 and about 300000."""
    i = np.arange(count, dtype=np.int64)
    short, long = i % 97, i % 1024
    return long * (1024 - long) + 8 * short * (97 - short)


def weights(count: int, seed: int) -> NDArray[np.float32]:
    """Nearly N(0, 0.0156), exactly representable."""
    return bell_integers(count, seed).astype(np.float32) * np.float32(2.0**-22)


def _sparse(count: int, seed: int, one_in: int) -> NDArray[np.float32]:
    return np.where(random_words(count, seed + 1) % np.uint64(one_in) == 0, weights(count, seed), np.float32(0))


def _specials() -> NDArray[np.float32]:
    values = weights(5000, 5)
    patterns = np.array([0x7F800000, 0xFF800000, 0x7FC00001, 0xFFBFFFFF, 0x00000001, 0x80000000, 0x7F7FFFFF], np.uint32)
    values.view(np.uint32)[11 : 11 + 400 * 7 : 400] = patterns
    return values


def _missing(fill: float, one_in: int, run: int) -> NDArray[np.float32]:
    """Weights of which runs of `run` are a fill value, one in so many."""
    values = weights(9000, 25)
    gone = np.repeat(random_words(len(values) // run + 1, 26) % np.uint64(one_in) == 0, run)[: len(values)]
    values[gone] = fill
    return values


def _mostly_missing() -> NDArray[np.float32]:
    values = np.full(9000, np.nan, np.float32)
    here = np.flatnonzero(random_words(9000, 28) % np.uint64(30) == 0)
    here = here[here >= 4096]
    values[here] = weights(9000, 25)[here]
    return values


def _bursts(seed: int) -> NDArray[np.float32]:
    """Weights that rise from almost nothing, fall, and are zero for a while."""
    place = np.arange(9000) * 3 % 700
    rise = np.where(place < 320, np.minimum(place, 320 - place), 0).astype(np.float32)
    return weights(9000, seed) * rise * np.float32(2.0**-3)


def _field(*shape: int) -> NDArray[np.int64]:
    """Arcs along all axes, with a little noise, between 0 and about a million for each axis."""
    field: NDArray[np.int64] = bell_integers(int(np.prod(shape)), 29).reshape(shape) >> 9
    for axis, size in enumerate(shape):
        i = (np.arange(size, dtype=np.int64) + 3 * axis) % 23
        long = np.arange(size, dtype=np.int64) + 11 * axis
        line = 2000 * i * (23 - i) + 300 * long * (61 - long)
        field = field + line.reshape([size if a == axis else 1 for a in range(len(shape))])
    return field


def _short_waves(rows: int, columns: int) -> NDArray[np.int64]:
    """Noise of which nothing is left but waves of about four elements each, along both axes."""
    waves: NDArray[np.int64] = bell_integers((rows + 5) * (columns + 5), 41).reshape(rows + 5, columns + 5)
    for axis in range(2):
        waves = np.apply_along_axis(np.convolve, axis, waves, np.array([1, 2, 1, -1, -2, -1]), "valid")
    return waves


def _table(rows: int, *columns: int) -> NDArray[np.int64]:
    """Noise of another mean and another range in each column, a power of two below 2^17."""
    number = np.arange(np.prod(columns)).reshape(columns)
    values: NDArray[np.int64] = bell_integers(rows * number.size, 31).reshape(rows, *columns)
    return (values + (number << 17)) >> (number * 5 % 12)


def _field_with_gaps(fill: float, *shape: int) -> NDArray[np.float32]:
    """A field of which the first places of some lines, whole lines, blocks and single elements are a fill value."""
    values = _field(*shape).astype(np.float32) * np.float32(2.0**-18)
    values[1, ..., :3] = fill
    values[2, 0] = fill
    values[-3:, ..., -4:] = fill
    values.ravel()[:: max(values.size // 7, 1)] = fill
    return values


def _walk_with_gaps() -> NDArray[np.float16]:
    """A line on which each value differs from the last by a few, with single gaps and some in a row."""
    values = (np.cumsum(bell_integers(2600, 21) >> 12) * 2.0**-4).astype(np.float16)
    values[3::7] = np.nan
    values[500:540] = np.nan
    return values


def _field_with_specials() -> NDArray[np.float32]:
    values = _field_with_gaps(np.nan, 31, 40)
    values *= values  # no multiples of a power of two
    patterns = np.array([0x7F800000, 0xFF800000, 0x7FC00001, 0xFFBFFFFF, 0x00000001, 0x80000000, 0x7F7FFFFF], np.uint32)
    values.view(np.uint32)[5, ::6] = patterns
    values[20:23, 10:30] = -0.0
    return values


def _long_tail() -> NDArray[np.int32]:
    values = (bell_integers(4500, 12) >> 11).astype(np.int32)
    values[::501] = 1 << 26
    return values


def any_of(elements: Array, count: int, seed: int) -> Array:
    """Any of few elements, anywhere."""
    return elements[(random_words(count, seed) % np.uint64(len(elements))).astype(np.intp)]


def _few_elements() -> NDArray[np.float32]:
    """A group of two chunks that share a dictionary, and one of which each has its own."""
    values = np.zeros((1 << 18) + 4096 + 77, np.float32)
    kinds = random_words(120, 97).astype(np.uint32).view(np.float32)
    values[196608:204800] = any_of(kinds[:30], 8192, 98)
    values[212992:217088] = any_of(kinds[30:40], 4096, 99)
    values[217088:221184] = any_of(kinds[40:], 4096, 100)
    return values


def decimals(words: NDArray[np.uint64], dtype: str) -> Array:
    """Numbers of two places and of either sign, zeros of both; each 300th is NaN, or is no decimal."""
    counts = (words % np.uint64(2001)).astype(np.int64) - 1000
    x = np.where(counts == 0, np.where(words >> np.uint64(63) == 1, 0.0, -0.0), counts / 100).astype(dtype)
    x[::300] = np.where(words[::300] >> np.uint64(62) == 0, np.nan, 1 / 3)
    return x


def _groups_of_two() -> NDArray[np.int8]:
    values = np.zeros((1 << 18) + 4096 + 77, np.int8)
    values[200000:209000] = bell_integers(9000, 14) >> 13
    return values


def _clusters() -> NDArray[np.int64]:
    """Integers near 0, near two large numbers, and anywhere, in stretches."""
    words = random_words(9000, 22)
    centres = np.array([0, 10**12, -(10**15)])[(words >> np.uint64(32)) % np.uint64(3)]
    near = centres + (words % np.uint64(100)).astype(np.int64)
    stretch = np.arange(9000) // 1000
    return np.select(
        [stretch < 5, stretch < 6, stretch < 8], [near, 0 * near, np.abs(centres[:1]) + 0 * near], words.view(np.int64)
    )


def few(name: str, seed: int) -> Array:
    """300 values of any dtype: 160 usual ones, 80 zeros, 32 equal ones, and of dtypes of 8 bits and more any bits."""
    dtype, usual = checks.numpy_dtype(name), bell_integers(160, seed)
    real = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    if real in ("float16", "bfloat16", "float32", "float64"):
        values = (usual.astype(np.float32) * np.float32(2.0**-22)).astype(checks.numpy_dtype(real))
    elif name == "bool" or name.startswith(("int", "uint")):
        values = (usual >> 14).astype(np.int8).astype(dtype)
        values = values if dtype.itemsize == 1 else values + usual.astype(dtype)
    else:  # small floats: patterns near that of 1, of both signs
        places = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}.get(name, 8)
        patterns = (1 << places - 2) - 1 + (usual >> 15) + ((usual & 1) << places - 1)
        values = (patterns & (1 << places) - 1).astype(np.uint8).view(dtype)
    any_bits = values[:28]
    if real.startswith(("uint", "int", "float", "bfloat")) and real not in ("int4", "uint4") and "_" not in real:
        any_bits = random_words(28, seed + 1).astype(f"u{values.itemsize}").view(values.dtype)
    parts = [values, np.zeros(80, values.dtype), np.repeat(values[:1], 32), any_bits]
    found = np.concatenate(parts)
    return np.stack([found, found[::-1]], axis=1).copy().view(dtype).ravel() if real != name else found


def _groups_of_four() -> NDArray[np.uint8]:
    values = np.zeros((1 << 20) + 9000, np.uint8)
    values[500_000:509_000] = random_words(9000, 24) >> np.uint64(61)
    return values


GOLDEN: dict[str, Golden] = {
    "error_bounded_float32_weights": Golden(lambda: weights(9000, 1), arrcomp.ErrorBounded(abs=1e-3)),
    "error_bounded_float32_fast": Golden(lambda: weights(6000, 2), arrcomp.ErrorBounded(abs=1e-3, speed="fast")),
    "error_bounded_float32_specials": Golden(_specials, arrcomp.ErrorBounded(abs=2.0**-9)),
    "error_bounded_float32_pointwise": Golden(lambda: weights(5000, 3), arrcomp.ErrorBounded(pointwise=1e-2)),
    "error_bounded_float64_field": Golden(
        lambda: smooth_integers(90 * 91).astype(np.float64).reshape(90, 91) * 2.0**-18, arrcomp.ErrorBounded(rel=1e-5)
    ),
    "error_bounded_float16_activations": Golden(
        lambda: np.maximum(weights(5000, 4) * np.float32(32), np.float32(0)).astype(np.float16),
        arrcomp.ErrorBounded(abs=2.0**-8),
    ),
    "error_bounded_bfloat16_gradients": Golden(
        lambda: _sparse(9000, 6, 40).astype(ml_dtypes.bfloat16), arrcomp.ErrorBounded(abs=1e-4)
    ),
    "error_bounded_float32_nan": Golden(lambda: _missing(np.nan, 3, 61), arrcomp.ErrorBounded(abs=1e-3)),
    "error_bounded_float32_nan_scattered": Golden(
        lambda: _missing(np.nan, 4, 1), arrcomp.ErrorBounded(abs=1e-3, speed="fast")
    ),
    "error_bounded_float32_infinity": Golden(lambda: _missing(np.inf, 50, 1), arrcomp.ErrorBounded(abs=1e-3)),
    "error_bounded_float32_fill_value": Golden(
        lambda: _missing(-9999.0, 2, 300), arrcomp.ErrorBounded(rel=1e-3, fill_value=-9999.0)
    ),
    "error_bounded_float64_nan": Golden(
        lambda: _missing(np.nan, 2, 7).astype(np.float64), arrcomp.ErrorBounded(abs=1e-6)
    ),
    "error_bounded_float16_nan": Golden(
        lambda: _missing(np.nan, 2, 1).astype(np.float16), arrcomp.ErrorBounded(abs=1e-3)
    ),
    "error_bounded_float32_mostly_nan": Golden(_mostly_missing, arrcomp.ErrorBounded(abs=1e-3)),
    "error_bounded_float32_contexts": Golden(lambda: _bursts(36), arrcomp.ErrorBounded(abs=2.0**-4)),
    "error_bounded_float64_contexts": Golden(
        lambda: _bursts(37).astype(np.float64), arrcomp.ErrorBounded(abs=2.0**-3, predictor="lorenzo")
    ),
    "error_bounded_float16_contexts": Golden(lambda: _bursts(38).astype(np.float16), arrcomp.ErrorBounded(abs=2.0**-3)),
    "lossless_int8_contexts": Golden(lambda: (_bursts(39) * np.float32(16)).astype(np.int8), arrcomp.Lossless()),
    "lossless_int64_contexts": Golden(lambda: (_bursts(40) * np.float32(16)).astype(np.int64), arrcomp.Lossless()),
    "error_bounded_float32_interpolation": Golden(
        lambda: _field(40, 51).astype(np.float32) * np.float32(2.0**-18),
        arrcomp.ErrorBounded(abs=1e-3, predictor="interpolation"),
    ),
    "error_bounded_float32_short_waves": Golden(
        lambda: _short_waves(60, 71).astype(np.float32) * np.float32(2.0**-20),
        arrcomp.ErrorBounded(abs=1e-2, predictor="interpolation"),
    ),
    "lossless_float64_short_waves": Golden(
        lambda: np.sqrt(np.abs(_short_waves(31, 40))) * np.sign(_short_waves(31, 40)),
        arrcomp.Lossless(predictor="interpolation"),
    ),
    "lossless_int32_short_waves": Golden(
        lambda: _short_waves(40, 51).astype(np.int32), arrcomp.Lossless(predictor="interpolation")
    ),
    "error_bounded_float64_lorenzo": Golden(
        lambda: _field(12, 11, 13).astype(np.float64) * 2.0**-18,
        arrcomp.ErrorBounded(rel=1e-4, predictor="lorenzo", speed="fast"),
    ),
    "error_bounded_bfloat16_interpolation_nan": Golden(
        lambda: _field_with_gaps(np.nan, 3, 4, 3, 7, 9).astype(ml_dtypes.bfloat16),
        arrcomp.ErrorBounded(abs=2.0**-3, predictor="interpolation"),
    ),
    "error_bounded_float16_interpolation_walk": Golden(
        _walk_with_gaps, arrcomp.ErrorBounded(abs=5e-2, predictor="interpolation")
    ),
    "error_bounded_float16_multiples": Golden(
        _walk_with_gaps, arrcomp.ErrorBounded(abs=1e-2, predictor="interpolation")
    ),
    "error_bounded_float32_predicted_fill_value": Golden(
        lambda: _field_with_gaps(-9999.0, 9, 14, 17),
        arrcomp.ErrorBounded(rel=1e-3, fill_value=-9999.0, predictor="auto"),
    ),
    "lossless_float16_interpolation": Golden(
        lambda: (_field(30, 41).astype(np.float32) * np.float32(2.0**-18)).astype(np.float16),
        arrcomp.Lossless(predictor="interpolation"),
    ),
    "lossless_float32_decimals": Golden(
        lambda: (_field(40, 51) >> 8).astype(np.float32) / np.float32(100), arrcomp.Lossless(predictor="interpolation")
    ),
    "lossless_float64_multiples_nan": Golden(
        lambda: np.round(_field_with_gaps(np.nan, 12, 11, 13).astype(np.float64) * 32.0) * 0.001,
        arrcomp.Lossless(predictor="lorenzo"),
    ),
    "lossless_float32_packed": Golden(
        lambda: (_field(40, 51) >> 6).astype(np.float32) * np.float32(0.0021) + np.float32(211.3),
        arrcomp.Lossless(predictor="interpolation"),
    ),
    "lossless_float64_packed_nan": Golden(
        lambda: np.round(_field_with_gaps(np.nan, 12, 11, 13).astype(np.float64) * 4096.0) * 0.0037 - 17.3,
        arrcomp.Lossless(predictor="lorenzo"),
    ),
    "lossless_uint8_pixels": Golden(
        lambda: (_field(23, 31, 3) >> 14).astype(np.uint8), arrcomp.Lossless(predictor="lorenzo")
    ),
    "lossless_int16_heights": Golden(
        lambda: (_field(60, 71) >> 5).astype(np.int16), arrcomp.Lossless(predictor="interpolation")
    ),
    "error_bounded_float32_five_axes": Golden(
        lambda: _field(5, 3, 4, 6, 7).astype(np.float32), arrcomp.ErrorBounded(abs=1.0, predictor="interpolation")
    ),
    "lossless_uint64_volume": Golden(
        lambda: (_field(9, 14, 19) << 33).astype(np.uint64), arrcomp.Lossless(predictor="interpolation")
    ),
    "lossless_float32_columns": Golden(
        lambda: _table(700, 7).astype(np.float32), arrcomp.Lossless(predictor="columns")
    ),
    "lossless_uint8_columns": Golden(
        lambda: (_table(900, 3) >> 12 & 127).astype(np.uint8), arrcomp.Lossless(predictor="columns")
    ),
    "error_bounded_float16_columns": Golden(
        lambda: (_table(4100, 16).astype(np.float32) * np.float32(2.0**-14)).astype(np.float16),
        arrcomp.ErrorBounded(abs=0.25, predictor="columns", speed="fast"),
    ),
    "error_bounded_float64_stack_of_columns": Golden(
        lambda: _table(2060, 4, 4).reshape(2, 1030, 4, 4).astype(np.float64),
        arrcomp.ErrorBounded(rel=1e-3, predictor="columns"),
    ),
    "lossless_float32_predicted_specials": Golden(_field_with_specials, arrcomp.Lossless(predictor="interpolation")),
    "lossless_float32_nan": Golden(lambda: _missing(np.nan, 2, 300), arrcomp.Lossless()),
    "lossless_int16_fill": Golden(
        lambda: np.where(np.isnan(_missing(np.nan, 2, 300)), -32768, bell_integers(9000, 27) >> 6).astype(np.int16),
        arrcomp.Lossless(),
    ),
    "lossless_float32_weights": Golden(lambda: weights(5000, 8), arrcomp.Lossless()),
    "lossless_bfloat16_weights": Golden(lambda: weights(9000, 9).astype(ml_dtypes.bfloat16), arrcomp.Lossless()),
    "lossless_float32_positive": Golden(lambda: np.abs(weights(5000, 23)), arrcomp.Lossless()),
    "lossless_float64_integers": Golden(lambda: bell_integers(5000, 10).astype(np.float64), arrcomp.Lossless()),
    "lossless_float8": Golden(lambda: weights(5000, 11).astype(ml_dtypes.float8_e4m3fn), arrcomp.Lossless()),
    "lossless_complex64_fast": Golden(
        lambda: (weights(2000, 15) + np.complex64(1j) * weights(2000, 16)).reshape(20, 100),
        arrcomp.Lossless(speed="fast"),
    ),
    "lossless_int16_smooth": Golden(lambda: (smooth_integers(7000) >> 4).astype(np.int16), arrcomp.Lossless()),
    "lossless_int64_times": Golden(
        lambda: 10**18 + 10**7 * np.arange(9000) + (bell_integers(9000, 103) >> 6), arrcomp.Lossless()
    ),
    "lossless_uint32_ascending": Golden(
        lambda: np.cumsum(np.abs(bell_integers(9000, 104)) >> 9).astype(np.uint32), arrcomp.Lossless()
    ),
    "lossless_int32_long_tail": Golden(_long_tail, arrcomp.Lossless()),
    "lossless_float32_dictionaries": Golden(_few_elements, arrcomp.Lossless()),
    "lossless_float64_dictionary_nan": Golden(
        lambda: np.where(
            np.isnan(_missing(np.nan, 2, 300)), np.nan, any_of(random_words(90, 91).view(np.float64), 9000, 92)
        ),
        arrcomp.Lossless(),
    ),
    "lossless_int64_dictionary_fast": Golden(
        lambda: any_of(random_words(11, 93).view(np.int64), 5000, 94), arrcomp.Lossless(speed="fast")
    ),
    "lossless_float16_dictionary": Golden(
        lambda: any_of(random_words(5, 95).astype(np.uint16).view(np.float16), 4500, 96), arrcomp.Lossless()
    ),
    "lossless_uint8_dictionary": Golden(
        lambda: any_of(random_words(200, 106).astype(np.uint8)[np.arange(400) ** 2 // 800], 9000, 107),
        arrcomp.Lossless(),
    ),
    "lossless_int32_classes": Golden(lambda: _any_length(9000, 108, 40).astype(np.int32), arrcomp.Lossless()),
    "lossless_uint64_classes": Golden(lambda: _any_length(4096, 109, 28), arrcomp.Lossless()),
    "error_bounded_float32_classes": Golden(
        lambda: _any_length(9000, 110, 44).astype(np.float32) * np.float32(0.25), arrcomp.ErrorBounded(abs=2.0**-4)
    ),
    "lossless_int64_multiples": Golden(
        lambda: ((random_words(9000, 103) >> np.uint64(52)).astype(np.int64) - 2000) * 10**9 - 7, arrcomp.Lossless()
    ),
    "lossless_uint16_multiples": Golden(
        lambda: (random_words(9000, 104) >> np.uint64(54)).astype(np.uint16) << np.uint16(6), arrcomp.Lossless()
    ),
    "lossless_float32_multiples": Golden(lambda: decimals(random_words(9000, 101), "f4"), arrcomp.Lossless()),
    "lossless_float64_multiples_missing": Golden(
        lambda: np.where(np.isnan(_missing(np.nan, 2, 300)), np.nan, np.cumsum(bell_integers(9000, 102) >> 16) / 1000),
        arrcomp.Lossless(speed="fast"),
    ),
    "lossless_complex64_multiples": Golden(
        lambda: (np.arange(5000, dtype="f4") % 377 / np.float32(255)).view(np.complex64), arrcomp.Lossless()
    ),
    "lossless_bool_mask": Golden(lambda: random_words(9000, 13) % np.uint64(5) == 0, arrcomp.Lossless()),
    "lossless_int8_groups_of_two": Golden(_groups_of_two, arrcomp.Lossless()),
    "lossless_uint8_empty": Golden(lambda: np.zeros((3, 0, 2), np.uint8), arrcomp.Lossless()),
    "qsgd_float32_weights": Golden(lambda: weights(9000, 17), arrcomp.QSGD()),
    "qsgd_float32_specials": Golden(_specials, arrcomp.QSGD(bits=5, bucket_size=100, norm="linf")),
    "qsgd_bfloat16_gradients": Golden(
        lambda: (weights(4500, 18) * np.float32(2.0**-120)).astype(ml_dtypes.bfloat16),
        arrcomp.QSGD(bits=3, bucket_size=1000, rounding="stochastic", skip_incomplete=True),
    ),
    "qsgd_float16_signs": Golden(
        lambda: weights(4321, 19).astype(np.float16), arrcomp.QSGD(bits=1, norm="linf", rounding="stochastic")
    ),
    "base_delta_float32_dropped": Golden(
        lambda: weights(5000, 20), arrcomp.BaseDelta(drop_bits=15, rounding="stochastic")
    ),
    "base_delta_int64_clusters": Golden(_clusters, arrcomp.BaseDelta(bases=2)),
    "base_delta_float16_activations": Golden(
        lambda: np.maximum(weights(5000, 21) * np.float32(32), np.float32(0)).astype(np.float16),
        arrcomp.BaseDelta(delta_bits=(4, 8, 11)),
    ),
    "codebook_float32_nf4": Golden(lambda: weights(9000, 20), arrcomp.Codebook.nf4()),
    "codebook_bfloat16_dynamic": Golden(
        lambda: weights(5000, 21).astype(ml_dtypes.bfloat16), arrcomp.Codebook.dynamic8(bucket_size=300)
    ),
    "codebook_float32_specials": Golden(
        _specials,
        arrcomp.Codebook([-0.02, -0.005, 0.0, 0.01], [-0.03, -0.01, 0.002, 0.004, 0.025], bucket_size=100),
    ),
    "codebook_float64_steps": Golden(
        lambda: smooth_integers(40 * 71).astype(np.float64).reshape(40, 71) * 2.0**-18,
        arrcomp.Codebook([0.25, 0.75], [0.5, 0.0, 1.0], scaling="tensor"),
    ),
    "qsgd_float32_entropy": Golden(
        lambda: weights(9000, 20), arrcomp.QSGD(bits=3, norm="l2", skip_incomplete=True, coding="entropy")
    ),
    "qsgd_float64_field": Golden(
        lambda: smooth_integers(60 * 71).astype(np.float64).reshape(60, 71) * 2.0**-18,
        arrcomp.QSGD(bits=8, bucket_size=17, norm="l2"),
    ),
    "s2fp8_float32_weights": Golden(lambda: weights(9000, 20), arrcomp.S2FP8()),
    "s2fp8_float32_specials": Golden(_specials, arrcomp.S2FP8(bucket_size=100)),
    "s2fp8_float64_gradients": Golden(
        lambda: _sparse(5000, 21, 3).astype(np.float64) * 2.0**-900,
        arrcomp.S2FP8(bucket_size=1000, rounding="stochastic"),
    ),
    "s2fp8_bfloat16_gradients": Golden(
        lambda: (_sparse(4500, 22, 10) * np.float32(2.0**-120)).astype(ml_dtypes.bfloat16), arrcomp.S2FP8()
    ),
    "float_format_float32_specials": Golden(_specials, arrcomp.FloatFormat("fp8_e4m3", overflow="infinity")),
    "float_format_float32_mxfp8": Golden(_specials, arrcomp.FloatFormat("mxfp8", rounding="stochastic")),
    "float_format_float64_tensor": Golden(
        lambda: smooth_integers(4300).astype(np.float64) - 1e5, arrcomp.FloatFormat("e4m6", scaling="tensor")
    ),
    "float_format_bfloat16_nvfp4": Golden(
        lambda: weights(9000, 20).astype(ml_dtypes.bfloat16), arrcomp.FloatFormat("nvfp4")
    ),
    "smaq_float32_weights": Golden(lambda: weights(9000, 20), arrcomp.SmaQ()),
    "smaq_float16_activations": Golden(
        lambda: np.maximum(weights(5000, 21) * np.float32(32), np.float32(0)).astype(np.float16),
        arrcomp.SmaQ(4, 9, block_size=None, statistics="sampled", num_samples=100, all_positive=True),
    ),
    "smaq_float64_clamped": Golden(
        lambda: weights(4500, 22).astype(np.float64) * 2.0**-1040,
        arrcomp.SmaQ(8, 8, overflow="clamp", block_size=100, statistics="range", rounding="truncate"),
    ),
    "smaq_float32_specials": Golden(
        _specials,
        arrcomp.SmaQ(3, 7, block_size=64, statistics="given", mean=0.01, std=0.02, rounding="nearest"),
    ),
    "frame_qsgd_float32_gradients": Golden(lambda: _sparse(9000, 23, 40), arrcomp.QSGD(), zstd_level=9),
    "frame_lossless_int64_range": Golden(lambda: np.arange(90_000), arrcomp.Lossless(), zstd_level=1),
}


def _stepped(reference: Array, seed: int, one_in: int = 1) -> Array:
    """The reference with one in so many elements changed by a few units of its bits."""
    words = checks.bits_of(reference)
    steps = (bell_integers(words.size, seed) >> 16).astype(words.dtype)
    steps[random_words(words.size, seed + 1) % np.uint64(one_in) > 0] = 0
    return (words + steps).view(reference.dtype).reshape(reference.shape)


def _flipped(reference: Array, seed: int) -> Array:
    """The reference with the lowest bit inverted in every other element."""
    words = checks.bits_of(reference)
    flips = (random_words(words.size, seed) & np.uint64(1)).astype(words.dtype)
    return (words ^ flips).view(reference.dtype).reshape(reference.shape)


def _trained(reference: Array, seed: int, one_in: int = 1) -> Array:
    """The reference with one in so many numbers changed by a hundredth of a weight."""
    change = weights(reference.size, seed).astype(np.float64) * 0.01
    change[random_words(reference.size, seed + 1) % np.uint64(one_in) > 0] = 0
    return (reference.astype(np.float64) + change.reshape(reference.shape)).astype(reference.dtype)


def _trained_with_gaps(reference: Array) -> Array:
    """The same where elements of both arrays stand for no value, in places of their own and in common ones."""
    values = _trained(reference, 83)
    values[::40] = np.nan
    values[7::50] = -9999.0
    values[100:130] = reference[100:130]
    return values


def _reference_with_gaps() -> Array:
    values = weights(5000, 82)
    values[::60] = np.nan
    values[7::75] = -9999.0
    values[3::500] = np.inf
    return values


def _referenced(make_reference: Callable[[], Array], change: Callable[[Array], Array], codec: arrcomp.Codec) -> Golden:
    """What `change` makes of the reference, coded against it."""
    return Golden(lambda: change(make_reference()), codec, make_reference=make_reference)


def _bfloat16_weights() -> Array:
    return weights(6000, 80).astype(ml_dtypes.bfloat16)


GOLDEN |= {
    "reference_lossless_bfloat16_list": _referenced(
        _bfloat16_weights, lambda r: _stepped(r, 81, one_in=25), arrcomp.Lossless()
    ),
    "reference_lossless_bfloat16": _referenced(_bfloat16_weights, lambda r: _stepped(r, 81), arrcomp.Lossless()),
    "reference_lossless_uint32_exclusive_or": _referenced(
        lambda: random_words(3000, 84).astype(np.uint32), lambda r: _flipped(r, 85), arrcomp.Lossless(speed="fast")
    ),
    "reference_lossless_float32_useless": _referenced(
        lambda: random_words(2000, 86).astype(np.uint32).view(np.float32),
        lambda r: _sparse(r.size, 87, 9),
        arrcomp.Lossless(),
    ),
    "reference_lossless_complex64_equal": _referenced(
        lambda: few("complex64", 88).reshape(20, -1), lambda r: r, arrcomp.Lossless()
    ),
    "reference_lossless_bool": _referenced(
        lambda: random_words(5000, 89) % np.uint64(3) == 0,
        lambda r: r ^ (random_words(5000, 90) % np.uint64(30) == 0),
        arrcomp.Lossless(),
    ),
    "reference_lossless_int8_empty": _referenced(lambda: np.zeros((3, 0, 2), np.int8), lambda r: r, arrcomp.Lossless()),
    "reference_error_bounded_float32": _referenced(
        _reference_with_gaps, _trained_with_gaps, arrcomp.ErrorBounded(abs=2e-5, fill_value=-9999.0)
    ),
    "reference_error_bounded_bfloat16_list": _referenced(
        _bfloat16_weights, lambda r: _trained(r, 91, one_in=20), arrcomp.ErrorBounded(rel=1e-4)
    ),
    "reference_error_bounded_float32_pointwise": _referenced(
        lambda: weights(4500, 92), lambda r: _trained(r, 93, one_in=5), arrcomp.ErrorBounded(pointwise=1e-3)
    ),
    "reference_error_bounded_float64": _referenced(
        lambda: few("float64", 94), lambda r: _trained(r, 95), arrcomp.ErrorBounded(abs=1e-6, speed="fast")
    ),
}


# One codec, as it is used below, for each of the ids; of one that has no line, its first example.
_OF_ID: dict[str, arrcomp.Codec] = {
    "lossless": arrcomp.Lossless(),
    "error_bounded": arrcomp.ErrorBounded(abs=1e-3),
    "qsgd": arrcomp.QSGD(bits=6, bucket_size=64, norm="l2"),
    "smaq": arrcomp.SmaQ(block_size=64, rounding="nearest"),
    "float_format": arrcomp.FloatFormat("fp6_e2m3", scaling="bucket", bucket_size=64),
    "s2fp8": arrcomp.S2FP8(bucket_size=64),
    "base_delta": arrcomp.BaseDelta(bases=2),
    "codebook": arrcomp.Codebook.nf4(),
}
for _kind in arrcomp.available_codecs().values():
    _OF_ID.setdefault(_kind.name.replace("-", "_"), _kind.examples()[0])
_SCALED = ("fp6_e3m2", "fp4_e2m1", "e3m7")
_FORMATS = (
    *("fp8_e4m3", "fp8_e5m2", "fp8_e4m3fnuz", "fp8_e5m2fnuz", "fp8_e4m3b11fnuz", "fp16", "bf16", "fp32", *_SCALED),
    *("e8m1", "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "mxint8", "nvfp4"),
)


def _float_format(name: str) -> arrcomp.FloatFormat:
    if name in _SCALED:
        return arrcomp.FloatFormat(name, scaling="tensor")
    if name in ("fp8_e5m2", "e8m1", "fp16"):
        return arrcomp.FloatFormat(name, overflow="infinity")
    if name in ("mxfp4", "mxint8"):
        return arrcomp.FloatFormat(name, scale_rule="ceil")
    return arrcomp.FloatFormat(name)


def _pairs() -> dict[str, Golden]:
    """Every codec with every dtype that it takes, and with arrays of no dimension and of no elements."""
    found = {}
    for codec_name, codec in _OF_ID.items():
        names = checks.DTYPES if codec.dtypes is None else codec.dtypes
        for seed, name in enumerate(names):
            found[f"{codec_name}_{name}_few"] = Golden(partial(few, name, 30 + seed), codec)
        for shape, kind in (((), "scalar"), ((2, 0, 3), "empty")):
            name = names[-1] if codec.dtypes is None else "float32"
            found[f"{codec_name}_{name}_{kind}"] = Golden(partial(np.zeros, shape, checks.numpy_dtype(name)), codec)
    return found


# Small ones, so that no codec, dtype, format or choice of a chunk is without a stream.
GOLDEN |= _pairs()
GOLDEN |= {
    f"float_format_float32_few_{name}": Golden(partial(few, "float32", 70), _float_format(name)) for name in _FORMATS
}
GOLDEN |= {
    f"qsgd_float32_few_{bits}_bits": Golden(partial(few, "float32", 71), arrcomp.QSGD(bits=bits, bucket_size=64))
    for bits in range(1, 9)
}
GOLDEN |= {
    "codebook_float32_unsigned": Golden(
        lambda: np.abs(weights(300, 72)), arrcomp.Codebook.dynamic8(signed=False, bucket_size=50)
    ),
    "error_bounded_float64_zeros": Golden(lambda: np.zeros(200), arrcomp.ErrorBounded(abs=1e-3)),
    "lossless_uint64_any_bits": Golden(lambda: random_words(200, 73), arrcomp.Lossless()),
    "base_delta_int16_zeros": Golden(lambda: np.zeros(5000, np.int16), arrcomp.BaseDelta()),
    "base_delta_int32_two_centres": Golden(
        lambda: ((_clusters() % 100) + np.array([10**6, -(10**8)])[_clusters() % 2]).astype(np.int32)[:640],
        arrcomp.BaseDelta(bases=2),
    ),
    "frame_lossless_uint8_groups_of_four": Golden(_groups_of_four, arrcomp.Lossless(), zstd_level=9),
    "frame_base_delta_bfloat16_few": Golden(
        lambda: np.tile(few("bfloat16", 74), 9), arrcomp.BaseDelta(), zstd_level=19
    ),
}


def path_of(name: str) -> Path:
    """Where the golden stream of this name is kept."""
    return FOLDER / f"{name}.arrcomp"


def write() -> list[str]:
    """Write all golden streams, and remove those that have no input; gives a line on each."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.arrcomp"):
        if path.stem not in GOLDEN:
            path.unlink()
    lines = []
    for name, golden in GOLDEN.items():
        if golden.zstd_level is not None and path_of(name).exists():
            continue  # another version of Zstandard may make another frame
        stream = checks.stream_of(golden.make(), golden.codec, **golden.options())
        stream = arrcomp.from_bytes(stream).to_bytes(zstd_level=golden.zstd_level)
        path_of(name).write_bytes(stream)
        lines.append(f"{len(stream):6d} bytes  {name}")
    return lines
