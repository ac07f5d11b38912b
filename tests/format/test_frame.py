"""Payloads in a Zstandard frame: the same payload comes out, and a hostile frame is refused before memory is taken."""

from __future__ import annotations

import copy
import pickle
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
import reference_reader
from arrcomp import QSGD, CorruptStreamError, ErrorBounded, Lossless
from arrcomp._format import frame
from checks import FRAME_AT, Array, gradients, is_framed

zstandard = pytest.importorskip("zstandard")

PAYLOAD_LENGTH_AT = 16  # in the header (FORMAT.md, section 1)
# Of a frame's header and blocks (RFC 8878, 3.1.1).
MAGIC = b"\x28\xb5\x2f\xfd"
DICTIONARY, RESERVED, SINGLE, SIZE_OF_4, SIZE_OF_8 = 1, 8, 32, 0x80, 0xC0
WINDOW_27, WINDOW_28 = b"\x88", b"\x90"
LAST, RLE = 1, 1
CODECS = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]


X = gradients(3000)
PLAIN = arrcomp.compress(X, QSGD()).to_bytes()
START, END = checks.payload_span(PLAIN)
PAYLOAD = PLAIN[START:END]


def framed(content: bytes, *, length: int | None = None, frame_length: int | None = None, kind: int = 1) -> bytes:
    """The stream with `content` as its frame, with other lengths where they are given, and the right checksum."""
    head = bytearray(PLAIN[:START])
    head[FRAME_AT] = kind
    if length is not None:
        struct.pack_into("<Q", head, PAYLOAD_LENGTH_AT, length)
    head += struct.pack("<Q", len(content) if frame_length is None else frame_length)
    return checks.seal(bytes(head) + content)


def zstd(content: bytes = PAYLOAD, level: int = 3, **options: Any) -> bytes:
    """A frame as any writer may make it."""
    made: bytes = zstandard.ZstdCompressor(level=level, **options).compress(content)
    return made


def with_parameters(content: bytes = PAYLOAD, **parameters: Any) -> bytes:
    made: bytes = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(**parameters)
    ).compress(content)
    return made


def assert_refused(stream: bytes, match: str = ".") -> None:
    """Reading raises CorruptStreamError, and the independent reader finds it corrupt too."""
    with pytest.raises(CorruptStreamError, match=match):
        checks.array_of(stream)
    with pytest.raises(reference_reader.ERRORS):
        reference_reader.read_stream(stream)


# What is written


def test_the_helper_of_these_tests_builds_streams_that_are_read() -> None:
    stream = framed(zstd())
    checks.check_same_bits(checks.array_of(stream), checks.array_of(PLAIN))
    checks.check_reference(stream, checks.array_of(PLAIN))


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@given(data=st.data())
def test_the_payload_in_a_frame_is_the_one_without(codec: arrcomp.Codec, data: st.DataObject) -> None:
    name, count = data.draw(st.sampled_from(codec.dtypes or checks.DTYPES)), data.draw(st.integers(0, 6000))
    array = (gradients(count) * 1e3).astype(checks.numpy_dtype(name))
    c = arrcomp.compress(array, codec, seed=checks.SEED)
    plain, stream = c.to_bytes(), c.to_bytes(zstd_level=data.draw(st.integers(1, 9)))
    assert arrcomp.from_bytes(stream).to_bytes() == plain
    assert is_framed(stream) or stream == plain
    assert len(stream) <= len(plain)
    assert c.nbytes == arrcomp.from_bytes(stream).nbytes == len(plain)
    checks.check_same_bits(checks.array_of(stream), checks.array_of(plain))
    checks.check_reference(stream, checks.array_of(plain))


@pytest.mark.parametrize(
    "codec",
    [
        *CODECS,
        QSGD(bits=8, bucket_size=16, coding="entropy"),
        arrcomp.SmaQ(3, 12, block_size=32),
        arrcomp.SmaQ(8, 12, block_size=32),
        arrcomp.FloatFormat("bf16", scaling="bucket", bucket_size=16),
        arrcomp.S2FP8(bucket_size=16),
        arrcomp.BaseDelta(bases=2),
    ],
    ids=repr,
)
@given(data=st.data())
def test_no_codec_writes_payloads_longer_than_a_frame_may_hold(codec: arrcomp.Codec, data: st.DataObject) -> None:
    dtype = arrcomp._dtypes.by_name(data.draw(st.sampled_from(codec.dtypes or checks.DTYPES)))
    shape = (data.draw(st.integers(0, 1 << 40) | st.integers(0, 10_000)),)
    spec = arrcomp._format.spec.Spec(codec, dtype, shape)
    assert spec.capacity <= 2 * spec.nbytes + 1024


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_there_is_no_frame_unless_asked_for(codec: arrcomp.Codec) -> None:
    c = arrcomp.compress(X, codec, seed=checks.SEED)
    assert not is_framed(c.to_bytes())
    assert b"".join(c.buffers()) == c.to_bytes() == c.to_bytes(zstd_level=None)


