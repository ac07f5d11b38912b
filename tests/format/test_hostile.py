"""Streams forged field by field, with right checksums: each is refused by the name of its field, in little memory."""

from __future__ import annotations

import base64
import json
import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import QSGD, ErrorBounded, Lossless, SmaQ
from forged_references import HEADER, Payload
from small_streams import REFERENCE, SMALL, forged, resized, weights

ROOM = 256 << 20  # bytes that the reading process may take beside what it has
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # which keeps memory that was given back
MOST_PEAK = 4 << 20  # bytes that Python and NumPy may hold while a stream is refused

CORRUPT, UNKNOWN, NEWER, TOO_LARGE = "CorruptStreamError", "UnknownCodecError", "FormatVersionError", "SizeLimitError"
Case = tuple[bytes, str, str]  # a stream, the error's type, and the words that its message begins with

PACKED = SMALL["packed"]()  # ErrorBounded, float32[700]
PREDICTED = SMALL["predicted"]()  # ErrorBounded, float32[23, 30], five steps
REFERENCED = SMALL["referenced, bounded list"]()  # ErrorBounded, float32[900]: all four parts
EQUAL = SMALL["referenced, equal"]()  # Lossless, int8[700]: no part
BUCKETS = SMALL["buckets"]()  # QSGD, float32[700]: all payloads of a shape have one length
EXTRAS = checks.stream_of(weights(4 * 4096), SmaQ(block_size=None, min_size=0))
GROUPS = SMALL["many chunks"]()  # Lossless, uint8[20 * 4096]: 20 groups
CODED = checks.stream_of(weights(3 * 4096), QSGD(bits=8, bucket_size=1 << 20, coding="entropy"))
LOSSLESS = checks.stream_of(np.arange(100, dtype=np.complex64), Lossless())

HUGE = (1 << 31, 1 << 32, 1 << 60, 1 << 62, 1 << 63, (1 << 64) - 8, (1 << 64) - 1)


def payload_of(stream: bytes) -> bytearray:
    start, end = checks.payload_span(stream)
    return bytearray(stream[start:end])


def headers() -> dict[str, Case]:
    """Fields before the shape."""
    return {
        **{
            f"magic {magic!r}": (forged(PACKED, magic=magic), CORRUPT, "magic")
            for magic in (b"ARRD", b"CRRA", b"\0" * 4)
        },
        **{f"version {major}.9": (forged(PACKED, major=major, minor=9), NEWER, "format version") for major in (1, 255)},
        **{f"codec id {codec}": (forged(PACKED, codec=codec), UNKNOWN, "codec id") for codec in (0, 9, 255)},
        "codec id of another": (forged(PACKED, codec=3), CORRUPT, "configuration: expected codec"),
        **{f"dtype id {dtype}": (forged(PACKED, dtype=dtype), CORRUPT, "dtype id") for dtype in (0, 29, 255)},
        "dtype id of none of the codec's": (forged(BUCKETS, dtype=6), CORRUPT, "configuration: dtype"),
        **{f"{n} dimensions": (forged(PACKED, dimensions=n), CORRUPT, "number of dimensions") for n in (65, 255)},
        "64 dimensions without sizes": (forged(SMALL["empty"](), dimensions=64), CORRUPT, "shape of 64"),
        **{
            f"frame {frame}": (
                forged(PACKED, frame=frame),
                CORRUPT,
                f"frame: expected 0 (none) or 1 (Zstandard), got {frame}",
            )
            for frame in (2, 255)
        },
        **{f"reserved {zeros}": (forged(PACKED, zeros=zeros), CORRUPT, "reserved") for zeros in (1, (1 << 32) - 1)},
        "truncated header": (PACKED[:31], CORRUPT, "header"),
        "wrong checksum": (PACKED[:-1] + bytes([PACKED[-1] ^ 1]), CORRUPT, "checksum"),
    }


