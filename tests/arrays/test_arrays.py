"""Arrays of every framework, layout and byte order, in and out."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import DeviceUnavailableError, ErrorBounded, Lossless
from capsules import OnlyDLPack
from checks import sample

RNG = np.random.default_rng(7)
X = RNG.normal(0, 1, (6, 50)).astype(np.float32)
JAX_DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32", "complex64",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "uint4",
)  # fmt: skip


def round_trip(x: Any, **options: Any) -> Any:
    return arrcomp.decompress(arrcomp.from_bytes(arrcomp.compress(x).to_bytes()), **options)


class OnDevice(OnlyDLPack):
    """An array that says that it is on some device."""

    def __init__(self, kind: int) -> None:
        super().__init__(X)
        self._kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, 0


# NumPy


LAYOUTS: dict[str, NDArray[Any]] = {
    "0-d": np.array(3.5, np.float32),
    "empty": np.zeros((3, 0, 2), np.float32),
    "Fortran order": np.asfortranarray(X),
    "transposed": X.reshape(3, 10, 10).transpose(2, 0, 1),
    "every third": X[:, ::3],
    "reversed": X[::-1, ::-1],
    "broadcast": np.broadcast_to(X[0], (4, 50)),
    "big-endian": X.astype(">f4"),
    "big-endian, strided": X.astype(">f4")[:, ::2],
    "big-endian 0-d": np.array(2, ">i8"),
    "misaligned": np.frombuffer(b"x" + X.tobytes(), np.float32, offset=1),
    "64 dimensions": X.reshape((6,) + (1,) * 62 + (50,)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_comes_back_in_c_order(name: str) -> None:
    x = LAYOUTS[name]
    x.flags.writeable = False
    before = x.copy()
    y = arrcomp.decompress(arrcomp.compress(x))
    assert isinstance(y, np.ndarray)
    assert y.flags.c_contiguous
    assert y.flags.writeable
    assert y.shape == x.shape
    assert y.dtype == x.dtype.newbyteorder("=")
    assert y.dtype.isnative
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_does_not_show_in_the_stream(name: str) -> None:
    x = LAYOUTS[name]
    plain = np.array(x, x.dtype.newbyteorder("="), order="C", copy=True)
    assert arrcomp.compress(x).to_bytes() == arrcomp.compress(plain).to_bytes()


def test_a_misaligned_stream_is_read() -> None:
    stream = arrcomp.compress(X).to_bytes()
    y = arrcomp.decompress(arrcomp.from_bytes(memoryview(b"x" + stream)[1:]))
    np.testing.assert_array_equal(y, X)


@pytest.mark.parametrize("scalar", [np.float32(1.5), np.int8(-3), np.bool_(True), np.complex128(1j)])
def test_numpy_scalars_are_arrays_without_dimensions(scalar: Any) -> None:
    y = round_trip(scalar)
    assert y.shape == ()
    assert y.dtype == scalar.dtype
    assert y == scalar


no_long_double = pytest.mark.skipif(np.dtype("g") == np.float64, reason="the same")


@pytest.mark.parametrize(
    "x",
    [
        np.array(["a"]),
        np.array([b"a"]),
        np.array([None]),
        np.array(["2020"], "datetime64[D]"),
        np.zeros(2, "timedelta64[s]"),
        np.zeros(2, [("a", "f4")]),
        np.zeros(2, "V3"),
        np.zeros(2, ml_dtypes.int2),
        pytest.param(np.zeros(2, np.longdouble), marks=no_long_double),
        np.zeros(2, np.clongdouble),
    ],
    ids=lambda x: str(x.dtype),
)
def test_other_dtypes_are_refused_by_name(x: NDArray[Any]) -> None:
    with pytest.raises(TypeError, match=r"(?s)^dtype: expected bool, int8, .*, got ") as caught:
        arrcomp.compress(x)
    assert str(x.dtype) in str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [
        ("datetime64[D]", ".view('int64') makes integers of the same bits"),
        ("timedelta64[s]", ".view('int64') makes integers of the same bits"),
        ([("a", "f4")], "pass its fields one by one"),
        pytest.param("g", ".astype('float64') has fewer bits", marks=no_long_double),
        pytest.param("G", ".astype('complex128') has fewer bits", marks=no_long_double),
    ],
    ids=str,
)
def test_the_error_for_another_dtype_says_what_to_do(dtype: Any, hint: str) -> None:
    with pytest.raises(TypeError) as caught:
        arrcomp.compress(np.zeros(2, dtype))
    assert str(caught.value).endswith(f"; {hint}")


@pytest.mark.parametrize("x", [[1.0, 2.0], (1,), 3.0, 1, None, "text", b"bytes", {"a": 1}, object(), np.float32])
def test_what_is_no_array_is_refused(x: Any) -> None:
    with pytest.raises(TypeError, match="x: expected a NumPy, PyTorch, JAX or CuPy array"):
        arrcomp.compress(x)


def test_a_mask_is_not_lost_silently() -> None:
    with pytest.raises(TypeError, match="masked array"):
        arrcomp.compress(np.ma.masked_equal(X, X[0, 0]))


# out=, like=, threads=


def test_out_is_filled_and_returned() -> None:
    c = arrcomp.compress(X)
    out = np.empty_like(X)
    assert arrcomp.decompress(c, out=out) is out
    np.testing.assert_array_equal(out, X)


def test_out_may_be_misaligned() -> None:
    out = np.frombuffer(bytearray(X.nbytes + 1), np.float32, offset=1).reshape(X.shape)
    arrcomp.decompress(arrcomp.compress(X), out=out)
    np.testing.assert_array_equal(out, X)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.empty((6, 51), np.float32), ValueError, r"out: expected shape \(6, 50\), got \(6, 51\)"),
        (np.empty(300, np.float32), ValueError, "out: expected shape"),
        (np.empty((6, 50)), TypeError, "out: expected dtype float32, got float64"),
        (np.empty((6, 50), ">f4"), ValueError, "out: expected native byte order, got dtype >f4"),
        (np.empty((6, 50), np.float32, order="F"), ValueError, "expected a C-contiguous"),
        (np.empty((6, 100), np.float32)[:, ::2], ValueError, "expected a C-contiguous"),
        (np.broadcast_to(np.float32(0), (6, 50)), ValueError, "expected a C-contiguous"),
        (np.frombuffer(bytes(1200), np.float32).reshape(6, 50), ValueError, "read-only"),
        (np.float32(0), TypeError, "out: expected a NumPy, PyTorch or CuPy array"),
        ([0.0], TypeError, "out: expected a NumPy, PyTorch, JAX or CuPy array"),
        (OnlyDLPack(np.empty((6, 50), np.float32)), TypeError, "out: expected a NumPy, PyTorch or CuPy array"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_an_out_that_does_not_fit_is_refused(out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrcomp.decompress(arrcomp.compress(X), out=out)


@pytest.mark.parametrize("make", [bytearray, lambda n: memoryview(bytearray(n)), lambda n: np.empty(n + 9, np.uint8)])
def test_a_buffer_for_the_result_is_viewed(make: Any) -> None:
    out = make(arrcomp.max_compressed_nbytes(X))
    c = arrcomp.compress(X, out=out)
    assert c.to_bytes() == arrcomp.compress(X).to_bytes()
    np.testing.assert_array_equal(arrcomp.decompress(c), X)
    memoryview(out)[:] = bytes(len(out))
    with pytest.raises(arrcomp.CorruptStreamError):
        arrcomp.decompress(c)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (bytearray(16), ValueError, r"out: expected at least \d+ bytes \(max_compressed_nbytes\), got 16"),
        (np.empty(0, np.uint8), ValueError, r"out: expected at least \d+ bytes \(max_compressed_nbytes\), got 0"),
        (memoryview(bytearray(9999))[::2], ValueError, r"out: expected a C-contiguous array, got strides \(2,\)"),
        (bytes(100_000), ValueError, "read-only"),
        (np.empty(200_000, np.uint8)[::2], ValueError, "expected a C-contiguous"),
        (np.empty(100_000, np.float32), TypeError, "out: expected dtype uint8, got float32"),
        ("text", TypeError, "out: expected a uint8 array in host memory"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_buffer_that_does_not_fit_is_refused(out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrcomp.compress(X, out=out)


def test_memory_that_overlaps_is_refused() -> None:
    memory = np.zeros(100_000, np.uint8)
    x = memory[:1200].view(np.float32)
    with pytest.raises(ValueError, match="out: expected memory of its own, got memory that overlaps x"):
        arrcomp.compress(x, out=memory)
    c = arrcomp.compress(X.reshape(-1), out=memory)
    with pytest.raises(ValueError, match=r"out: .* overlaps the compressed array"):
        arrcomp.decompress(c, out=x)


def test_the_largest_size_is_known_from_the_shape() -> None:
    size = arrcomp.max_compressed_nbytes(X)
    assert size >= X.nbytes
    assert (
        size == arrcomp.max_compressed_nbytes(X.shape, np.float32) == arrcomp.max_compressed_nbytes([6, 50], "float32")
    )
    assert arrcomp.max_compressed_nbytes(300, "float32") == size
    assert arrcomp.max_compressed_nbytes((), "bfloat16") == arrcomp.max_compressed_nbytes(1, ml_dtypes.bfloat16)
    assert arrcomp.max_compressed_nbytes(10, "complex64") == arrcomp.max_compressed_nbytes(20, "float32")
    with pytest.raises(ValueError, match=r"^x: expected a shape of sizes of at least 0, got \(3, -1\)"):
        arrcomp.max_compressed_nbytes((3, -1), "float32")
    with pytest.raises(TypeError):
        arrcomp.max_compressed_nbytes((3, 1.5), "float32")
    with pytest.raises(TypeError, match=r"^dtype: expected bool, .*, got object"):
        arrcomp.max_compressed_nbytes(3, object)


def test_like_and_out_exclude_each_other() -> None:
    with pytest.raises(ValueError, match=r"^like: expected None beside out, got both"):
        arrcomp.decompress(arrcomp.compress(X), like=X, out=np.empty_like(X))


def test_decompress_takes_what_compress_returns() -> None:
    with pytest.raises(TypeError, match="from_bytes"):
        arrcomp.decompress(arrcomp.compress(X).to_bytes())  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [0, -1])
def test_less_than_one_thread_is_refused(threads: int) -> None:
    with pytest.raises(ValueError, match=f"^threads: expected an integer .*, got {threads}"):
        arrcomp.compress(X, threads=threads)
    with pytest.raises(ValueError, match=f"^threads: expected an integer .*, got {threads}"):
        arrcomp.decompress(arrcomp.compress(X), threads=threads)


@pytest.mark.parametrize("threads", [1.0, "2", True])
def test_threads_are_an_integer(threads: Any) -> None:
    with pytest.raises(TypeError, match=r"^threads: expected an integer .*, got .*\)"):
        arrcomp.compress(X, threads=threads)
    arrcomp.compress(X, threads=np.int64(2))  # type: ignore[arg-type]


def test_compressed_arrays_pickle() -> None:
    c = arrcomp.compress(X, ErrorBounded(rel=1e-3))
    twin = pickle.loads(pickle.dumps(c))  # noqa: S301
    assert twin.to_bytes() == c.to_bytes()
    assert twin.codec == c.codec


def test_a_compressed_array_describes_itself() -> None:
    c = arrcomp.compress(X, ErrorBounded(abs=1e-3))
    assert repr(c).startswith("<Compressed float32[6, 50] by ErrorBounded(abs=0.001): ")
    assert c.ratio == pytest.approx(X.nbytes / c.nbytes)
    assert (c.size, c.ndim) == (X.size, X.ndim)


def test_a_compressed_array_has_methods_that_decompress_it() -> None:
    c = arrcomp.compress(X, ErrorBounded(abs=1e-3))
    y, out = arrcomp.decompress(c), np.empty_like(X)
    checks.check_same_bits(c.decompress(), y)
    checks.check_same_bits(c.numpy(), y)
    assert c.decompress(out=out) is out
    checks.check_same_bits(out, y)
    assert bytes(c) == c.to_bytes()
    assert {"decompress", "numpy"} <= set(dir(c))
    with pytest.raises(arrcomp.SizeLimitError):
        arrcomp.from_bytes(c.to_bytes(), max_nbytes=10).numpy()


def test_numpy_converts_a_compressed_array() -> None:
    c = arrcomp.compress(X, ErrorBounded(abs=1e-3))
    checks.check_same_bits(np.asarray(c), c.decompress())
    assert np.asarray(c, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match=r"^copy: expected None or True, got False"):
        np.asarray(c, copy=False)


def test_a_compressed_array_is_not_compressed_again() -> None:
    c = arrcomp.compress(X)
    with pytest.raises(TypeError, match=r"^x: expected an array, got Compressed; its decompress\(\) makes the array"):
        arrcomp.compress(c)
    assert arrcomp.compress_many([c])[0] is c


@pytest.mark.parametrize("x", [[1.0, 2.0], (1, 2), 3.0])
def test_lists_and_numbers_are_refused_with_the_way_out(x: Any) -> None:
    with pytest.raises(TypeError, match=r"^x: expected a NumPy, .* got .*; numpy.asarray\(x\) makes an array of it$"):
        arrcomp.compress(x)


def test_what_only_converts_to_an_array_is_not_written_to() -> None:
    class Labelled:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            return np.zeros_like(X)

    c = arrcomp.compress(X, arrcomp.QSGD(8))
    checks.check_same_bits(arrcomp.compress(Labelled()).numpy(), np.zeros_like(X))
    with pytest.raises(TypeError, match=r"^out: expected a NumPy, PyTorch or CuPy array"):
        arrcomp.decompress(c, out=Labelled())
    with pytest.raises(TypeError, match=r"^into: expected a NumPy, PyTorch, JAX or CuPy array"):
        arrcomp.accumulate(c, Labelled())


def test_a_framework_may_be_named() -> None:
    torch = pytest.importorskip("torch")
    c = arrcomp.compress(X)
    assert isinstance(c.decompress(like="torch"), torch.Tensor)
    assert isinstance(arrcomp.decompress(arrcomp.compress(torch.ones(3)), like="numpy"), np.ndarray)
    assert isinstance(arrcomp.decompress_many([c], like="torch")[0], torch.Tensor)
    assert isinstance(np.asarray(arrcomp.compress(torch.ones(3))), np.ndarray)


# JAX


@pytest.fixture
def jax() -> Any:
    pytest.importorskip("jax.experimental")
    return pytest.importorskip("jax")


@pytest.mark.parametrize("name", JAX_DTYPES)
def test_jax_arrays_come_back_as_such(jax: Any, name: str) -> None:
    x = sample(name)
    array = jax.numpy.asarray(x)
    c = arrcomp.compress(array)
    y = arrcomp.decompress(c)
    assert c.to_bytes() == arrcomp.compress(x).to_bytes()
    assert isinstance(y, jax.Array)
    assert (y.dtype, y.shape, y.devices()) == (array.dtype, array.shape, array.devices())
    checks.check_same_bits(np.asarray(y), x)


def test_jax_never_narrows_silently(jax: Any) -> None:
    like = jax.numpy.ones(1)
    c = arrcomp.compress(X.astype(np.float64))
    with pytest.raises(TypeError, match="dtype: expected jax_enable_x64=True for float64, got False"):
        arrcomp.decompress(c, like=like)
    with (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64(True):
        assert arrcomp.decompress(c, like=like).dtype == np.float64


def test_jax_arrays_are_not_written_to(jax: Any) -> None:
    with pytest.raises(TypeError, match="out: expected a NumPy, PyTorch or CuPy array"):
        arrcomp.decompress(arrcomp.compress(X), out=jax.numpy.asarray(X))


# CUDA, and the package itself


def test_a_device_that_is_not_there_says_what_to_do() -> None:
    from arrcomp import _core

    if _core.cuda_device_count() > 0:
        pytest.skip("there is one")
    with pytest.raises(DeviceUnavailableError, match="cuda:0: "):
        arrcomp.compress(OnDevice(2))


def test_arrays_on_the_device_come_back_there(device: checks.Host) -> None:
    for x in (X, np.zeros((2, 0), np.float32), np.array(1.5, np.float32)):
        for codec in (Lossless(), ErrorBounded(rel=1e-3)):
            c = arrcomp.compress(device.put(x), codec)
            assert c.device.startswith(device.device)
            assert c.to_bytes() == arrcomp.compress(x, codec).to_bytes()
            assert device.get(arrcomp.decompress(c)).shape == x.shape


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", code]  # -P: the installed package, not the source tree
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_the_first_tensor_imports_no_compiler() -> None:
    pytest.importorskip("torch")
    code = """
import sys, torch, arrcomp
before = set(sys.modules)
arrcomp.decompress(arrcomp.compress(torch.zeros(3)))
slow = {name for name in set(sys.modules) - before if name.startswith(("torch._dynamo", "torch._inductor", "sympy"))}
assert not slow, slow
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr


def test_importing_arrcomp_imports_no_framework() -> None:
    code = """
import sys, arrcomp
heavy = {"torch", "jax", "cupy", "scipy", "typer", "rich", "safetensors", "pandas"} & set(sys.modules)
assert not heavy, heavy
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr


def test_the_environment_chooses_the_instruction_set() -> None:
    code = "import arrcomp; print(arrcomp.cpu.instruction_set())"
    for name in arrcomp.cpu.instruction_sets():
        assert run_python(code, ARRCOMP_INSTRUCTION_SET=name).stdout.strip() == name
    wrong = run_python(code, ARRCOMP_INSTRUCTION_SET="z80")
    expected = " or ".join(map(repr, arrcomp.cpu.instruction_sets()))
    assert f"variable ARRCOMP_INSTRUCTION_SET: name: expected {expected}, got 'z80'\n" in wrong.stderr
