"""CuPy's streams and devices: work is enqueued where the array is, in order, and nothing waits."""

from __future__ import annotations

import copy
import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import DeviceUnavailableError
from capsules import CUDA, CUDA_MANAGED, READ_ONLY, Producer
from cupy_fixtures import CODEC, DEVICE, STREAM, Calls, X, counted, other_device

RNG = np.random.default_rng(11)


def test_nothing_waits(cupy: Any) -> None:
    stream, gate = cupy.cuda.Stream(), threading.Event()
    with stream:  # no other stream's work comes before this one's
        x, out = cupy.asarray(X), cupy.empty(X.shape, X.dtype)

    def pipeline() -> Any:
        made = arrcomp.compress(x, CODEC)
        many = arrcomp.compress_many([x, x], CODEC)
        arrcomp.decompress_many(many)
        arrcomp.decompress(made, out=out)
        return made, arrcomp.decompress(copy.deepcopy(made))

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


# Several devices


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
        out = cupy.empty(arrcomp.max_compressed_nbytes(X), np.uint8)
        y = cupy.asarray(X)
    with pytest.raises(TypeError, match="out: expected a uint8 array on cuda:0 like x, got cuda:1"):
        arrcomp.compress(x, out=out)
    made = arrcomp.compress_many([x, y, x])
    assert [c.device for c in made] == ["cuda:0", "cuda:1", "cuda:0"]
    assert [call[DEVICE] for call in calls.encode] == [0, 1]


def test_numpy_goes_to_the_framework_that_has_a_gpu(double: Any) -> None:
    c = arrcomp.compress(X).to("cuda")  # PyTorch and JAX, if installed, see no GPU here
    assert (c.device, c.payload.adapter.name) == ("cuda:0", "cupy")
    x = arrcomp._arrays.registry.to_cuda(X.astype(">f4"), 1)
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
            return x.__dlpack_device__()

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