def test_any_number_of_threads_makes_the_same_frame() -> None:
    c = arrcomp.compress(gradients(1 << 22), QSGD(bits=8))
    streams = {c.to_bytes(zstd_level=3, threads=threads) for threads in (1, 2, 5, None)}
    assert len(streams) == 1
    assert is_framed(streams.pop())


@pytest.mark.parametrize("level", [1, 22])
def test_the_lowest_and_the_highest_level_are_read(level: int) -> None:
    c = arrcomp.compress(gradients(1 << 20), QSGD(bits=8))
    stream = c.to_bytes(zstd_level=level)
    assert len(stream) < 0.5 * c.nbytes
    checks.check_same_bits(checks.array_of(stream), np.asarray(arrcomp.decompress(c)))


@pytest.mark.parametrize("codec", [ErrorBounded(abs=1e-3), Lossless()], ids=repr)
@pytest.mark.parametrize("count", [0, 1, 4096, 3 << 20])
def test_what_gets_no_smaller_has_no_frame(codec: arrcomp.Codec, count: int) -> None:
    c = arrcomp.compress(np.random.default_rng(0).normal(0, 0.02, count).astype(np.float32), codec)
    assert c.to_bytes(zstd_level=9) == c.to_bytes()


def test_what_gets_no_smaller_is_not_pushed_through_zstandard(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    compress = frame._compress
    monkeypatch.setattr(frame, "_compress", lambda data, *others: seen.append(data.nbytes) or compress(data, *others))  # type: ignore[func-returns-value]
    c = arrcomp.compress(np.random.default_rng(0).normal(0, 0.02, 16 << 20).astype(np.float32))
    assert c.to_bytes(zstd_level=19) == c.to_bytes()
    assert seen == [1 << 20]


def test_samples_come_from_the_whole_payload() -> None:
    noise = np.random.default_rng(0).integers(0, 256, 24 << 20, dtype=np.uint8)
    for part in (slice(0, 12 << 20), slice(12 << 20, None), slice(6 << 20, 18 << 20)):
        payload = noise.copy()
        payload[part] = 0
        made = frame.make_frame(payload, 1, 2)
        assert made is not None
        assert len(made) < 0.6 * payload.size
    assert frame.make_frame(noise, 1, 2) is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"zstd_level": 0}, ValueError, "^zstd_level: expected an integer from 1 to 22, got 0"),
        ({"zstd_level": 23}, ValueError, "^zstd_level: expected an integer from 1 to 22, got 23"),
        ({"zstd_level": -1}, ValueError, "^zstd_level: expected an integer from 1 to 22, got -1"),
        ({"zstd_level": 3.0}, TypeError, r"^zstd_level: expected .* got 3\.0"),
        ({"zstd_level": "3"}, TypeError, "^zstd_level: expected .* got '3'"),
        ({"zstd_level": True}, TypeError, "^zstd_level: expected .* got True"),
        ({"threads": 0}, ValueError, "^threads: expected .* got 0"),
        ({"zstd_level": 3, "threads": "2"}, TypeError, "^threads: expected .* got '2'"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(options: dict[str, Any], error: type[Exception], message: str) -> None:
    c = arrcomp.compress(X, QSGD())
    for write in (c.to_bytes, c.buffers):
        with pytest.raises(error, match=message):
            write(**options)


# What is read


def test_a_frame_is_opened_only_for_the_array() -> None:
    x = np.zeros(1 << 24, np.float32)
    stream = arrcomp.compress(x, QSGD()).to_bytes(zstd_level=3)
    assert len(stream) < 10_000
    tracemalloc.start()
    try:
        c = arrcomp.from_bytes(stream)
        assert (c.shape, c.nbytes > 1 << 23, c.device) == (x.shape, True, "cpu")
        assert "ratio" in repr(c)
        assert c.to("cpu") is c
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    checks.check_same_bits(np.asarray(arrcomp.decompress(c)), x)


def test_frames_are_read_everywhere() -> None:
    stream, expected = framed(zstd()), checks.array_of(PLAIN)
    for twin in (copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c)), lambda c: c.trim()):  # noqa: S301
        assert twin(arrcomp.from_bytes(stream)).to_bytes() == PLAIN
    arrcomp.from_bytes(stream).verify()
    both = arrcomp.decompress_many([arrcomp.from_bytes(stream), arrcomp.from_bytes(PLAIN)])
    for array in both:
        checks.check_same_bits(array, expected)
    total = np.zeros_like(X)
    arrcomp.accumulate(arrcomp.from_bytes(stream), total)
    checks.check_same_bits(total, expected)


