"""The independent reader's part for the stream and the data types: sections 1 and 2 of native/FORMAT.md."""

from __future__ import annotations

import json
import math
import struct
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import xxhash
from numpy.typing import NDArray

Array = NDArray[Any]

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
LINES = 7
ZSTANDARD = 1


class Element(NamedTuple):
    """A data type of section 2: a value of `dtype` is `parts` elements of `bits`."""

    dtype: np.dtype[Any]
    bits: int
    parts: int
    exponent: int
    mantissa: int

    @property
    def unsigned(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The unsigned integer that holds an element's bits."""
        return np.dtype(f"<u{self.bits // 8}")

    @property
    def quantizable(self) -> bool:
        """Whether chunks may be quantized (3.4)."""
        return self.exponent > 0 and self.bits >= 16

    @property
    def real(self) -> type[np.floating[Any]]:
        """The arithmetic type of quantized chunks (3.4)."""
        return np.float64 if self.bits == 64 else np.float32

    @property
    def word_bits(self) -> int:
        """Bits of a word, W' (3.2)."""
        return 64 if self.bits == 64 else 32


# fmt: off
NAMES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz",
    "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "int4", "uint4",
)
EXPONENT_AND_MANTISSA = (
    (5, 10), (8, 7), (8, 23), (11, 52), (8, 23), (11, 52), (4, 3), (5, 2), (4, 3), (5, 2), (4, 3), (4, 3), (3, 4),
)
# fmt: on


def element_of(identifier: int) -> Element:
    """The data type with this id."""
    name = NAMES[identifier - 1]
    dtype, parts = np.dtype(getattr(ml_dtypes, name, name)), 2 if name.startswith("complex") else 1
    exponent, mantissa = EXPONENT_AND_MANTISSA[identifier - 10] if 10 <= identifier <= 22 else (0, 0)
    return Element(dtype, 8 * dtype.itemsize // parts, parts, exponent, mantissa)


class Cursor:
    """Takes bytes from the front of `data`; none may be missing."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, nbytes: int) -> bytes:
        """The next `nbytes` bytes."""
        end = self.position + nbytes
        if nbytes < 0 or end > len(self.data):
            raise ValueError(f"{nbytes} bytes wanted at {self.position} of {len(self.data)}")
        self.position = end
        return self.data[end - nbytes : end]

    def numbers(self, dtype: str, count: int, align: int = 1) -> Array:
        """`count` numbers, passing over the padding after them up to a multiple of `align` bytes."""
        found = np.frombuffer(self.take(np.dtype(dtype).itemsize * count), dtype)
        self.take(-found.nbytes % align)
        return found

    def finish(self) -> None:
        """Nothing may be left."""
        if self.position != len(self.data):
            raise ValueError(f"{len(self.data) - self.position} bytes left over")


class Stream(NamedTuple):
    """A stream taken apart (1)."""

    codec: int
    element: Element
    shape: tuple[int, ...]
    configuration: dict[str, Any]
    payload: bytes

    @property
    def elements(self) -> int:
        """Elements that the payload codes (2)."""
        return math.prod(self.shape) * self.element.parts


def read_configuration(text: bytes, codec: int) -> dict[str, Any]:
    """The configuration, which names the codec (1)."""
    found = json.loads(text.decode())
    if not isinstance(found, dict) or found.get("codec") != CODECS[codec]:
        raise ValueError(f"configuration {found!r} of codec {codec}")
    return found


def frame_content_size(cursor: Cursor) -> int:
    """The size of the content that a frame's header announces (RFC 8878, 3.1.1.1); the header is as 1.1 wants it."""
    magic, descriptor = struct.unpack("<IB", cursor.take(5))
    if magic != 0xFD2FB528 or descriptor & 8:
        raise ValueError(f"magic {magic:#x}, descriptor {descriptor:#x}: no Zstandard frame")
    single_segment, size_flag = descriptor >> 5 & 1, descriptor >> 6
    window = 0
    if not single_segment:
        exponent, mantissa = divmod(cursor.take(1)[0], 8)
        window = (1 << 10 + exponent) + (1 << 10 + exponent) // 8 * mantissa
    dictionary = int.from_bytes(cursor.take((0, 1, 2, 4)[descriptor & 3]), "little")
    if size_flag == 0 and not single_segment:
        raise ValueError("the frame does not say its content's size")
    size = int.from_bytes(cursor.take(1 << size_flag), "little") + (256 if size_flag == 1 else 0)
    if dictionary or max(window, size if single_segment else 0) > 1 << 27:
        raise ValueError(f"a frame with dictionary {dictionary}, window {window}, size {size}")
    return size


def pass_blocks(cursor: Cursor) -> None:
    """Pass over a frame's blocks (RFC 8878, 3.1.1.2)."""
    last = False
    while not last:
        header = int.from_bytes(cursor.take(3), "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        cursor.take(1 if kind == 1 else size)


def read_frame(frame: bytes, p: int) -> bytes:
    """The payload of p bytes that is in a frame (1.1)."""
    import zstandard

    cursor = Cursor(frame)
    if frame_content_size(cursor) != p or not len(frame) < p <= len(frame) << 15:
        raise ValueError(f"a frame of {len(frame)} bytes for a payload of {p}")
    pass_blocks(cursor)
    cursor.take(4 if frame[4] & 4 else 0)
    cursor.finish()
    try:
        payload = zstandard.ZstdDecompressor().decompressobj().decompress(frame)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if len(payload) != p:
        raise ValueError(f"{len(payload)} bytes in the frame, not {p}")
    return payload


def read_header(data: bytes) -> Stream:
    """The parts of a stream (1)."""
    cursor = Cursor(data)
    magic, major, _minor, codec, dtype, dimensions, frame, c, reserved, p = struct.unpack(
        "<4sBBBBBBHIQ", cursor.take(24)
    )
    if magic != b"ARRC" or frame > ZSTANDARD or reserved or not 1 <= dtype <= 28 or dimensions > 64:
        raise ValueError(
            f"magic {magic!r}, frame {frame}, reserved bytes, data type {dtype} or {dimensions} dimensions"
        )
    if major > 0 or codec not in CODECS:
        raise ValueError(f"format {major}, codec {codec}: newer than this reader")
    shape = tuple(cursor.numbers("<u8", dimensions).tolist())
    if math.prod(shape) >= 1 << 60:
        raise ValueError(f"shape {shape} is too large")
    configuration = read_configuration(cursor.take(c), codec)
    if any(cursor.take(-c % 8)):
        raise ValueError("padding is not zero")
    stored = cursor.take(int(cursor.numbers("<u8", 1)[0]) if frame else p)
    checksum = int(cursor.numbers("<u8", 1)[0])
    cursor.finish()
    if checksum != xxhash.xxh3_64_intdigest(data[:-8]):
        raise ValueError("the checksum is wrong")
    element = element_of(dtype)
    if frame and p > 2 * math.prod(shape) * element.dtype.itemsize + 1024:
        raise ValueError(f"a payload of {p} bytes of {shape} {element.dtype}")
    return Stream(codec, element, shape, configuration, read_frame(stored, p) if frame else stored)
