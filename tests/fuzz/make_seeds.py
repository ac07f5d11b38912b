"""Writes variants.inc, which the decoders' fuzzer is compiled with, and inputs that it may begin with.

python tests/fuzz/make_seeds.py --check     whether variants.inc is what tests/support/fuzz_inputs.py gives
python tests/fuzz/make_seeds.py FOLDER      variants.inc, and seeds of each codec into FOLDER/CODEC
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parent / folder) for folder in ("support", "independent")]

import arrcomp
import checks
import fuzz_inputs
import small_streams
from arrcomp import Codec, _dtypes
from checks import Array

_LARGEST = 16_000  # bytes of a seed
_HEAD_NBYTES = 16  # bound, S, o
_COUNTS = (0, 1, 33, 300, 700)
_DTYPES = ["bool", "int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
_DTYPES += ["complex128", "float8_e4m3fn", "float8_e3m4"]
_GROUPED = {1: 1 << 18, 2: 1 << 20}  # the least elements of arrays whose groups have 2 or 4 chunks, by the logarithm


def variants_text() -> str:
    """The text of variants.inc."""
    codecs = [codec for variants in fuzz_inputs.VARIANTS.values() for codec in variants]
    return "// Made by make_seeds.py.\n" + "".join(fuzz_inputs.core_line(codec) + "\n" for codec in codecs)


def seeds(name: str) -> set[bytes]:
    """Inputs of a codec."""
    made = {*_of_variants(name), *_of_streams(name), *_of_large_arrays(name)}
    return {data for data in made if len(data) <= _LARGEST}


def _of_variants(name: str) -> Iterator[bytes]:
    for variant, codec in enumerate(fuzz_inputs.VARIANTS[name]):
        for dtype in _DTYPES:
            if codec.takes_numpy(checks.numpy_dtype(dtype)):
                for count in _COUNTS:
                    yield _input(name, variant, _values(count).astype(checks.numpy_dtype(dtype)))
        yield _input(name, variant, (_values(4200) * (np.arange(4200) % 9 == 0)).astype(np.float32))


def _of_streams(name: str) -> Iterator[bytes]:
    """The payloads of small streams and of the golden ones, where their codec is one of the variants."""
    golden = (path.read_bytes() for path in sorted((FOLDER.parent / "golden").glob("*.arrcomp")))
    small = (make() for make in small_streams.SMALL.values())
    for data in (*golden, *small):
        compressed = arrcomp.from_bytes(data)
        variant = _variant(name, compressed.codec)
        elements = int(np.prod(compressed.shape)) * _dtypes.by_numpy(compressed.dtype).parts
        if variant is not None and elements <= 3 * 4096:
            payload = compressed.host_payload().tobytes()
            if compressed.needs_reference:  # the fuzzer's, of zeros, makes other elements of the same codes
                zeros = np.zeros(compressed.shape, compressed.dtype)
                payload = payload[:8] + struct.pack("<Q", arrcomp.content_hash(zeros)) + payload[16:]
            yield fuzz_inputs.packed(name, variant, _dtypes.by_numpy(compressed.dtype), elements, payload)


def _variant(name: str, codec: Codec) -> int | None:
    if codec.name != name:
        return None
    variants: Any = fuzz_inputs.VARIANTS[name]
    if name not in fuzz_inputs.GROUPED:
        return next((i for i, other in enumerate(variants) if other == codec), None)
    if fuzz_inputs.has_reference(codec):
        return next(i for i, other in enumerate(variants) if fuzz_inputs.has_reference(other))
    return 0  # readers of other groups ask for no parameter


def _of_large_arrays(name: str) -> Iterator[bytes]:
    """Last groups of arrays that are large enough for groups of several chunks; in directories of either size."""
    if name not in fuzz_inputs.GROUPED:
        return
    codec = fuzz_inputs.VARIANTS[name][0]
    for dtype in ("int8", "float32") if name != "error-bounded" else ("float16", "float32"):
        for logarithm, least in _GROUPED.items():
            end = _values(4096 * logarithm + 100)
            array = np.zeros(least + end.size, checks.numpy_dtype(dtype))
            array[least:] = end
            payload = arrcomp.compress(array, codec, threads=1).host_payload().tobytes()
            for entry_nbytes in (4, 8):
                grouping = logarithm | (4 if entry_nbytes == 8 else 0)
                last = _last_group(payload, -(-array.size // (4096 << logarithm)), 1 << logarithm, entry_nbytes)
                yield fuzz_inputs.packed(name, 0, _dtypes.by_numpy(array.dtype), end.size, last, grouping)


def _last_group(payload: bytes, groups: int, chunks_per_group: int, entry_nbytes: int) -> bytes:
    """A payload of the last group alone."""
    ends = struct.unpack_from(f"<{groups}I", payload, _HEAD_NBYTES)
    start = _HEAD_NBYTES + 4 * groups
    start += -start % 8
    group = payload[start + 4 * ends[-2] :]
    entry = struct.pack("<Q", len(group) // 4)  # with 4 bytes, the others are padding
    return payload[:8] + struct.pack("<II", chunks_per_group, entry_nbytes) + entry + group


def _values(count: int) -> Array:
    """Values of every kind: smooth, noise, repeated, zeros, outliers."""
    rng = np.random.default_rng(count)
    values = 20 * np.sin(np.arange(count) / 50) + rng.normal(0, 1, count)
    values[count // 2 :: 3] = 0
    values[count // 3 : count // 2] = 5
    values[::211] *= 6
    return values


def _input(name: str, variant: int, array: Array) -> bytes:
    compressed = fuzz_inputs.compressed(fuzz_inputs.VARIANTS[name][variant], array)
    dtype = _dtypes.by_numpy(array.dtype)
    return fuzz_inputs.packed(name, variant, dtype, array.size * dtype.parts, compressed.host_payload().tobytes())


def _main(arguments: list[str]) -> None:
    table = FOLDER / "variants.inc"
    if arguments == ["--check"]:
        if table.read_text() != variants_text():
            raise SystemExit(f"{table}: not what tests/support/fuzz_inputs.py gives: run {Path(__file__).name}")
        return
    table.write_text(variants_text())
    for folder in arguments:
        for name in fuzz_inputs.VARIANTS:
            (Path(folder) / name).mkdir(parents=True, exist_ok=True)
            for number, data in enumerate(sorted(seeds(name))):
                (Path(folder) / name / f"seed{number:03d}").write_bytes(data)


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        _main(sys.argv[1:])
