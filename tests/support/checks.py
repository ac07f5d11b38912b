"""The checks that every codec's tests call, and where the arrays lie on which they run."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import xxhash
from numpy.typing import NDArray

import arrcomp
import reference_reader
from arrcomp import _core

Array = NDArray[Any]

FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = tuple(dtype.name for dtype in reference_reader.DTYPES.values())
SEED = 7
CHECKSUM_NBYTES = 8
CODEC_AT, FRAME_AT = 6, 9  # in a stream's header
_CODEC_IDS = {kind.id for kind in arrcomp.available_codecs().values()}


def environment_with(folder: Path) -> dict[str, str]:
    """The environment of a process that finds modules in a folder before all others."""
    # An empty part would be the current folder, and the package there the source tree's.
    before = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *([before] if before else [])])}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of this name, or ml_dtypes'."""
    return np.dtype(getattr(ml_dtypes, name, name))


def bits_of(array: Array) -> Array:
    """The bits of an array's elements as unsigned integers, flat; a complex value is two."""
    flat = np.ascontiguousarray(array).reshape(-1)
    size = flat.dtype.itemsize // (2 if flat.dtype.kind == "c" else 1)
    return flat.view(f"u{size}")


class Host:
    """Where arrays lie: in NumPy.

    Attributes:
        device: "cpu" or "cuda".
    """

    device = "cpu"

    def put(self, array: Array) -> Any:
        """The array where the codec shall find it."""
        return array

    def get(self, array: Any) -> Array:
        """The array back in NumPy."""
        return np.asarray(array)


HOST = Host()


def sample(name: str) -> Array:
    """Small values of any dtype, three rows."""
    return np.random.default_rng(7).integers(0, 2, (3, 40)).astype(numpy_dtype(name))


def gradients(count: int, seed: int = 0) -> Array:
    """Values in float32 of which one in twenty is not zero: the codes of quantizers repeat."""
    rng = np.random.default_rng(seed)
    return (rng.normal(0, 1e-3, count) * (rng.random(count) < 0.05)).astype(np.float32)


@contextlib.contextmanager
def using_instruction_set(name: str) -> Iterator[None]:
    """Inside, the core uses this instruction set; afterwards the one before."""
    before = _core.instruction_set()
    _core.use_instruction_set(name)
    try:
        yield
    finally:
        _core.use_instruction_set(before)


def stream_of(array: Array, codec: arrcomp.Codec, device: Host = HOST, **options: Any) -> bytes:
    """The stream that `codec` writes of an array on a device; with `SEED` where it needs one and none is given."""
    if codec.needs_seed:
        options.setdefault("seed", SEED)
    if options.get("reference") is not None:
        options["reference"] = device.put(options["reference"])
    return arrcomp.compress(device.put(array), codec, **options).to_bytes()


def array_of(stream: bytes, device: Host = HOST, **options: Any) -> Array:
    """The array of a stream, decoded on a device."""
    compressed = arrcomp.from_bytes(stream)
    if options.get("reference") is not None:
        options["reference"] = device.put(options["reference"])
    if device is HOST:
        return np.asarray(arrcomp.decompress(compressed, **options))
    like = device.put(np.zeros(1, np.uint8))
    return device.get(arrcomp.decompress(compressed, like=like, **options))


