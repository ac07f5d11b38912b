"""PyTorch's tensors in eager mode: layouts, memory, gradients, pickles, bad input."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import CorruptStreamError, DeviceUnavailableError, ErrorBounded, Lossless, _core
from checks import sample

torch = pytest.importorskip("torch")

import arrcomp.torch
from arrcomp.torch import kernels, ops, pickling

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
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()  # type: ignore[no-any-return]


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


@pytest.mark.filterwarnings("ignore:Sparse", "ignore:ComplexHalf")
def test_tensors_without_plain_data_are_refused() -> None:
    with pytest.raises(TypeError, match=r"layout torch\.sparse_coo"):
        arrcomp.compress(torch.eye(3).to_sparse())
    with pytest.raises(TypeError, match="meta tensor"):
        arrcomp.compress(torch.empty(3, device="meta"))
    with pytest.raises(TypeError, match="dtype complex32"):
        arrcomp.compress(torch.empty(3, dtype=torch.complex32))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_other_kinds_of_tensors_are_refused() -> None:
    ragged = [torch.ones(3), torch.ones(4)]
    for function in (arrcomp.torch.compress, arrcomp.torch.roundtrip):
        with pytest.raises(TypeError, match=r"layout torch\.sparse_csr"):
            function(torch.eye(3).to_sparse_csr())
        with pytest.raises(TypeError, match="nested tensor"):
            function(torch.nested.nested_tensor(ragged))
        with pytest.raises(TypeError, match=r"layout torch\.jagged"):
            function(torch.nested.nested_tensor(ragged, layout=torch.jagged))
        with pytest.raises(TypeError, match="dtype qint8 is not supported"):
            function(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))
        with pytest.raises(TypeError, match="dtype int64: ErrorBounded takes float16"):
            function(torch.arange(3), BOUNDED)


def test_types_below_a_byte_are_refused() -> None:
    for name in ("int4", "uint4"):
        if hasattr(torch, name):
            with pytest.raises(TypeError, match=f"dtype {name}: PyTorch has no such tensors"):
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
    with pytest.raises(TypeError, match=r"torch\.Tensor is allowed \(arrcomp\.compress takes every array\)"):
        arrcomp.torch.compress(x)
    with pytest.raises(TypeError, match=r"torch\.Tensor is allowed"):
        arrcomp.torch.roundtrip(x)
    with pytest.raises(TypeError, match="a Compressed is allowed"):
        arrcomp.torch.decompress(x)


def test_arguments_are_checked() -> None:
    x = torch.ones(3)
    for function in (arrcomp.torch.compress, arrcomp.torch.roundtrip):
        with pytest.raises(ValueError, match="threads=0"):
            function(x, threads=0)
        with pytest.raises(TypeError, match="codec='lossless' is a str"):
            function(x, "lossless")
    with pytest.raises(ValueError, match="threads=0"):
        arrcomp.torch.decompress(arrcomp.compress(x), threads=0)


# Between frameworks


def test_like_moves_between_frameworks() -> None:
    y = arrcomp.decompress(arrcomp.compress(X), like=torch.empty(0, dtype=torch.int8))
    assert isinstance(y, torch.Tensor)
    np.testing.assert_array_equal(y.numpy(), X)
    assert isinstance(arrcomp.decompress(arrcomp.compress(y), like=X), np.ndarray)


def test_streams_forget_the_framework() -> None:
    assert isinstance(round_trip(torch.ones(3)), np.ndarray)
    c = pickled(arrcomp.compress(torch.ones(3)))
    assert isinstance(arrcomp.decompress(c), torch.Tensor)


def test_streams_become_tensors_without_a_warning_or_a_copy() -> None:
    c = arrcomp.from_bytes(arrcomp.compress(X, BOUNDED).to_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = arrcomp.torch.decompress(c)
        moved = c.payload.moved(arrcomp.torch.functions.ADAPTER, arrcomp.torch.functions.ADAPTER.home(y))
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
        with pytest.raises(TypeError, match=f"dtype {name}: PyTorch has no such tensors"):
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


# Memory


class Spy:
    """The core, with the arrays of every call written down."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        function = getattr(_core, name)
        if not name.endswith("_at"):
            return function

        def call(codec: int, parameters: Any, dtype: int, arrays: Any, *rest: Any) -> Any:
            self.calls.append(arrays)
            return function(codec, parameters, dtype, arrays, *rest)

        return call


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    found = Spy()
    monkeypatch.setattr(kernels, "_core", found)
    return found


