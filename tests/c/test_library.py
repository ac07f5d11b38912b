"""The C library writes and reads the bytes that Python does, refuses what Python refuses, and never touches others."""

from __future__ import annotations

import ctypes
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import library
import numpy as np
import pytest

import arrcomp
import checks
import fuzz_headers
import golden_inputs
import instances
import small_streams
from arrcomp import _dtypes
from arrcomp.codecs import QSGD, S2FP8, BaseDelta, Codebook, ErrorBounded, FloatFormat, Lossless, SmaQ

pytestmark = pytest.mark.c

SHAPES = ((), (1,), (0,), (3, 0, 5), (4097,), (7, 1, 300))
CODECS = instances.and_unlisted(
    [
        *(codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()),
        Lossless(predictor="auto"),
        ErrorBounded(abs=1e-300, fill_value=-9999),
        ErrorBounded(abs=123456789012345678, speed="fast"),
        ErrorBounded(rel=1e-3, predictor="interpolation"),
        ErrorBounded(pointwise=1e-3, predictor="columns"),
        ErrorBounded(abs=2.0**-30, predictor="lorenzo", fill_value=1e20),
        QSGD(3, norm="l2", rounding="stochastic", coding="entropy", bucket_size=100),
        QSGD(2, norm="linf", skip_incomplete=True),
        S2FP8(rounding="stochastic"),
        SmaQ(statistics="given", mean=-0.0, std=3),
        SmaQ(3, 12, block_size=None, statistics="sampled", overflow="clamp", all_positive=True, min_size=0),
        SmaQ(statistics="range", rounding="truncate", preserve_zeros=False, main_threshold=1e-2),
        FloatFormat("fp8"),
        FloatFormat("e3m9", rounding="stochastic", overflow="infinity"),
        FloatFormat("fp6_e3m2", scaling="tensor"),
        FloatFormat("mxint8", scale_rule="ceil"),
        FloatFormat("fp4", scaling="bucket"),
        BaseDelta(delta_bits=(16, 8, 64, 8), bases=2),
        BaseDelta(drop_bits=5, rounding="stochastic"),
        Codebook([0.1, 0.25, 1e-5 + 0.5], [1e-7, -123456.0, 1e22, 0.3], bucket_size=17),
        Codebook([0.5], [0, 1], scaling="tensor"),
        Codebook.dynamic8(signed=False),
    ]
)
SEED = 2**63 + 12345

_MOST_DECODED = 1 << 18  # bytes of altered streams' arrays


