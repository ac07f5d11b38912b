"""PyTorch's tensors on a GPU: nothing waits, memory comes from its allocator, work goes to its current stream."""

from __future__ import annotations

import gc
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import QSGD, CorruptStreamError, ErrorBounded, Lossless, _core
from arrcomp._api import pickling

torch = pytest.importorskip("torch")

import arrcomp.torch
from arrcomp.torch import _ops

from . import gpu as gpus

BOUNDED = ErrorBounded(abs=1e-2)
RELATIVE = ErrorBounded(rel=1e-2)  # reads the array twice
RANDOM = QSGD(rounding="stochastic")
CODING = (BOUNDED.id, BOUNDED.core_parameters())


@pytest.fixture(autouse=True)
def gpu() -> None:
    if _core.cuda_device_count() == 0:
        pytest.skip("arrcomp finds no CUDA device")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no CUDA device")


@pytest.fixture
def impatient() -> Iterator[None]:
    """PyTorch raises where it waits for the device."""
    with gpus.impatient():
        yield


def tensor(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(7)).cuda()


def allocations() -> int:
    return int(torch.cuda.memory_stats()["allocation.all.allocated"])


@pytest.mark.parametrize("codec", [Lossless(), BOUNDED, RELATIVE, ErrorBounded(pointwise=1e-2), QSGD()], ids=repr)
@pytest.mark.parametrize("elements", [0, 1, 5000, 3_000_000])
def test_the_gpu_writes_the_cpu_s_bytes(codec: arrcomp.Codec, elements: int) -> None:
    x = tensor(elements)
    c = arrcomp.torch.compress(x, codec)
    host = arrcomp.torch.compress(x.cpu(), codec)
    assert c.device == "cuda:0"
    assert c.to_bytes() == host.to_bytes()
    y = arrcomp.torch.decompress(c)
    assert y.device == x.device
    assert torch.equal(y.cpu(), arrcomp.torch.decompress(host))
    assert torch.equal(arrcomp.torch.roundtrip(x, codec), y)


def test_other_layouts_come_back() -> None:
    base = tensor(40, 30)
    z = torch.complex(base, base + 1)
    for x in (base.T, base[:, ::3], base[1:2].expand(5, 30), z.conj(), z.conj().imag):
        assert torch.equal(arrcomp.torch.decompress(arrcomp.torch.compress(x)), x)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.usefixtures("impatient")
def test_nothing_waits() -> None:
    xs = [tensor(100, 100), tensor(5)]
    with torch.no_grad():
        for codec in (Lossless(), BOUNDED, RELATIVE, QSGD()):
            arrcomp.torch.decompress(arrcomp.torch.compress(xs[0], codec))
            arrcomp.torch.roundtrip(xs[0], codec)
            arrcomp.decompress_many(arrcomp.compress_many(xs, codec))


def test_memory_comes_from_the_allocator_and_goes_back() -> None:
    x = tensor(1000, 1000)
    c = arrcomp.torch.compress(x, BOUNDED)
    arrcomp.torch.decompress(c)  # what is made once is made
    before, in_use = allocations(), torch.cuda.memory_allocated()
    c2 = arrcomp.torch.compress(x, BOUNDED)
    assert allocations() - before == 3  # the payload, its length, scratch
    before = allocations()
    y = arrcomp.torch.decompress(c2)
    assert allocations() - before == 2  # the array, a status
    del c2, y
    assert torch.cuda.memory_allocated() == in_use
    assert c.trim().payload.buffer.untyped_storage().nbytes() == c.payload.nbytes


def test_many_arrays_share_an_allocation() -> None:
    xs = [tensor(100) for _ in range(50)]
    arrcomp.compress_many(xs, BOUNDED)
    before = allocations()
    many = arrcomp.compress_many(xs, BOUNDED)
    assert allocations() - before == 3
    for c, x in zip(many, xs, strict=True):
        assert c.payload.buffer.data_ptr() % 256 == 0
        assert c.to_bytes() == arrcomp.compress(x, BOUNDED).to_bytes()


