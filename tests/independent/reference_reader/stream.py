"""Section 1: the stream around a payload."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .base_delta import LineChunk, read_line_group
from .bucketed import LAYOUTS, NAMES
from .buckets import Layout, read_buckets
from .chunks import Chunk
from .config import Parameters, check_base_delta, check_groups, parse
from .dtypes import DTYPES, Dtype
from .groups import joined, read_chunks, read_group, read_payload
from .predicted import GapMask, Prediction, has_unspecified_codes, is_predicted, read_parts, read_predicted
from .referenced import Comparison, has_unspecified_elements, read_referenced
from .referenced import read_parts as read_referenced_parts
from .source import U64, CorruptStreamError, Source, UnsupportedStreamError, need

CODECS = {1: "lossless", 2: "error-bounded", 7: "base-delta"} | NAMES
GROUPED = ("lossless", "error-bounded")
DTYPES_OF = dict.fromkeys([*LAYOUTS, "error-bounded"], ("float16", "bfloat16", "float32", "float64"))


def read(data: bytes, reference: NDArray[Any] | bytes | None = None) -> NDArray[Any]:
    """The array of a stream; raises CorruptStreamError, UnsupportedStreamError or WrongReferenceError.

    The reference is an array, or its bytes in C order; a stream that needs none ignores it. All these errors are
    ValueErrors.
    """
    stream = take_apart(data)
    bits = read_elements(stream, reference)
    return bits.astype(f"u{stream.dtype.bits // 8}").view(stream.dtype.numpy).reshape(stream.shape)


@dataclass(frozen=True)
class Stream:
    """A stream taken apart: n is the number of elements that the payload codes, `layout` as in `checked_layout`.

    `against` says whether the payload codes the array against a reference.
    """

    codec: str
    dtype: Dtype
    shape: tuple[int, ...]
    layout: Layout | None
    n: int
    payload: bytes
    against: bool

    @property
    def predicted(self) -> bool:
        """Whether the payload is that of a predicted array."""
        return not self.against and is_predicted(self.payload, self.n)


def describe(data: bytes) -> list[Chunk]:
    """What the writer chose for each chunk of a stream of codecs 1 and 2; raises as `read`.

    Of a predicted array these are the chunks of its codes, then those of its exact elements; of one with a reference
    those of all parts, in order.
    """
    stream = take_apart(data)
    if stream.against:
        _, *found = read_referenced_parts(stream.payload, stream.dtype, stream.n)
        return [chunk for part in found for chunk, _ in part]
    if stream.predicted:
        parts = read_parts(stream.payload, stream.dtype, stream.n)
        return [chunk for chunk, _ in (*parts.codes, *parts.exact)]
    return [chunk for chunk, _ in read_chunks(stream.payload, stream.dtype, stream.n, read_group)]


def describe_prediction(data: bytes) -> Prediction | None:
    """How the array of a stream of codecs 1 and 2 is predicted, or None if it is not; raises as `read`."""
    stream = take_apart(data)
    if not stream.predicted:
        return None
    return read_parts(stream.payload, stream.dtype, stream.n).prediction


def describe_mask(data: bytes) -> GapMask | None:
    """The mask of a predicted array of a stream of codecs 1 and 2, or None if there is none; raises as `read`."""
    stream = take_apart(data)
    return read_parts(stream.payload, stream.dtype, stream.n).mask if stream.predicted else None


def describe_comparison(data: bytes) -> Comparison | None:
    """How the array of a stream of codecs 1 and 2 is coded against a reference, or None; raises as `read`."""
    stream = take_apart(data)
    return read_referenced_parts(stream.payload, stream.dtype, stream.n).comparison if stream.against else None


def reference_nbytes(data: bytes) -> int:
    """How many bytes the reference of a stream has, 0 if it needs none; raises as `read`."""
    stream = take_apart(data)
    return stream.n * stream.dtype.bits // 8 if stream.against else 0


def is_specified(data: bytes) -> bool:
    """Whether the page says what all elements of a stream are: not of large quantized ones and multiples."""
    stream = take_apart(data)
    if stream.dtype.bits < 64 or stream.codec not in GROUPED:
        return True
    if stream.against:
        return not has_unspecified_elements(
            read_referenced_parts(stream.payload, stream.dtype, stream.n), stream.dtype, stream.n
        )
    prediction = describe_prediction(data)
    if prediction and not prediction.column_axes:
        return not has_unspecified_codes(read_parts(stream.payload, stream.dtype, stream.n), stream.dtype)
    return not any(chunk.kind in ("quantized", "multiples") for chunk in describe(data))


def describe_lines(data: bytes) -> list[LineChunk]:
    """What the writer chose for each chunk of a stream of codec 7; raises as `read`."""
    stream = take_apart(data)
    return [chunk for chunk, _ in read_chunks(stream.payload, stream.dtype, stream.n, read_line_group, bounded=False)]


def take_apart(data: bytes) -> Stream:
    """The parts of a stream."""
    source = Source(data)
    need(source.take(4) == b"ARRC", "magic")
    if source.number(1) > 0:
        raise UnsupportedStreamError("newer major version")
    source.number(1)
    codec, dtype_id, dimensions, framed = source.take(4)
    config_size, reserved, payload_size = source.number(2), source.number(4), source.number(8)
    need(data[-8:] == checksum(data[:-8]), "checksum")
    if codec not in CODECS:
        raise UnsupportedStreamError(f"codec {codec}")
    need(dtype_id in DTYPES and dimensions <= 64 and framed <= 1 and reserved == 0, "header")
    dtype = DTYPES[dtype_id]
    shape = tuple(source.words(8, dimensions).tolist())
    need(math.prod(shape) * dtype.parts < 2**60, "shape")
    array_bytes = dtype.bits // 8 * dtype.parts
    need(math.prod(size for size in shape if size) * array_bytes < 2**63, "shape")
    config = parse(source.take(config_size))
    need(config.get("codec") == CODECS[codec], "codec of the configuration")
    need(not any(source.align(8)), "zeros behind the configuration")
    count = math.prod(shape)
    layout = checked_layout(CODECS[codec], Parameters(config), dtype, count * dtype.parts)
    if framed:
        need(payload_size <= 2 * count * array_bytes + 1024, "length of the payload in a frame")
        payload = unframed(source.take(source.number(8)), payload_size)
    else:
        payload = source.take(payload_size)
    need(source.left == 8, "bytes after the payload")
    predictor = config.get("predictor") if CODECS[codec] in GROUPED else None
    stream = Stream(CODECS[codec], dtype, shape, layout, count * dtype.parts, payload, predictor == "reference")
    if stream.codec in GROUPED and predictor is None:
        need(not stream.predicted, "a predictor for a predicted array")
    return stream


def read_elements(stream: Stream, reference: NDArray[Any] | bytes | None) -> U64:
    """The bits of a stream's elements."""
    if stream.against:
        return read_referenced(stream.payload, stream.dtype, stream.n, reference_bytes(stream, reference))
    if stream.layout:
        return read_buckets(stream.payload, stream.dtype, stream.n, stream.layout)
    if stream.codec == "base-delta":
        return joined(read_chunks(stream.payload, stream.dtype, stream.n, read_line_group, bounded=False))
    if stream.predicted:
        return read_predicted(stream.payload, stream.dtype, stream.n)
    return read_payload(stream.payload, stream.dtype, stream.n)


