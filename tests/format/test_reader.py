"""The independent reader and arrcomp: both read the same from a stream that nobody wrote, or both refuse it."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
import golden_inputs
import reference_reader
from arrcomp import QSGD, S2FP8, BaseDelta, Codebook, Codec, ErrorBounded, FloatFormat, Lossless, SmaQ
from small_streams import REFERENCE, SHAPE_OFFSET, SMALL, assert_reader_agrees

from ..codecs import test_modes
from .test_corrupt_configurations import reconfigured

PAGE = Path(__file__).resolve().parents[2] / "native" / "FORMAT.md"
DUMP_LINE = re.compile(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)$", re.MULTILINE)
ROW = re.compile(r"^\| ([0-9a-f]{2}) \| (`[0-9a-f ]+`[^|]*) \|", re.MULTILINE)
LARGEST_ALTERED = 12_000  # bytes of the golden streams that are altered: those of many chunks take long to read

Record = Callable[[str, object], None]


def golden_streams() -> dict[str, bytes]:
    """The golden streams without a frame."""
    return {
        name: golden_inputs.path_of(name).read_bytes()
        for name, golden in golden_inputs.GOLDEN.items()
        if golden.zstd_level is None
    }


ALTERED = [
    name
    for name, stream in golden_streams().items()
    if len(stream) < LARGEST_ALTERED and arrcomp.from_bytes(stream).spec.elements < 4 * LARGEST_ALTERED
]


# --- the format's page


def test_the_page_takes_apart_what_is_written() -> None:
    array = np.array([0, 1, 2.5, np.nan, -1], np.float32)
    array.view(np.uint32)[3] = 0x7FC00000
    lines = DUMP_LINE.findall(PAGE.read_text(encoding="utf-8"))
    stream = bytes.fromhex("".join(line for _, line in lines))
    assert [int(offset, 16) for offset, _ in lines] == list(range(0, len(stream), 16))
    assert stream == checks.stream_of(array, ErrorBounded(abs=0.25, speed="fast"))
    checks.check_same_bits(reference_reader.read_stream(stream), array)


def test_the_fields_on_the_page_are_where_it_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    stream = bytes.fromhex("".join(line for _, line in DUMP_LINE.findall(text)))
    rows = [(int(offset, 16), field) for offset, field in ROW.findall(text)]
    ends = [offset for offset, _ in rows[1:]] + [len(stream)]
    assert len(rows) > 20
    for (offset, field), end in zip(rows, ends, strict=True):
        shown = bytes.fromhex(field.split("`")[1])
        assert stream[offset:].startswith(shown), hex(offset)
        if not any(word in field for word in (" to ", "then")):  # the row leaves only zeros out
            assert not any(stream[offset + len(shown) : end]), hex(offset)


# --- golden streams


def test_every_codec_has_a_golden_stream_of_every_dtype() -> None:
    specs = [arrcomp.from_bytes(stream).spec for stream in golden_streams().values()]
    found = {(type(spec.codec), spec.dtype.name) for spec in specs}
    assert found == {(c, name) for c in arrcomp.available_codecs().values() for name in c.dtypes or checks.DTYPES}
    assert {type(spec.codec) for spec in specs if spec.shape == ()} == set(arrcomp.available_codecs().values())
    assert {type(spec.codec) for spec in specs if spec.elements == 0} == set(arrcomp.available_codecs().values())


def test_golden_streams_have_every_choice_of_a_chunk() -> None:
    choices: Counter[str] = Counter()
    lines: set[str | int] = set()
    for stream in golden_streams().values():
        codec = arrcomp.from_bytes(stream).codec
        if isinstance(codec, Lossless | ErrorBounded):
            for chunk in reference_reader.describe(stream):
                choices.update(test_modes.choices_of(chunk))
        elif isinstance(codec, BaseDelta):
            for group in reference_reader.describe_lines(stream):
                lines |= {group.kind, *(line.mode for line in group.lines)}
                lines |= {name for name in ("sign_last", "masked") if getattr(group, name)}
    assert set(choices) >= test_modes.EVERY_CHOICE
    assert lines == {"raw", "lines", "zero", "sign_last", "masked", 0, 1, 2, 3, 4, 7}


# --- forged streams


def alter(stream: bytes, first: int, last: int, count: int, seed: int) -> Iterator[bytes]:
    """The stream with one to three of the bytes from `first` to `last` changed, in `count` ways."""
    rng = np.random.default_rng(seed)
    for _ in range(count if first < last else 0):
        body = bytearray(stream[: -checks.CHECKSUM_NBYTES])
        near = min(last, first + 64) if rng.integers(2) else last  # most fields are in front
        for position in rng.integers(first, near, rng.integers(1, 4)):
            body[position] = int(rng.choice([0, 1, 2, 127, 128, 255, int(rng.integers(256))]))
        yield checks.seal(body)


def reference_of(name: str) -> bytes:
    """The bytes of a golden stream's reference."""
    make = golden_inputs.GOLDEN[name].make_reference
    return REFERENCE if make is None else make().tobytes()


