"""The stream: header, payload and checksum (FORMAT.md, section 1). The only Python code that parses hostile bytes."""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import xxhash

from .. import _dtypes
from ..errors import CorruptStreamError, FormatVersionError

MAGIC = b"ARRC"
MAJOR_VERSION = 0
MINOR_VERSION = 1
VERSION = f"{MAJOR_VERSION}.{MINOR_VERSION}"

# magic, major, minor, codec, dtype, dimensions, frame, configuration's length, zero, payload's length
_FIXED = struct.Struct("<4s6BHIQ")
_FRAME_LENGTH = struct.Struct("<Q")
FRAME_LENGTH_NBYTES = _FRAME_LENGTH.size  # what a frame takes in a stream besides itself
_NO_FRAME, _ZSTANDARD = 0, 1
_CHECKSUM_NBYTES = 8


@dataclass(frozen=True)
class Header:
    """What a stream says about its payload.

    Attributes:
        codec_id: the codec's number; nothing is checked about it here.
        dtype: the array's data type.
        shape: the array's shape.
        configuration: the codec's configuration, a JSON object.
    """

    codec_id: int
    dtype: _dtypes.DType
    shape: tuple[int, ...]
    configuration: Mapping[str, Any]

    @property
    def elements(self) -> int:
        """Elements that the payload codes: a complex value is two."""
        return math.prod(self.shape) * self.dtype.parts


@dataclass(frozen=True)
class Body:
    """A payload as a stream holds it.

    Attributes:
        nbytes: length of the payload.
        data: the payload, or the Zstandard frame that it is in; nothing is checked about either here.
        framed: which of the two.
    """

    nbytes: int
    data: memoryview
    framed: bool


def pack(header: Header, body: Body) -> list[bytes | memoryview]:
    """A stream, in pieces to be written one after the other.

    Raises:
        ValueError: the shape or the configuration is larger than the format holds.
    """
    head = _pack_header(header, body.nbytes, body.data.nbytes if body.framed else None)
    return [head, body.data, checksum(head, body.data)]


def stream_nbytes(header: Header, payload_nbytes: int) -> int:
    """Length of the whole stream, without a frame."""
    return len(_pack_header(header, payload_nbytes)) + payload_nbytes + _CHECKSUM_NBYTES


def _pack_header(header: Header, payload_nbytes: int, frame_nbytes: int | None = None) -> bytes:
    """The bytes of a stream before its payload, or before the frame of that length that it is in."""
    configuration = json.dumps(header.configuration, sort_keys=True, separators=(",", ":")).encode()
    if len(header.shape) > _dtypes.MAX_DIMENSIONS or header.elements >= _dtypes.MAX_VALUES:
        raise ValueError(
            f"shape: expected at most {_dtypes.MAX_DIMENSIONS} dimensions and fewer than 2^60 values (complex: 2^59), "
            f"got {header.shape}"
        )
    if len(configuration) > 0xFFFF:
        raise ValueError(f"the codec's configuration takes {len(configuration)} bytes; at most 65535 are allowed")
    frame = _NO_FRAME if frame_nbytes is None else _ZSTANDARD
    fixed = _FIXED.pack(
        MAGIC, MAJOR_VERSION, MINOR_VERSION, header.codec_id, header.dtype.id, len(header.shape), frame,
        len(configuration), 0, payload_nbytes,
    )  # fmt: skip
    packed = fixed + struct.pack(f"<{len(header.shape)}Q", *header.shape) + configuration
    packed += bytes(-len(packed) % 8)
    return packed if frame_nbytes is None else packed + _FRAME_LENGTH.pack(frame_nbytes)


def checksum(*parts: bytes | memoryview) -> bytes:
    """XXH3-64 (seed 0) of the parts one after the other, little-endian."""
    state = xxhash.xxh3_64()
    for part in parts:
        state.update(part)
    return state.intdigest().to_bytes(_CHECKSUM_NBYTES, "little")


