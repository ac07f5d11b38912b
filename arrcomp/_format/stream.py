"""The stream: header, payload and checksum (FORMAT.md, section 1). The only Python code that parses untrusted bytes."""

import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import xxhash

from .. import _dtypes
from .._arguments import shown, wrong_value
from ..errors import CorruptStreamError, FormatVersionError

MAGIC = b"ARRC"
MAJOR_VERSION = 0
MINOR_VERSION = 1
VERSION = f"{MAJOR_VERSION}.{MINOR_VERSION}"

# magic, major, minor, codec, dtype, dimensions, frame, configuration's length, zero, payload's length
_FIXED = struct.Struct("<4s6BHIQ")
_FRAME_LENGTH = struct.Struct("<Q")
FRAME_LENGTH_NBYTES = _FRAME_LENGTH.size  # bytes before a frame in a stream
_NO_FRAME, _ZSTANDARD = 0, 1
_CHECKSUM_NBYTES = 8


@dataclass(frozen=True)
class Header:
    """A stream's description of its payload: the codec's number and configuration are not checked here."""

    codec_id: int
    dtype: _dtypes.DType
    shape: tuple[int, ...]
    configuration: Mapping[str, Any]


@dataclass(frozen=True)
class Body:
    """A payload of `nbytes` in a stream: itself, or if `framed` the Zstandard frame around it, not checked here."""

    nbytes: int
    data: memoryview
    framed: bool


def pack(header: Header, body: Body) -> list[bytes | memoryview]:
    """A stream, as buffers to be written one after the other; raises ValueError where it is too large."""
    packed = pack_header(header, body.nbytes, body.data.nbytes if body.framed else None)
    return [packed, body.data, checksum(packed, body.data)]


def stream_nbytes(header: Header, payload_nbytes: int) -> int:
    """Length of the whole stream, without a frame."""
    return len(pack_header(header, payload_nbytes)) + payload_nbytes + _CHECKSUM_NBYTES


def pack_header(header: Header, payload_nbytes: int, frame_nbytes: int | None = None) -> bytes:
    """The bytes of a stream before its payload, or before its frame of this length."""
    configuration = json.dumps(header.configuration, sort_keys=True, separators=(",", ":")).encode()
    check_writable(header.shape, header.dtype)
    if len(configuration) > 0xFFFF:
        raise ValueError(f"codec: expected a configuration of at most 65535 bytes, got {len(configuration)}")
    frame = _NO_FRAME if frame_nbytes is None else _ZSTANDARD
    fixed = _FIXED.pack(
        MAGIC, MAJOR_VERSION, MINOR_VERSION, header.codec_id, header.dtype.id, len(header.shape), frame,
        len(configuration), 0, payload_nbytes,
    )  # fmt: skip
    packed = fixed + struct.pack(f"<{len(header.shape)}Q", *header.shape) + configuration
    packed += bytes(-len(packed) % 8)
    return packed if frame_nbytes is None else packed + _FRAME_LENGTH.pack(frame_nbytes)


def checksum(*buffers: bytes | memoryview) -> bytes:
    """XXH3-64 (seed 0) of the concatenated buffers, little-endian."""
    return checksum_of(buffers)


def checksum_of(buffers: Iterable[bytes | memoryview]) -> bytes:
    """`checksum` of buffers of which one is in memory at a time."""
    state = xxhash.xxh3_64()
    for buffer in buffers:
        state.update(buffer)
    return state.intdigest().to_bytes(_CHECKSUM_NBYTES, "little")


def parse(data: memoryview, *, check: bool = True) -> tuple[Header, Body]:
    """Parse an untrusted stream of one-dimensional unsigned bytes.

    Without `check` the checksum is not checked: only the header and a frame's length are read. The caller checks the
    payload's length by the codec, and a frame's content. Raises FormatVersionError for a newer major format version,
    CorruptStreamError for all else.
    """
    if data[:4] != MAGIC[: len(data)]:
        got = f"{bytes(data[:4])!r}; these bytes are not an arrcomp stream"
        raise CorruptStreamError(f"magic: expected {MAGIC!r}, got {got}")
    _check_length("header", _FIXED.size + _CHECKSUM_NBYTES, len(data))
    fields = _FIXED.unpack_from(data)
    _, major, minor, codec_id, dtype_id, dimensions, frame, configuration_nbytes, zero32, payload_nbytes = fields
    if major > MAJOR_VERSION:
        got = f"{major}.{minor}; a newer arrcomp reads it"
        raise FormatVersionError(f"format version: expected at most {VERSION}, got {got}")
    header_end = _header_end(len(data), dimensions, configuration_nbytes)
    body = _body(data, header_end, frame, payload_nbytes)
    if check and checksum(data[:-_CHECKSUM_NBYTES]) != data[-_CHECKSUM_NBYTES:]:
        raise CorruptStreamError("checksum: expected that of these bytes, got another one; the stream was altered")
    if zero32:
        raise CorruptStreamError(f"reserved field: expected 0, got {zero32}")
    dtype = _dtypes.by_id(dtype_id)
    if dtype is None:
        raise CorruptStreamError(f"dtype id: expected a known one, got {dtype_id}")
    shape = struct.unpack_from(f"<{dimensions}Q", data, _FIXED.size)
    configuration_start = _FIXED.size + 8 * dimensions
    configuration_end = configuration_start + configuration_nbytes
    if any(data[configuration_end:header_end]):
        raise CorruptStreamError("padding: expected zeros after the configuration, got other bytes")
    check_shape(shape, dtype)
    return Header(codec_id, dtype, shape, _configuration(data[configuration_start:configuration_end])), body