def shapes() -> dict[str, Case]:
    """Shapes that no array has, and those that the payload is too short for."""
    impossible = [
        (1 << 60,),
        (1 << 63,),
        ((1 << 64) - 1,),
        (1 << 32, 1 << 32),
        (1 << 63, 2),
        ((1 << 64) - 1, (1 << 64) - 1),
        (1 << 20,) * 3,
        (1 << 40,) * 64,
        (2,) * 64,
        (0, 1 << 63),
        ((1 << 64) - 1, 0),
        (0, 1 << 31, 1 << 31),
        (1 << 62, 1 << 62, 0),
    ]
    short = [(1 << 59,), (1 << 40,), (1 << 20, 1 << 20), (2,) * 40, (1 << 24, 4096, 1)]
    streams = {"groups": PACKED, "buckets": BUCKETS, "extra words": EXTRAS, "coded": CODED}
    return {
        **{f"{n}: {s}": (forged(x, shape=s), CORRUPT, "shape") for n, x in streams.items() for s in impossible},
        **{f"{n}: {s}": (forged(x, shape=s), CORRUPT, "payload length") for n, x in streams.items() for s in short},
        "64 dimensions of 1": (forged(BUCKETS, shape=(1,) * 64), CORRUPT, "payload length"),
        "2^60 parts of complex values": (forged(LOSSLESS, shape=((1 << 59) + 1,)), CORRUPT, "shape"),
        "0 values, and 2^61 of 8 bytes": (forged(LOSSLESS, shape=(0, 1 << 61)), CORRUPT, "shape"),
        "0 values": (forged(PACKED, shape=(0,)), CORRUPT, "payload length"),
    }


def configurations() -> dict[str, Case]:
    """Configurations that are none, or another codec's, or have what no codec takes."""
    texts = {
        "nothing": b"",
        "no UTF-8": b'{"codec":"error-bounded\xff"}',
        "cut": b'{"codec":"error-bounded"',
        "deep lists": b"[" * 65_000,
        "deep objects": b'{"codec":' * 7000,
        "a list": b"[]",
        "no codec": b"{}",
        "an unknown codec": b'{"abs":1,"codec":"zip"}',
        "another codec": b'{"codec":"lossless"}',
        "a number too long": b'{"abs":' + b"9" * 5000 + b',"codec":"error-bounded"}',
        "infinity": b'{"abs":1e999,"codec":"error-bounded"}',
        "a negative bound": b'{"abs":-1,"codec":"error-bounded"}',
        "another parameter": b'{"abs":1,"bits":4,"codec":"error-bounded"}',
    }
    long = forged(PACKED, configuration_nbytes=0xFFFF)
    padded = json.dumps({"abs": 1e-3, "codec": "error-bounded", "speed": "fast"}).encode()
    padded += b" " * ((1 - len(padded)) % 8)
    return {
        **{f"{n}": (forged(PACKED, configuration=text), CORRUPT, "configuration") for n, text in texts.items()},
        "beyond the end": (long, CORRUPT, "configuration length"),
        "padding": (
            forged(PACKED, configuration=padded, padding=b"\1" * 7),
            CORRUPT,
            "padding: expected zeros after the configuration",
        ),
    }


def payload_lengths() -> dict[str, Case]:
    """Lengths of the payload that are not the stream's, and payloads that are not as long as the array's."""
    length = len(payload_of(PACKED))
    wrong = (0, length - 1, length + 1, *HUGE)
    cut = {name: bytes(payload_of(stream)[:-1]) for name, stream in (("buckets", BUCKETS), ("extra words", EXTRAS))}
    return {
        **{f"{n} bytes": (forged(PACKED, payload_nbytes=n), CORRUPT, "payload length") for n in wrong},
        "buckets, a byte less": (resized(BUCKETS, cut["buckets"]), CORRUPT, "payload length"),
        "buckets, a byte more": (resized(BUCKETS, bytes(payload_of(BUCKETS)) + b"\0"), CORRUPT, "payload length"),
        "groups, no head": (resized(PACKED, bytes(15)), CORRUPT, "payload length"),
        "extra words, a byte less": (resized(EXTRAS, cut["extra words"]), CORRUPT, "directory: ends beyond"),
        "groups, a byte less": (resized(PACKED, bytes(payload_of(PACKED)[:-1])), CORRUPT, "directory: ends beyond"),
        "groups, 4 bytes more": (resized(PACKED, bytes(payload_of(PACKED)) + bytes(4)), CORRUPT, "directory: does not"),
    }


