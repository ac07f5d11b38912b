"""Elements that stand for no value: restored bit for bit, for the bytes of a mask, and no part of anything else."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import arrcomp
import checks
import reference_reader
from arrcomp import ErrorBounded, Lossless
from checks import FLOATS, Array, numpy_dtype

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

Mask = NDArray[np.bool_]
N = 3 * 4096 + 77

RNG = np.random.default_rng(0)
MASKS: dict[str, Mask] = {
    **{f"scattered {share}": RNG.random(N) < share for share in (0.0005, 0.003, 0.03, 0.3, 0.7, 0.97, 0.999)},
    **{f"runs of {length}": np.arange(N) // length % 2 == 1 for length in (3, 32, 33, 100, 1000, 4096)},
    "ragged runs": np.repeat(RNG.random(N // 50 + 1) < 0.4, 50)[:N] ^ (RNG.random(N) < 0.01),
    "all": np.ones(N, bool),
    "all but the first": np.arange(N) > 0,
    "all but the last": np.arange(N) < N - 1,
    "the first eight": np.arange(N) < 8,
    "the last eight": np.arange(N) >= N - 8,
}
FILLS: dict[str, float] = {"nan": math.nan, "infinity": math.inf, "1e20": 1e20, "-9999": -9999.0, "zero": 0.0}


def _values(name: str) -> Array:
    with np.errstate(over="ignore"):
        found: Array = (20 + np.cumsum(np.random.default_rng(1).normal(0, 0.1, N))).astype(numpy_dtype(name))
    return found


def _with_fill(name: str, mask: Mask, fill: float) -> Array:
    x = _values(name)
    with np.errstate(over="ignore"):
        x[mask] = fill
    return x


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", FLOATS)
def test_every_value_is_kept(name: str, mask: str, fill: str) -> None:
    x = _with_fill(name, MASKS[mask], FILLS[fill])
    for codec in (ErrorBounded(abs=0.25), ErrorBounded(abs=0.25, speed="fast"), ErrorBounded(pointwise=0.01)):
        checks.check_codec(x, codec)
    checks.check_codec(x, Lossless())


@pytest.mark.parametrize("fill", [0, -1, 127])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint64", "float8_e4m3fn", "complex64"])
def test_every_bit_is_kept(dtype: str, mask: str, fill: int) -> None:
    x = np.random.default_rng(2).integers(0, 100, N).astype(numpy_dtype(dtype))
    x[MASKS[mask]] = np.array(fill, np.int64).astype(numpy_dtype(dtype))
    for speed in ("default", "fast"):
        checks.check_codec(x, Lossless(speed=speed))


@given(st.data())
def test_masks_of_any_shape(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 700), min_size=1, max_size=40))
    first = data.draw(st.booleans())
    mask = np.concatenate([np.full(n, (i % 2 == 0) == first) for i, n in enumerate(lengths)])
    x = np.random.default_rng(len(mask)).normal(0, 1, len(mask)).astype(np.float32)
    x[mask] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 1e30]))
    checks.check_codec(x, ErrorBounded(abs=1e-3))


@pytest.mark.parametrize("name", FLOATS)
def test_other_nans_and_infinities_keep_their_bits(name: str) -> None:
    dtype = numpy_dtype(name)
    x = _with_fill(name, MASKS["scattered 0.3"], math.nan)
    quiet = np.array(math.nan, dtype).view(f"u{dtype.itemsize}")
    words = x.view(f"u{dtype.itemsize}")
    words[::500] = quiet | 5
    x[7::500] = -math.inf
    checks.check_codec(x, ErrorBounded(abs=1e-2))
    words[RNG.random(N) < 0.2] = quiet | 3
    checks.check_codec(x, ErrorBounded(abs=1e-2))


# ---- bytes


def _masks_of_bytes() -> Iterator[tuple[str, Mask]]:
    """Masks as fields have them, of 2^20 elements."""
    rng = np.random.default_rng(3)
    n = 1024
    k = np.hypot(*np.meshgrid(np.fft.fftfreq(n) * n, np.fft.rfftfreq(n) * n, indexing="ij"))
    k[0, 0] = 1
    for power in (1.5, 2.0, 3.0):
        field = np.fft.irfft2(np.fft.rfft2(rng.normal(0, 1, (n, n))) * k**-power)
        yield f"land of power {power}", field > np.quantile(field, 0.55)
    yield "few points", rng.random((n, n)) < 0.002
    yield "one in fifty", rng.random((n, n)) < 0.02
    yield "half of all points", rng.random((n, n)) < 0.5
    yield "rows", np.tile((np.arange(n) % 16 == 0)[:, None], n)
    circle = np.hypot(*np.meshgrid(np.arange(n) - 500, np.arange(n) - 480)) < 400
    yield "all but a circle", ~circle


BYTE_MASKS = dict(_masks_of_bytes())


@pytest.mark.parametrize("fill", [math.nan, 1e20])
@pytest.mark.parametrize("name", BYTE_MASKS)
def test_a_mask_takes_little_more_than_zlib_has_for_its_bits(name: str, fill: float) -> None:
    # Every chunk can be decoded alone, for which its mask has 4 bytes of its own, padding, and 4 for some fills.
    mask = BYTE_MASKS[name]
    x = np.where(mask, np.float32(fill), np.float32(0))
    codec = ErrorBounded(abs=1e-3)
    taken = arrcomp.compress(x, codec).nbytes - arrcomp.compress(np.zeros_like(x), codec).nbytes
    heads = (10 if fill == 1e20 else 6) * mask.size // 4096
    assert taken <= 1.1 * len(zlib.compress(np.packbits(mask).tobytes(), 9)) + heads


@pytest.mark.parametrize("fill", [math.nan, 1e20])
def test_a_field_with_gaps_takes_what_its_values_and_the_mask_take(fill: float) -> None:
    mask = BYTE_MASKS["land of power 2.0"]
    x = (20 * np.sin(np.arange(mask.size) / 3e4) + np.random.default_rng(4).normal(0, 0.01, mask.size)).astype("f4")
    gaps = np.where(mask.ravel(), np.float32(fill), x)
    codec = ErrorBounded(abs=1e-3)
    values = arrcomp.compress(x[~mask.ravel()], codec).nbytes
    bits = len(zlib.compress(np.packbits(mask).tobytes(), 9))
    assert arrcomp.compress(gaps, codec).nbytes < 1.04 * values + bits


# ---- fill_value


@pytest.mark.parametrize("share", [0.4, 0.5, 0.7])
@pytest.mark.parametrize("name", ["float32", "float64", "int32", "uint64"])
def test_a_common_value_among_others_takes_a_mask(name: str, share: float) -> None:
    """Clipped numbers, or -1 for none: the value stands anywhere, and no dictionary serves the others."""
    rng = np.random.default_rng(6)
    size = 1 << 18
    is_float = name.startswith("float")
    most = 2 ** (8 * np.dtype(name).itemsize - 2)
    others = (rng.normal(size=size) if is_float else rng.integers(0, most, size)).astype(name)
    is_common = rng.random(size) < share
    array = np.where(is_common, np.array(3.5 if is_float else 77, name), others)
    stream = checks.check_codec(array, Lossless())
    checks.check_reference(stream, array)
    assert len(stream) < len(checks.stream_of(others[~is_common], Lossless())) + 1.5 * size / 8


@pytest.mark.parametrize("count", [2, 3, 4, 9])
def test_few_values_need_no_mask(count: int) -> None:
    values = np.random.default_rng(7).normal(size=count)
    array = values[np.random.default_rng(8).integers(0, count, 20_000)]
    assert all(chunk.missing is None for chunk in reference_reader.describe(checks.stream_of(array, Lossless())))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("mask", MASKS)
def test_the_fill_value_is_no_part_of_the_range(name: str, mask: str) -> None:
    x = _with_fill(name, MASKS[mask], 1e4)
    for codec in (ErrorBounded(rel=1e-2, fill_value=1e4), ErrorBounded(pointwise=1e-2, fill_value=1e4)):
        checks.check_codec(x, codec)


def test_single_fill_values_are_exact() -> None:
    x = _values("float32")
    x[[5, 4096, 9000]] = 1000.003
    fill = float(x[5])
    y = arrcomp.decompress(arrcomp.compress(x, ErrorBounded(abs=0.5, fill_value=fill)))
    assert (y[[5, 4096, 9000]] == np.float32(fill)).all()


def test_negative_zero_is_another_number_than_zero() -> None:
    x = np.zeros(1000, np.float32)
    x[::2] = -0.0
    y = arrcomp.decompress(arrcomp.compress(x, ErrorBounded(abs=0.5, fill_value=-0.0)))
    assert np.signbit(y[::2]).all()
    assert not np.signbit(y[1::2]).any()


def test_nan_as_fill_value_says_nothing() -> None:
    assert ErrorBounded(abs=1.0, fill_value=math.nan) == ErrorBounded(abs=1.0)
    assert ErrorBounded(abs=1.0, fill_value=np.float32("nan")) == ErrorBounded(abs=1.0)  # type: ignore[arg-type]


def test_the_configuration_has_it() -> None:
    codec = ErrorBounded(rel=1e-3, fill_value=-9999)
    assert codec.config()["fill_value"] == -9999.0
    assert arrcomp.codec_from_config(codec.config()) == codec
    assert arrcomp.from_bytes(arrcomp.compress(_values("float32"), codec).to_bytes()).codec == codec


@pytest.mark.parametrize(
    ("value", "error", "got"), [(math.inf, ValueError, "inf"), ("x", TypeError, "str"), (True, TypeError, "bool")]
)
def test_wrong_fill_values(value: Any, error: type[Exception], got: str) -> None:
    with pytest.raises(error, match=f"^fill_value: expected a finite number, got .*{got}"):
        ErrorBounded(abs=1.0, fill_value=value)