def test_contiguous_tensors_are_read_and_written_in_place(spy: Spy) -> None:
    x = torch.randn(40, 50)
    room = torch.empty(arrcomp.max_compressed_size(x), dtype=torch.uint8)
    for out in (None, room):
        c = arrcomp.torch.compress(x, out=out)
        assert spy.calls[-1][0][0] == x.data_ptr()
    assert spy.calls[-1][0][1] == room.data_ptr() == c.payload.buffer.data_ptr()
    target = torch.empty_like(x)
    assert arrcomp.torch.decompress(c, out=target) is target
    assert spy.calls[-1][0][0] == room.data_ptr()
    assert spy.calls[-1][0][3] == target.data_ptr()
    y = arrcomp.torch.decompress(c)
    assert spy.calls[-1][0][3] == y.data_ptr()
    assert torch.equal(target, x)
    assert torch.equal(y, x)


def test_several_tensors_take_one_call(spy: Spy) -> None:
    xs = [torch.randn(n, 3) for n in (1, 0, 5000)]
    adapter = arrcomp.torch.functions.ADAPTER
    specs = [arrcomp.compress(x, BOUNDED).spec for x in xs]
    spy.calls.clear()
    payloads = adapter.compress(xs, specs, None, 0, None)
    arrays = adapter.decompress(payloads, specs, None, 0)
    assert [len(call) for call in spy.calls] == [3, 3]
    for x, payload, y in zip(xs, payloads, arrays, strict=True):
        c = arrcomp.compress(x, BOUNDED)
        assert payload.to_host().tobytes() == c.payload.to_host().tobytes()
        assert torch.equal(y, arrcomp.decompress(c))


def test_payloads_have_memory_of_their_size() -> None:
    c = arrcomp.compress(torch.zeros(100_000))
    storage = c.payload.buffer.untyped_storage()
    assert c.payload.length is None
    assert storage.nbytes() == c.payload.nbytes < 2000


def test_what_follows_a_payload_is_zero() -> None:
    x = torch.randn(30_000)
    coding = (BOUNDED.id, BOUNDED.core_parameters())
    payloads, lengths = ops.encode([x, x[:10]], *coding)
    first, second = payloads.split(kernels.places([x, x[:10]], *coding))
    for room, length in zip((first, second), lengths.tolist(), strict=True):
        assert 0 < length < room.numel()
        assert not room[length:].any()
        assert room.data_ptr() % 8 == 0


def test_the_input_is_left_alone() -> None:
    x = torch.randn(1000)
    before = x.clone()
    arrcomp.torch.roundtrip(x, ErrorBounded(abs=1.0))
    arrcomp.torch.compress(x, ErrorBounded(abs=1.0))
    assert torch.equal(x, before)


