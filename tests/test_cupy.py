"""CuPy: on a GPU where there is one, else on the double of `fake_cupy`, which shows the glue alone."""

from __future__ import annotations

import copy
import gc
import pickle
import runpy
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
import fake_cupy
from arrcomp import QSGD, CorruptStreamError, DeviceUnavailableError, ErrorBounded, Lossless, _core
from capsules import CUDA, CUDA_MANAGED, READ_ONLY, Producer

RNG = np.random.default_rng(11)
X = RNG.normal(0, 1, (300, 40)).astype(np.float32)
CODEC = ErrorBounded(rel=1e-3)
RANDOM = QSGD(rounding="stochastic")
EXAMPLE = Path(__file__).parents[1] / "examples" / "cupy_streams.py"


def has_gpu() -> bool:
    """Whether CuPy and the core can both use a GPU here."""
    try:
        import cupy  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return False
    return _core.cuda_device_count() > 0 and cupy.cuda.is_available()


@pytest.fixture
def cupy() -> Iterator[Any]:
    """CuPy, or its double."""
    if has_gpu():
        yield sys.modules["cupy"]
        return
    with fake_cupy.installed() as module:
        yield module


@pytest.fixture
def double(cupy: Any) -> Any:
    """The double of CuPy."""
    if cupy is not fake_cupy:
        pytest.skip("shown on the double alone")
    return cupy


class Calls:
    """The core's CUDA functions, called through and recorded: positional arguments by name of the function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.encode = self._spy(monkeypatch, "cuda_encode")
        self.decode = self._spy(monkeypatch, "cuda_decode")

    def _spy(self, monkeypatch: pytest.MonkeyPatch, name: str) -> list[tuple[Any, ...]]:
        function: Callable[..., None] = getattr(_core, name)
        calls: list[tuple[Any, ...]] = []

        def spy(*arguments: Any) -> None:
            calls.append(arguments)
            function(*arguments)

        monkeypatch.setattr(_core, name, spy)
        return calls


ARRAYS, SEED, STREAM, DEVICE = 3, 5, -2, -1  # places of arguments


@pytest.fixture
def calls(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What the core is asked."""
    return Calls(monkeypatch)


def counted(cupy: Any, function: Callable[[], Any]) -> tuple[Any, list[int]]:
    """What a function returns, and the sizes of the allocations that it makes."""
    sizes: list[int] = []

    class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc,name-defined,unused-ignore]
        name = "counting"

        def malloc_preprocess(self, **arguments: Any) -> None:
            if arguments["size"]:
                sizes.append(arguments["size"])

    with Hook():
        result = function()
    return result, sizes


def corrupted(stream: bytes) -> bytes:
    """A stream whose checksum is right and whose payload is not."""
    start, end = checks.payload_span(stream)
    return checks.seal(stream[:start] + b"\xff" * (end - start))


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "float16", "float32", "float64", "complex64", "complex128"])
def test_arrays_come_back_as_such(cupy: Any, name: str) -> None:
    x = RNG.integers(0, 2, (3, 40)).astype(name)
    c = arrcomp.compress(cupy.asarray(x))
    y = arrcomp.decompress(c)
    assert isinstance(y, cupy.ndarray)
    assert c.device == "cuda:0"
    assert c.to_bytes() == arrcomp.compress(x).to_bytes()
    checks.check_same_bits(cupy.asnumpy(y), x)


@pytest.mark.parametrize("codec", [Lossless(), CODEC, ErrorBounded(abs=1e-2, speed="fast"), QSGD(bits=3)])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3), (4096,), (70, 1001)])
def test_the_stream_is_that_of_every_device(cupy: Any, codec: arrcomp.Codec, shape: tuple[int, ...]) -> None:
    x = RNG.normal(size=shape).astype(np.float32).reshape(shape)
    c = arrcomp.compress(cupy.asarray(x), codec)
    expected = arrcomp.compress(x, codec)
    assert c.to_bytes() == expected.to_bytes()
    checks.check_same_bits(cupy.asnumpy(arrcomp.decompress(c)), arrcomp.decompress(expected))