def check_same_bits(actual: Array, expected: Array) -> None:
    """Shape, dtype and every bit are the same."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    different = np.flatnonzero(bits_of(actual) != bits_of(expected))
    assert different.size == 0, f"{different.size} elements differ, the first at {different[0]}"


def has_reader(stream: bytes) -> bool:
    """Whether the independent reader knows the codec of a stream; where not, test_references.py asks for more."""
    return stream[CODEC_AT] in reference_reader.CODECS or stream[CODEC_AT] not in _CODEC_IDS


def check_reference(stream: bytes, decoded: Array, reference: Array | None = None) -> None:
    """The independent reader, if it knows the codec, agrees on every bit; `reference` is what the stream needs."""
    if not has_reader(stream):
        return
    check_same_bits(reference_reader.read_stream(stream, reference), decoded)


def check_capacity(stream: bytes, array: Array) -> None:
    """The payload is no longer than was promised; if the rate is fixed, exactly as long."""
    start, end = payload_span(stream)
    assert end - start <= arrcomp.max_compressed_nbytes(array)
    spec = arrcomp.from_bytes(stream).spec
    assert end - start == spec.capacity if spec.codec.fixed_rate else end - start <= spec.capacity


def check_same_bytes(array: Array, codec: arrcomp.Codec, stream: bytes, **options: Any) -> None:
    """Every number of threads and every instruction set writes `stream`, and reads the same array from it.

    Options, as `reference`, go to writer and reader.
    """
    expected = array_of(stream, **options)
    for name in _core.instruction_sets():
        with using_instruction_set(name):
            for threads in (1, 2, 3):
                written = stream_of(array, codec, threads=threads, **options)
                assert written == stream, f"{name}, {threads} threads: other bytes"
                check_same_bits(array_of(stream, threads=threads, **options), expected)


def check_codec(array: Array, codec: arrcomp.Codec, device: Host = HOST, **options: Any) -> bytes:
    """All checks that hold for every codec; gives the stream. The one option is `reference`."""
    stream = stream_of(array, codec, device, **options)
    decoded = array_of(stream, device, **options)
    assert decoded.shape == array.shape
    assert decoded.dtype == array.dtype
    check_capacity(stream, array)
    check_reference(stream, decoded, **options)
    check_same_bytes(array, codec, stream, **options)
    check_promise(array, decoded, codec)
    return stream


def check_promise(original: Array, decoded: Array, codec: arrcomp.Codec) -> None:
    """What comes back is as exact as the codec says; quantizers, which promise no bound, have tests of their own."""
    if isinstance(codec, arrcomp.ErrorBounded):
        check_bound(original, decoded, codec)
    elif isinstance(codec, arrcomp.Lossless) or (isinstance(codec, arrcomp.BaseDelta) and codec.drop_bits == 0):
        check_same_bits(decoded, original)


def check_bound(original: Array, decoded: Array, codec: arrcomp.ErrorBounded) -> None:
    """Every finite element is within the bound in exact arithmetic, all others are the same bit for bit."""
    with np.errstate(all="ignore"):
        x, y = original.reshape(-1).astype(np.float64), decoded.reshape(-1).astype(np.float64)
        finite = np.isfinite(x)
        fill = _is_fill(original.reshape(-1), codec)
        limit_of, approximate = _limits(x, finite & ~fill, codec)
        exact = ~finite | (approximate == 0) | fill
        inside = np.abs(x - y) < approximate * (1 - 2.0**-40)
    changed = bits_of(original) != bits_of(decoded)
    assert not np.any(exact & changed), "a value that must come back bit for bit did not"
    assert np.isfinite(y[finite]).all(), "a finite value came back infinite or NaN"
    # float64 settles all but the values close to the bound, or where it underflows.
    for i in np.flatnonzero(changed & ~(inside & (approximate > 1e-290))):
        error = abs(Fraction(x[i]) - Fraction(y[i]))
        assert error <= limit_of(i), f"element {i}: {x[i]!r} came back as {y[i]!r}, bound {float(limit_of(i))!r}"


def _is_fill(x: Array, codec: arrcomp.ErrorBounded) -> Array:
    """Elements with the bits of the codec's fill value."""
    if codec.fill_value is None:
        return np.zeros(x.shape, bool)
    with np.errstate(over="ignore"):
        return bits_of(np.full_like(x, codec.fill_value)) == bits_of(x)


def _limits(x: Array, finite: Array, codec: arrcomp.ErrorBounded) -> tuple[Callable[[Any], Fraction], Array]:
    """The exact limit of element i as a function, and all limits approximately; 0 only where the limit is 0."""
    if codec.pointwise is not None:
        p = codec.pointwise
        approximate = np.where(x == 0, 0.0, np.maximum(np.abs(x) * p, 5e-324))
        return lambda i: Fraction(p) * abs(Fraction(x[i])), approximate
    if codec.abs is not None:
        limit = Fraction(codec.abs)
    elif finite.any():
        limit = Fraction(codec.rel or 0) * (Fraction(x[finite].max()) - Fraction(x[finite].min()))
    else:
        limit = Fraction(0)
    largest = np.finfo(np.float64).max
    rounded = max(float(min(limit, Fraction(largest))), 5e-324) if limit else 0.0
    return lambda i: limit, np.full(x.shape, rounded)


def payload_span(stream: bytes) -> tuple[int, int]:
    """Where a stream's payload begins and ends (FORMAT.md, section 1)."""
    dimensions, configuration = stream[8], struct.unpack_from("<H", stream, 10)[0]
    start = 24 + 8 * dimensions + configuration
    start += -start % 8
    return start, len(stream) - CHECKSUM_NBYTES


def is_framed(stream: bytes) -> bool:
    """Whether a stream's payload is in a Zstandard frame."""
    return stream[FRAME_AT] == 1


def seal(body: bytes | bytearray) -> bytes:
    """A stream's bytes before the checksum, with the right one after them."""
    return bytes(body) + struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(body)))


def largest_finite(dtype: np.dtype[Any]) -> float:
    """The largest finite value of a floating-point dtype."""
    limits: Any = ml_dtypes.finfo(dtype)
    return float(limits.max)
