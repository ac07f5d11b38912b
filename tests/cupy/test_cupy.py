"""CuPy: on a GPU where there is one, else on the double of `fake_cupy`, which shows the glue alone."""

from __future__ import annotations

import copy
import pickle
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import QSGD, CorruptStreamError, ErrorBounded, Lossless
from cupy_fixtures import CODEC, RANDOM, SEED, Calls, X, corrupted, has_gpu, other_device

RNG = np.random.default_rng(11)
EXAMPLE = Path(__file__).parents[2] / "examples" / "cupy_streams.py"


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


def test_references_are_on_the_device(cupy: Any) -> None:
    old = X + np.float32(0.01)
    x, base = cupy.asarray(X), cupy.asarray(old)
    for codec in (Lossless(), ErrorBounded(abs=1e-3)):
        c, expected = arrcomp.compress(x, codec, reference=base), arrcomp.compress(X, codec, reference=old)
        assert c.to_bytes() == expected.to_bytes()
        assert c.reference_hash == arrcomp.content_hash(base)
        wanted = arrcomp.decompress(expected, reference=old)
        checks.check_same_bits(cupy.asnumpy(arrcomp.decompress(c, reference=base)), wanted)
        target = base.copy()
        assert arrcomp.decompress(c, reference=target, out=target) is target
        checks.check_same_bits(cupy.asnumpy(target), wanted)
        with pytest.raises(arrcomp.WrongReferenceError):  # it is another array now
            arrcomp.decompress(c, reference=target)
    with pytest.raises(TypeError, match=r"reference: expected an array of cupy, as the other one is, got one of numpy"):
        arrcomp.compress(x, reference=old)


def test_the_modules_own_functions_are_the_same(cupy: Any) -> None:
    import arrcomp.cupy as ours
    from arrcomp.cupy import _adapter

    x = cupy.asarray(X)
    c = ours.compress(x, CODEC)
    assert c.to_bytes() == arrcomp.compress(X, CODEC).to_bytes()
    out = cupy.empty(X.shape, X.dtype)
    assert ours.decompress(c, out=out) is out
    buffer = cupy.empty(arrcomp.max_compressed_nbytes(x), np.uint8)
    assert ours.compress(x, out=buffer).to_bytes() == ours.compress(x).to_bytes()
    assert _adapter.has_cuda()


def test_the_modules_decompress_gives_cupy_arrays_of_everything(cupy: Any) -> None:
    import arrcomp.cupy as ours

    for c in (arrcomp.compress(X), arrcomp.from_bytes(arrcomp.compress(X).to_bytes())):
        y = ours.decompress(c)
        assert isinstance(y, cupy.ndarray)
        np.testing.assert_array_equal(cupy.asnumpy(y), X)


def test_the_modules_own_functions_take_cupy_arrays_alone(cupy: Any) -> None:
    import arrcomp.cupy as ours

    with pytest.raises(
        TypeError, match=r"x: expected a cupy\.ndarray \(arrcomp\.compress takes every array\), got numpy\.ndarray"
    ):
        ours.compress(X)
    with pytest.raises(TypeError, match=r"out: expected a cupy\.ndarray, got numpy\.ndarray"):
        ours.decompress(ours.compress(cupy.asarray(X)), out=X.copy())
    with pytest.raises(TypeError, match=r"c: expected a Compressed \(from_bytes reads a stream\), got bytes"):
        ours.decompress(b"")  # type: ignore[arg-type]


def test_dtypes_that_cupy_lacks_are_refused_by_name(cupy: Any) -> None:
    like = cupy.empty(0, np.float32)
    for name in ("float8_e4m3fn", "int4", "float4_e2m1fn"):
        c = arrcomp.compress(np.zeros(5, getattr(ml_dtypes, name)))
        with pytest.raises(
            TypeError, match=rf"dtype: expected one that CuPy \S+ has, got {name}; like=numpy.empty\(0\) works"
        ):
            arrcomp.decompress(c, like=like)


def test_bfloat16_came_with_cupy_14(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = X.astype(ml_dtypes.bfloat16)
    c = arrcomp.compress(x)
    like = cupy.empty(0, np.float32)
    if int(cupy.__version__.split(".")[0]) >= 14:
        checks.check_same_bits(cupy.asnumpy(arrcomp.decompress(c, like=like)), x)
    monkeypatch.setattr(cupy, "__version__", "13.6.0")
    with pytest.raises(TypeError, match=r"dtype: expected one that CuPy 13\.6\.0 has, got bfloat16"):
        arrcomp.decompress(c, like=like)


def test_big_endian_arrays_are_refused_by_name(double: Any) -> None:
    with pytest.raises(TypeError, match="x: expected native byte order, as CuPy computes in, got dtype >f4"):
        arrcomp.compress(double.empty(3, ">f4"))


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
        (lambda cupy: cupy.asarray(np.array(1.5)), r"seed: expected a 0-d array of integers, got float64\[\]"),
        (lambda cupy: cupy.asarray(np.array(True)), r"seed: expected a 0-d array of integers, got bool\[\]"),
        (lambda cupy: np.array(3), r"seed: expected an integer, or a cupy\.ndarray of one, got numpy\.ndarray"),
        (lambda cupy: 1.5, r"seed: expected an integer, or a 0-dimensional integer array, for .*, got 1\.5"),
        (lambda cupy: None, r"seed: expected an integer, or a 0-dimensional integer array, for .*, got None"),
    ],
)
def test_what_is_no_seed_is_refused(cupy: Any, seed: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        arrcomp.compress(cupy.asarray(X), RANDOM, seed=seed(cupy))


def test_a_seed_elsewhere_is_refused(cupy: Any) -> None:
    with other_device(cupy):
        seed = cupy.asarray(np.array(3))
    with pytest.raises(TypeError, match="seed: expected an array on cuda:0 like x, got one on cuda:1"):
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
    twin = arrcomp._api.compressed.Compressed(c.spec, arrcomp._arrays.contract.Payload(c.payload.adapter, moved))
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


# Without CuPy or without a GPU


def test_without_cupy_its_module_says_so() -> None:
    code = "import sys; sys.modules['cupy'] = None; import arrcomp._arrays.registry as a; a.adapter_named('cupy')"
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


@pytest.mark.full  # the extra test-full has CuPy
def test_the_example_runs_on_a_gpu_and_says_so_elsewhere() -> None:
    try:
        import cupy  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: F401
    except ImportError as error:
        pytest.skip(str(error))
    command = [sys.executable, "-P", str(EXAMPLE)]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    assert ("4 streams" if has_gpu() else "needs a GPU and an arrcomp built with CUDA") in result.stdout