@pytest.mark.parametrize("index", [(slice(None, None, 3),), (slice(None), slice(5, 9)), (slice(None, None, -1),), (7,)])
def test_layouts_come_back_in_c_order(cupy: Any, index: tuple[Any, ...]) -> None:
    y = arrcomp.decompress(arrcomp.compress(cupy.asarray(X)[index]))
    assert y.flags.c_contiguous
    np.testing.assert_array_equal(cupy.asnumpy(y), X[index])


def test_misaligned_arrays_are_read(cupy: Any) -> None:
    raw = np.frombuffer(b"x" + X.tobytes(), np.uint8)
    x = cupy.asarray(raw)[1:].view(np.float32)
    np.testing.assert_array_equal(cupy.asnumpy(arrcomp.decompress(arrcomp.compress(x))), X.reshape(-1))


def test_the_modules_own_functions_are_the_same(cupy: Any) -> None:
    import arrcomp.cupy as ours

    x = cupy.asarray(X)
    c = ours.compress(x, CODEC)
    assert c.to_bytes() == arrcomp.compress(X, CODEC).to_bytes()
    out = cupy.empty(X.shape, X.dtype)
    assert ours.decompress(c, out=out) is out
    buffer = cupy.empty(arrcomp.max_compressed_size(x), np.uint8)
    assert ours.compress(x, out=buffer).to_bytes() == ours.compress(x).to_bytes()
    assert ours.has_cuda()


def test_the_modules_decompress_gives_cupy_arrays_of_everything(cupy: Any) -> None:
    import arrcomp.cupy as ours

    for c in (arrcomp.compress(X), arrcomp.from_bytes(arrcomp.compress(X).to_bytes())):
        y = ours.decompress(c)
        assert isinstance(y, cupy.ndarray)
        np.testing.assert_array_equal(cupy.asnumpy(y), X)


def test_the_modules_own_functions_take_cupy_arrays_alone(cupy: Any) -> None:
    import arrcomp.cupy as ours

    with pytest.raises(TypeError, match=r"x is a ndarray; a cupy\.ndarray is allowed \(arrcomp\.compress takes"):
        ours.compress(X)
    with pytest.raises(TypeError, match=r"out is a ndarray; a cupy\.ndarray"):
        ours.decompress(ours.compress(cupy.asarray(X)), out=X.copy())
    with pytest.raises(TypeError, match="c is a bytes"):
        ours.decompress(b"")  # type: ignore[arg-type]


def test_dtypes_that_cupy_lacks_are_refused_by_name(cupy: Any) -> None:
    like = cupy.empty(0, np.float32)
    for name in ("float8_e4m3fn", "int4", "float4_e2m1fn"):
        c = arrcomp.compress(np.zeros(5, getattr(ml_dtypes, name)))
        with pytest.raises(TypeError, match=rf"dtype {name}: CuPy \S+ has no such arrays; like=numpy.empty\(0\) works"):
            arrcomp.decompress(c, like=like)


