"""Arrays of libraries that nobody knows: producers of DLPack, of every age."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import DeviceUnavailableError, _core
from capsules import CPU, CUDA_HOST, READ_ONLY, OnlyDLPack, Producer
from checks import sample

pytestmark = pytest.mark.wheel

RNG = np.random.default_rng(7)
X = RNG.normal(0, 1, (6, 50)).astype(np.float32)
AGES: dict[str, dict[str, Any]] = {
    "DLPack 1": {},
    "before DLPack 1": {"keywords": ("stream",)},
    "without keywords": {"keywords": ()},
    "with max_version alone": {"keywords": ("max_version",)},
}


@pytest.mark.parametrize("name", ["float32", "int64", "complex64", "bool"])
def test_an_unknown_producer_comes_back_as_numpy(name: str) -> None:
    x = sample(name)
    y = arrcomp.decompress(arrcomp.compress(OnlyDLPack(x)))
    assert isinstance(y, np.ndarray)
    checks.check_same_bits(y, x)


def test_an_unknown_producer_may_be_strided() -> None:
    y = arrcomp.decompress(arrcomp.compress(OnlyDLPack(X.T[::2])))
    np.testing.assert_array_equal(y, X.T[::2])


def test_like_an_unknown_producer_is_numpy() -> None:
    assert isinstance(arrcomp.decompress(arrcomp.compress(X), like=OnlyDLPack(X)), np.ndarray)


def test_other_devices_are_refused() -> None:
    with pytest.raises(DeviceUnavailableError, match="device type 8"):
        arrcomp.compress(Producer(X, device=(8, 0)))


@pytest.mark.parametrize("age", AGES)
def test_producers_of_every_age_are_read(age: str) -> None:
    producer = Producer(X, **AGES[age])
    c = arrcomp.compress(producer)
    assert c.to_bytes() == arrcomp.compress(X).to_bytes()
    assert len(producer.asked) == 1
    assert producer.asked[0].get("stream") is None
    assert producer.deleted == 1


def test_a_producer_is_asked_for_a_versioned_capsule() -> None:
    producer = Producer(X)
    arrcomp.compress(producer)
    assert producer.asked == [{"max_version": (1, 1)}]


@pytest.mark.parametrize("age", AGES)
def test_the_memory_is_viewed_and_given_back_once(age: str) -> None:
    producer = Producer(X, **AGES[age])
    data, name, shape = _core.import_dlpack(producer)
    assert (name, shape) == ("float32", X.shape)
    assert data.ctypes.data == X.ctypes.data
    assert not data.flags.writeable
    part = data[8:]
    del data
    gc.collect()
    assert (producer.lent, producer.deleted) == (1, 0)
    del part
    gc.collect()
    assert (producer.lent, producer.deleted) == (0, 1)


def test_the_producer_lives_no_longer_than_needed() -> None:
    x = X.copy()
    gone = weakref.ref(x)
    c = arrcomp.compress(Producer(x))
    del x
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(arrcomp.decompress(c), X)


@pytest.mark.parametrize("age", ["DLPack 1", "before DLPack 1"])
def test_read_only_arrays_are_read(age: str) -> None:
    x = X.copy()
    x.flags.writeable = False
    producer = Producer(x, flags=READ_ONLY, **AGES[age])
    np.testing.assert_array_equal(arrcomp.decompress(arrcomp.compress(producer)), X)
    np.testing.assert_array_equal(x, X)
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # which exports them
        np.testing.assert_array_equal(arrcomp.decompress(arrcomp.compress(OnlyDLPack(x))), X)


def test_pinned_memory_of_a_gpu_framework_is_host_memory() -> None:
    producer = Producer(X, device=(CUDA_HOST, 0))
    assert arrcomp.compress(producer).to_bytes() == arrcomp.compress(X).to_bytes()


@pytest.mark.parametrize("offset", [1, 3, 4, 256])
def test_misaligned_memory_is_read(offset: int) -> None:
    x = np.frombuffer(bytes(offset) + X.tobytes(), np.float32, offset=offset).reshape(X.shape)
    for byte_offset in (0, offset):
        producer = Producer(x, byte_offset=byte_offset)
        np.testing.assert_array_equal(arrcomp.decompress(arrcomp.compress(producer)), X)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (4, 3), (1, 5, 1, 2)])
def test_strides_may_be_left_out(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    y = arrcomp.decompress(arrcomp.compress(Producer(x, null_strides=True)))
    checks.check_same_bits(y, x)


@pytest.mark.parametrize("name", ["bool", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("layout", ["transposed", "reversed", "every third", "broadcast", "0-d", "64 dimensions"])
def test_every_layout_comes_back_in_c_order(name: str, layout: str) -> None:
    base = RNG.integers(0, 100, (6, 50)).astype(name)
    x = {
        "transposed": base.reshape(3, 10, 10).transpose(2, 0, 1),
        "reversed": base[::-1, ::-1],
        "every third": base[:, ::3],
        "broadcast": np.broadcast_to(base[0], (4, 50)),
        "0-d": base[2, 3, ...],
        "64 dimensions": base.reshape((6,) + (1,) * 62 + (50,)),
    }[layout]
    checks.check_same_bits(arrcomp.decompress(arrcomp.compress(Producer(x))), np.array(x, order="C"))


FLOAT8 = {7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn", 11: "float8_e4m3fnuz",
          12: "float8_e5m2", 13: "float8_e5m2fnuz", 14: "float8_e8m0fnu"}  # fmt: skip


@pytest.mark.parametrize("code", FLOAT8)
def test_small_floats_are_known_by_their_codes(code: int) -> None:
    x = np.arange(100, dtype=np.uint8)
    y = arrcomp.decompress(arrcomp.compress(Producer(x, dtype=(code, 8, 1))))
    assert y.dtype.name == FLOAT8[code]
    np.testing.assert_array_equal(y.view(np.uint8), x)


def test_bfloat16_is_known_by_its_code() -> None:
    x = sample("bfloat16")
    y = arrcomp.decompress(arrcomp.compress(Producer(x.view(np.uint16), dtype=(4, 16, 1))))
    checks.check_same_bits(y, x)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ((0, 4, 1), "int4"),
        ((1, 2, 1), "uint2"),
        ((17, 4, 1), "float4_e2m1fn"),
        ((15, 6, 1), "float6_e2m3fn"),
        ((2, 32, 4), "float32 in lanes of 4"),
        ((6, 1, 1), "bool1"),
        ((3, 64, 1), "opaque64"),
        ((5, 32, 1), "complex32"),
        ((2, 128, 1), "float128"),
        ((99, 8, 1), "of type code 99 and 8 bits"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_dtypes_are_refused_by_name(dtype: tuple[int, int, int], name: str) -> None:
    producer = Producer(np.zeros(16), dtype=dtype)
    with pytest.raises(TypeError, match=rf"^dtype: expected bool, .*, got {name}$|^x: dtype {name} is not supported"):
        arrcomp.compress(producer)
    gc.collect()
    assert (producer.lent, producer.deleted) == (0, 1)


@pytest.mark.parametrize("error", [ValueError("mine"), BufferError("mine"), TypeError("mine"), KeyError("mine")])
def test_the_producers_own_exception_comes_through(error: Exception) -> None:
    with pytest.raises(type(error), match="mine") as caught:
        arrcomp.compress(Producer(X, error=error))
    assert caught.value is error


def test_a_newer_major_version_is_refused_and_given_back() -> None:
    producer = Producer(X, version=(2, 5))
    with pytest.raises(BufferError, match=r"x: expected DLPack version 1\.x, got 2\.5"):
        arrcomp.compress(producer)
    gc.collect()
    assert (producer.lent, producer.deleted) == (0, 1)


def test_a_newer_minor_version_is_read() -> None:
    np.testing.assert_array_equal(arrcomp.decompress(arrcomp.compress(Producer(X, version=(1, 9)))), X)


class Hands(OnlyDLPack):
    """A producer that gives what it was told to give."""

    def __dlpack__(self, **options: Any) -> Any:
        return self._array

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


@pytest.mark.parametrize("versioned", [False, True])
def test_a_capsule_is_not_consumed_twice(versioned: bool) -> None:
    producer = Producer(X)
    hands = Hands(producer.capsule(versioned))
    np.testing.assert_array_equal(arrcomp.decompress(arrcomp.compress(hands)), X)
    with pytest.raises(TypeError, match=r"x: expected an unused DLPack capsule .*, got .*used_dltensor"):
        arrcomp.compress(hands)
    del hands
    gc.collect()
    assert producer.deleted == 1


def test_what_is_no_capsule_is_refused() -> None:
    message = r"x: expected an unused DLPack capsule from __dlpack__ of .*Hands.*, got \[1\.0\]"
    with pytest.raises(TypeError, match=message):
        arrcomp.compress(Hands([1.0]))


def test_memory_elsewhere_than_the_producer_said_is_refused() -> None:
    producer = Producer(X, device=(8, 0))
    with pytest.raises(BufferError, match="x: expected host memory, got DLPack device type 8"):
        arrcomp.compress(Hands(producer.capsule(True)))
    gc.collect()
    assert producer.deleted == 1


def test_only_one_of_the_two_methods_is_no_array() -> None:
    class NoDevice:
        def __dlpack__(self) -> None: ...

    with pytest.raises(TypeError, match=r"x: expected a NumPy, .*, got .*NoDevice"):
        arrcomp.compress(NoDevice())


def test_producers_are_leaves_of_structures() -> None:
    found = arrcomp.decompress_many(arrcomp.compress_many({"a": Producer(X), "b": [Producer(X[:, :3]), X]}))
    for actual, expected in zip((found["a"], *found["b"]), (X, X[:, :3], X), strict=True):
        checks.check_same_bits(actual, np.ascontiguousarray(expected))


# Libraries


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int8", "complex64", "bool_"])
def test_mlx_arrays(name: str) -> None:
    mlx = pytest.importorskip("mlx.core", exc_type=ImportError)
    for x in (mlx.arange(12).astype(getattr(mlx, name)), mlx.ones((3, 4)).T.astype(getattr(mlx, name)), mlx.array(1.0)):
        mlx.eval(x)
        y = arrcomp.decompress(arrcomp.compress(x))
        assert y.shape == x.shape
        np.testing.assert_array_equal(y.astype(np.complex64), np.array(x.astype(mlx.complex64)))


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int64", "complex128", "bool"])
def test_tensorflow_tensors(name: str) -> None:
    tensorflow = pytest.importorskip("tensorflow", exc_type=ImportError)
    x = RNG.integers(0, 2, (3, 40)).astype(getattr(ml_dtypes, name, name))
    y = arrcomp.decompress(arrcomp.compress(tensorflow.constant(x)))
    checks.check_same_bits(y, x)


def test_tinygrad_tensors_have_no_dlpack() -> None:
    tinygrad = pytest.importorskip("tinygrad", exc_type=ImportError)
    with pytest.raises(TypeError, match=r"x: expected a NumPy, .*, got .*Tensor"):
        arrcomp.compress(tinygrad.Tensor([1.0], device="PYTHON"))
