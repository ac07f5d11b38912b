"""Mutations of streams that keep lengths and checksum right, and what may become of such streams."""

from __future__ import annotations

import importlib.util
import json
import random
import struct
from pathlib import Path
from typing import Any

import arrcomp
import checks
import small_streams

_HAS_ZSTANDARD = importlib.util.find_spec("zstandard") is not None
_MOST_DECODED = 1 << 18  # bytes of arrays that are decoded, so that most of the time is for headers
_MOST_SEED = 3000  # bytes
_FIXED = struct.Struct("<4s6BHIQ")
_NUMBERS: tuple[int, ...] = (0, 1, 2, 7, 8, 15, 16, 31, 32, 64, 65, 255, 4096, 2**16, 2**31, 2**32 - 1, 2**40)
_NUMBERS += (2**59, 2**60, 2**62, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1)
_VALUES: tuple[Any, ...] = (*_NUMBERS, -1, -(2**70), 2**1100, 0.5, 1e-300, 5e-324, 1e308)
_VALUES += (float("nan"), float("inf"), True, False, None)
_VALUES += (
    "",
    "bucket",
    "tensor",
    "absmax",
    "entropy",
    "l2",
    "nvfp4",
    "mxfp4",
    "e5m2",
    "nf4",
    "fast",
    "extend",
    "\ud800",
)
_VALUES += ([], [0], [0.0, 1.0], [[0]], {}, {"codec": "qsgd"}, [1] * 300)
_TEXTS: tuple[bytes, ...] = (
    b"",
    b"[]",
    b"null",
    b"[" * 3000,
    b'{"a":' * 1500,
    b"\xff",
    b'{"codec":"qsgd","codec":"smaq"}',
    b"NaN",
    b"1e999",
)
_TEXTS += (b"9" * 5000, b'{"codec":' + b"9" * 5000 + b"}", b'{"codec":"qsgd","bits":' + b"9" * 5000 + b"}")


def check_reading(data: bytes) -> None:
    """A stream is refused by a typed error, or gives an array of the promised shape; nothing else may happen."""
    try:
        compressed = arrcomp.from_bytes(data)
        if compressed.spec.nbytes > _MOST_DECODED:
            return
        array = small_streams.decoded(data)
    except small_streams.REFUSALS:
        return
    except ImportError:
        assert not _HAS_ZSTANDARD
        return
    assert array.shape == compressed.shape
    assert array.dtype == compressed.dtype


def seeds() -> list[bytes]:
    """Streams to begin with: every codec, and frames."""
    golden = [path.read_bytes() for path in sorted((Path(__file__).resolve().parents[1] / "golden").glob("*.arrcomp"))]
    return [data for data in (*(make() for make in small_streams.SMALL.values()), *golden) if len(data) <= _MOST_SEED]