def heads() -> dict[str, Case]:
    """Fields at a payload's start."""

    def with_head(layout: str, offset: int, value: Any) -> bytes:
        payload = payload_of(PACKED)
        struct.pack_into(layout, payload, offset, value)
        return forged(PACKED, payload=bytes(payload))

    bounds = (-1.0, 5e-324, float("nan"), float("inf"))
    return {
        **{f"bound {bound}": (with_head("<d", 0, bound), CORRUPT, "bound") for bound in bounds},
        **{
            f"S {n}": (with_head("<I", 8, n), CORRUPT, "S, chunks per group") for n in (0, 2, (1 << 32) - 1)
        },  # 0 with a predictor alone
        **{f"o {n}": (with_head("<I", 12, n), CORRUPT, "o, bytes per entry") for n in (0, 8, (1 << 32) - 1)},
    }


def predictions() -> dict[str, Case]:
    """Fields at the start of a predicted array's payload."""

    def other(layout: str, offset: int, value: Any) -> bytes:
        payload = payload_of(PREDICTED)
        struct.pack_into(layout, payload, offset, value)
        return forged(PREDICTED, payload=bytes(payload))

    unlike = "prediction: not one of this data type and number of elements"
    return {
        **{f"bound {bound}": (other("<d", 0, bound), CORRUPT, unlike) for bound in (-1.0, 1e-34, math.nan, math.inf)},
        **{f"{n} steps": (other("<B", 12, n), CORRUPT, "steps") for n in (65, 255)},
        "64 steps": (other("<B", 12, 64), CORRUPT, ""),
        **{f"differences {n}": (other("<B", 13, n), CORRUPT, unlike) for n in (64, 128, 255)},
        **{f"scale {n}": (other("<H", 14, n), CORRUPT, unlike) for n in (0, 4097)},
        **{f"axis {a} of {n}": (other("<Q", 16 + 8 * a, n), CORRUPT, unlike) for a in range(4) for n in (0, *HUGE)},
        **{f"{n} bytes of codes": (other("<Q", 48, n), CORRUPT, "codes: longer") for n in HUGE},
        **{f"{n} bytes of exact elements": (other("<Q", 56, n), CORRUPT, "payload length") for n in (1, *HUGE)},
        "a step along a first axis that is not there": (other("<B", 64, 4), CORRUPT, unlike),
        **{f"a step along axis {n}": (other("<B", 64, n), CORRUPT, unlike) for n in (5, 6, 255)},
        "a first axis that is not there": (other("<B", 13, 32), CORRUPT, unlike),
        "a step that is cubic and weighted": (other("<B", 65, 9), CORRUPT, unlike),
        "a step of a seventeenth kind": (other("<B", 65, 16), CORRUPT, unlike),
        "a step along an axis of one slice": (other("<B", 64, 0), CORRUPT, unlike),
        "no room for the header": (
            forged(PREDICTED, payload=bytes(payload_of(PREDICTED)[:63])),
            CORRUPT,
            "payload length",
        ),
        "no room for the steps": (forged(PREDICTED, payload=bytes(payload_of(PREDICTED)[:72])), CORRUPT, "steps"),
    }


