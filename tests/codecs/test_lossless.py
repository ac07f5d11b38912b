"""Lossless: every bit of every dtype and shape comes back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
from checks import DTYPES, Array, numpy_dtype

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

SHAPES = [
    (),
    (0,),
    (3, 0, 2),
    (1,),
    (31,),
    (32,),
    (33,),
    (4095,),
    (4096,),
    (4097,),
    (3 * 4096 + 5,),
    (7, 11, 13),
    (1, 1, 1, 1),
]


def random_bits(name: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """An array of random bit patterns; of dtypes below 8 bits, and of bool, random values."""
    dtype, count = numpy_dtype(name), math.prod(shape)
    raw = np.random.default_rng(seed).integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    if name == "bool":
        raw &= 1
    if name.startswith(("float4", "float6", "int4", "uint4")):
        raw &= 63 if "float6" in name else 15
    if name == "int4":
        return raw.astype(np.int8).astype(dtype).reshape(shape)
    return raw.view(dtype).reshape(shape)


def narrow(name: str, shape: tuple[int, ...]) -> Array:
    """An array of few different values around zero, as trained weights or counts have."""
    dtype, count = numpy_dtype(name), math.prod(shape)
    values = np.random.default_rng(1).normal(0, 3, count)
    with np.errstate(all="ignore"):
        found: Array = (np.abs(values) if name.startswith("uint") else values).astype(dtype)
    return found.reshape(shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", DTYPES)
def test_random_bits_come_back(name: str, shape: tuple[int, ...], device: checks.Host) -> None:
    array = random_bits(name, shape)
    stream = checks.stream_of(array, arrcomp.Lossless(), device)
    decoded = checks.array_of(stream, device)
    checks.check_same_bits(decoded, array)
    checks.check_reference(stream, decoded)
    checks.check_capacity(stream, array)


@pytest.mark.parametrize("shape", [(33,), (4097,), (3 * 4096 + 5,)], ids=str)
@pytest.mark.parametrize("name", DTYPES)
def test_narrow_values_come_back(name: str, shape: tuple[int, ...], device: checks.Host) -> None:
    checks.check_codec(narrow(name, shape), arrcomp.Lossless(), device)


@pytest.mark.parametrize("count", [2**18 - 1, 2**18, 2**18 + 1, 2**20 - 1, 2**20, 2**20 + 1])
@pytest.mark.parametrize("name", ["int8", "bfloat16", "float32"])
def test_sizes_around_the_groups_limit(name: str, count: int, device: checks.Host) -> None:
    array = narrow(name, (count,))
    stream = checks.stream_of(array, arrcomp.Lossless(), device)
    checks.check_same_bits(checks.array_of(stream, device), array)
    checks.check_capacity(stream, array)


def special_floats(name: str) -> Array:
    """NaNs with payloads, infinities, zeros of both signs, subnormals and the largest numbers, among ordinary ones."""
    array = narrow(name, (5000,))
    row = np.dtype(f"u{array.dtype.itemsize}").type
    bits, mantissa = 8 * array.dtype.itemsize, np.finfo(array.dtype).nmant if name != "bfloat16" else 7
    sign, exponents = 1 << (bits - 1), ((1 << (bits - 1)) - 1) >> mantissa << mantissa
    patterns = [exponents, exponents | 1, exponents | 1 << (mantissa - 1), exponents - 1, 0, 1, (1 << mantissa) - 1]
    chosen = np.array([row(p | s) for p in patterns for s in (0, sign)])
    array.view(row)[: 50 * chosen.size : 50] = chosen
    return array


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("speed", ["default", "fast"])
def test_special_floats_come_back(name: str, speed: str, device: checks.Host) -> None:
    checks.check_codec(special_floats(name), arrcomp.Lossless(speed=speed), device)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_mantissa_bits_that_are_always_zero_are_not_stored(name: str) -> None:
    rng = np.random.default_rng(2)
    rounded = rng.normal(0, 1, 8192).astype(numpy_dtype("bfloat16")).astype(name)
    stored = arrcomp.compress(rounded, arrcomp.Lossless()).nbytes
    assert stored < 8192 * 12 / 8


def test_the_default_codec_loses_nothing() -> None:
    array = narrow("float32", (1000,))
    checks.check_same_bits(np.asarray(arrcomp.decompress(arrcomp.compress(array))), array)


@st.composite
def patchworks(draw: st.DrawFn) -> Array:
    """Stretches of zeros, constants, ramps, narrow and random bits, of any dtype and any length up to 9000."""
    name = draw(st.sampled_from([n for n in DTYPES if n not in ("bool", "int4", "uint4") and "6_" not in n]))
    dtype = numpy_dtype(name)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pieces = []
    for kind in draw(st.lists(st.sampled_from(["zeros", "constant", "ramp", "narrow", "bits"]), max_size=4)):
        count = draw(st.sampled_from([1, 7, 64, 500, 2048]))
        width = min(dtype.itemsize, 8)
        integers = {
            "zeros": np.zeros(count, np.uint64),
            "constant": np.full(count, rng.integers(0, 2**63), np.uint64),
            "ramp": np.arange(count, dtype=np.uint64) * np.uint64(rng.integers(1, 9)),
            "narrow": rng.integers(0, 30, count).astype(np.uint64),
            "bits": rng.integers(0, 2**64, count, dtype=np.uint64),
        }[kind]
        pieces.append(integers.astype(f"u{width}"))
    words = np.concatenate([np.zeros(0, f"u{min(dtype.itemsize, 8)}"), *pieces])
    if "4_" in name:
        words &= words.dtype.type(15)
    return words[: words.size // 2 * 2].view(dtype)


@given(patchworks(), st.sampled_from(["default", "fast"]))
def test_any_array_comes_back(array: Array, speed: str) -> None:
    codec = arrcomp.Lossless(speed=speed)  # type: ignore[arg-type]
    stream = checks.stream_of(array, codec)
    decoded = checks.array_of(stream)
    checks.check_same_bits(decoded, array)
    checks.check_reference(stream, decoded)
    checks.check_capacity(stream, array)
