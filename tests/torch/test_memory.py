"""What PyTorch's arrays take: memory is read and written in place, and what does not fit is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import CorruptStreamError, ErrorBounded, Lossless, _core

torch = pytest.importorskip("torch")

import arrcomp.torch
from arrcomp._arrays import driver
from arrcomp.torch import _adapter, _ops, _tensors

RNG = np.random.default_rng(7)
X = RNG.normal(0, 1, (6, 50)).astype(np.float32)
BOUNDED = ErrorBounded(abs=1e-2)


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
    monkeypatch.setattr(driver, "_core", found)
    return found


def test_contiguous_tensors_are_read_and_written_in_place(spy: Spy) -> None:
    x = torch.randn(40, 50)
    room = torch.empty(arrcomp.max_compressed_nbytes(x), dtype=torch.uint8)
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
    adapter = _adapter.ADAPTER
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
    payloads, lengths = _ops.encode([x, x[:10]], *coding)
    first, second = payloads.split(_tensors.capacities([x, x[:10]], *coding))
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
        (torch.empty(50, 6).T, "expected a C-contiguous"),
        (torch.empty(X.shape, requires_grad=True), "requires no gradient"),
        (torch.empty(6, 5), "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            arrcomp.decompress(c, out=wrong)
        with pytest.raises(ValueError, match=message):
            arrcomp.torch.decompress(c, out=wrong)
    with pytest.raises(TypeError, match="expected dtype float32, got float64"):
        arrcomp.decompress(c, out=torch.empty(X.shape, dtype=torch.float64))
    with pytest.raises(TypeError, match=r"out: expected a torch\.Tensor .*, got numpy\.ndarray"):
        arrcomp.torch.decompress(c, out=np.empty_like(X))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="meta tensor"):
        arrcomp.torch.decompress(c, out=torch.empty(X.shape, device="meta"))


@pytest.mark.parametrize("tensor", ["conj", "neg"])
def test_a_lazy_out_is_refused(tensor: str) -> None:
    z = torch.zeros(4, dtype=torch.complex64).conj()
    out = z if tensor == "conj" else z.imag
    with pytest.raises(ValueError, match="resolve_conj"):
        arrcomp.decompress(arrcomp.compress(torch.zeros(4, dtype=out.dtype)), out=out)


def test_torch_memory_holds_the_result() -> None:
    out = torch.empty(arrcomp.max_compressed_nbytes(X), dtype=torch.uint8)
    assert arrcomp.compress(X, out=out).to_bytes() == arrcomp.compress(X).to_bytes()


@pytest.mark.parametrize("make", [bytearray, lambda n: np.empty(n, np.uint8), lambda n: torch.empty(n + 3).byte()[3:]])
def test_any_memory_of_the_host_holds_a_tensor(make: Any) -> None:
    x = torch.from_numpy(X)
    out = make(arrcomp.max_compressed_nbytes(x))
    c = arrcomp.torch.compress(x, out=out)
    expected = arrcomp.compress(X)
    assert c.to_bytes() == expected.to_bytes()
    assert bytes(out[: c.payload.nbytes]) == expected.payload.to_host().tobytes()
    assert torch.equal(arrcomp.torch.decompress(c), x)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (
            torch.empty(16, dtype=torch.uint8),
            ValueError,
            r"out: expected at least \d+ bytes \(max_compressed_nbytes\), got 16",
        ),
        (torch.empty(200_000, dtype=torch.uint8)[::2], ValueError, "expected a C-contiguous"),
        (torch.empty(100_000), TypeError, "out: expected dtype uint8, got float32"),
        (torch.empty(100_000, dtype=torch.uint8, device="meta"), TypeError, "out: expected .*, got .*meta"),
        (bytes(100_000), ValueError, "read-only"),
        ("text", TypeError, "out: expected a uint8 array in host memory"),
    ],
    ids=["small", "strided", "dtype", "meta", "bytes", "str"],
)
def test_memory_that_does_not_fit_is_refused(out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrcomp.torch.compress(torch.from_numpy(X), out=out)


def test_tensors_that_overlap_are_refused() -> None:
    memory = torch.zeros(100_000, dtype=torch.uint8)
    x = memory[:1200].view(torch.float32)
    with pytest.raises(ValueError, match="out: expected memory of its own, got memory that overlaps x"):
        arrcomp.torch.compress(x, out=memory)
    c = arrcomp.torch.compress(torch.from_numpy(X).reshape(-1), out=memory)
    with pytest.raises(ValueError, match=r"out: .* overlaps the compressed array"):
        arrcomp.torch.decompress(c, out=x)


# The operators called by hand


def test_operators_refuse_what_would_read_or_write_elsewhere() -> None:
    x = torch.randn(100)
    payloads, lengths = _ops.encode([x], Lossless.id, [0.0, 0.0])
    shape = ([100], [1], Lossless.id, [0.0, 0.0], torch.float32)
    with pytest.raises(
        ValueError, match=r"one dtype on one device, got torch\.float32 on cpu and torch\.float64 on cpu"
    ):
        _ops.encode([x, x.double()], Lossless.id, [0.0, 0.0])
    with pytest.raises(ValueError, match="out: expected 1 tensors, got 0"):
        _ops.encode_out([x], [], Lossless.id, [0.0, 0.0])
    with pytest.raises(TypeError, match="payloads: expected dtype uint8, got float32"):
        _ops.decode([x], [None], *shape)
    with pytest.raises(ValueError, match="payloads: expected a C-contiguous"):
        _ops.decode([payloads[::2]], [None], *shape)
    with pytest.raises(TypeError, match=r"lengths: expected int64\[1\] on cpu, got torch\.int32\[1\] on cpu"):
        _ops.decode([payloads], [lengths.int()], *shape)
    with pytest.raises(ValueError, match=r"dimensions: expected the sum 1, the number of sizes, got \[2\]"):
        _ops.decode([payloads], [lengths], [100], [2], *shape[2:])
    with pytest.raises(ValueError, match="dimensions: expected 1 numbers, one for each payload, got 2"):
        _ops.decode([payloads], [lengths], [100, 100], [1, 1], *shape[2:])
    with pytest.raises(ValueError, match="codec_id: expected the id of a codec, got 99"):
        _ops.roundtrip(x, 99, [0.0])
    for length in (-1, 0, payloads.numel() + 1, 1 << 62):
        with pytest.raises(CorruptStreamError):
            _ops.decode([payloads], [torch.tensor([length])], *shape)


def test_the_corrupt_one_of_several_payloads_is_named() -> None:
    xs = [torch.randn(100), torch.randn(100)]
    payloads = _ops.encode_trimmed(xs, Lossless.id, [0.0, 0.0])
    payloads[1][0] ^= 0xFF
    with pytest.raises(CorruptStreamError, match="payload 1: "):
        _ops.decode(payloads, [None, None], [100, 100], [1, 1], Lossless.id, [0.0, 0.0], torch.float32)