def references() -> dict[str, Case]:
    """Fields at the start of a payload with a reference, its parts, and what such a stream may stand for."""

    def other(layout: str, offset: int, value: Any) -> bytes:
        payload = payload_of(REFERENCED)
        struct.pack_into(layout, payload, offset, value)
        return forged(REFERENCED, payload=bytes(payload))

    own = Payload.of(REFERENCED)
    unlike = "delta: not one of this data type and number of elements"
    lengths = HEADER.size - 32
    bounded = {number: own.with_part(number, struct.pack("<d", 1.0) + own.parts[number][8:]) for number in range(4)}
    return {
        "as it was": (own.put_into(REFERENCED), "", ""),
        **{f"bound {bound}": (other("<d", 0, bound), CORRUPT, unlike) for bound in (-1.0, 1e-34, math.nan, math.inf)},
        **{f"hash {n}": (other("<Q", 8, n), "WrongReferenceError", "reference: expected") for n in (0, *HUGE)},
        **{f"way {n}": (other("<B", 16, n), CORRUPT, unlike) for n in (0, 2, 3, 255)},
        **{f"list {n}": (other("<B", 17, n), CORRUPT, unlike) for n in (0, 2, 255)},
        **{f"zero {i}": (other("<B", 18 + i, 1), CORRUPT, unlike) for i in range(6)},
        **{f"{n} codes": (other("<Q", 24, n), CORRUPT, unlike) for n in (226, *HUGE)},
        **{f"{n} exact elements": (other("<Q", 32, n), CORRUPT, unlike) for n in (113, *HUGE)},
        "no codes": (other("<Q", 24, 0), CORRUPT, "parts of the delta: one is missing"),
        "no exact elements": (other("<Q", 32, 0), CORRUPT, "parts of the delta: one is missing"),
        **{
            f"{n} bytes of part {i}": (other("<Q", lengths + 8 * i, n), CORRUPT, "parts of the delta: longer")
            for i in range(4)
            for n in HUGE
        },
        **{
            f"{n} bytes of part {i}": (
                other("<Q", lengths + 8 * i, n),
                CORRUPT,
                "payload length: not that of the delta",
            )
            for i in range(4)
            for n in (0, 1, 8)
        },
        **{
            f"part {i} with a bound": (payload.put_into(REFERENCED), CORRUPT, "bound of a part of the delta: not 0")
            for i, payload in bounded.items()
        },
        "no room for the header": (
            forged(REFERENCED, payload=bytes(payload_of(REFERENCED)[: HEADER.size - 1])),
            CORRUPT,
            "payload length",
        ),
        "no room for the parts": (
            forged(REFERENCED, payload=bytes(payload_of(REFERENCED)[: HEADER.size])),
            CORRUPT,
            "parts of the delta: longer",
        ),
        "codes of exabytes": (forged(EQUAL, shape=(1 << 59,)), "ValueError", "reference: expected the array"),
    }