def test_out_is_filled_without_an_allocation_for_it() -> None:
    x = tensor(300, 100)
    room = torch.empty(arrcomp.max_compressed_nbytes(x), dtype=torch.uint8, device="cuda")
    out = torch.empty_like(x)
    c = arrcomp.torch.compress(x, BOUNDED, out=room)
    assert c.payload.buffer.data_ptr() == room.data_ptr()
    assert arrcomp.torch.decompress(c, out=out) is out
    assert torch.equal(out, arrcomp.torch.roundtrip(x, BOUNDED))
    shifted = torch.empty(room.numel() + 3, dtype=torch.uint8, device="cuda")[3:]
    assert arrcomp.torch.compress(x, BOUNDED, out=shifted).to_bytes() == c.to_bytes()


@pytest.fixture
def little_memory() -> Iterator[None]:
    """PyTorch gets no more memory of the device than it has, and 48 MiB."""
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (48 << 20)) / total)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.parametrize("codec", [Lossless(), BOUNDED, QSGD(bits=8), QSGD(bits=8, coding="entropy")], ids=repr)
def test_running_out_of_memory_leaves_the_device_usable(codec: arrcomp.Codec, request: pytest.FixtureRequest) -> None:
    x, small = tensor(1 << 26), tensor(1000)  # 256 MiB
    before = x.cpu()
    c, expected = arrcomp.torch.compress(x, codec).trim(), arrcomp.torch.compress(small, codec).to_bytes()
    request.getfixturevalue("little_memory")
    for call in (lambda: arrcomp.torch.compress(x, codec), lambda: arrcomp.torch.decompress(c)):
        in_use = torch.cuda.memory_allocated()
        with pytest.raises(torch.cuda.OutOfMemoryError):
            call()
        gc.collect()  # what the error held
        torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() == in_use
        again = arrcomp.torch.compress(small, codec)
        assert again.to_bytes() == expected
        arrcomp.torch.decompress(again)
    assert torch.equal(x.cpu(), before)


def test_memory_elsewhere_is_refused() -> None:
    x = tensor(10)
    room = torch.empty(10_000, dtype=torch.uint8)
    with pytest.raises(TypeError, match="out: expected a uint8 tensor on cuda:0 like x, got one on cpu"):
        arrcomp.torch.compress(x, out=room)
    with pytest.raises(TypeError, match="out: expected a uint8 tensor on cpu like x, got one on cuda:0"):
        arrcomp.torch.compress(x.cpu(), out=room.cuda())
    with pytest.raises(TypeError, match=r"out: expected .*, got bytearray"):
        arrcomp.torch.compress(x, out=bytearray(10_000))
    memory = torch.zeros(10_000, dtype=torch.uint8, device="cuda")
    with pytest.raises(ValueError, match="out: expected memory of its own, got memory that overlaps x"):
        arrcomp.torch.compress(memory[:400].view(torch.float32), out=memory)


@pytest.mark.parametrize("codec", [Lossless(), RELATIVE], ids=repr)
def test_graphs_capture_everything(codec: arrcomp.Codec) -> None:
    x = tensor(200, 100)
    arrcomp.torch.roundtrip(x, codec)  # what is made once is made
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = arrcomp.torch.compress(x, codec)
        y = arrcomp.torch.decompress(c)
        z = arrcomp.torch.roundtrip(x, codec)
    for factor in (1.0, 3.0):
        x.copy_(tensor(200, 100) * factor)
        graph.replay()
        expected = arrcomp.compress(x, codec)
        assert arrcomp.Compressed(c.spec, c.payload.copy()).to_bytes() == expected.to_bytes()
        assert torch.equal(y, arrcomp.decompress(expected))
        assert torch.equal(z, y)