def stated_nbytes(head: memoryview) -> int | None:
    """The length that the header of a stream states, from its first bytes, which are not checked.

    None if they do not have the whole header, or if a frame follows it.
    """
    if len(head) < _FIXED.size:
        return None
    *_, dimensions, frame, configuration_nbytes, _, payload_nbytes = _FIXED.unpack_from(head)
    start = _FIXED.size + 8 * dimensions + configuration_nbytes
    start += -start % 8
    return None if frame != _NO_FRAME or start > len(head) else int(start + payload_nbytes + _CHECKSUM_NBYTES)


def _header_end(nbytes: int, dimensions: int, configuration_nbytes: int) -> int:
    """The offset after the configuration's padding, in a stream of `nbytes`."""
    if dimensions > _dtypes.MAX_DIMENSIONS:
        raise CorruptStreamError(f"number of dimensions: expected at most {_dtypes.MAX_DIMENSIONS}, got {dimensions}")
    sizes_end = _FIXED.size + 8 * dimensions
    _check_length(f"shape of {dimensions} dimensions", sizes_end + _CHECKSUM_NBYTES, nbytes)
    packed = sizes_end + configuration_nbytes
    end = packed + -packed % 8
    _check_length(f"configuration length {configuration_nbytes}", end + _CHECKSUM_NBYTES, nbytes)
    return end


def _body(data: memoryview, start: int, frame: int, payload_nbytes: int) -> Body:
    """The payload at offset `start`. All lengths must match the stream exactly."""
    field, stored = "payload length", payload_nbytes
    if frame == _ZSTANDARD:
        field = "frame length"
        _check_length(field, start + FRAME_LENGTH_NBYTES + _CHECKSUM_NBYTES, len(data))
        (stored,) = _FRAME_LENGTH.unpack_from(data, start)
        start += FRAME_LENGTH_NBYTES
    elif frame != _NO_FRAME:
        raise CorruptStreamError(f"frame: expected 0 (none) or 1 (Zstandard), got {frame}")
    end = start + stored + _CHECKSUM_NBYTES
    _check_length(f"{field} {stored}", end, len(data))
    if end < len(data):
        excess = f"{len(data) - end} more after the checksum"
        raise CorruptStreamError(f"{field} {stored}: expected a stream of {end} bytes, got {excess}")
    return Body(payload_nbytes, data[start : start + stored], frame == _ZSTANDARD)


def _check_length(field: str, least: int, nbytes: int) -> None:
    if least > nbytes:
        raise CorruptStreamError(f"stream is truncated: got {nbytes} bytes, expected at least {least} ({field})")


def _configuration(text: memoryview) -> dict[str, Any]:
    try:
        configuration = json.loads(bytes(text).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CorruptStreamError(f"configuration: expected JSON in UTF-8, got {type(error).__name__}") from None
    if not isinstance(configuration, dict):
        raise CorruptStreamError(f"configuration: expected a JSON object, got {type(configuration).__name__}")
    return configuration


def check_writable(shape: tuple[int, ...], dtype: _dtypes.DType) -> None:
    """Raise ValueError unless a stream may have this shape, so that what is written can be read."""
    if not is_writable(shape, dtype):
        expected = f"at most {_dtypes.MAX_DIMENSIONS} dimensions and fewer than 2^60 values (complex: 2^59)"
        raise wrong_value("shape", f"{expected}, and without sizes of 0 fewer than 2^63 bytes", shape)


def is_writable(shape: tuple[int, ...], dtype: _dtypes.DType) -> bool:
    """Whether a stream may have this shape."""
    return len(shape) <= _dtypes.MAX_DIMENSIONS and not _is_too_large(shape, dtype)


def check_shape(shape: tuple[int, ...], dtype: _dtypes.DType) -> None:
    """Raise CorruptStreamError if the shape, without negative sizes, is too large for an array."""
    if _is_too_large(shape, dtype):
        raise CorruptStreamError(
            f"shape: expected that of an array of {dtype.name}, got {shown(shape)}, which is too large"
        )


def _is_too_large(shape: tuple[int, ...], dtype: _dtypes.DType) -> bool:
    # A size of 0 must not hide other sizes that are too large.
    span = math.prod(max(size, 1) for size in shape) * dtype.itemsize
    return math.prod(shape) * dtype.parts >= _dtypes.MAX_VALUES or span >= 1 << 63
