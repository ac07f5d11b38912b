"""The stream around the payload: every field of it is checked before it is used, and errors name the field."""

from __future__ import annotations

import json
import mmap
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import CorruptStreamError, ErrorBounded, FormatVersionError, UnknownCodecError
from arrcomp._dtypes import by_name
from arrcomp._format import stream as format_
from small_streams import FIXED_NBYTES, forged

SHAPE = (3, 5)
READ_ERRORS = (CorruptStreamError, FormatVersionError, UnknownCodecError)


LARGEST = [((1,) * 64, "uint8"), ((0, (1 << 63) - 1), "uint8"), ((0, (1 << 60) - 1), "float64"), ((1 << 59,), "int8")]
TOO_LARGE = [((1,) * 65, "uint8"), ((0, 1 << 60), "float64"), ((1 << 31, 0, 1 << 32), "int8"), ((1 << 60,), "int8")]


@pytest.fixture(scope="module")
def stream() -> bytes:
    """A small stream of float32, two dimensions."""
    x = np.linspace(-1, 1, 15, dtype=np.float32).reshape(SHAPE)
    return arrcomp.compress(x, ErrorBounded(abs=1e-3)).to_bytes()


def test_the_helper_of_these_tests_builds_the_same_stream(stream: bytes) -> None:
    assert forged(stream) == stream


def test_length_is_known_before_writing(stream: bytes) -> None:
    c = arrcomp.from_bytes(stream)
    assert c.nbytes == len(stream) == len(c.to_bytes())
    assert c.ratio == 60 / len(stream)
    assert c.codec == ErrorBounded(abs=1e-3)
    assert (c.shape, c.dtype.name, c.device) == (SHAPE, "float32", "cpu")


def packed(shape: tuple[int, ...], dtype: str) -> bytes:
    """A stream without a payload."""
    header = format_.Header(1, by_name(dtype), shape, {"codec": "lossless"})
    return b"".join(format_.pack(header, format_.Body(0, memoryview(b""), False)))


@pytest.mark.parametrize(("shape", "dtype"), LARGEST, ids=str)
def test_the_largest_shapes_are_written_and_read(shape: tuple[int, ...], dtype: str) -> None:
    assert format_.parse(memoryview(packed(shape, dtype)))[0].shape == shape


@pytest.mark.parametrize(("shape", "dtype"), TOO_LARGE, ids=str)
def test_a_shape_that_is_not_read_is_not_written(shape: tuple[int, ...], dtype: str) -> None:
    with pytest.raises(ValueError, match=r"^shape: expected at most 64 dimensions and fewer than 2\^60 values"):
        packed(shape, dtype)


def test_every_cut_is_refused(stream: bytes) -> None:
    for length in range(len(stream)):
        with pytest.raises(CorruptStreamError):
            arrcomp.from_bytes(stream[:length])


def test_every_flipped_bit_is_refused(stream: bytes) -> None:
    for position in range(len(stream)):
        for bit in range(8):
            altered = bytearray(stream)
            altered[position] ^= 1 << bit
            with pytest.raises(READ_ERRORS):
                arrcomp.from_bytes(altered)


def test_bytes_after_the_checksum_are_refused(stream: bytes) -> None:
    with pytest.raises(
        CorruptStreamError, match=r"^payload length 72: expected a stream .*got 3 more after the checksum"
    ):
        arrcomp.from_bytes(stream + b"abc")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"magic": b"ARRD"}, "^magic: expected b'ARRC', got b'ARRD'; these bytes are not an arrcomp stream"),
        ({"frame": 2}, r"^frame: expected 0 \(none\) or 1 \(Zstandard\), got 2"),
        ({"zeros": 1}, "reserved field"),
        ({"dtype": 0}, "^dtype id: expected a known one, got 0"),
        ({"dtype": 29}, "^dtype id: expected a known one, got 29"),
        ({"dimensions": 65}, "^number of dimensions: expected at most 64, got 65"),
        ({"dimensions": 3}, "truncated"),
        ({"dimensions": 1}, "^payload length .* more after the checksum"),
        ({"configuration_nbytes": 0xFFFF}, "truncated"),
        ({"configuration_nbytes": 0}, "^payload length .* more after the checksum"),
        ({"payload_nbytes": 2**64 - 1}, "truncated"),
        ({"payload_nbytes": 2**63}, "truncated"),
        ({"payload_nbytes": 0}, "^payload length .* more after the checksum"),
        ({"codec": 1}, "^configuration: expected codec lossless, as in the header's codec id, got error-bounded"),
        ({"dtype": 6}, "^configuration: dtype: expected float16,.*got int32; Lossless takes every dtype"),
        ({"dtype": 14}, "^configuration: dtype: expected float16,.*got complex64; compress real and imagina"),
    ],
    ids=str,
)
def test_wrong_fields_are_named(stream: bytes, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CorruptStreamError, match=message):
        arrcomp.from_bytes(forged(stream, **fields))