@pytest.mark.parametrize("elements", [0, 1, 5000, 3_000_000])
def test_a_seed_gives_the_cpu_s_bytes(elements: int) -> None:
    x = tensor(elements)
    host = arrcomp.torch.compress(x.cpu(), RANDOM, seed=5)
    for seed in (5, torch.tensor(5, device="cuda"), torch.tensor([5], dtype=torch.int32, device="cuda")):
        c = arrcomp.torch.compress(x, RANDOM, seed=seed)
        assert c.to_bytes() == host.to_bytes()
        assert torch.equal(arrcomp.torch.roundtrip(x, RANDOM, seed=seed), arrcomp.torch.decompress(c))
    with pytest.raises(TypeError, match="seed: expected a tensor on cuda:0 like x, got one on cpu"):
        arrcomp.torch.compress(x, RANDOM, seed=torch.tensor(5))


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_fixed_rates_never_wait() -> None:
    xs, seed = [tensor(100, 100), tensor(5)], torch.tensor(5, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        made = [arrcomp.torch.compress(xs[0], RANDOM, seed=seed), *arrcomp.compress_many(xs, RANDOM, seed=seed)]
        for c in made:
            assert c.payload.length is None
            assert c.payload.buffer.numel() == c.payload.nbytes == c.spec.capacity
            assert c.ratio > 0
            c.trim()
            arrcomp.torch.decompress(c)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_each_replay_of_a_graph_has_another_seed() -> None:
    x, seed = tensor(200, 100), torch.tensor(0, device="cuda")
    arrcomp.torch.roundtrip(x, RANDOM, seed=seed)  # what is made once is made
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = arrcomp.torch.compress(x, RANDOM, seed=seed)
        y = arrcomp.torch.roundtrip(x, RANDOM, seed=seed)
        seed += 1
    for number in range(3):
        graph.replay()
        expected = arrcomp.compress(x, RANDOM, seed=number)
        assert arrcomp.Compressed(c.spec, c.payload.copy()).to_bytes() == expected.to_bytes()
        assert torch.equal(y, arrcomp.decompress(expected))


def test_work_goes_to_the_current_stream() -> None:
    slow = tensor(4000, 4000)
    expected = arrcomp.torch.roundtrip((slow @ slow)[:50], RELATIVE)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    for _ in range(5):
        with torch.cuda.stream(stream):
            x = (slow @ slow)[:50]  # late, so that work on another stream would come first
            y = arrcomp.torch.decompress(arrcomp.torch.compress(x, RELATIVE))
        stream.synchronize()
        assert torch.equal(y, expected)


def test_payloads_from_outside_are_checked() -> None:
    rebuild, (payload, *rest) = pickling.reduced(arrcomp.torch.compress(tensor(50, 50)))
    arrcomp.torch.decompress(rebuild(payload, *rest))
    payload = payload.clone()
    payload[0] ^= 0xFF
    broken = rebuild(payload, *rest)
    with pytest.raises(CorruptStreamError):
        arrcomp.torch.decompress(broken)
    with pytest.raises(CorruptStreamError):
        arrcomp.decompress(arrcomp.Compressed(broken.spec, broken.payload.copy()))


def test_compressed_arrays_move() -> None:
    x = tensor(50, 50)
    c = arrcomp.torch.compress(x, BOUNDED)
    host = c.to("cpu")
    assert host.device == "cpu"
    assert c.to(torch.device("cuda")) is c
    assert torch.equal(arrcomp.decompress(host), arrcomp.decompress(c).cpu())
    assert host.to(torch.device("cuda:0")).to_bytes() == c.to_bytes()
    assert torch.equal(arrcomp.decompress(arrcomp.from_bytes(c.to_bytes()), like=x), arrcomp.decompress(c))
    assert isinstance(arrcomp.decompress(c, like=np.empty(0)), np.ndarray)


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_saved_arrays_load_where_they_shall(place: str) -> None:
    c = arrcomp.torch.compress(tensor(50, 50), BOUNDED)
    file = io.BytesIO()
    torch.save({"c": c}, file)
    file.seek(0)
    again = torch.load(file, map_location=place, weights_only=True)["c"]
    assert again.device.startswith(place)
    assert again.to_bytes() == c.to_bytes()


def test_operators_are_what_their_schemas_say() -> None:
    x = tensor(64, 32)
    torch.use_deterministic_algorithms(True)  # which fills what follows a payload
    try:
        payload, length = _ops.encode([x], *CODING)
        torch.library.opcheck(_ops.encode, ([x, x[:5]], *CODING))
        torch.library.opcheck(_ops.decode, ([payload], [length], [64, 32], [2], *CODING, torch.float32, True))
        torch.library.opcheck(_ops.roundtrip, (x.requires_grad_(), *CODING))
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_code_runs_on_the_gpu(mode: str) -> None:
    pytest.importorskip("triton")
    torch.compiler.reset()
    call = torch.compile(lambda x: arrcomp.torch.roundtrip(x * 2, BOUNDED) + 1, fullgraph=True, mode=mode)
    for _ in range(4):
        x = tensor(100, 100)
        assert torch.equal(call(x), arrcomp.torch.roundtrip(x * 2, BOUNDED) + 1)


def test_the_gradient_passes_unchanged() -> None:
    x = tensor(100).requires_grad_()
    arrcomp.torch.roundtrip(x, BOUNDED).sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))