def test_bfloat16_came_with_cupy_14(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = X.astype(ml_dtypes.bfloat16)
    c = arrcomp.compress(x)
    like = cupy.empty(0, np.float32)
    if int(cupy.__version__.split(".")[0]) >= 14:
        checks.check_same_bits(cupy.asnumpy(arrcomp.decompress(c, like=like)), x)
    monkeypatch.setattr(cupy, "__version__", "13.6.0")
    with pytest.raises(TypeError, match=r"dtype bfloat16: CuPy 13\.6\.0 has no such arrays"):
        arrcomp.decompress(c, like=like)


def test_big_endian_arrays_are_refused_by_name(double: Any) -> None:
    with pytest.raises(TypeError, match="dtype >f4: CuPy computes in native byte order"):
        arrcomp.compress(double.empty(3, ">f4"))


# Streams


def test_nothing_waits(cupy: Any) -> None:
    x = cupy.asarray(X)
    out = cupy.empty(X.shape, X.dtype)
    gate = threading.Event()

    def pipeline() -> Any:
        made = arrcomp.compress(x, CODEC)
        many = arrcomp.compress_many([x, x], CODEC)
        arrcomp.decompress_many(many)
        arrcomp.decompress(made, out=out)
        return made, arrcomp.decompress(copy.deepcopy(made))

    stream = cupy.cuda.Stream()
    with stream:
        pipeline()  # fills the pool: asking the driver for memory may wait
        stream.synchronize()
        stream.launch_host_func(lambda _: gate.wait(10), None)
        c, y = pipeline()
        assert not stream.done, "something waited for the device"
        gate.set()
        expected = arrcomp.compress(X, CODEC)
        np.testing.assert_array_equal(cupy.asnumpy(y), arrcomp.decompress(expected))
        np.testing.assert_array_equal(cupy.asnumpy(out), arrcomp.decompress(expected))
        assert c.to_bytes() == expected.to_bytes()


def test_the_host_waits_once_for_a_length_and_once_for_the_bytes(double: Any) -> None:
    c = arrcomp.compress(double.asarray(X))
    waits = double.Stream.waits
    assert c.nbytes == c.nbytes
    assert double.Stream.waits == waits + 1
    c.to_bytes()
    assert double.Stream.waits == waits + 2


def test_the_core_works_on_the_current_stream(cupy: Any, calls: Calls) -> None:
    x = cupy.asarray(X)
    cupy.cuda.get_current_stream().synchronize()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    found = []
    for stream in streams:
        with stream:
            found.append(arrcomp.decompress(arrcomp.compress(x)))
    assert [call[STREAM] for call in calls.encode] == [stream.ptr for stream in streams]
    assert [call[STREAM] for call in calls.decode] == [stream.ptr for stream in streams]
    assert streams[0].ptr != streams[1].ptr
    for y, stream in zip(found, streams, strict=True):
        with stream:
            np.testing.assert_array_equal(cupy.asnumpy(y), X)


def test_pipelines_on_several_streams_overlap(cupy: Any) -> None:
    arrays = [RNG.normal(size=30_000).astype(np.float32) for _ in range(4)]
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in arrays]
    on_device = [cupy.asarray(x) for x in arrays]
    there = cupy.cuda.get_current_stream().record()
    gate = threading.Event()

    def run() -> list[Any]:
        found = []
        for x, stream in zip(on_device, streams, strict=True):
            with stream:
                stream.wait_event(there)
                found.append(arrcomp.decompress(arrcomp.compress(x, CODEC)))
        return found

    run()  # fills the pool
    for stream in streams:
        stream.synchronize()
    streams[0].launch_host_func(lambda _: gate.wait(10), None)
    found = run()
    for stream in streams[1:]:
        stream.synchronize()  # which is possible while the first stream stands still
    assert not streams[0].done
    gate.set()
    for x, y, stream in zip(arrays, found, streams, strict=True):
        with stream:
            np.testing.assert_array_equal(cupy.asnumpy(y), arrcomp.decompress(arrcomp.compress(x, CODEC)))


def test_temporary_memory_is_given_back_in_stream_order(cupy: Any) -> None:
    arrays = [RNG.normal(size=10_000).astype(np.float32) for _ in range(6)]
    with cupy.cuda.Stream():
        made = [arrcomp.compress(cupy.asarray(x)[::2]) for x in arrays]
        found = [arrcomp.decompress(c) for c in made]
        del made
        gc.collect()
        for _ in range(6):
            cupy.asarray(np.zeros(10_000, np.float32))
        for x, y in zip(arrays, found, strict=True):
            np.testing.assert_array_equal(cupy.asnumpy(y), x[::2])


# Memory


def test_nothing_is_copied_that_need_not_be(cupy: Any, calls: Calls) -> None:
    x = cupy.asarray(X)
    arrcomp.decompress(arrcomp.compress(x))
    c, sizes = counted(cupy, lambda: arrcomp.compress(x))
    assert len(sizes) == 3  # payload, length, scratch
    assert calls.encode[-1][ARRAYS][0][0] == x.data.ptr
    assert max(sizes) >= c.payload.buffer.nbytes >= arrcomp.max_compressed_size(x)
    y, sizes = counted(cupy, lambda: arrcomp.decompress(c))
    assert len(sizes) == 2  # array, status
    payload, limit, length, target, elements = calls.decode[-1][ARRAYS][0]
    assert (payload, limit) == (c.payload.buffer.data.ptr, c.payload.buffer.size)
    assert (length, target, elements) == (c.payload.length.data.ptr, y.data.ptr, X.size)


