"""Payloads of arrays with a reference (FORMAT.md, section 10.1), field by field, right or wrong."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

import arrcomp
import checks
import reference_reader
from checks import Array
from small_streams import forged, resized

HEADER = struct.Struct("<dQBB6sQQ4Q")
PLAIN, DIFFERENCE, EXCLUSIVE_OR = range(3)
CONFIGURATION = b'{"codec":"lossless","predictor":"reference"}'
CODES, CODE_GAPS, EXACT, EXACT_GAPS = range(4)  # the parts


@dataclasses.dataclass(frozen=True)
class Payload:
    """The fields of a payload, as the page names them, and its parts, whose lengths follow."""

    bound: float = 0.0
    hash: int = 0
    way: int = DIFFERENCE
    is_list: int = 0
    zeros: bytes = bytes(6)
    codes: int = 0
    exact: int = 0
    parts: tuple[bytes, ...] = (b"", b"", b"", b"")

    @classmethod
    def of(cls, stream: bytes) -> Payload:
        """The payload of a stream, taken apart."""
        start, end = checks.payload_span(stream)
        payload = stream[start:end]
        bound, stored, way, is_list, zeros, codes, exact, *lengths = HEADER.unpack_from(payload)
        parts, at = [], HEADER.size
        for length in lengths:
            parts.append(payload[at : at + length])
            at += length + -length % 8
        return cls(bound, stored, way, is_list, zeros, codes, exact, tuple(parts))

    def with_part(self, number: int, part: bytes) -> Payload:
        """The payload with another part."""
        parts = list(self.parts)
        parts[number] = part
        return dataclasses.replace(self, parts=tuple(parts))

    def packed(self) -> bytes:
        """The bytes."""
        fields = (self.bound, self.hash, self.way, self.is_list, self.zeros, self.codes, self.exact)
        found = HEADER.pack(*fields, *map(len, self.parts))
        for part in filter(None, self.parts):
            found += bytes(-len(found) % 8) + part
        return found

    def put_into(self, stream: bytes) -> bytes:
        """The stream with this payload."""
        return resized(stream, self.packed())

    def stream(self, reference: Array) -> bytes:
        """A stream of an array with this reference, of the lossless codec: readers of its payloads take bounds too."""
        own = dataclasses.replace(self, hash=reference_reader.content_hash(reference.tobytes()))
        plain = checks.stream_of(reference, arrcomp.Lossless())
        return forged(plain, configuration=CONFIGURATION, payload=own.packed())


def part(values: Sequence[int] | Array, dtype: Any, chunks_per_group: int = 4) -> bytes:
    """The part of a list of at most 4096 values: a payload of section 3; of all codes it has 1 chunk in a group."""
    array = np.array(values).astype(dtype)
    assert array.size <= 4096
    payload = bytearray(arrcomp.compress(array).host_payload().tobytes())
    struct.pack_into("<I", payload, 8, chunks_per_group)
    return bytes(payload)


def listed(places: Sequence[int], values: Array, dtype: Any) -> tuple[bytes, bytes]:
    """The two parts of a list: values, as they are stored, and gaps."""
    gaps = np.diff(places, prepend=-1) - 1
    return part(values, dtype), part(gaps, np.uint32)
