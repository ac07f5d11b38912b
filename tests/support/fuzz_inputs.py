"""Inputs of the decoders' fuzzer (tests/fuzz/input.h): what they say, and streams of them."""

from __future__ import annotations

import dataclasses
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from arrcomp import (
    QSGD,
    S2FP8,
    BaseDelta,
    Codebook,
    Codec,
    Compressed,
    ErrorBounded,
    FloatFormat,
    Lossless,
    SmaQ,
    _core,
    _dtypes,
    available_codecs,
    compress,
)
from arrcomp._format import stream

FOLDER = Path(__file__).resolve().parents[1] / "fuzz"
# Codecs whose payloads are groups of chunks.
GROUPED = tuple(name for _, name, family, _ in _core.codec_table() if family == "grouped")
_HEAD = struct.Struct("<BBHHBB")
_MOST_ELEMENTS = 3 * 4096 + 64
_LEAST_SIZES = {"bucket_size": 16, "block_size": 32}

# Of each codec, by its name, what inputs choose from; of one that has no line, its examples.
VARIANTS: dict[str, tuple[Codec, ...]] = {
    "lossless": (
        Lossless(),
        Lossless(speed="fast"),
        Lossless(predictor="interpolation"),
        Lossless(predictor="lorenzo"),
        Lossless(predictor="reference"),
        Lossless(predictor="columns"),
    ),
    "error-bounded": (
        ErrorBounded(abs=1e-3),
        ErrorBounded(abs=1e-3, speed="fast"),
        ErrorBounded(pointwise=1e-2),
        ErrorBounded(abs=1e-3, predictor="interpolation"),
        ErrorBounded(abs=1e-3, predictor="lorenzo"),
        ErrorBounded(abs=1e-3, predictor="reference"),
        ErrorBounded(abs=1e-3, predictor="columns"),
    ),
    "qsgd": (
        QSGD(bucket_size=64),
        *(QSGD(bits=bits, bucket_size=100, norm="l2") for bits in (1, 2, 3, 5)),
        *(QSGD(bits=bits, bucket_size=48) for bits in (6, 7, 8)),
        QSGD(bits=3, bucket_size=96, norm="linf", skip_incomplete=True),
        QSGD(bucket_size=64, coding="entropy"),
        QSGD(bits=8, bucket_size=100, norm="l2", coding="entropy"),
        QSGD(bits=2, bucket_size=96, skip_incomplete=True, coding="entropy"),
    ),
    "smaq": (
        SmaQ(),
        SmaQ(block_size=None),
        SmaQ(3, 12, block_size=32, overflow="clamp"),
        SmaQ(8, 8, block_size=100, preserve_zeros=False),
        SmaQ(4, 9, block_size=4096, all_positive=True, min_size=0),
        SmaQ(5, 6, block_size=None, min_size=1000),
    ),
    "float-format": (
        *(FloatFormat(name) for name in ("fp8_e4m3", "fp8_e5m2", "bf16", "e5m10", "e3m1", "mxfp8", "mxfp6", "mxfp4")),
        *(FloatFormat(name) for name in ("mxint8", "nvfp4", "fp32")),
        *(FloatFormat(name, scaling="bucket") for name in ("fp8_e4m3", "fp8_e5m2", "fp4_e2m1", "e2m5")),
        FloatFormat("fp8_e4m3", scaling="tensor"),
    ),
    "s2fp8": (S2FP8(), S2FP8(bucket_size=64)),
    "base-delta": (BaseDelta(), BaseDelta(bases=2)),
    "codebook": (
        Codebook.nf4(),
        Codebook([-0.5, 0.0, 2.0], [-1.0, -0.25, 1.0, 3.0], bucket_size=100),
        Codebook([0.0], [-1.0, 1.0], scaling="tensor"),
        Codebook([0.0, 1.0], [-1e38, 0.5, 3e38], bucket_size=16, scaling="absmax"),
        Codebook.dynamic8(),
    ),
}
VARIANTS |= {name: kind.examples() for name, kind in available_codecs().items() if name not in VARIANTS}