def test_out_is_used_in_place(cupy: Any, calls: Calls) -> None:
    x = cupy.asarray(X)
    buffer = cupy.empty(arrcomp.max_compressed_size(x) + 100, np.uint8)
    out = cupy.empty(X.shape, X.dtype)
    c, sizes = counted(cupy, lambda: arrcomp.compress(x, out=buffer))
    assert len(sizes) == 2  # length, scratch
    assert calls.encode[-1][ARRAYS][0][1] == c.payload.buffer.data.ptr == buffer.data.ptr
    y, sizes = counted(cupy, lambda: arrcomp.decompress(c, out=out))
    assert len(sizes) == 1  # status
    assert y is out
    assert calls.decode[-1][ARRAYS][0][3] == out.data.ptr
    np.testing.assert_array_equal(cupy.asnumpy(out), X)


def test_many_arrays_go_in_one_call(cupy: Any, calls: Calls) -> None:
    arrays: list[NDArray[Any]] = [RNG.normal(size=n).astype(np.float32) for n in (1, 5000, 0, 100, 70_000)]
    tree, sizes = counted(cupy, lambda: arrcomp.compress_many({"a": list(map(cupy.asarray, arrays))}))
    assert len(calls.encode) == 1
    assert len(sizes) == 3 + 4  # payloads, lengths, scratch; and the arrays themselves
    assert all(payload % 256 == 0 for _, payload, _ in calls.encode[0][ARRAYS])
    found, sizes = counted(cupy, lambda: arrcomp.decompress_many(tree))
    assert len(calls.decode) == 1
    assert len(sizes) == 2 + 4
    for x, c, y in zip(arrays, tree["a"], found["a"], strict=True):
        assert c.to_bytes() == arrcomp.compress(x).to_bytes()
        checks.check_same_bits(cupy.asnumpy(y), x)