def parse(data: memoryview, *, check: bool = True) -> tuple[Header, Body]:
    """Take a stream apart, trusting nothing in it.

    Args:
        data: a complete stream, one-dimensional unsigned bytes.
        check: whether to check its checksum; if not, nothing but the header, and a frame's length, is read.

    Returns:
        The header and the payload. Whether that has a length that suits the shape is left to who knows the codec, and
        what is in a frame to who knows Zstandard.

    Raises:
        FormatVersionError: a newer major format version wrote it.
        CorruptStreamError: anything else is wrong with it.
    """
    if data[:4] != MAGIC[: len(data)]:
        raise CorruptStreamError(f"magic is {bytes(data[:4])!r}, not {MAGIC!r}: these bytes are no arrcomp stream")
    if len(data) < _FIXED.size + _CHECKSUM_NBYTES:
        raise CorruptStreamError(f"header is truncated: the stream has {len(data)} bytes")
    fields = _FIXED.unpack_from(data)
    _, major, minor, codec_id, dtype_id, dimensions, frame, configuration_nbytes, zero32, payload_nbytes = fields
    if major > MAJOR_VERSION:
        raise FormatVersionError(
            f"format version {major}.{minor} is newer than {VERSION}, the newest this package reads: update arrcomp"
        )
    header_end = _header_end(len(data), dimensions, configuration_nbytes)
    body = _body(data, header_end, frame, payload_nbytes)
    if check and checksum(data[:-_CHECKSUM_NBYTES]) != data[-_CHECKSUM_NBYTES:]:
        raise CorruptStreamError("checksum is wrong: the stream was altered")
    if zero32:
        raise CorruptStreamError(f"reserved field is {zero32}; 0 is allowed")
    dtype = _dtypes.by_id(dtype_id)
    if dtype is None:
        raise CorruptStreamError(f"dtype id {dtype_id} is unknown")
    shape = struct.unpack_from(f"<{dimensions}Q", data, _FIXED.size)
    configuration_start = _FIXED.size + 8 * dimensions
    configuration_end = configuration_start + configuration_nbytes
    if any(data[configuration_end:header_end]):
        raise CorruptStreamError("padding after the configuration is not zero")
    check_shape(shape, dtype)
    return Header(codec_id, dtype, shape, _configuration(data[configuration_start:configuration_end])), body


def _header_end(nbytes: int, dimensions: int, configuration_nbytes: int) -> int:
    """Where the configuration's padding ends in a stream of `nbytes`."""
    if dimensions > _dtypes.MAX_DIMENSIONS:
        raise CorruptStreamError(f"number of dimensions is {dimensions}; at most {_dtypes.MAX_DIMENSIONS} are allowed")
    sizes_end = _FIXED.size + 8 * dimensions
    _check_announced(f"shape of {dimensions} dimensions", sizes_end + _CHECKSUM_NBYTES, nbytes)
    packed = sizes_end + configuration_nbytes
    end = packed + -packed % 8
    _check_announced(f"configuration length is {configuration_nbytes}", end + _CHECKSUM_NBYTES, nbytes)
    return end


def _body(data: memoryview, start: int, frame: int, payload_nbytes: int) -> Body:
    """The payload that begins at `start`, if all lengths fit the stream exactly."""
    field, stored = "payload length", payload_nbytes
    if frame == _ZSTANDARD:
        field = "frame length"
        _check_announced(field, start + FRAME_LENGTH_NBYTES + _CHECKSUM_NBYTES, len(data))
        (stored,) = _FRAME_LENGTH.unpack_from(data, start)
        start += FRAME_LENGTH_NBYTES
    elif frame != _NO_FRAME:
        raise CorruptStreamError(f"frame is {frame}; 0 (none) and 1 (Zstandard) are known")
    announced = start + stored + _CHECKSUM_NBYTES
    _check_announced(f"{field} is {stored}", announced, len(data))
    if announced < len(data):
        raise CorruptStreamError(f"{field} is {stored}: {len(data) - announced} bytes follow the checksum")
    return Body(payload_nbytes, data[start : start + stored], frame == _ZSTANDARD)


def _check_announced(field: str, announced: int, nbytes: int) -> None:
    if announced > nbytes:
        raise CorruptStreamError(f"{field}: stream is truncated, {nbytes} bytes are there, of {announced} at least")


def _configuration(text: memoryview) -> dict[str, Any]:
    try:
        configuration = json.loads(bytes(text).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CorruptStreamError(f"configuration is not JSON in UTF-8: {type(error).__name__}") from None
    if not isinstance(configuration, dict):
        raise CorruptStreamError("configuration is not a JSON object")
    return configuration


def check_shape(shape: tuple[int, ...], dtype: _dtypes.DType) -> None:
    """Raise CorruptStreamError where no array has this shape, of sizes that are not negative."""
    # A dimension of 0 must not hide others that no array can have.
    span = math.prod(max(size, 1) for size in shape) * dtype.itemsize
    if math.prod(shape) * dtype.parts >= _dtypes.MAX_VALUES or span >= 1 << 63:
        raise CorruptStreamError(f"shape {shape} of {dtype.name} is larger than any array")