def directories() -> dict[str, Case]:
    """Directories that are not in order, or do not end where the payload does."""

    def cases(stream: bytes, offset: int, kind: str, count: int) -> dict[str, Case]:
        layout, most = f"<{count}{kind}", (1 << struct.calcsize(f"<{kind}") * 8) - 1
        ends = list(struct.unpack_from(layout, payload_of(stream), offset))

        def other(*changed: int) -> bytes:
            payload = payload_of(stream)
            struct.pack_into(layout, payload, offset, *changed)
            return forged(stream, payload=bytes(payload))

        return {
            "as it was": (other(*ends), "", ""),
            "unsorted": (other(ends[1], ends[0], *ends[2:]), CORRUPT, "directory: not ascending"),
            "reversed": (other(*ends[::-1]), CORRUPT, "directory: not ascending"),
            "overlapping": (other(*ends[:-2], ends[-1] + 1, ends[-1]), CORRUPT, "directory: "),
            "beyond the end": (other(*ends[:-1], most), CORRUPT, "directory: ends beyond"),
            "all beyond the end": (other(*[most] * count), CORRUPT, "directory: ends beyond"),
            "last after the end": (other(*ends[:-1], ends[-1] + 1), CORRUPT, "directory: ends beyond"),
            "last before the end": (other(*ends[:-1], ends[-1] - 1), CORRUPT, "directory: does not end"),
            "zeros": (other(*[0] * count), CORRUPT, "directory: does not end"),
        }

    places = {
        "groups": (GROUPS, 16, "I", 20),
        "extra words": (EXTRAS, 16 + 4 * 4096 * 6 // 8, "Q", 4),  # behind one bucket's three numbers, and the codes
        "coded": (CODED, 8 + 16, "I", 3),  # behind one bucket's two numbers, and the head of the codes
    }
    return {f"{n}: {k}": case for n, place in places.items() for k, case in cases(*place).items()}


def rle_frame(nbytes: int, *, announced: int | None = None, window: int | None = None) -> bytes:
    """A Zstandard frame of zeros in blocks of one byte each (RFC 8878, 3.1.1), or the beginning of one."""
    if window is None:
        window = min(max((nbytes - 1).bit_length(), 17), 27)
    head = (
        b"\x28\xb5\x2f\xfd\xc0"
        + bytes([window - 10 << 3])
        + struct.pack("<Q", nbytes if announced is None else announced)
    )
    sizes = [1 << 17] * (nbytes >> 17) + ([nbytes % (1 << 17)] if nbytes % (1 << 17) else [])
    last = [0] * (len(sizes) - 1) + [1]
    return head + b"".join(
        (size << 3 | 2 | end).to_bytes(3, "little") + b"\0" for size, end in zip(sizes, last, strict=True)
    )


def framed(stream: bytes, content: bytes, nbytes: int, length: int | None = None, **changes: Any) -> bytes:
    """The stream with a frame for a payload of `nbytes`."""
    stored = struct.pack("<Q", len(content) if length is None else length) + content
    return forged(stream, payload=stored, frame=1, payload_nbytes=nbytes, **changes)


def frames() -> dict[str, Case]:
    """Frames of other lengths, windows and contents, and one that a gigabyte would come out of."""
    nbytes = len(payload_of(BUCKETS))
    content = rle_frame(nbytes)
    size = len(content)
    lengths = (0, size - 1, size + 1, *HUGE)
    one = checks.stream_of(np.zeros(1, np.float32), QSGD(bits=8, bucket_size=1 << 40))
    values = 1 << 31
    gigabytes = values + 8  # the payload of so many values of 8 bits in one bucket
    return {
        "as it should be": (framed(BUCKETS, content, nbytes), "", ""),
        **{f"frame length {n}": (framed(BUCKETS, content, nbytes, n), CORRUPT, "frame length") for n in lengths},
        "no length": (forged(BUCKETS, payload=b"", frame=1, payload_nbytes=nbytes), CORRUPT, "frame length"),
        "payload length by one": (framed(BUCKETS, content, nbytes + 1), CORRUPT, "payload length"),
        "payload length 2^63": (framed(BUCKETS, content, 1 << 63), CORRUPT, "payload length"),
        "window 2^28": (framed(BUCKETS, rle_frame(nbytes, window=28), nbytes), CORRUPT, "frame: expected a window"),
        "window 2^41": (framed(BUCKETS, rle_frame(nbytes, window=41), nbytes), CORRUPT, "frame"),
        "announces more": (
            framed(BUCKETS, rle_frame(nbytes, announced=1 << 60), nbytes),
            CORRUPT,
            "frame: expected a content",
        ),
        "announces less": (
            framed(BUCKETS, rle_frame(nbytes, announced=1), nbytes),
            CORRUPT,
            "frame: expected a content",
        ),
        "holds more": (framed(BUCKETS, rle_frame(1 << 20, announced=nbytes), nbytes), CORRUPT, "frame"),
        "holds less": (framed(BUCKETS, rle_frame(100, announced=nbytes), nbytes), CORRUPT, "frame"),
        "more than a frame can hold": (
            framed(PACKED, rle_frame(100, announced=1 << 40), 1 << 40, shape=(1 << 40,)),
            CORRUPT,
            "frame: expected",
        ),
        "more than the array takes": (
            framed(PACKED, rle_frame(1 << 20), 1 << 20),
            CORRUPT,
            "payload length",
        ),
        "gigabytes": (framed(one, rle_frame(gigabytes), gigabytes, shape=(values,)), TOO_LARGE, "max_nbytes"),
        "gigabytes of groups": (
            framed(LOSSLESS, rle_frame(1 << 30), 1 << 30, shape=(values,)),
            TOO_LARGE,
            "max_nbytes",
        ),
    }


FAMILIES: dict[str, Callable[[], dict[str, Case]]] = {
    "header": headers,
    "shape": shapes,
    "configuration": configurations,
    "payload length": payload_lengths,
    "head": heads,
    "prediction": predictions,
    "reference": references,
    "directory": directories,
    "frame": frames,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_forged_field_is_named_before_anything_is_allocated(
    family: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if family == "frame":
        pytest.importorskip("zstandard")
    cases = FAMILIES[family]()
    found = read_in_little_memory({name: stream for name, (stream, _, _) in cases.items()}, tmp_path)
    wrong = {}
    for name, (stream, error, words) in cases.items():
        kind, message, peak = found[name]
        # What is read as it should be, takes its own memory.
        truncated = message.startswith("stream is truncated: ") and f"({words}" in message
        named = message.startswith(words) or truncated
        if kind != error or not named or peak > MOST_PEAK + 20 * len(stream):
            wrong[name] = (error, words, *found[name])
    assert not wrong
    record_property("streams", len(cases))


def read_in_little_memory(streams: dict[str, bytes], folder: Path) -> dict[str, tuple[str, str, int]]:
    """What a process of its own makes of streams: the error's type, its message, and the most bytes held."""
    path = folder / "streams.json"
    encoded = {name: base64.b64encode(stream).decode() for name, stream in streams.items()}
    path.write_text(json.dumps({"streams": encoded, "reference": base64.b64encode(REFERENCE).decode()}))
    room = 1 << 40 if SANITIZED else ROOM
    command = [sys.executable, "-P", str(Path(__file__).parent / "hostile_process.py"), str(path), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    found: dict[str, tuple[str, str, int]] = json.loads(done.stdout)
    return found


def test_the_process_would_notice_what_is_allocated(tmp_path: Path) -> None:
    """A stream that is as large as it says does not fit."""
    if sys.platform != "linux" or SANITIZED:
        pytest.skip("the process's memory is not limited")
    stream = arrcomp.compress(np.zeros(1 << 27, np.uint8)).to_bytes()
    found = read_in_little_memory({"fits": stream}, tmp_path)["fits"]
    assert found[0] == ""
    assert found[2] >= 1 << 27
    stream = arrcomp.compress(np.zeros(1 << 29, np.uint8)).to_bytes()
    assert read_in_little_memory({"does not": stream}, tmp_path)["does not"][0] == "MemoryError"


def test_newer_minor_versions_are_tried() -> None:
    for minor in (2, 255):
        checks.check_same_bits(checks.array_of(forged(PACKED, minor=minor)), checks.array_of(PACKED))


def test_faults_that_are_found_late_name_the_payload() -> None:
    payload = payload_of(PACKED)
    payload[24] |= 12  # a coder that there is none of
    with pytest.raises(arrcomp.CorruptStreamError, match=r"^payload: expected one of .*, got other bytes"):
        checks.array_of(forged(PACKED, payload=bytes(payload)))


@pytest.mark.parametrize("stream", [PACKED, EXTRAS, CODED], ids=["groups", "extra words", "coded"])
def test_parts_name_the_directory(stream: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.arrcomp"
    path.write_bytes(resized(stream, bytes(payload_of(stream)) + bytes(4)))
    with arrcomp.open_file(path) as file, pytest.raises(arrcomp.CorruptStreamError, match="directory: does not end"):
        file.slice("arr_0")[:5]


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_frameworks_name_the_directory(framework: str) -> None:
    library = pytest.importorskip("jax.numpy" if framework == "jax" else framework)
    c = arrcomp.from_bytes(resized(PACKED, bytes(payload_of(PACKED)) + bytes(4)))
    with pytest.raises(arrcomp.CorruptStreamError, match="directory: does not end"):
        arrcomp.decompress(c, like=library.zeros(1))


def test_the_streams_that_are_forged_are_sound() -> None:
    for stream in (PACKED, BUCKETS, EXTRAS, GROUPS, CODED, LOSSLESS):
        assert forged(stream) == stream
        checks.array_of(stream)
    assert arrcomp.from_bytes(PACKED).codec == ErrorBounded(abs=1e-3, speed="fast")