def test_trimming_gives_memory_back(cupy: Any) -> None:
    c = arrcomp.compress(cupy.asarray(X), ErrorBounded(abs=0.1))
    trimmed = c.trim()
    assert trimmed.payload.buffer.size < c.payload.buffer.size // 2
    assert trimmed.to_bytes() == c.to_bytes()
    checks.check_same_bits(cupy.asnumpy(arrcomp.decompress(trimmed)), cupy.asnumpy(arrcomp.decompress(c)))


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (lambda cupy: cupy.empty(16, np.uint8), ValueError, "out has 16 bytes; at least"),
        (lambda cupy: cupy.empty(10**6, np.float32), TypeError, "out has dtype float32; uint8 is allowed"),
        (lambda cupy: cupy.empty(10**6, np.uint8)[::2], ValueError, "out is not C-contiguous"),
        (lambda cupy: cupy.empty(10**6, np.uint8)[4:], ValueError, "a multiple of 8 bytes is allowed"),
        (lambda cupy: bytearray(10**6), TypeError, r"out is a bytearray; a cupy\.ndarray is allowed"),
        (lambda cupy: np.empty(10**6, np.uint8), TypeError, r"out is a ndarray; a cupy\.ndarray is allowed"),
    ],
)
def test_buffers_that_do_not_fit_are_refused(cupy: Any, out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrcomp.compress(cupy.asarray(X), out=out(cupy))


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (lambda cupy: cupy.empty((300, 41), np.float32), ValueError, r"out has shape \(300, 41\); \(300, 40\) is"),
        (lambda cupy: cupy.empty((300, 40), np.float64), TypeError, "out has dtype float64; float32 is allowed"),
        (lambda cupy: cupy.empty((300, 80), np.float32)[:, ::2], ValueError, "out is not C-contiguous"),
        (lambda cupy: cupy.empty(48_001, np.uint8)[1:].view(np.float32).reshape(300, 40), ValueError, "multiple of 4"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(cupy: Any, out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrcomp.decompress(arrcomp.compress(cupy.asarray(X)), out=out(cupy))


def test_memory_that_overlaps_is_refused(cupy: Any) -> None:
    memory = cupy.empty(200_000, np.uint8)
    x = memory[:48_000].view(np.float32)
    with pytest.raises(ValueError, match="out overlaps x"):
        arrcomp.compress(x, out=memory)
    c = arrcomp.compress(cupy.asarray(X.reshape(-1)), out=memory)
    with pytest.raises(ValueError, match="out overlaps the compressed array"):
        arrcomp.decompress(c, out=x)


# Random rounding and fixed rates


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_seeds_are_numbers_or_arrays(cupy: Any, calls: Calls, dtype: str) -> None:
    import arrcomp.cupy as ours

    x = cupy.asarray(X)
    expected = arrcomp.compress(X, RANDOM, seed=5).to_bytes()
    assert ours.compress(x, RANDOM, seed=5).to_bytes() == expected
    assert calls.encode[-1][SEED : SEED + 2] == (5, 0)
    seed = cupy.asarray(np.array(5, dtype))
    for c in (ours.compress(x, RANDOM, seed=seed), arrcomp.compress_many([x], RANDOM, seed=seed)[0]):
        assert c.to_bytes() == expected
    if dtype.startswith("int"):
        minus = cupy.asarray(np.array(-5, dtype))
        assert ours.compress(x, RANDOM, seed=minus).to_bytes() == arrcomp.compress(X, RANDOM, seed=2**64 - 5).to_bytes()


def test_fixed_rates_and_their_seeds_never_wait(double: Any) -> None:
    x, seed = double.asarray(X), double.asarray(np.array(3))
    waits = double.Stream.waits
    made = [
        arrcomp.compress(x, RANDOM, seed=seed),
        arrcomp.compress(x, RANDOM, seed=4, out=double.empty(10**6, np.uint8)),
        *arrcomp.compress_many([x, x[:3]], RANDOM, seed=seed),
    ]
    for c in made:
        assert c.payload.length is None
        assert c.payload.buffer.size == c.payload.nbytes == c.spec.capacity
        assert c.ratio > 1
        assert c.trim().nbytes == c.nbytes
        arrcomp.decompress(c)
    assert double.Stream.waits == waits


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (lambda cupy: cupy.asarray(np.array(1.5)), r"seed is an array float64\[\]; an integer"),
        (lambda cupy: cupy.asarray(np.array(True)), r"seed is an array bool\[\]; an integer"),
        (lambda cupy: np.array(3), r"seed is a ndarray; an integer, or a cupy\.ndarray"),
        (lambda cupy: 1.5, r"seed=1\.5"),
        (lambda cupy: None, "seed=None"),
    ],
)
def test_what_is_no_seed_is_refused(cupy: Any, seed: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        arrcomp.compress(cupy.asarray(X), RANDOM, seed=seed(cupy))


def test_a_seed_elsewhere_is_refused(cupy: Any) -> None:
    with other_device(cupy):
        seed = cupy.asarray(np.array(3))
    with pytest.raises(TypeError, match="seed is on cuda:1; an integer, or an array on cuda:0"):
        arrcomp.compress(cupy.asarray(X), RANDOM, seed=seed)


# Payloads from elsewhere


def test_payloads_from_elsewhere_are_checked(cupy: Any) -> None:
    like = cupy.empty(0, np.float32)
    stream = arrcomp.compress(X).to_bytes()
    np.testing.assert_array_equal(cupy.asnumpy(arrcomp.decompress(arrcomp.from_bytes(stream), like=like)), X)
    hostile = arrcomp.from_bytes(corrupted(stream))
    with pytest.raises(CorruptStreamError):
        arrcomp.decompress(hostile, like=like)
    with pytest.raises(CorruptStreamError):
        hostile.to(like).verify()
    with pytest.raises(CorruptStreamError):
        arrcomp.decompress_many([arrcomp.from_bytes(stream), hostile], like=like)


def test_an_unaligned_payload_is_read(cupy: Any) -> None:
    stream = arrcomp.compress(X).to_bytes()
    start, end = checks.payload_span(stream)
    c = arrcomp.from_bytes(stream).to(cupy.empty(0, np.float32))
    moved = cupy.asarray(np.frombuffer(b"abc" + stream[start:end], np.uint8))[3:]
    twin = arrcomp.compressed.Compressed(c.spec, arrcomp.payload.Payload(c.payload.adapter, moved))
    np.testing.assert_array_equal(cupy.asnumpy(arrcomp.decompress(twin)), X)


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])  # noqa: S301
def test_compressed_arrays_are_copied_and_pickled(cupy: Any, twin: Callable[[Any], Any]) -> None:
    c = arrcomp.compress(cupy.asarray(X), CODEC)
    other = twin(c)
    assert other.device == "cuda:0"
    assert other.to_bytes() == c.to_bytes()
    assert isinstance(arrcomp.decompress(other), cupy.ndarray)