class Mutator:
    """Makes streams of streams, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def mutated(self, corpus: list[bytes]) -> bytes:
        """A stream like one of these; in 31 of 32 cases with a right checksum."""
        body = self._random.choice(corpus)[: -checks.CHECKSUM_NBYTES]
        for _ in range(self._random.choice((1, 1, 1, 2, 3, 5))):
            parts = _Parts.of(body)
            if parts is None or self._random.random() < 0.3:
                body = self._altered(body)
            else:
                self._alter_parts(parts, self._random.choice(corpus))
                body = parts.joined(fits=self._random.random() < 0.9)
        return checks.seal(body) if self._random.random() < 31 / 32 else body + bytes(checks.CHECKSUM_NBYTES)

    def _alter_parts(self, parts: _Parts, other: bytes) -> None:
        choice = self._random.randrange(6)
        if choice == 0:
            parts.fields[self._random.randrange(1, len(parts.fields))] = self._random.choice(_NUMBERS)
        elif choice == 1:
            self._alter_shape(parts.shape)
        elif choice == 2:
            parts.payload = self._altered(parts.payload)
        elif choice == 3:
            found = _Parts.of(other[: -checks.CHECKSUM_NBYTES])
            if found is not None:  # another's codec with its configuration, or that alone
                parts.configuration = found.configuration
                parts.fields[3] = found.fields[3] if self._random.random() < 0.8 else parts.fields[3]
        else:
            parts.configuration = self._altered_configuration(parts.configuration)

    def _alter_shape(self, shape: list[int]) -> None:
        choice = self._random.randrange(4)
        if choice == 0 or not shape:
            shape.insert(self._random.randrange(len(shape) + 1), self._random.choice(_NUMBERS))
        elif choice == 1:
            del shape[self._random.randrange(len(shape))]
        elif choice == 2:
            shape[self._random.randrange(len(shape))] = self._random.choice(_NUMBERS)
        else:
            shape[self._random.randrange(len(shape))] += self._random.choice((-1, 1, 16, 4096))

    def _altered_configuration(self, text: bytes) -> bytes:
        try:
            configuration = json.loads(text)
            if isinstance(configuration, dict) and self._random.random() < 0.8:
                self._alter_mapping(configuration)
                return json.dumps(configuration).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            pass
        return self._random.choice(_TEXTS) if self._random.random() < 0.3 else self._altered(text)

    def _alter_mapping(self, configuration: dict[str, Any]) -> None:
        key = self._random.choice([*configuration, "codec", "bits", "bucket_size", "abs", "rel", "table", "speed", "x"])
        if key in configuration and self._random.random() < 0.2:
            del configuration[key]
            return
        before = configuration.get(key)
        if isinstance(before, list) and before and self._random.random() < 0.5:
            before[self._random.randrange(len(before))] = self._random.choice(_VALUES)
        else:
            configuration[key] = self._random.choice(_VALUES)

    def _altered(self, data: bytes) -> bytes:
        """Bytes changed, put in or taken out."""
        altered = bytearray(data)
        place = self._random.randrange(len(altered) + 1)
        length = self._random.choice((1, 1, 2, 4, 8, 64))
        choice = self._random.randrange(4)
        if choice == 0:
            altered[place:place] = self._random.randbytes(length)
        elif choice == 1:
            del altered[place : place + length]
        elif choice == 2:
            number = self._random.choice(_NUMBERS).to_bytes(8, "little")
            altered[place : place + length] = number[:length]
        else:
            altered[place : place + 1] = self._random.randbytes(1)
        return bytes(altered)


class _Parts:
    """A stream's parts, which may be changed each."""

    def __init__(self, fields: list[Any], shape: list[int], configuration: bytes, payload: bytes) -> None:
        self.fields = fields
        self.shape = shape
        self.configuration = configuration
        self.payload = payload

    @staticmethod
    def of(body: bytes) -> _Parts | None:
        """The parts of a stream without checksum, or None if it has not all."""
        if len(body) < _FIXED.size:
            return None
        fields = list(_FIXED.unpack_from(body))
        start, length = _FIXED.size + 8 * fields[5], fields[7]
        end = start + length + -(start + length) % 8
        if end > len(body):
            return None
        shape = list(struct.unpack_from(f"<{fields[5]}Q", body, _FIXED.size))
        return _Parts(fields, shape, body[start : start + length], body[end:])

    def joined(self, *, fits: bool) -> bytes:
        """A stream without checksum; with `fits`, of lengths that are right."""
        fields = list(self.fields)
        if fits:
            fields[5], fields[7] = len(self.shape), len(self.configuration)
            if fields[6] == 0:
                fields[9] = len(self.payload)
        sizes = (1, 1, 1, 1, 1, 1, 2, 4, 8)  # bytes of all fields but the magic
        fields[1:] = [field % (1 << 8 * size) for field, size in zip(fields[1:], sizes, strict=True)]
        shape = [size % (1 << 64) for size in self.shape]
        head = _FIXED.pack(*fields) + struct.pack(f"<{len(shape)}Q", *shape) + self.configuration[:0xFFFF]
        return head + bytes(-len(head) % 8) + self.payload