class Input(NamedTuple):
    """What an input says.

    Attributes:
        codec: that decodes it.
        dtype: of the array.
        elements: that the payload codes: a complex value is two.
        payload: as the fuzzer made it.
        is_usual: whether a stream may have such a payload: not with chunks in the groups of larger arrays.
    """

    codec: Codec
    dtype: _dtypes.DType
    elements: int
    payload: bytes
    is_usual: bool

    @property
    def reference(self) -> bytes:
        """What the payload is coded against, if its codec does so: zeros."""
        return bytes(self.elements // self.dtype.parts * self.dtype.itemsize)

    def stream(self) -> bytes:
        """A stream with the payload, and the checksum that it needs."""
        header = stream.Header(self.codec.id, self.dtype, (self.elements // self.dtype.parts,), self.codec.config())
        return b"".join(stream.pack(header, stream.Body(len(self.payload), memoryview(self.payload), framed=False)))


def parsed(name: str, data: bytes) -> Input | None:
    """What an input of this codec's corpus says, or None if nothing takes it."""
    if len(data) < _HEAD.size:
        return None
    variant, dtype_id, elements, bucket_size, grouping, _ = _HEAD.unpack_from(data)
    codec = VARIANTS[name][variant % len(VARIANTS[name])]
    dtype = _dtypes.by_id(dtype_id)
    if dtype is None or not codec.takes(dtype):
        return None
    elements = elements % (_MOST_ELEMENTS + 1) // dtype.parts * dtype.parts
    field = _size_field(codec)
    if bucket_size > 0 and field is not None:
        codec = dataclasses.replace(cast(Any, codec), **{field: max(bucket_size, _LEAST_SIZES[field])})
    is_usual = codec.name not in GROUPED or grouping & 7 == 0
    return Input(codec, dtype, elements, data[_HEAD.size :], is_usual)


def packed(name: str, variant: int, dtype: _dtypes.DType, elements: int, payload: bytes, grouping: int = 0) -> bytes:
    """An input, on whose payload all instruction sets but the first are tried by what its last byte is."""
    return _HEAD.pack(variant, dtype.id, elements, 0, grouping, sum(payload) % 256) + payload


def core_line(codec: Codec) -> str:
    """The codec's line in variants.inc."""
    parameters = codec.core_parameters()
    field = _size_field(codec)
    at, least = -1, 0
    if field is not None:
        least = _LEAST_SIZES[field]
        other = dataclasses.replace(cast(Any, codec), **{field: getattr(codec, field) + 1}).core_parameters()
        (at,) = (i for i, pair in enumerate(zip(parameters, other, strict=True)) if pair[0] != pair[1])
    return f"{{{codec.id}, {at}, {least}, {{{', '.join(map(repr, map(float, parameters)))}}}}},"


def compressed(codec: Codec, array: NDArray[Any]) -> Compressed:
    """The array compressed by a variant, on one thread; against zeros, if it has a reference."""
    options: dict[str, Any] = {"seed": 1} if codec.needs_seed else {}
    if has_reference(codec):
        codec, options["reference"] = dataclasses.replace(cast(Any, codec), predictor=None), np.zeros_like(array)
    return compress(array, codec, threads=1, **options)


def has_reference(codec: Codec) -> bool:
    """Whether the codec codes arrays against a reference."""
    return getattr(codec, "predictor", None) == "reference"


def corpus(name: str) -> dict[str, bytes]:
    """The inputs kept in the tree of a codec's, by their names; before any were kept, ones that are made here."""
    if not (FOLDER / "corpus" / f"{name}.zip").exists():
        return dict(_made(name))
    with zipfile.ZipFile(FOLDER / "corpus" / f"{name}.zip") as archive:
        return {entry: archive.read(entry) for entry in archive.namelist()}


def _made(name: str) -> Iterator[tuple[str, bytes]]:
    """Inputs with the payloads of each variant, whole and without the last byte."""
    array = np.linspace(-1, 1, 700, dtype=np.float32)
    dtype = _dtypes.by_numpy(array.dtype)
    for variant, codec in enumerate(VARIANTS[name]):
        payload = compressed(codec, array).host_payload().tobytes()
        yield f"{variant:03d}", packed(name, variant, dtype, array.size, payload)
        yield f"{variant:03d}, cut", packed(name, variant, dtype, array.size, payload[:-1])


def write_corpus(name: str, inputs: list[bytes]) -> None:
    """Keep these inputs of a codec's in the tree: the same bytes for the same inputs."""
    (FOLDER / "corpus").mkdir(exist_ok=True)
    with zipfile.ZipFile(FOLDER / "corpus" / f"{name}.zip", "w") as archive:
        for number, data in enumerate(sorted(inputs, key=lambda data: (len(data), data))):
            entry = zipfile.ZipInfo(f"{number:03d}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            archive.writestr(entry, data)


def _size_field(codec: Codec) -> str | None:
    """Which of the codec's parameters says how many values a bucket has, where an input may choose that."""
    for field in _LEAST_SIZES:
        if isinstance(getattr(codec, field, None), int):
            return field
    return None