def test_compressed_arrays_move_to_the_host_and_back(cupy: Any) -> None:
    c = arrcomp.compress(cupy.asarray(X))
    there = c.to("cpu")
    assert isinstance(arrcomp.decompress(there), np.ndarray)
    back = there.to(cupy.empty(0, np.int8))
    assert c.to("cuda:0") is c
    np.testing.assert_array_equal(cupy.asnumpy(arrcomp.decompress(back)), X)


# Several devices


def other_device(cupy: Any) -> Any:
    """A second device."""
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one device")
    return cupy.cuda.Device(1)


def test_work_is_done_where_the_array_is(cupy: Any, calls: Calls) -> None:
    with other_device(cupy):
        x = cupy.asarray(X)
    c = arrcomp.compress(x)
    y = arrcomp.decompress(c)
    assert c.device == "cuda:1"
    assert y.device.id == 1
    assert [call[DEVICE] for call in calls.encode + calls.decode] == [1, 1]
    assert c.to_bytes() == arrcomp.compress(X).to_bytes()


def test_moving_to_another_device_comes_after_what_was_enqueued(cupy: Any) -> None:
    second = other_device(cupy)
    x = RNG.normal(size=12_345).astype(np.float32)
    y = arrcomp.decompress(arrcomp.compress(cupy.asarray(x)).to("cuda:1"))
    with second:
        np.testing.assert_array_equal(cupy.asnumpy(y), x)


def test_what_was_moved_to_another_device_may_go_at_once(cupy: Any) -> None:
    second = other_device(cupy)
    x, other = RNG.normal(size=(2, 12_345)).astype(np.float32)
    c = arrcomp.compress(cupy.asarray(x))
    y = arrcomp.decompress(c.to("cuda:1"))
    del c
    gc.collect()
    arrcomp.compress(cupy.asarray(other)).to_bytes()  # in the memory of `c`
    with second:
        np.testing.assert_array_equal(cupy.asnumpy(y), x)


def test_devices_are_not_mixed(cupy: Any, calls: Calls) -> None:
    x = cupy.asarray(X)
    with other_device(cupy):
        out = cupy.empty(arrcomp.max_compressed_size(X), np.uint8)
        y = cupy.asarray(X)
    with pytest.raises(TypeError, match="out is on cuda:1; a uint8 array on the device of x is allowed"):
        arrcomp.compress(x, out=out)
    made = arrcomp.compress_many([x, y, x])
    assert [c.device for c in made] == ["cuda:0", "cuda:1", "cuda:0"]
    assert [call[DEVICE] for call in calls.encode] == [0, 1]


def test_numpy_goes_to_the_framework_that_has_a_gpu(double: Any) -> None:
    c = arrcomp.compress(X).to("cuda")  # PyTorch and JAX, if installed, see no GPU here
    assert (c.device, c.payload.adapter.name) == ("cuda:0", "cupy")
    x = arrcomp.arrays.to_cuda(X.astype(">f4"), 1)
    assert (x.device.id, x.shape, x.dtype) == (1, X.shape, np.float32)
    with double.cuda.Device(1):
        np.testing.assert_array_equal(double.asnumpy(x), X)


@pytest.mark.parametrize("place", [{"like": "cupy"}, {"like": "cupy", "device": "cuda:1"}, {"device": "cuda"}], ids=str)
def test_arrays_of_a_file_travel_compressed(double: Any, calls: Calls, place: dict[str, Any], tmp_path: Path) -> None:
    arrcomp.save_file({"x": double.asarray(X)}, tmp_path / "x.arrcomp", CODEC)
    loaded, sizes = counted(double, lambda: arrcomp.load_file(tmp_path / "x.arrcomp", **place)["arr_0"])
    index = 1 if place.get("device") == "cuda:1" else 0
    assert (type(loaded), loaded.device.id, calls.decode[-1][DEVICE]) == (double.ndarray, index, index)
    payload = arrcomp.compress(X, CODEC).payload.nbytes
    assert sorted(sizes)[-2:] == [payload, X.nbytes]
    with double.cuda.Device(index):
        checks.check_bound(X, double.asnumpy(loaded), CODEC)


