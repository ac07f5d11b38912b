"""Sums of compressed arrays: against plain NumPy, and byte for byte what compressing the sum gives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import QSGD, Codec, Compressed, CorruptStreamError
from checks import FLOATS, Array, numpy_dtype

pytestmark = [pytest.mark.arm, pytest.mark.asan]

NORMS: tuple[Any, ...] = ("minmax", "l2", "linf")
ROUNDINGS: tuple[Any, ...] = ("nearest", "stochastic")
COUNT = 3 * 4096 + 77


def plain_sum(arrays: Sequence[Array], weights: Sequence[float]) -> Array:
    """The weighted sum in the arithmetic type, rounded to the dtype once."""
    dtype = arrays[0].dtype
    real: Any = np.float64 if dtype.itemsize == 8 else np.float32
    with np.errstate(all="ignore"):
        total = arrays[0].astype(real) * real(weights[0])
        for array, weight in zip(arrays[1:], weights[1:], strict=True):
            total = total + array.astype(real) * real(weight)
        rounded: Array = total.astype(dtype)
    rounded[np.isnan(total)] = np.nan
    return rounded


def parts(dtype: str, codec: Codec, number: int, count: int = COUNT) -> list[Compressed]:
    """Compressed arrays of normal values, each of another scale."""
    rng = np.random.default_rng(number)
    arrays = [rng.normal(0.1, 2.0**-i, count).astype(numpy_dtype(dtype)) for i in range(number)]
    return [arrcomp.compress(array, codec, seed=i) for i, array in enumerate(arrays)]


def check_sum(compressed: list[Compressed], weights: list[float] | None, codec: Codec | None, **options: Any) -> None:
    """The compressed sum is what the sum is compressed to."""
    arrays = [arrcomp.decompress(c) for c in compressed]
    total = plain_sum(arrays, weights or [1.0] * len(arrays))
    made = arrcomp.compress_sum(compressed, codec, weights=weights, seed=5, **options)
    expected = arrcomp.compress(total, codec or compressed[0].codec, seed=5)
    assert made.to_bytes() == expected.to_bytes(), (compressed[0].codec, codec, len(arrays))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_sum_of_payloads_is_the_payload_of_the_sum(dtype: str, norm: Any) -> None:
    number = itertools.cycle(range(1, 10))
    rng = np.random.default_rng(4)
    for bits, size, rounding in itertools.product(range(1, 9), (16, 32, 100, 512, 4096, 5000), ROUNDINGS):
        codec = QSGD(bits=bits, bucket_size=size, norm=norm, rounding=rounding, skip_incomplete=bits % 2 == 0)
        compressed = parts(dtype, codec, next(number))
        weights = rng.normal(0, 3, len(compressed)).tolist() if bits % 3 else None
        check_sum(compressed, weights, None)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("threads", [1, 3])
def test_every_instruction_set_and_number_of_threads_gives_the_same_bytes(
    instruction_set: str, threads: int, dtype: str
) -> None:
    for bits, size in itertools.product((3, 4, 8), (32, 512, 5000)):
        codec = QSGD(bits=bits, bucket_size=size, norm="l2" if bits == 3 else "minmax", rounding="stochastic")
        compressed = parts(dtype, codec, bits, 300_001)
        check_sum(compressed, [0.25] * bits, None, threads=threads)
        into = np.full(300_001, 0.3, numpy_dtype(dtype))
        expected = plain_sum([into, arrcomp.decompress(compressed[0])], [1, 1 / 3])
        arrcomp.accumulate(compressed[0], into, 1 / 3, threads=threads)
        checks.check_same_bits(into, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_accumulating_rounds_once(dtype: str) -> None:
    rng = np.random.default_rng(8)
    for bits, size, weight in itertools.product((1, 2, 5, 8), (17, 256, 512, 9000), (1.0, -0.5, 0.3, 1e30, 0.0)):
        (c,) = parts(dtype, QSGD(bits=bits, bucket_size=size, skip_incomplete=bits == 5), 1)
        into = rng.normal(size=COUNT).astype(numpy_dtype(dtype))
        expected = plain_sum([into, arrcomp.decompress(c)], [1, weight])
        assert arrcomp.accumulate(c, into, weight) is into
        checks.check_same_bits(into, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 4095, 4096, 4097])
def test_sums_of_every_size(count: int, dtype: str) -> None:
    for size, skip in itertools.product((16, 64, 512, 4096, 5000), (False, True)):
        compressed = parts(dtype, QSGD(bits=3, bucket_size=size, skip_incomplete=skip), 3, count)
        check_sum(compressed, [1.0, -2.0, 0.1], None)
        into = np.ones(count, numpy_dtype(dtype))
        expected = plain_sum([into, arrcomp.decompress(compressed[1])], [1, 0.7])
        checks.check_same_bits(arrcomp.accumulate(compressed[1], into, 0.7), expected)


def test_the_sum_may_have_another_codec() -> None:
    compressed = parts("float32", QSGD(bits=4, skip_incomplete=True), 4)
    for codec in (
        QSGD(bits=8),
        QSGD(bits=8, bucket_size=128, norm="linf"),
        QSGD(bucket_size=20_000),
        arrcomp.Lossless(),
        arrcomp.ErrorBounded(abs=1e-3),
    ):
        check_sum(compressed, [0.25] * 4, codec)


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_not_finite_stays_so(dtype: str) -> None:
    largest = checks.largest_finite(numpy_dtype(dtype))
    array = np.ones((4, 512), numpy_dtype(dtype))
    array[0, 3], array[1, 5], array[2] = np.nan, -np.inf, largest
    c = arrcomp.compress(array, QSGD())
    total = arrcomp.decompress(arrcomp.compress_sum([c, c]))
    assert np.isnan(total[:3].astype(np.float64)).all()  # twice the largest number is infinite
    assert (total[3] == 2).all()
    check_sum([c, c, c], [1.0, -1.0, 0.5], None)
    into = np.full(array.shape, -largest, array.dtype)
    arrcomp.accumulate(c, into, -1.0)
    assert np.isnan(into[:2].astype(np.float64)).all()
    assert (into[2].astype(np.float64) == -np.inf).all()


def test_signs_of_zeros_are_those_of_plain_sums() -> None:
    zeros = arrcomp.compress(np.full(600, -0.0, np.float32), QSGD())
    assert np.signbit(arrcomp.decompress(arrcomp.compress_sum([zeros, zeros]))).all()
    into = np.full(600, -0.0, np.float32)
    assert np.signbit(arrcomp.accumulate(zeros, into)).all()


def test_memory_of_the_callers_is_used() -> None:
    compressed = parts("float32", QSGD(), 2)
    expected = arrcomp.compress_sum(compressed).to_bytes()
    room = np.full(arrcomp.max_compressed_nbytes(COUNT, "float32") + 1, 0xA5, np.uint8)
    for out in (room, room[1:], bytearray(room.size)):
        assert arrcomp.compress_sum(compressed, out=out).to_bytes() == expected
    with pytest.raises(ValueError, match=r"out: expected at least \d+ bytes \(max_compressed_nbytes\), got 100"):
        arrcomp.compress_sum(compressed, out=np.empty(100, np.uint8))
    with pytest.raises(ValueError, match=r"out: .* overlaps the compressed array"):
        arrcomp.compress_sum(compressed, out=compressed[1].payload.buffer)


def test_misaligned_payloads_are_read() -> None:
    stream = arrcomp.compress(np.arange(5000, dtype=np.float32), QSGD()).to_bytes()
    c = arrcomp.from_bytes(memoryview(b"x" + stream)[1:])
    assert arrcomp.compress_sum([c]).to_bytes() == stream
    into = np.zeros(5000, np.float32)
    checks.check_same_bits(arrcomp.accumulate(c, into), arrcomp.decompress(c))


def corrupt(c: Compressed) -> Compressed:
    """The same with a payload that is 8 bytes short."""
    return Compressed(c.spec, arrcomp._arrays.contract.Payload(c.payload.adapter, c.payload.buffer[:-8].copy()))


def test_corrupt_payloads_are_found() -> None:
    good = parts("float32", QSGD(), 3)
    into = np.ones(COUNT, np.float32)
    with pytest.raises(CorruptStreamError, match="payload 0"):
        arrcomp.accumulate(corrupt(good[0]), into)
    assert (into == 1).all()
    with pytest.raises(CorruptStreamError, match="payload 2"):
        arrcomp.compress_sum([good[0], good[1], corrupt(good[2])])


def test_any_payload_of_the_right_length_is_added_as_it_is_decoded() -> None:
    rng = np.random.default_rng(9)
    for dtype, bits in itertools.product(FLOATS, (1, 4, 7)):
        (c,) = parts(dtype, QSGD(bits=bits, norm="l2" if bits == 4 else "minmax", bucket_size=64), 1)
        noise = rng.integers(0, 256, c.payload.buffer.size, np.uint8)
        random = Compressed(c.spec, arrcomp._arrays.contract.Payload(c.payload.adapter, noise))
        check_sum([random, c, random], [1.0, 0.5, -2.0], None)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (QSGD(bits=3), r"^compressed\[1\]: expected codec QSGD\(bits=4\), that of compressed\[0\], got QSGD\(bits=3\)"),
        ("float64", r"^compressed\[1\]: expected dtype float32, that of compressed\[0\], got float64"),
        ((3, 5), r"^compressed\[1\]: expected shape \(15,\), that of compressed\[0\], got \(3, 5\)"),
    ],
)
def test_arrays_that_differ_are_not_added(other: Any, message: str) -> None:
    x = np.ones(15, np.float32)
    first = arrcomp.compress(x, QSGD())
    if isinstance(other, Codec):
        second = arrcomp.compress(x, other)
    else:
        second = arrcomp.compress(x.astype(other) if isinstance(other, str) else x.reshape(other), QSGD())
    with pytest.raises(ValueError, match=message):
        arrcomp.compress_sum([first, second])


def test_wrong_arguments_are_named() -> None:
    x = np.ones(15, np.float32)
    c = arrcomp.compress(x, QSGD())
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (c, {}, TypeError, r"^compressed: expected a list or tuple of.*got arrcomp\.Compressed"),
        ([], {}, ValueError, "^compressed: expected at least one array, got none"),
        ([c, x], {}, TypeError, r"^compressed\[1\]: expected a Compressed, got numpy\.ndarray"),
        (
            [arrcomp.compress(x)],
            {},
            TypeError,
            r"^compressed\[0\]: expected codec QSGD with packed levels, got Lossless\(\)",
        ),
        ([c], {"weights": 1.0}, TypeError, r"^weights: expected a list or tuple of numbers, got 1\.0 \(float\)"),
        ([c], {"weights": [1, 2]}, ValueError, "^weights: expected 1 numbers, one for each array, got 2"),
        ([c], {"weights": ["1"]}, TypeError, r"^weights: expected a number, got '1' \(str\)"),
        ([c], {"weights": [True]}, TypeError, r"^weights: expected a number, got True \(bool\)"),
        ([c], {"weights": [math.nan]}, ValueError, "^weights: expected a finite number .*, got nan"),
        (
            [c],
            {"weights": [1e39]},
            ValueError,
            r"^weights: expected a finite number in the arithmetic of float32, got 1e\+39",
        ),
        ([c], {"codec": "qsgd"}, TypeError, "^codec: expected a codec .*, got 'qsgd'"),
        ([c], {"codec": QSGD(rounding="stochastic")}, TypeError, "^seed: expected an integer.*, got None"),
        ([c], {"threads": 0}, ValueError, "^threads: expected .* got 0"),
    ]
    for compressed, options, error, message in cases:
        with pytest.raises(error, match=message):
            arrcomp.compress_sum(compressed, **options)
    wrong: list[tuple[Any, Any, Any, type[Exception], str]] = [
        (x, x, 1.0, TypeError, r"^c: expected a Compressed, got numpy\.ndarray"),
        (arrcomp.compress(x), x, 1.0, TypeError, r"^c: expected codec QSGD .*, got Lossless\(\)"),
        (
            c,
            [1.0],
            1.0,
            TypeError,
            "into: expected a NumPy, .* got list",
        ),
        (c, x.astype(np.float64), 1.0, TypeError, "into: expected dtype float32, got float64"),
        (c, x.reshape(3, 5), 1.0, ValueError, r"into: expected shape \(15,\), got \(3, 5\)"),
        (c, np.ones(30, np.float32)[::2], 1.0, ValueError, "into: expected a C-contiguous"),
        (c, x, math.inf, ValueError, "^weight: expected a finite number .*, got inf"),
        (c, x, "1", TypeError, "^weight: expected a number, got '1'"),
    ]
    for compressed, into, weight, error, message in wrong:
        with pytest.raises(error, match=message):
            arrcomp.accumulate(compressed, into, weight)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="into: expected a writable array, got a read-only one"):
        arrcomp.accumulate(c, x)