def test_frames_become_tensors() -> None:
    torch = pytest.importorskip("torch")
    tensor = arrcomp.decompress(arrcomp.from_bytes(framed(zstd())), like=torch.zeros(1))
    checks.check_same_bits(tensor.numpy(), checks.array_of(PLAIN))


@pytest.mark.parametrize(
    "make",
    [
        lambda: zstd(level=19),
        lambda: zstd(write_checksum=True),
        lambda: zstd(threads=2),
        lambda: with_parameters(window_log=27),
        lambda: with_parameters(window_log=10),
    ],
)
def test_other_writers_frames_are_read(make: Callable[[], bytes]) -> None:
    stream = framed(make())
    checks.check_same_bits(checks.array_of(stream), checks.array_of(PLAIN))
    checks.check_reference(stream, checks.array_of(PLAIN))


# What is corrupt


def test_every_cut_is_noticed() -> None:
    stream = framed(zstd())
    for length in range(len(stream)):
        assert_refused(stream[:length])


def test_every_flipped_bit_is_noticed() -> None:
    stream = framed(zstd())
    for position in range(len(stream)):
        for bit in range(8):
            altered = bytearray(stream)
            altered[position] ^= 1 << bit
            with pytest.raises((CorruptStreamError, arrcomp.FormatVersionError)):
                checks.array_of(bytes(altered))


def test_every_cut_of_the_frame_is_noticed_though_the_checksum_is_right() -> None:
    content = zstd()
    for length in range(len(content)):
        assert_refused(framed(content[:length]))


def outcome(stream: bytes) -> Array | None:
    """The array of a stream, or None if it is refused; nothing else may happen."""
    try:
        return checks.array_of(stream)
    except CorruptStreamError:
        return None


def test_altered_frames_are_read_as_the_independent_reader_does() -> None:
    content, rng = zstd(), np.random.default_rng(1)
    positions = [*range(20), *rng.integers(0, len(content), 300)]
    for position in positions:
        altered = bytearray(content)
        altered[position] ^= 1 << int(rng.integers(8))
        stream = framed(bytes(altered))
        found = outcome(stream)
        try:
            expected = reference_reader.read_stream(stream)
        except ValueError:
            assert found is None, position
        else:
            assert found is not None, position
            checks.check_same_bits(found, expected)


def zeros_frame(descriptor: int, fields: bytes, count: int = len(PAYLOAD)) -> bytes:
    """A frame of one block of `count` zeros, with this descriptor and the fields that it asks for (RFC 8878, 3.1.1)."""
    block = (count << 3 | RLE << 1 | LAST).to_bytes(3, "little") + b"\0"
    return MAGIC + bytes([descriptor]) + fields + block


def long(number: int) -> bytes:
    return struct.pack("<I", number)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "^frame: expected at least 1 and less than 1584 bytes for its payload, got 0"),
        (b"\x28\xb5\x2f\xfd", "frame"),
        (PAYLOAD, "^frame: expected at least 1"),
        (PAYLOAD[:200], "^frame: expected Zstandard's magic number, got b'.*'"),
        (zstd() + b"\0", "unused data"),
        (zstd() + zstd(), "unused data|frame: expected"),
        (b"\x50\x2a\x4d\x18\x00\x00\x00\x00" + zstd(), "^frame: expected Zstandard's magic number, got b'.*'"),
        (struct.pack("<II", 0x184D2A50, len(PAYLOAD)) + bytes(100), "^frame: expected Zstandard's magic .*, got b'.*'"),
        (zstd(write_content_size=False), "^frame: expected a content of 1584 bytes, as in the header, got no length"),
        (zstd(PAYLOAD[:-1]), f"^frame: expected a content .*, got {len(PAYLOAD) - 1}"),
        (zstd(PAYLOAD + b"\0"), f"^frame: expected a content of .* got {len(PAYLOAD) + 1}"),
        (zeros_frame(SIZE_OF_4 | SINGLE, long(len(PAYLOAD)), 100), "frame"),
        (zeros_frame(SIZE_OF_4 | SINGLE, long(len(PAYLOAD)), len(PAYLOAD) + 1), "frame"),
        (
            zeros_frame(SIZE_OF_8 | SINGLE, struct.pack("<Q", 1 << 60)),
            f"^frame: expected a content of .* got {1 << 60}",
        ),
        (zeros_frame(SIZE_OF_4 | SINGLE | DICTIONARY, b"\x07" + long(len(PAYLOAD))), "dictionary 7"),
        (zeros_frame(SIZE_OF_4, WINDOW_28 + long(len(PAYLOAD))), f"^frame: expected a window .*, got {1 << 28}"),
        (zeros_frame(SIZE_OF_4 | SINGLE | RESERVED, long(len(PAYLOAD))), "frame"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(len(value)),
)
def test_wrong_frames_are_named(content: bytes, message: str) -> None:
    assert_refused(framed(content), message)


