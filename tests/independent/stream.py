"""Section 1: the stream around a payload."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from . import codebook, float_format, qsgd, s2fp8, smaq
from .base_delta import read_lines
from .buckets import read_buckets
from .config import Parameters, parse
from .dtypes import DTYPES, Dtype
from .groups import check_length, read_payload
from .source import U64, CorruptStreamError, Source, UnsupportedStreamError, need

CODECS = {
    1: "lossless",
    2: "error-bounded",
    3: "qsgd",
    4: "smaq",
    5: "float-format",
    6: "s2fp8",
    7: "base-delta",
    8: "codebook",
}
BUCKETS = {3: qsgd.layout, 4: smaq.layout, 5: float_format.layout, 6: s2fp8.layout, 8: codebook.layout}
BUCKET_DTYPES = ("float16", "bfloat16", "float32", "float64")


def read(data: bytes) -> NDArray[Any]:
    """The array of a stream; raises CorruptStreamError or UnsupportedStreamError, both ValueErrors."""
    dtype, shape, bits = read_bits(data)
    return bits.astype(f"u{dtype.bits // 8}").view(dtype.numpy).reshape(shape)


def read_bits(data: bytes) -> tuple[Dtype, tuple[int, ...], U64]:
    """Data type and shape of the array, and the bits of its elements in order."""
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
    need(math.prod(shape) < 2**60, "shape")
    array_bytes = dtype.bits // 8 * dtype.parts
    need(math.prod(size for size in shape if size) * array_bytes < 2**63, "shape")
    config = parse(source.take(config_size))
    need(config.get("codec") == CODECS[codec], "codec of the configuration")
    need(not any(source.align(8)), "zeros behind the configuration")
    count = math.prod(shape)
    if framed:
        need(payload_size <= 2 * count * array_bytes + 1024, "length of the payload in a frame")
        payload = unframed(source.take(source.number(8)), payload_size)
    else:
        payload = source.take(payload_size)
    need(source.left == 8, "bytes after the payload")
    return dtype, shape, read_elements(codec, Parameters(config), dtype, count * dtype.parts, payload)


def read_elements(codec: int, config: Parameters, dtype: Dtype, n: int, payload: bytes) -> U64:
    """The bits of a payload's n elements."""
    if codec in BUCKETS:
        need(dtype.name in BUCKET_DTYPES, "dtype")
        return read_buckets(payload, dtype, n, BUCKETS[codec](config, dtype, n))
    check_length(n, len(payload))
    return read_lines(payload, dtype, n) if codec == 7 else read_payload(payload, dtype, n)


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