def sample(dtype: _dtypes.DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Random bits of a dtype; of floats random numbers."""
    rng = np.random.default_rng(7)
    if dtype.name in ("float16", "bfloat16", "float32", "float64"):
        return np.asarray(rng.standard_normal(shape).cumsum().reshape(shape) / 9, dtype.numpy)
    count = int(np.prod(shape, dtype=int))
    words = rng.integers(0, 2 if dtype.name == "bool" else 16, (count, dtype.itemsize)).astype(np.uint8)
    return words.reshape(-1).view(dtype.numpy).reshape(shape)


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_streams_are_those_of_python_for_every_codec_dtype_and_shape(lib: library.Library, codec: Any) -> None:
    tried = 0
    for number in range(1, 29):
        dtype = _dtypes.by_id(number)
        assert dtype is not None
        for shape in SHAPES if codec.takes(dtype) else ((),):
            x = sample(dtype, shape)
            configuration = json.dumps(codec.config())
            if not codec.takes(dtype):
                with pytest.raises(library.StatusError, match=f"dtype: .* takes, got {dtype.name}$") as refused:
                    lib.compress(x, number, configuration)
                assert refused.value.status == library.INVALID_ARGUMENT
                continue
            expected = arrcomp.compress(x, codec, seed=SEED).to_bytes()
            stream = lib.compress(x, number, configuration, seed=SEED)
            assert stream == expected
            assert lib.decompress(stream, x.nbytes) == arrcomp.decompress(arrcomp.from_bytes(stream)).tobytes()
            tried += 1
    assert tried >= 3 * len(SHAPES)


def test_checksums_are_those_of_python_for_streams_of_every_length(lib: library.Library) -> None:
    words = np.random.default_rng(2).integers(0, 2**63, 700)
    shapes = [*((1,) * dimensions for dimensions in range(40)), *((size,) for size in range(words.size))]
    lengths = set()
    for shape in shapes:
        x = words[: int(np.prod(shape))].reshape(shape)
        expected = arrcomp.compress(x).to_bytes()
        assert lib.compress(x, 8, None) == expected
        lengths.add(len(expected))
    assert min(lengths) < 130
    assert len([n for n in lengths if n < 260]) > 15
    assert max(lengths) > 5000


def test_golden_streams_are_written_and_read(lib: library.Library) -> None:
    written = 0
    for name, golden in golden_inputs.GOLDEN.items():
        stream = golden_inputs.path_of(name).read_bytes()
        info = lib.info(stream)
        x = golden.make()
        assert (info.dtype, tuple(info.shape[: info.dimensions])) == (_dtypes.by_numpy(x.dtype).id, x.shape)
        assert lib.array_nbytes(library.layout_of(info.dtype, x.shape)) == x.nbytes
        assert (info.codec.decode(), info.array_bytes) == (golden.codec.name, x.nbytes)
        assert bool(info.is_framed) == checks.is_framed(stream)
        if info.is_framed or golden.make_reference is not None:
            with pytest.raises(library.StatusError, match="Zstandard" if info.is_framed else "reference") as refused:
                lib.decompress(stream, x.nbytes)
            assert refused.value.status == library.NOT_SUPPORTED
            continue
        configuration = json.dumps(golden.codec.config())
        assert lib.compress(np.asarray(x, order="C"), info.dtype, configuration, seed=checks.SEED) == stream
        assert lib.decompress(stream, x.nbytes) == arrcomp.decompress(arrcomp.from_bytes(stream)).tobytes()
        written += 1
    assert written > 150


CONFIGURATIONS = (
    '{"codec":"error-bounded","abs":1}',
    ' {"abs" : 1e-3 , "codec" : "error-bounded", "rel": null, "fill_value": null}\n',
    '{"codec":"error-bounded","abs":5e-324}',
    '{"codec":"error-bounded","abs":1e400}',
    '{"codec":"error-bounded","abs":1e-400}',
    '{"codec":"error-bounded","abs":0}',
    '{"codec":"error-bounded","abs":1,"rel":1}',
    '{"codec":"error-bounded"}',
    '{"codec":"error-bounded","pointwise":1.0}',
    '{"codec":"error-bounded","abs":true}',
    '{"codec":"error-bounded","abs":"1"}',
    '{"codec":"error-bounded","abs":123456789012345678901234567890}',
    '{"codec":"error-bounded","abs":01}',
    '{"codec":"error-bounded","abs":1.}',
    '{"codec":"error-bounded","abs":+1}',
    '{"codec":"error-bounded","abs":1,}',
    '{"codec":"error-bounded","abs":1} x',
    '{"codec":"error-bounded","abs":1,"speed":null}',
    '{"codec":"error-bounded","abs":1,"x":2}',
    '{"\\u0063odec":"error-bounded","abs":2,"abs":1E+1}',
    '{"codec":"error-bounded","abs":1,"fill_value":-0}',
    '{"codec":"qsgd","bits":4.0}',
    '{"codec":"qsgd","bits":9}',
    '{"codec":"qsgd","bits":-0}',
    '{"codec":"qsgd","skip_incomplete":1}',
    '{"codec":"qsgd","coding":"packed"}',
    '{"codec":"qsgd","bucket_size":1099511627776}',
    '{"codec":"qsgd","bucket_size":1099511627777}',
    '{"codec":"smaq","block_size":null}',
    '{"codec":"smaq","mean":null}',
    '{"codec":"smaq","statistics":"given","mean":1}',
    '{"codec":"smaq","main_threshold":3}',
    '{"codec":"smaq","outlier_bits":5}',
    '{"codec":"float-format"}',
    '{"codec":"float-format","format":"e9m1"}',
    '{"codec":"float-format","format":"e5m10"}',
    '{"codec":"float-format","format":"e03m2"}',
    '{"codec":"float-format","format":"fp4"}',
    '{"codec":"float-format","format":"mxfp8","scaling":"tensor"}',
    '{"codec":"float-format","format":"mxfp8","scale_rule":null}',
    '{"codec":"float-format","format":"nvfp4","scale_rule":"floor"}',
    '{"codec":"float-format","format":"fp8","scaling":"bucket","overflow":"infinity"}',
    '{"codec":"float-format","format":"fp8","bucket_size":64}',
    '{"codec":"s2fp8","bucket_size":null}',
    '{"codec":"base-delta","delta_bits":[]}',
    '{"codec":"base-delta","delta_bits":null}',
    '{"codec":"base-delta","delta_bits":[3,3,1]}',
    '{"codec":"codebook","table":"nf4"}',
    '{"codec":"codebook","table":"nf5"}',
    '{"codec":"codebook","table":"nf4","levels":null}',
    '{"codec":"codebook","borders":[0],"levels":[0,1e39]}',
    '{"codec":"codebook","borders":[0],"levels":[-0.0,16777217]}',
    '{"codec":"codebook","borders":[0,0],"levels":[0,1,2]}',
    '{"codec":"codebook","borders":[],"levels":[0]}',
    '{"codec":"codebook","borders":[[0]],"levels":[0,1]}',
    '{"codec":"none"}',
    '{"codec":1}',
    "{}",
    "[]",
    "",
    '{"codec":"lossless"',
)


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_a_configuration_means_what_it_means_in_python(lib: library.Library, text: str) -> None:
    x = np.linspace(-3, 3, 600, dtype=np.float32)
    try:
        expected = arrcomp.compress(x, arrcomp.codec_from_config(json.loads(text)), seed=5).to_bytes()
    except (TypeError, ValueError):
        with pytest.raises(library.StatusError, match=r": expected .*, got "):
            lib.compress(x, 12, text, seed=5)
        return
    assert lib.compress(x, 12, text, seed=5) == expected


def test_no_configuration_is_lossless(lib: library.Library) -> None:
    x = np.arange(5, dtype=np.int16)
    assert lib.compress(x, 4, None) == arrcomp.compress(x).to_bytes()


def test_streams_that_were_altered_are_refused_as_in_python(lib: library.Library) -> None:
    refused = [0, 0]
    for make in small_streams.SMALL.values():
        stream = make()
        mutants = [stream[:n] for n in range(0, len(stream), max(1, len(stream) // 40))]
        mutants += [altered(stream, place) for place in range(0, len(stream), max(1, len(stream) // 60))]
        mutants += [
            checks.seal(altered(stream, place)[:-8]) for place in range(0, len(stream) - 8, max(1, len(stream) // 150))
        ]
        for mutant in mutants:
            refused[check_agrees(lib, mutant)] += 1
    assert min(refused) > 100


def test_streams_with_altered_headers_are_refused_as_in_python(lib: library.Library) -> None:
    mutator, corpus = fuzz_headers.Mutator(11), fuzz_headers.seeds()
    refused = [0, 0]
    for _ in range(4000):
        refused[check_agrees(lib, mutator.mutated(corpus))] += 1
    assert min(refused) > 100


def altered(stream: bytes, place: int) -> bytes:
    changed = bytearray(stream)
    changed[place] ^= 1 << place % 8
    return bytes(changed)


def check_agrees(lib: library.Library, stream: bytes) -> bool:
    """Whether a stream was refused, in the way that Python refuses it; if not, both read the same array."""
    expected, error = array_or_error(stream)
    if error is None:
        if expected is not None:
            assert lib.decompress(stream, len(expected)) == expected
        return False
    with pytest.raises(library.StatusError) as refused:
        lib.decompress(stream, min(lib.info(stream).array_bytes, _MOST_DECODED))
    if refused.value.status != library.NOT_SUPPORTED or not checks.is_framed(stream):  # frames' bytes are not read
        newer = isinstance(error, arrcomp.errors.FormatVersionError)
        assert refused.value.status in (
            (library.NEWER_FORMAT,) if newer else (library.CORRUPT, library.UNKNOWN_CODEC)
        ), error
    return True


def array_or_error(stream: bytes) -> tuple[bytes | None, Exception | None]:
    """The bytes of a stream's array by Python, without those that the library does not support; or the error."""
    try:
        compressed = arrcomp.from_bytes(stream)
        needs_more = compressed.needs_reference or checks.is_framed(stream)
        if needs_more or compressed.spec.nbytes > _MOST_DECODED or b"NaN" in stream:  # which is no JSON, but Python's
            return None, None
        return arrcomp.decompress(compressed).tobytes(), None
    except small_streams.REFUSALS as error:
        return None, error


@pytest.mark.parametrize("codec", [Lossless(), ErrorBounded(abs=1e-2)], ids=repr)
def test_any_room_and_alignment_do(lib: library.Library, codec: Any) -> None:
    x = sample(_dtypes.by_name("float32"), (5000,))
    configuration, expected = json.dumps(codec.config()), arrcomp.compress(x, codec).to_bytes()
    assert lib.compress(x, 12, configuration, room=len(expected), threads=2) == expected
    unaligned = np.zeros(len(expected) + 8, np.uint8)
    for offset in range(1, 8, 3):
        unaligned[offset : offset + len(expected)] = np.frombuffer(expected, np.uint8)
        view = unaligned[offset : offset + len(expected)]
        assert lib.decompress(view, x.nbytes, threads=0) == arrcomp.decompress(arrcomp.compress(x, codec)).tobytes()
    for call in (
        lambda: lib.compress(x, 12, configuration, room=len(expected) - 1),
        lambda: lib.decompress(expected, x.nbytes - 1),
    ):
        with pytest.raises(library.StatusError, match="capacity: expected at least") as refused:
            call()
        assert refused.value.status == library.BUFFER_TOO_SMALL


@pytest.mark.parametrize(
    ("dtype", "shape", "threads", "name"),
    [
        (0, (3,), 1, "dtype"),
        (29, (3,), 1, "dtype"),
        (12, (2**60,), 1, "shape"),
        (15, (2**59,), 1, "shape"),
        (1, (0, 2**63), 1, "shape"),
        (12, (1,) * 65, 1, "dimensions"),
        (12, (3,), -1, "threads"),
    ],
)
def test_wrong_arguments_are_named(
    lib: library.Library, dtype: int, shape: tuple[int, ...], threads: int, name: str
) -> None:
    x = np.broadcast_to(np.float32(0), (3,))
    layout = library.layout_of(dtype, shape)
    nbytes = ctypes.c_uint64()
    status = lib._dll.arrcomp_compress(
        None, ctypes.c_uint64(0), ctypes.byref(nbytes), x.ctypes.data_as(ctypes.c_void_p), ctypes.byref(layout), None,
        ctypes.c_uint64(0), threads,
    )  # fmt: skip
    assert status == library.INVALID_ARGUMENT
    assert lib._dll.arrcomp_error_message().startswith(name.encode() + b": expected ")


def test_memory_that_is_not_there_is_a_status(lib: library.Library) -> None:
    layout, nbytes = library.layout_of(12, (2**58,)), ctypes.c_uint64()
    byte = (ctypes.c_uint8 * 8)()  # the payload's memory comes first: nothing is read
    status = lib._dll.arrcomp_compress(
        byte, ctypes.c_uint64(8), ctypes.byref(nbytes), byte, ctypes.byref(layout), None, ctypes.c_uint64(0), 1
    )
    assert status == library.NO_MEMORY
    assert lib._dll.arrcomp_error_message().startswith(b"no memory for a payload: ")


def test_null_pointers_are_named(lib: library.Library) -> None:
    layout, nbytes = library.layout_of(12, (3,)), ctypes.c_uint64()
    x, dll = np.zeros(3, np.float32), lib._dll
    room, address = ctypes.c_uint64(4096), ctypes.c_void_p(x.ctypes.data)
    seed = ctypes.c_uint64(0)
    calls = {
        "bytes": lambda: dll.arrcomp_compress_bound(None, ctypes.byref(layout), None),
        "layout": lambda: dll.arrcomp_compress_bound(ctypes.byref(nbytes), None, None),
        "shape": lambda: dll.arrcomp_compress_bound(
            ctypes.byref(nbytes), ctypes.byref(library.Layout(12, 1, None)), None
        ),
        "array": lambda: dll.arrcomp_compress(
            address, room, ctypes.byref(nbytes), None, ctypes.byref(layout), None, seed, 1
        ),
        "stream": lambda: dll.arrcomp_compress(
            None, room, ctypes.byref(nbytes), address, ctypes.byref(layout), None, seed, 1
        ),
        "info": lambda: dll.arrcomp_read_info(None, b"", ctypes.c_uint64(0)),
    }
    for name, call in calls.items():
        assert call() == library.INVALID_ARGUMENT
        assert dll.arrcomp_error_message() == f"{name}: expected an address, got NULL".encode()


def test_threads_have_messages_of_their_own(lib: library.Library) -> None:
    with pytest.raises(library.StatusError):
        lib.info(b"")
    before = lib._dll.arrcomp_error_message()
    messages = []
    other = threading.Thread(target=lambda: messages.append(lib._dll.arrcomp_error_message()))
    other.start()
    other.join()
    assert before == b"stream is truncated: got 0 bytes, too few for its header"
    assert messages == [b""]


def test_many_threads_call_at_once(lib: library.Library) -> None:
    x = sample(_dtypes.by_name("float32"), (9000,))
    codecs = [codec for codec in CODECS if codec.takes(_dtypes.by_name("float32"))]
    expected = [arrcomp.compress(x, codec, seed=SEED).to_bytes() for codec in codecs]

    def compressed(number: int) -> bytes:
        configuration = json.dumps(codecs[number % len(codecs)].config())
        with pytest.raises(library.StatusError, match=f"expected a finite number above 0, got -{number}$"):
            lib.bound(library.layout_of(12, (1,)), f'{{"codec":"error-bounded","abs":-{number}}}')
        stream = lib.compress(x, 12, configuration, seed=SEED, threads=2)
        lib.decompress(stream, x.nbytes, threads=2)
        return stream

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(compressed, range(len(codecs)))) == expected


def test_the_version_is_that_of_the_package(lib: library.Library) -> None:
    assert lib.version() == arrcomp.__version__