def reference_bytes(stream: Stream, reference: NDArray[Any] | bytes | None) -> bytes:
    """The bytes of the reference of a stream; raises ValueError if it is none, or not of the array's size."""
    expected = stream.n * stream.dtype.bits // 8
    given = b"" if reference is None else reference if isinstance(reference, bytes) else reference.tobytes()
    if reference is None or len(given) != expected:
        raise ValueError(f"reference: expected {expected} bytes, got {len(given)}")
    return given


def checked_layout(codec: str, config: Parameters, dtype: Dtype, n: int) -> Layout | None:
    """Check the configuration; returns what it says of the payload of a codec of section 5."""
    need(dtype.name in DTYPES_OF.get(codec, (dtype.name,)), "dtype")
    layout = None
    if codec in LAYOUTS:
        layout = LAYOUTS[codec](config, dtype, n)
    elif codec == "base-delta":
        check_base_delta(config, dtype)
    else:
        check_groups(config, codec)
    config.finish()
    return layout


def checksum(data: bytes) -> bytes:
    """XXH3-64 with seed 0, as it stands in a stream."""
    import xxhash

    return xxhash.xxh3_64_intdigest(data).to_bytes(8, "little")


def unframed(frame: bytes, size: int) -> bytes:
    """The content of a Zstandard frame, section 1.1."""
    import zstandard

    need(size <= len(frame) << 15 and len(frame) < size, "length of the frame")
    need(frame[:4] == zstandard.FRAME_HEADER, "frame")
    try:
        said = zstandard.get_frame_parameters(frame)
        need(said.content_size == size and said.dict_id == 0 and said.window_size <= 2**27, "header of the frame")
        decoder = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
        content = decoder.decompress(frame)
    except zstandard.ZstdError as error:
        raise CorruptStreamError("frame") from error
    need(decoder.eof and not decoder.unused_data and len(content) == size, "frame")
    return content