def test_a_device_that_is_not_there_is_named(double: Any) -> None:
    with pytest.raises(DeviceUnavailableError, match="cuda:7: 2 CUDA devices are available"):
        arrcomp.compress(X).to("cuda:7")


# Other producers on a GPU


@pytest.mark.parametrize("kind", [CUDA, CUDA_MANAGED])
@pytest.mark.parametrize("age", [("stream", "max_version", "dl_device", "copy"), ("stream",)])
@pytest.mark.parametrize("flags", [0, READ_ONLY])
def test_producers_are_told_our_stream(double: Any, kind: int, age: tuple[str, ...], flags: int) -> None:
    x = double.asarray(X)
    producer = Producer(x.elements, device=(kind, 0), keywords=age, flags=flags)
    double.get_current_stream().synchronize()
    with double.cuda.Stream() as stream:
        c = arrcomp.compress(producer, CODEC)
        assert c.to_bytes() == arrcomp.compress(X, CODEC).to_bytes()
    assert producer.asked[-1]["stream"] == stream.ptr
    assert producer.deleted == 1
    assert (c.device, c.payload.adapter.name) == ("cuda:0", "cupy")
    arrcomp.compress(producer, CODEC)
    assert producer.asked[-1]["stream"] == 1  # the default stream's name there


def test_work_still_queued_by_the_producer_comes_first(cupy: Any) -> None:
    theirs, ours = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    source = cupy.asarray(X)
    cupy.cuda.get_current_stream().synchronize()
    gate = threading.Event()

    class Queued:
        """What a producer does that is told the consumer's stream."""

        def __dlpack__(self, *, stream: int, **options: Any) -> Any:
            assert stream == ours.ptr
            ours.wait_event(theirs.record())
            return x.__dlpack__(stream=stream, **options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return x.__dlpack_device__()  # type: ignore[no-any-return]

    with ours:
        arrcomp.decompress(arrcomp.compress(source))  # fills the pool
    with theirs:
        source.copy()
        theirs.launch_host_func(lambda _: gate.wait(10), None)
        x = source.copy()
    with ours:
        y = arrcomp.decompress(arrcomp.compress(Queued()))
        assert not theirs.done
        gate.set()
        np.testing.assert_array_equal(cupy.asnumpy(y), X)


def test_producers_dtypes_that_cupy_lacks_are_refused(double: Any) -> None:
    x = double.asarray(X)
    with pytest.raises(TypeError, match=r"x: CuPy 14\.0\.0 has no arrays of its data type \(data type code 10\)"):
        arrcomp.compress(Producer(x.elements, device=(CUDA, 0), dtype=(10, 8, 1)))


def test_the_producers_own_exception_comes_through(double: Any) -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught:
        arrcomp.compress(Producer(X, device=(CUDA, 0), error=error))
    assert caught.value is error


# Without CuPy or without a GPU


def test_without_cupy_its_module_says_so() -> None:
    code = "import sys; sys.modules['cupy'] = None; import arrcomp.arrays as a; a.adapter_named('cupy')"
    result = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert "install cupy, or pass like=" in result.stderr


def test_the_examples_pipeline_keeps_its_bound(cupy: Any) -> None:
    example = runpy.run_path(str(EXAMPLE))
    arrays = [cupy.asarray(x) for x in RNG.normal(size=(7, 1000)).astype(np.float32)]
    there = cupy.cuda.get_current_stream().record()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
    for stream in streams:
        stream.wait_event(there)
    results = example["enqueue"](arrays, streams)
    for stream in streams:
        stream.synchronize()
    for x, y in zip(arrays, results, strict=True):
        assert np.abs(cupy.asnumpy(x) - cupy.asnumpy(y)).max() <= example["CODEC"].abs


def test_the_example_runs_on_a_gpu_and_says_so_elsewhere() -> None:
    result = subprocess.run([sys.executable, "-P", EXAMPLE], capture_output=True, text=True, check=False)
    if not has_gpu():
        assert result.returncode == 1
        assert "needs CuPy, a GPU and an arrcomp built with CUDA" in result.stderr
        return
    assert result.returncode == 0, result.stderr
    assert "4 streams" in result.stdout
