"""PyTorch's tensors in eager mode: layouts, memory, gradients, pickles, bad input."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import DeviceUnavailableError, ErrorBounded
from checks import sample

torch = pytest.importorskip("torch")

import arrcomp.torch
from arrcomp.torch import _adapter

RNG = np.random.default_rng(7)
X = RNG.normal(0, 1, (6, 50)).astype(np.float32)
BOUNDED = ErrorBounded(abs=1e-2)
TORCH_DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e8m0fnu",
)  # fmt: skip


def round_trip(x: Any, **options: Any) -> Any:
    return arrcomp.decompress(arrcomp.from_bytes(arrcomp.compress(x).to_bytes()), **options)


def torch_tensor(x: NDArray[Any]) -> Any:
    raw = torch.from_numpy(x.reshape(-1).view(np.uint8).copy())
    return raw.view(getattr(torch, x.dtype.name)).reshape(x.shape)


def torch_bytes(tensor: Any) -> bytes:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


# Dtypes, layouts, kinds of tensors


@pytest.mark.parametrize("name", TORCH_DTYPES)
def test_torch_tensors_come_back_as_such(name: str) -> None:
    if not hasattr(torch, name):
        pytest.skip(f"torch {torch.__version__} has no {name}")
    x = sample(name)
    tensor = torch_tensor(x)
    c = arrcomp.compress(tensor)
    y = arrcomp.decompress(c)
    assert c.dtype == x.dtype
    assert c.to_bytes() == arrcomp.compress(x).to_bytes()
    assert isinstance(y, torch.Tensor)
    assert (y.dtype, y.shape, y.device) == (tensor.dtype, tensor.shape, tensor.device)
    assert torch_bytes(y) == x.tobytes()
    assert torch_bytes(arrcomp.torch.roundtrip(tensor)) == x.tobytes()


def test_torch_layouts_come_back() -> None:
    base = torch.arange(120.0).reshape(4, 30)
    for tensor in (base.T, base[:, ::2], base[1:2].expand(5, 30), base[:0], torch.tensor(2.5), base.flip(0)):
        y = arrcomp.decompress(arrcomp.compress(tensor))
        assert y.shape == tensor.shape
        assert torch.equal(y, tensor)
        assert torch.equal(arrcomp.torch.roundtrip(tensor), tensor)


def test_torch_parameters_lose_their_gradient_only() -> None:
    parameter = torch.nn.Parameter(torch.randn(5, 7))
    y = arrcomp.decompress(arrcomp.compress(parameter))
    assert not y.requires_grad
    assert torch.equal(y, parameter)


def test_lazily_conjugated_and_negated_tensors_are_resolved() -> None:
    z = torch.randn(20, dtype=torch.complex64)
    for tensor in (z.conj(), z.conj().imag, z.imag, z.conj().reshape(4, 5).mT):
        assert torch.equal(arrcomp.decompress(arrcomp.compress(tensor)), tensor.resolve_conj().resolve_neg())
        assert torch.equal(arrcomp.torch.roundtrip(tensor), tensor.resolve_conj().resolve_neg())


def test_zeros_without_memory_are_resolved() -> None:
    zeros = torch._efficientzerotensor((3, 4))
    assert torch.equal(arrcomp.decompress(arrcomp.compress(zeros)), torch.zeros(3, 4))


@pytest.mark.filterwarnings("ignore:Sparse", "ignore:ComplexHalf")
def test_tensors_without_plain_data_are_refused() -> None:
    with pytest.raises(TypeError, match=r"layout torch\.sparse_coo"):
        arrcomp.compress(torch.eye(3).to_sparse())
    with pytest.raises(TypeError, match="meta tensor"):
        arrcomp.compress(torch.empty(3, device="meta"))
    with pytest.raises(TypeError, match=r"dtype: expected bool.* got complex32"):
        arrcomp.compress(torch.empty(3, dtype=torch.complex32))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_other_kinds_of_tensors_are_refused() -> None:
    ragged = [torch.ones(3), torch.ones(4)]
    for function in (arrcomp.torch.compress, arrcomp.torch.roundtrip):
        with pytest.raises(TypeError, match=r"layout torch\.sparse_csr"):
            function(torch.eye(3).to_sparse_csr())
        with pytest.raises(TypeError, match="x: expected a dense tensor, got a nested one"):
            function(torch.nested.nested_tensor(ragged))
        with pytest.raises(TypeError, match=r"layout torch\.jagged"):
            function(torch.nested.nested_tensor(ragged, layout=torch.jagged))
        with pytest.raises(TypeError, match=r"dtype: expected bool.* got qint8"):
            function(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))
        with pytest.raises(
            TypeError, match="dtype: expected float16, bfloat16, float32, float64 for ErrorBounded, got int64"
        ):
            function(torch.arange(3), BOUNDED)


def test_types_below_a_byte_are_refused() -> None:
    for name in ("int4", "uint4"):
        if hasattr(torch, name):
            with pytest.raises(TypeError, match=f"dtype: expected one that PyTorch has, got {name}"):
                arrcomp.compress(torch.empty(3, dtype=getattr(torch, name)))


def test_a_subclass_that_holds_its_data_loses_its_type_only() -> None:
    class Named(torch.Tensor):  # type: ignore[misc,name-defined,unused-ignore]
        pass

    x = torch.randn(5, 7).as_subclass(Named)
    c = arrcomp.torch.compress(x)
    assert c.payload.length is None
    y = arrcomp.torch.decompress(c)
    assert type(y) is torch.Tensor
    assert torch.equal(y, x.as_subclass(torch.Tensor))


def test_a_meta_tensor_has_a_round_trip_without_data() -> None:
    y = arrcomp.torch.roundtrip(torch.empty(3, 4, device="meta"), BOUNDED)
    assert (y.shape, y.device.type) == ((3, 4), "meta")


@pytest.mark.parametrize("x", [X, [1.0], 3.0, None])
def test_the_functions_for_tensors_take_tensors(x: Any) -> None:
    with pytest.raises(TypeError, match=r"x: expected a torch\.Tensor \(arrcomp\.compress takes other arrays\), got "):
        arrcomp.torch.compress(x)
    with pytest.raises(
        TypeError, match=r"x: expected a torch\.Tensor \(arrcomp\.decompress\(arrcomp\.compress\(x\)\) takes other"
    ):
        arrcomp.torch.roundtrip(x)
    with pytest.raises(TypeError, match=r"c: expected a Compressed \(arrcomp\.from_bytes reads a stream\), got "):
        arrcomp.torch.decompress(x)


def test_arguments_are_checked() -> None:
    x = torch.ones(3)
    for function in (arrcomp.torch.compress, arrcomp.torch.roundtrip):
        with pytest.raises(
            ValueError, match="threads: expected an integer of at least 1, or None for all cores, got 0"
        ):
            function(x, threads=0)
        with pytest.raises(
            TypeError, match=r"codec: expected a codec such as ErrorBounded\(abs=1e-4\), got 'lossless' \(str\)"
        ):
            function(x, "lossless")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads: expected an integer of at least 1, or None for all cores, got 0"):
        arrcomp.torch.decompress(arrcomp.compress(x), threads=0)


# Between frameworks


def test_like_moves_between_frameworks() -> None:
    y = arrcomp.decompress(arrcomp.compress(X), like=torch.empty(0, dtype=torch.int8))
    assert isinstance(y, torch.Tensor)
    np.testing.assert_array_equal(y.numpy(), X)
    assert isinstance(arrcomp.decompress(arrcomp.compress(y), like=X), np.ndarray)


def test_streams_forget_the_framework() -> None:
    assert isinstance(round_trip(torch.ones(3)), np.ndarray)
    c = pickle.loads(pickle.dumps(arrcomp.compress(torch.ones(3))))  # noqa: S301
    assert isinstance(arrcomp.decompress(c), torch.Tensor)


def test_streams_become_tensors_without_a_warning_or_a_copy() -> None:
    c = arrcomp.from_bytes(arrcomp.compress(X, BOUNDED).to_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = arrcomp.torch.decompress(c)
        moved = c.payload.to(_adapter.ADAPTER, _adapter.ADAPTER.device(y))
    np.testing.assert_array_equal(y.numpy(), arrcomp.decompress(c))
    assert moved.buffer.data_ptr() == c.payload.buffer.__array_interface__["data"][0]
    assert moved.to_host().tobytes() == c.payload.to_host().tobytes()


def test_a_misaligned_stream_becomes_a_tensor() -> None:
    stream = arrcomp.compress(X).to_bytes()
    for shift in (1, 4):
        c = arrcomp.from_bytes(memoryview(bytes(shift) + stream)[shift:])
        np.testing.assert_array_equal(arrcomp.torch.decompress(c).numpy(), X)


def test_dtypes_that_torch_lacks_are_refused() -> None:
    for name in ("int4", "float8_e3m4"):
        c = arrcomp.compress(sample(name))
        with pytest.raises(TypeError, match=f"dtype: expected one that PyTorch has, got {name}"):
            arrcomp.decompress(c, like=torch.empty(0))


def test_devices_are_named_by_torch() -> None:
    c = arrcomp.compress(torch.ones(3))
    assert c.to(torch.device("cpu")) is c
    assert arrcomp.compress(X).to(torch.ones(1)).payload.adapter.name == "torch"
    with pytest.raises(TypeError, match="meta tensor"):
        c.to(torch.device("meta"))
    if not torch.cuda.is_available():
        with pytest.raises(DeviceUnavailableError, match="cuda:0: "):
            c.to(torch.device("cuda:0"))


# Gradients


def test_the_gradient_passes_unchanged() -> None:
    x = torch.randn(50, requires_grad=True)
    y = arrcomp.torch.roundtrip(x, BOUNDED)
    assert not torch.equal(y, x)
    gradient = torch.randn(50)
    y.backward(gradient)
    assert torch.equal(x.grad, gradient)


def test_second_derivatives_pass() -> None:
    x = torch.randn(50, requires_grad=True)
    y = arrcomp.torch.roundtrip(x, BOUNDED)
    (first,) = torch.autograd.grad((y**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, 6 * y)


def test_gradients_stop_at_compress() -> None:
    x = torch.randn(50, requires_grad=True)
    assert not arrcomp.torch.decompress(arrcomp.torch.compress(x)).requires_grad


def test_integers_have_a_round_trip_without_gradient() -> None:
    for x in (torch.arange(50), torch.arange(50) % 2 == 0):
        assert torch.equal(arrcomp.torch.roundtrip(x), x)


# Devices


def test_the_matrix_of_devices_has_the_same_bytes(device: checks.Host) -> None:
    x = device.put(X)
    if not isinstance(x, torch.Tensor):
        x = torch.from_numpy(X)
    y = arrcomp.torch.roundtrip(x, BOUNDED)
    np.testing.assert_array_equal(y.cpu().numpy(), arrcomp.decompress(arrcomp.compress(X, BOUNDED)))


def test_values_that_are_not_finite_are_refused_if_asked() -> None:
    for function in (arrcomp.torch.compress, arrcomp.torch.roundtrip):
        for bad in (torch.nan, torch.inf):
            with pytest.raises(ValueError, match="x: expected finite values, got NaN or infinit"):
                function(torch.tensor([1.0, bad]), BOUNDED, check_finite=True)
        function(torch.ones(3), BOUNDED, check_finite=True)
        with pytest.raises(TypeError, match=r"layout|dense"):
            function(torch.eye(3).to_sparse(), check_finite=True)


def test_compiled_code_cannot_check_values() -> None:
    for function in (arrcomp.torch.compress, arrcomp.torch.roundtrip):
        compiled = torch.compile(
            lambda x, call=function: call(x, BOUNDED, check_finite=True), backend="eager", fullgraph=True
        )
        with pytest.raises(Exception, match="check_finite: expected False under tracing, got True"):
            compiled(torch.ones(3))


def test_the_gradient_of_compress_is_zero_and_that_of_roundtrip_one() -> None:
    x = torch.ones(5, requires_grad=True)
    assert not arrcomp.torch.decompress(arrcomp.torch.compress(x, BOUNDED)).requires_grad
    arrcomp.torch.roundtrip(x, BOUNDED, threads=1).sum().backward()
    assert (x.grad == 1).all()