def test_the_largest_window_is_read() -> None:
    assert not checks.array_of(framed(zeros_frame(SIZE_OF_4, WINDOW_27 + long(len(PAYLOAD))))).any()


@pytest.mark.parametrize("length", [0, 1, len(PAYLOAD) - 1, len(PAYLOAD) + 1, 1 << 32, 1 << 60, (1 << 64) - 1])
def test_other_lengths_of_the_payload_are_refused(length: int) -> None:
    message = rf"^payload length: expected {len(PAYLOAD)} bytes for shape \(3000,\), got {length}$"
    assert_refused(framed(zstd(), length=length), message)


@pytest.mark.parametrize("length", [0, 1, len(zstd()) - 1, len(zstd()) + 1, 1 << 32, 1 << 60, (1 << 64) - 1])
def test_other_lengths_of_the_frame_are_refused(length: int) -> None:
    assert_refused(framed(zstd(), frame_length=length), "truncated|more after the checksum")


@pytest.mark.parametrize("kind", [2, 3, 128, 255])
def test_unknown_frames_are_refused(kind: int) -> None:
    assert_refused(framed(zstd(), kind=kind), rf"^frame: expected 0 \(none\) or 1 \(Zstandard\), got {kind}")


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (1 << 59, "^frame: expected at least 1"),
        ((1 << 60) - 1, "^payload length: expected at most 576460752303424512 bytes for"),
        (1 << 60, "^payload length: expected at most 576460752303424512 bytes for"),
    ],
)
def test_a_frame_that_claims_more_than_it_can_hold_allocates_nothing(length: int, message: str) -> None:
    plain = arrcomp.compress(np.zeros(1, np.float32)).to_bytes()
    start, _ = checks.payload_span(plain)
    head = bytearray(plain[:start])
    head[FRAME_AT] = 1
    struct.pack_into("<Q", head, PAYLOAD_LENGTH_AT, length)
    struct.pack_into("<Q", head, 24, 1 << 56)  # values, of 4 bytes
    content = zeros_frame(SIZE_OF_8 | SINGLE, struct.pack("<Q", length))
    stream = checks.seal(bytes(head) + struct.pack("<Q", len(content)) + content)
    tracemalloc.start()
    try:
        assert_refused(stream, message)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


# Without the library


def run(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process where zstandard cannot be imported."""
    (folder / "zstandard.py").write_text("raise ImportError('No module named zstandard')")
    command = [sys.executable, "-P", "-c", code, *arguments]
    return subprocess.run(command, env=checks.environment_with(folder), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("call", ["arrcomp.from_bytes(stream)", "arrcomp.compress(b).to_bytes(zstd_level=3)"])
def test_without_the_library_an_error_says_what_to_install(call: str, tmp_path: Path) -> None:
    (tmp_path / "stream").write_bytes(framed(zstd()))
    code = f"import sys, numpy, arrcomp; b = numpy.zeros(9); stream = open(sys.argv[1], 'rb').read(); {call}"
    result = run(code, tmp_path, str(tmp_path / "stream"))
    assert result.stderr.splitlines()[-1].startswith("ImportError: Zstandard frames need zstandard")
    assert "pip install arrcomp[zstd]" in result.stderr


def test_without_a_frame_the_library_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "stream").write_bytes(PLAIN)
    code = "import sys, arrcomp; arrcomp.decompress(arrcomp.from_bytes(open(sys.argv[1], 'rb').read()))"
    assert run(code, tmp_path, str(tmp_path / "stream")).returncode == 0
