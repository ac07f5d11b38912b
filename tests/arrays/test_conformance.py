"""Every codec on every dtype: the same bytes whatever wrote them, and the independent reader agrees."""

from __future__ import annotations

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import _dtypes
from checks import DTYPES, Array, numpy_dtype
from instances import and_unlisted

pytestmark = pytest.mark.wheel

LISTED: list[arrcomp.Codec] = [
    arrcomp.Lossless(),
    arrcomp.Lossless(speed="fast"),
    arrcomp.ErrorBounded(abs=1e-3),
    arrcomp.ErrorBounded(abs=1e-3, speed="fast"),
    arrcomp.ErrorBounded(rel=1e-4),
    arrcomp.ErrorBounded(pointwise=1e-2),
    arrcomp.QSGD(),
    arrcomp.QSGD(bits=8, bucket_size=100, norm="l2"),
    arrcomp.QSGD(bits=3, norm="linf", rounding="stochastic", skip_incomplete=True),
    arrcomp.QSGD(bits=1, bucket_size=5000, rounding="stochastic"),
    arrcomp.QSGD(bits=4, norm="l2", rounding="stochastic", coding="entropy"),
    arrcomp.BaseDelta(),
    arrcomp.BaseDelta(bases=2, delta_bits=(4, 8, 16, 24)),
    arrcomp.BaseDelta(drop_bits=5, rounding="stochastic"),
    arrcomp.Codebook.nf4(),
    arrcomp.Codebook.dynamic8(),
    arrcomp.Codebook.dynamic8(signed=False),
    arrcomp.Codebook([-0.05, 0.0, 0.02, 0.1], [-0.1, -0.02, 0.0, 0.05, 0.2], scaling=None, bucket_size=100),
    arrcomp.Codebook([0.0], [-0.5, 0.5], scaling="tensor"),
    arrcomp.S2FP8(),
    arrcomp.S2FP8(bucket_size=100, rounding="stochastic"),
    arrcomp.FloatFormat("fp8_e4m3"),
    arrcomp.FloatFormat("e4m6", rounding="stochastic", overflow="infinity"),
    arrcomp.FloatFormat("fp8_e5m2", scaling="tensor"),
    arrcomp.FloatFormat("fp6_e2m3", scaling="bucket", bucket_size=100),
    arrcomp.FloatFormat("mxfp8"),
    arrcomp.FloatFormat("mxint8", scale_rule="ceil", rounding="stochastic"),
    arrcomp.FloatFormat("nvfp4"),
    arrcomp.SmaQ(),
    arrcomp.SmaQ(3, 12, block_size=None, statistics="sampled"),
    arrcomp.SmaQ(8, 9, block_size=100, overflow="clamp", rounding="truncate", preserve_zeros=False),
    arrcomp.SmaQ(5, 5, block_size=5000, rounding="nearest", statistics="range", all_positive=True),
]
CODECS = and_unlisted(LISTED)
CASES = [
    pytest.param(codec, dtype, id=f"{codec!r}-{dtype}")
    for codec in CODECS
    for dtype in DTYPES
    if codec.takes(_dtypes.by_name(dtype))
]


def mixture(name: str, count: int = 5 * 4096 + 777) -> Array:
    """Normal, smooth, sparse and constant stretches, and random bits, a chunk or so each."""
    rng = np.random.default_rng(7)
    dtype = numpy_dtype(name)
    scale = 0.05 if dtype.kind in "fc" or "float" in name else 20
    values = rng.normal(0, scale, count)
    values[4000:9000] = 3 * scale * np.sin(np.arange(5000) / 300)
    values[9000:14000] *= rng.random(5000) < 0.03
    values[14000:17000] = 2 * scale
    with np.errstate(all="ignore"):
        found: Array = (np.abs(values) if dtype.kind == "u" else values).astype(dtype)
    raw = found.view(np.uint8)
    patterns = rng.integers(0, 256, 2000, dtype=np.uint8)
    if name in ("bool", "int4", "uint4"):
        return found
    raw[-2000:] = patterns & _used_bits(name)
    return found


def _used_bits(name: str) -> int:
    """The bits of a byte that a dtype of less than 8 bits uses."""
    for bits in (4, 6):
        if f"float{bits}" in name:
            return (1 << bits) - 1
    return 255


@pytest.mark.parametrize(("codec", "dtype"), CASES)
def test_the_same_bytes_everywhere(codec: arrcomp.Codec, dtype: str, device: checks.Host) -> None:
    checks.check_codec(mixture(dtype), codec, device)


GROUPED = (arrcomp.Lossless, arrcomp.ErrorBounded)


@pytest.mark.parametrize("codec", [codec for codec in CODECS if isinstance(codec, GROUPED)], ids=repr)
def test_groups_of_two_chunks(codec: arrcomp.Codec, device: checks.Host) -> None:
    rng = np.random.default_rng(3)
    array = rng.normal(0, 0.02, 2**18 + 5000).astype(np.float16)
    stream = checks.stream_of(array, codec, device)
    start, _ = checks.payload_span(stream)
    assert isinstance(codec, arrcomp.QSGD) or stream[start + 8] == 2  # what QSGD stores for buckets is in front
    decoded = checks.array_of(stream, device)
    checks.check_reference(stream, decoded)
    checks.check_same_bytes(array, codec, stream)


def test_groups_of_four_chunks(device: checks.Host) -> None:
    array = np.zeros(2**20 + 4096 * 3 + 5, np.int8)
    array[500_000:520_000] = np.random.default_rng(4).integers(-9, 9, 20_000)
    stream = checks.stream_of(array, arrcomp.Lossless(), device)
    start, _ = checks.payload_span(stream)
    assert stream[start + 8] == 4
    decoded = checks.array_of(stream, device)
    checks.check_same_bits(decoded, array)
    checks.check_reference(stream, decoded)
    checks.check_same_bytes(array, arrcomp.Lossless(), stream)


def test_every_instruction_set_reads_the_same(instruction_set: str) -> None:
    array = mixture("float32")
    for codec in CODECS:
        stream = checks.stream_of(array, codec)
        checks.check_reference(stream, checks.array_of(stream))