def test_a_truncated_stream_says_how_many_bytes_it_needs(stream: bytes) -> None:
    message = rf"^stream is truncated: got {len(stream) - 1} bytes, expected at least {len(stream)} \(payload length"
    with pytest.raises(CorruptStreamError, match=message):
        arrcomp.from_bytes(stream[:-1])


def test_newer_and_unknown_streams_are_not_called_corrupt(stream: bytes) -> None:
    with pytest.raises(
        FormatVersionError, match=r"^format version: expected at most .*got 1\.0; a newer arrcomp reads it"
    ):
        arrcomp.from_bytes(forged(stream, major=1, minor=0))
    with pytest.raises(UnknownCodecError, match=r"^codec id: expected 1 to 8, got 200"):
        arrcomp.from_bytes(forged(stream, codec=200))
    assert not issubclass(FormatVersionError, CorruptStreamError)
    assert not issubclass(UnknownCodecError, CorruptStreamError)


def test_padding_must_be_zero(stream: bytes) -> None:
    text = json.dumps({"codec": "error-bounded", "abs": 0.25}).encode()
    length = -(FIXED_NBYTES + 16 + len(text)) % 8
    assert length
    assert arrcomp.from_bytes(forged(stream, configuration=text)).codec == ErrorBounded(abs=0.25)
    with pytest.raises(CorruptStreamError, match="padding"):
        arrcomp.from_bytes(forged(stream, configuration=text, padding=b"\1" * length))


@pytest.mark.parametrize(
    "shape",
    [
        (2**64 - 1,),
        (2**32, 2**32),
        (2**60,),
        (2**63, 2),
        (2**40,) * 64,
        (0, 2**63),
        (0, 2**61, 2**61),
        (2**64 - 1, 0),
        (16, 4096, 4096),
        (2**20,),
    ],
    ids=str,
)
def test_a_claimed_shape_allocates_nothing_that_the_payload_does_not_justify(
    stream: bytes, shape: tuple[int, ...]
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CorruptStreamError, match="shape"):
            arrcomp.from_bytes(forged(stream, shape=shape))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("nbytes", [0, 1, 15, 16, 20])
def test_a_short_payload_is_refused(stream: bytes, nbytes: int) -> None:
    with pytest.raises(CorruptStreamError, match=r"^payload length: expected at least .*, got "):
        arrcomp.from_bytes(forged(stream, payload=bytes(nbytes)))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[1]",
        b'"lossless"',
        b"{}",
        b'{"codec":7}',
        b'{"codec":"error-bounded"',
        b'{"codec":"error-bounded"}',
        b'{"codec":"no such codec","abs":1}',
        b'{"abs":NaN,"codec":"error-bounded"}',
        b'{"abs":1e999,"codec":"error-bounded"}',
        b'{"abs":"1","codec":"error-bounded"}',
        b'{"abs":0.1,"codec":"error-bounded","shade":"blue"}',
        b'{"abs":0.1,"codec":"error-bounded","__class__":1}',
        b'{"abs":' + b"9" * 5000 + b',"codec":"error-bounded"}',
        b'{"abs":0.1,"codec":"error-bounded\xff"}',
        b"[" * 60_000,
        b'{"codec":' * 7000,
        b'{"codec":"lossless"}',
    ],
    ids=lambda text: repr(text[:40]),
)
def test_hostile_configurations_are_refused(stream: bytes, text: bytes) -> None:
    with pytest.raises(CorruptStreamError, match="configuration"):
        arrcomp.from_bytes(forged(stream, configuration=text))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_any_buffer_of_bytes_is_read(stream: bytes, kind: Any) -> None:
    assert arrcomp.from_bytes(kind(stream)).to_bytes() == stream


def test_a_mapped_file_is_read(stream: bytes, tmp_path: Path) -> None:
    path = tmp_path / "stream"
    path.write_bytes(stream)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert arrcomp.from_bytes(mapped).to_bytes() == stream


@pytest.mark.parametrize(
    "data", ["text", 3, None, [1, 2], np.zeros(4, np.float32), np.zeros((4, 4), np.uint8), memoryview(bytes(40))[::2]]
)
def test_what_is_no_buffer_of_bytes_is_a_type_error(data: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^data: expected bytes, or a one-dimensional contiguous buffer of bytes, got "
    ):
        arrcomp.from_bytes(data)