def test_torch_out_is_filled() -> None:
    c = arrcomp.compress(X)
    out = torch.empty(X.shape)
    assert arrcomp.decompress(c, out=out) is out
    np.testing.assert_array_equal(out.numpy(), X)
    for wrong, message in (
        (torch.empty(50, 6).T, "not C-contiguous"),
        (torch.empty(X.shape, requires_grad=True), "requires grad"),
        (torch.empty(6, 5), "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            arrcomp.decompress(c, out=wrong)
        with pytest.raises(ValueError, match=message):
            arrcomp.torch.decompress(c, out=wrong)
    with pytest.raises(TypeError, match="dtype float64"):
        arrcomp.decompress(c, out=torch.empty(X.shape, dtype=torch.float64))
    with pytest.raises(TypeError, match=r"out is a numpy\.ndarray; a torch\.Tensor is allowed"):
        arrcomp.torch.decompress(c, out=np.empty_like(X))
    with pytest.raises(TypeError, match="meta tensor"):
        arrcomp.torch.decompress(c, out=torch.empty(X.shape, device="meta"))


@pytest.mark.parametrize("tensor", ["conj", "neg"])
def test_a_lazy_out_is_refused(tensor: str) -> None:
    z = torch.zeros(4, dtype=torch.complex64).conj()
    out = z if tensor == "conj" else z.imag
    with pytest.raises(ValueError, match="lazily conjugated or negated"):
        arrcomp.decompress(arrcomp.compress(torch.zeros(4, dtype=out.dtype)), out=out)


def test_torch_memory_holds_the_result() -> None:
    out = torch.empty(arrcomp.max_compressed_size(X), dtype=torch.uint8)
    assert arrcomp.compress(X, out=out).to_bytes() == arrcomp.compress(X).to_bytes()


@pytest.mark.parametrize("make", [bytearray, lambda n: np.empty(n, np.uint8), lambda n: torch.empty(n + 3).byte()[3:]])
def test_any_memory_of_the_host_holds_a_tensor(make: Any) -> None:
    x = torch.from_numpy(X)
    out = make(arrcomp.max_compressed_size(x))
    c = arrcomp.torch.compress(x, out=out)
    expected = arrcomp.compress(X)
    assert c.to_bytes() == expected.to_bytes()
    assert bytes(out[: c.payload.nbytes]) == expected.payload.to_host().tobytes()
    assert torch.equal(arrcomp.torch.decompress(c), x)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (torch.empty(16, dtype=torch.uint8), ValueError, "out has 16 bytes; at least"),
        (torch.empty(200_000, dtype=torch.uint8)[::2], ValueError, "not C-contiguous"),
        (torch.empty(100_000), TypeError, "out has dtype float32; uint8 is allowed"),
        (torch.empty(100_000, dtype=torch.uint8, device="meta"), TypeError, "out is on meta"),
        (bytes(100_000), ValueError, "read-only"),
        ("text", TypeError, "out is no array"),
    ],
    ids=["small", "strided", "dtype", "meta", "bytes", "str"],
)
def test_memory_that_does_not_fit_is_refused(out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrcomp.torch.compress(torch.from_numpy(X), out=out)


def test_tensors_that_overlap_are_refused() -> None:
    memory = torch.zeros(100_000, dtype=torch.uint8)
    x = memory[:1200].view(torch.float32)
    with pytest.raises(ValueError, match="out overlaps x"):
        arrcomp.torch.compress(x, out=memory)
    c = arrcomp.torch.compress(torch.from_numpy(X).reshape(-1), out=memory)
    with pytest.raises(ValueError, match="out overlaps the compressed array"):
        arrcomp.torch.decompress(c, out=x)


# The operators called by hand


def test_operators_refuse_what_would_read_or_write_elsewhere() -> None:
    x = torch.randn(100)
    payloads, lengths = ops.encode([x], Lossless.id, [0.0])
    shape = ([100], [1], Lossless.id, [0.0], torch.float32)
    with pytest.raises(ValueError, match="float64 on cpu beside"):
        ops.encode([x, x.double()], Lossless.id, [0.0])
    with pytest.raises(ValueError, match="out has 0 tensors; 1 are allowed"):
        ops.encode_out([x], [], Lossless.id, [0.0])
    with pytest.raises(TypeError, match="payloads has dtype float32; uint8 is allowed"):
        ops.decode([x], [None], *shape)
    with pytest.raises(ValueError, match="payloads is not C-contiguous"):
        ops.decode([payloads[::2]], [None], *shape)
    with pytest.raises(TypeError, match=r"lengths has torch\.int32\[1\] on cpu; int64\[1\] on cpu is allowed"):
        ops.decode([payloads], [lengths.int()], *shape)
    with pytest.raises(ValueError, match="dimensions="):
        ops.decode([payloads], [lengths], [100], [2], *shape[2:])
    with pytest.raises(ValueError, match="codec_id=99"):
        ops.roundtrip(x, 99, [0.0])
    for length in (-1, 0, payloads.numel() + 1, 1 << 62):
        with pytest.raises(CorruptStreamError):
            ops.decode([payloads], [torch.tensor([length])], *shape)


def test_the_corrupt_one_of_several_payloads_is_named() -> None:
    xs = [torch.randn(100), torch.randn(100)]
    payloads = ops.encode_trimmed(xs, Lossless.id, [0.0])
    payloads[1][0] ^= 0xFF
    with pytest.raises(CorruptStreamError, match="payload 1: "):
        ops.decode(payloads, [None, None], [100, 100], [1, 1], Lossless.id, [0.0], torch.float32)


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


# Pickles


def saved_and_loaded(value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True, **options)


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301


@pytest.mark.parametrize("twin", [saved_and_loaded, copy.copy, copy.deepcopy, pickled])
def test_compressed_tensors_pickle_and_copy(twin: Any) -> None:
    c = arrcomp.compress(torch.from_numpy(X), ErrorBounded(rel=1e-3))
    again = twin(c)
    assert again.to_bytes() == c.to_bytes()
    assert (again.codec, again.shape, again.dtype, again.device) == (c.codec, c.shape, c.dtype, c.device)
    assert isinstance(arrcomp.decompress(again), torch.Tensor)


def test_a_state_dict_holds_compressed_arrays(tmp_path: Path) -> None:
    model = torch.nn.Linear(30, 40)
    state = {name: arrcomp.compress(value, BOUNDED) for name, value in model.state_dict().items()}
    state |= {"host": arrcomp.compress(X), "plain": torch.ones(3)}
    torch.save(state, tmp_path / "state.pt")
    for options in ({}, {"mmap": True}, {"map_location": "cpu"}):
        loaded = torch.load(tmp_path / "state.pt", weights_only=True, **options)
        assert isinstance(arrcomp.decompress(loaded["host"]), np.ndarray)
        twin = torch.nn.Linear(30, 40)
        twin.load_state_dict({name: arrcomp.decompress(loaded[name]) for name in model.state_dict()})
        for mine, theirs in zip(twin.parameters(), model.parameters(), strict=True):
            assert (mine - theirs).abs().max() <= 1e-2


def test_pickles_are_as_large_as_the_payload() -> None:
    x = torch.zeros(100_000)
    room = torch.empty(arrcomp.max_compressed_size(x), dtype=torch.uint8)
    compiled = ops.encode([x], Lossless.id, [0.0])  # what leaves compiled code has more memory than the payload takes
    trimmed = arrcomp.compress(x)
    payload = type(trimmed.payload)(trimmed.payload.adapter, *compiled, trusted=True)
    for c in (trimmed, arrcomp.compress(x, out=room), arrcomp.Compressed(trimmed.spec, payload)):
        assert len(pickle.dumps(c)) < c.nbytes + 1000
        assert c.to_bytes() == trimmed.to_bytes()


def test_what_is_unpickled_is_not_trusted() -> None:
    c = arrcomp.compress(torch.from_numpy(X))
    assert c.payload.trusted
    assert not saved_and_loaded(c).payload.trusted


@pytest.mark.parametrize(
    "arguments",
    [
        {"payload": None},
        {"payload": torch.zeros(5000)},
        {"payload": torch.zeros(50, 100, dtype=torch.uint8)},
        {"payload": torch.zeros(10, dtype=torch.uint8)},
        {"payload": torch.zeros(10_000, dtype=torch.uint8)[::2]},
        {"config": {"codec": "error-bounded"}},
        {"config": None},
        {"config": {"codec": "error-bounded", "abs": 1.0}, "dtype": "int64"},
        {"dtype": "float31"},
        {"dtype": None},
        {"shape": [6, 50]},
        {"shape": (6, -50)},
        {"shape": (6, 50.0)},
        {"shape": (1 << 40, 1 << 40, 0)},
        {"shape": (1 << 50,)},
        {"shape": (1,) * 65},
    ],
    ids=repr,
)
def test_hostile_pickles_are_refused(arguments: dict[str, Any]) -> None:
    _, (payload, config, dtype, shape) = arrcomp.compress(torch.from_numpy(X)).__reduce__()
    good = {"payload": payload, "config": config, "dtype": dtype, "shape": shape}
    assert pickling.rebuild(**good).shape == (6, 50)
    with pytest.raises(CorruptStreamError):
        pickling.rebuild(**good | arguments)


def test_altered_pickles_are_found_corrupt() -> None:
    rebuild, (payload, *rest) = arrcomp.compress(torch.from_numpy(X)).__reduce__()
    payload = payload.clone()
    payload[0] ^= 0xFF
    c = rebuild(payload, *rest)
    with pytest.raises(CorruptStreamError):
        arrcomp.decompress(c)
    with pytest.raises(CorruptStreamError):
        c.verify()


def test_the_matrix_of_devices_has_the_same_bytes(device: checks.Host) -> None:
    x = device.put(X)
    if not isinstance(x, torch.Tensor):
        x = torch.from_numpy(X)
    y = arrcomp.torch.roundtrip(x, BOUNDED)
    np.testing.assert_array_equal(y.cpu().numpy(), arrcomp.decompress(arrcomp.compress(X, BOUNDED)))
