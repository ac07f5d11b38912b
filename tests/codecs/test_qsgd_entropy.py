"""QSGD with entropy-coded levels: the elements of the packed form, in fewer bits."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
import reference_buckets
from arrcomp import QSGD, CorruptStreamError
from checks import FLOATS, Array, numpy_dtype

pytestmark = pytest.mark.arithmetic

NORMS: tuple[Any, ...] = ("minmax", "l2", "linf")
STATES_NBYTES = 136  # of a group: the coder's states, an entry of the directory, padding
CHUNK_NBYTES = 8  # of a chunk: its head and its base


def packed(codec: QSGD) -> QSGD:
    """The same at a fixed rate."""
    return dataclasses.replace(codec, coding="packed")


def codes_of(array: Array, codec: QSGD) -> Array:
    """Every code."""
    stream = checks.stream_of(array, packed(codec))
    settings = reference_buckets.settings_of(packed(codec).config())
    layout = reference_buckets.layout_of(settings, array.size, array.dtype.itemsize)
    payload = stream[slice(*checks.payload_span(stream))]
    return reference_buckets.read_codes(payload[layout.codes_at : layout.tail_at], layout.quantized, codec.bits)


def coded_nbytes(array: Array, codec: QSGD) -> int:
    """Bytes of the entropy-coded codes."""
    start, end = checks.payload_span(checks.stream_of(array, codec))
    settings = reference_buckets.settings_of(codec.config())
    return end - start - reference_buckets.layout_of(settings, array.size, array.dtype.itemsize).codes_at


def entropy(codes: Array) -> float:
    """Bits per code of the best code that knows how frequent each is."""
    share = np.bincount(codes)[np.bincount(codes) > 0] / codes.size
    return float(-(share * np.log2(share)).sum())


def elias_omega_bits(numbers: Array) -> Array:
    """Lengths of the recursive Elias code of numbers from 1 on (QSGD, appendix A.1; Elias, 1975)."""
    bits, rest = np.ones(numbers.shape, np.int64), numbers.astype(np.int64)
    while (rest > 1).any():
        length = np.where(rest > 1, np.frexp(rest.astype(float))[1], 0)
        bits += length
        rest = np.where(rest > 1, length - 1, rest)
    return bits


def test_the_recursive_code_has_its_known_lengths() -> None:
    numbers = np.array([1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 100, 1000])
    assert elias_omega_bits(numbers).tolist() == [1, 3, 3, 6, 6, 7, 7, 11, 11, 12, 13, 17]


def paper_bits(codes: Array, codec: QSGD) -> float:
    """Bits of the better of the paper's two codes, without the norms (QSGD, sections 3.2 and A.2, A.3).

    The sparse one tells of each level but 0 the distance to the one before, the sign and the level; the dense one tells
    each level plus 1, and signs.
    """
    steps = codes.astype(np.int64) - (2 ** (codec.bits - 1) - 1)
    levels = np.abs(steps)
    nonzero = np.flatnonzero(levels)
    distances = np.diff(nonzero, prepend=-1)
    sparse = elias_omega_bits(distances).sum() + elias_omega_bits(levels[nonzero]).sum() + nonzero.size
    dense = elias_omega_bits(levels + 1).sum() + nonzero.size
    return float(min(sparse, dense))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (33,), (3, 1365), (4097,), (20_000,)])
def test_the_elements_are_those_of_the_packed_form(shape: tuple[int, ...], dtype: str, device: checks.Host) -> None:
    array = np.random.default_rng(3).normal(0, 1, shape).astype(numpy_dtype(dtype))
    for bits, size, skip in itertools.product((1, 3, 8), (16, 100, 512, 5000), (False, True)):
        rounding: Any = "stochastic" if bits == 3 else "nearest"
        codec = QSGD(bits=bits, bucket_size=size, skip_incomplete=skip, rounding=rounding, coding="entropy")
        stream = checks.check_codec(array, codec, device)
        checks.check_same_bits(checks.array_of(stream), checks.array_of(checks.stream_of(array, packed(codec))))


def test_it_says_what_it_is() -> None:
    assert not QSGD(coding="entropy").fixed_rate
    assert QSGD().fixed_rate
    assert "coding" not in QSGD().config()
    assert QSGD(coding="entropy").config()["coding"] == "entropy"


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_sizes_are_close_to_the_entropy(kind: str, bits: int, norm: Any) -> None:
    count = 2**20 + 4096
    array = getattr(np.random.default_rng(5), kind)(0, 0.02, count).astype(np.float32)
    codec = QSGD(bits=bits, norm=norm, rounding="stochastic", coding="entropy")
    chunks = -(-count // 4096)
    fixed = STATES_NBYTES * -(-chunks // 2) + CHUNK_NBYTES * chunks
    codes = codes_of(array, codec)
    assert coded_nbytes(array, codec) <= 1.05 * entropy(codes) * count / 8 + fixed


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_it_beats_the_code_of_the_paper(kind: str, norm: Any, bits: int) -> None:
    array = getattr(np.random.default_rng(6), kind)(0, 0.02, 2**20).astype(np.float32)
    codec = QSGD(bits=bits, norm=norm, rounding="stochastic", coding="entropy")
    assert 8 * coded_nbytes(array, codec) < paper_bits(codes_of(array, codec), codec)


def test_bytes_above_the_levels_are_read_as_the_format_says() -> None:
    codec = QSGD(bits=2, bucket_size=64, coding="entropy")
    stream = checks.stream_of(np.linspace(-3, 3, 640, dtype=np.float32), codec)
    start, _ = checks.payload_span(stream)
    noise = np.random.default_rng(1).integers(0, 256, 640, np.uint8)
    payload = stream[start : start + 80] + arrcomp.compress(noise).payload.buffer.tobytes()
    head = bytearray(stream[:start])
    head[16:24] = len(payload).to_bytes(8, "little")
    altered = checks.seal(bytes(head) + payload)
    checks.check_reference(altered, checks.array_of(altered))


def test_payloads_that_end_in_front_of_the_codes_are_corrupt() -> None:
    codec = QSGD(bucket_size=64, coding="entropy")
    c = arrcomp.compress(np.linspace(-3, 3, 640, dtype=np.float32), codec)
    for nbytes in (0, 40, 72, 80, 90, c.payload.nbytes - 4, c.payload.nbytes - 1):
        payload = arrcomp._arrays.contract.Payload(c.payload.adapter, c.payload.buffer[:nbytes].copy())
        with pytest.raises(CorruptStreamError):
            arrcomp.decompress(arrcomp.Compressed(c.spec, payload))


def test_payloads_of_variable_rate_are_not_added() -> None:
    c = arrcomp.compress(np.ones(100, np.float32), QSGD(coding="entropy"))
    with pytest.raises(
        TypeError, match=r"^compressed\[0\]: expected codec QSGD with.*got QSGD\(bits=4, coding='entropy'\); decom"
    ):
        arrcomp.compress_sum([c])
    total = arrcomp.compress_sum([arrcomp.compress(np.ones(100, np.float32), QSGD())], QSGD(coding="entropy"))
    assert (arrcomp.decompress(total) == 1).all()