def compare(streams: Iterator[bytes], record: Record, reference: bytes = REFERENCE) -> None:
    """Compare the two readers on each stream, and record how many there were, and how many of them both could read."""
    were_read = [assert_reader_agrees(stream, reference) for stream in streams]
    record("forged", len(were_read))
    record("of them read", sum(were_read))


@pytest.mark.parametrize("name", ALTERED)
def test_altered_payloads(name: str, record_property: Record) -> None:
    stream = golden_inputs.path_of(name).read_bytes()
    compare(alter(stream, *checks.payload_span(stream), count=25, seed=1), record_property, reference_of(name))


@pytest.mark.parametrize("name", ALTERED)
def test_altered_headers(name: str, record_property: Record) -> None:
    stream = golden_inputs.path_of(name).read_bytes()
    compare(alter(stream, 0, checks.payload_span(stream)[0], count=25, seed=2), record_property, reference_of(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALTERED)
def test_many_altered_streams(name: str, record_property: Record) -> None:
    stream = golden_inputs.path_of(name).read_bytes()
    start, end = checks.payload_span(stream)
    compare(alter(stream, start, end, count=500, seed=3), record_property, reference_of(name))
    compare(alter(stream, 0, start, count=200, seed=4), record_property, reference_of(name))


# Numbers that a bucket may hold, though no writer makes them.
STORED = [0.0, -0.0, 1.0, -1.5, 1e-3, 65504, 6e-8, 1e-38, -1e-40, 1e-45, 3e38, -3.4e38, 7e37, np.nan, np.inf, -np.inf]
WIDE = [5e-324, 2e-308, 1.7e308, -1.7e308, 4e307, 1e-200]
BUCKETS: list[Codec] = [
    *(QSGD(bits=bits, bucket_size=32, norm=norm) for bits in (1, 2, 4, 8) for norm in ("minmax", "linf")),
    *(SmaQ(8, 8, block_size=32, min_size=0, overflow=overflow) for overflow in ("clamp", "extend")),
    SmaQ(3, 3, block_size=32, min_size=0, all_positive=True, preserve_zeros=False),
    *(FloatFormat(name, scaling="bucket", bucket_size=32) for name in ("fp8_e5m2", "fp8_e4m3", "fp8_e4m3fnuz", "e8m7")),
    *(FloatFormat(name, overflow="infinity") for name in ("fp8_e5m2", "fp8_e4m3", "fp16", "bf16", "e8m1")),
    *(FloatFormat(name) for name in ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp4", "mxint8", "nvfp4")),
    S2FP8(bucket_size=32),
    *(Codebook([-0.5, 0.5], [-3e38, 0.0, 1.0], scaling=scaling, bucket_size=32) for scaling in ("absmax", None)),
]


@pytest.mark.parametrize("codec", BUCKETS, ids=repr)
@pytest.mark.parametrize("dtype", checks.FLOATS)
def test_any_codes_with_any_stored_numbers(codec: Codec, dtype: str, record_property: Record) -> None:
    def forged() -> Iterator[bytes]:
        rng = np.random.default_rng(8)
        array = np.zeros(2048, checks.numpy_dtype(dtype))
        stream = checks.stream_of(array, codec)
        start, end = checks.payload_span(stream)
        for _ in range(8):
            numbers = rng.choice([*STORED, *WIDE] if dtype == "float64" else STORED, 600)
            stored = numbers.astype(np.float64 if dtype == "float64" else np.float32).tobytes()
            payload = bytearray(rng.integers(0, 256, end - start, dtype=np.uint8).tobytes())
            directory = 8 if isinstance(codec, SmaQ) else 0
            payload[: min(len(stored), 64 * array.itemsize)] = stored[: 64 * array.itemsize]
            payload[len(payload) - directory :] = bytes(directory)
            yield checks.seal(stream[:start] + bytes(payload)[: end - start])

    compare(forged(), record_property)


@pytest.mark.parametrize("name", ["packed", "predictor, float64", "exponents", "lines", "long escapes", "empty"])
def test_any_bounds(name: str, record_property: Record) -> None:
    def forged() -> Iterator[bytes]:
        stream = SMALL[name]()
        start, end = checks.payload_span(stream)
        extremes = [2.0**-126, 2.0**-127, 2.0**-1022, 2.0**-1030, 3.4028235e38, 1e39, 1e300, np.inf, np.nan]
        for bound in (0.0, -0.0, 1.0, -1.0, *extremes):
            body = bytearray(stream[:end])
            struct.pack_into("<d", body, start, bound)
            yield checks.seal(body)

    compare(forged(), record_property)


@pytest.mark.parametrize("name", SMALL)
def test_other_dtypes_and_shapes(name: str, record_property: Record) -> None:
    def forged() -> Iterator[bytes]:
        stream = SMALL[name]()
        start, end = checks.payload_span(stream)
        rest = stream[SHAPE_OFFSET + 8 * stream[8] : start]
        shape = stream[SHAPE_OFFSET : SHAPE_OFFSET + 8 * stream[8]]
        huge = [(2**59 - 1,), (2**59,), (2**60 - 1,), (2**30, 2**29), (2**61, 0), (0, 2**58, 2), ()]
        shapes = [shape, *(struct.pack(f"<{len(sizes)}Q", *sizes) for sizes in huge)]
        for dtype in range(30):
            for sizes in shapes if dtype in (3, 12, 13, 14, 15) else shapes[:1]:
                head = bytearray(stream[:SHAPE_OFFSET])
                head[7:9] = dtype, len(sizes) // 8
                yield checks.seal(bytes(head) + sizes + rest + stream[start:end])

    compare(forged(), record_property)


ODD_VALUES: list[Any] = [None, True, 0, 1, 4, 4.0, 0.5, -1, 64, 65, 1e39, 2**70, {}, [], [1], [0.5, None]]
ODD_VALUES += ["", "nearest", "tensor", "reference"]
KEYS = (
    *("abs", "all_positive", "bases", "bits", "block_size", "borders", "bucket_size"),
    *("codec", "coding", "delta_bits", "drop_bits", "format", "levels", "main_bits"),
    *("main_threshold", "mean", "min_size", "norm", "num_samples", "outlier_bits", "outlier_threshold"),
    *("overflow", "pointwise", "predictor", "preserve_zeros", "rel", "rounding", "scale_rule", "scaling"),
    *("seed", "skip_incomplete", "speed", "statistics", "std", "table"),
)


@pytest.mark.parametrize("name", [name for name in SMALL if "empty" not in name and name != "constant"])
def test_any_values_in_configurations(name: str, record_property: Record) -> None:
    def forged() -> Iterator[bytes]:
        stream = SMALL[name]()
        config = arrcomp.from_bytes(stream).codec.config()
        for key in KEYS:
            for value in ODD_VALUES:
                yield reconfigured(stream, json.dumps(config | {key: value}).encode())
            without: dict[str, Any] = {other: config[other] for other in config if other != key}
            yield reconfigured(stream, json.dumps(without).encode())

    compare(forged(), record_property)


@pytest.mark.parametrize(
    "text",
    [
        b' {"codec" : "qsgd" } ',
        b'\xef\xbb\xbf{"codec":"qsgd"}',
        b'{"codec":"qsgd","bits":5,"bits":4}',
        b'{"codec":"qsgd","bits":4,"bits":5}',
        b'{"codec":"qsgd","bits":4e0}',
        b'{"codec":"qsgd","bits":NaN}',
        b'{"codec":"qsgd","more":NaN}',
        b'{"codec":"\\u0071sgd"}',
        b'{"codec":"qsgd"}\0',
        b'{"codec":"qsgd"',
    ],
)
def test_any_texts_of_configurations(text: bytes, record_property: Record) -> None:
    compare(iter([reconfigured(SMALL["buckets"](), text)]), record_property)


@pytest.mark.parametrize(
    "levels", [[-0.0, 0.5, 1], [1e-50, 0.5, 1], [0, 1, 2**60 + 2**36 + 1], [0.1, 0.3, 16777217], [3.4028236e38, 0, 1]]
)
def test_any_levels(levels: list[float], record_property: Record) -> None:
    text = json.dumps({"borders": [-1, 0.2], "bucket_size": 100, "codec": "codebook", "levels": levels}).encode()
    compare(iter([reconfigured(SMALL["codebook"](), text)]), record_property)
