"""PyTorch's tensors and codecs that round at random, or whose payloads have one length: eager and compiled."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import QSGD, Codec, CorruptStreamError
from arrcomp._api import pickling
from ordinary import then_full

torch = pytest.importorskip("torch")

import arrcomp.torch
from arrcomp.torch import _import_arrcomp_torch_first as _pickling
from arrcomp.torch import _ops, _tensors

# PyTorch's own, from importing what torch.compile needs.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")

RANDOM = QSGD(bits=3, rounding="stochastic")
CODECS = [
    RANDOM,
    QSGD(bits=5, norm="l2"),
    QSGD(bits=2, bucket_size=100),
    QSGD(bits=4, bucket_size=100, skip_incomplete=True),
]
SEEDS = [0, 1, 7, 2**32 + 5, 2**63 - 1, 2**63, 2**64 - 1]


def tensor(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(7))


def expected(x: Any, seed: int | None, codec: Codec = RANDOM) -> bytes:
    """What NumPy makes of it."""
    return arrcomp.compress(x.numpy(), codec, seed=seed).to_bytes()


class Counter:
    """A backend of torch.compile that runs graphs as they are, and counts them."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.graphs += 1
        return graph


@pytest.fixture
def counter() -> Counter:
    torch.compiler.reset()
    return Counter()


# Eager


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_gives_the_same_bytes_everywhere(seed: int) -> None:
    x = tensor(70, 33)
    signed = torch.tensor(seed if seed < 1 << 63 else seed - (1 << 64))
    for given in (seed, signed, signed[None], signed.view(torch.uint64)):
        c = arrcomp.torch.compress(x, RANDOM, seed=given)
        assert c.to_bytes() == expected(x, seed)
        assert torch.equal(arrcomp.torch.roundtrip(x, RANDOM, seed=given), arrcomp.torch.decompress(c))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_seeds_of_all_integer_types(dtype: str) -> None:
    x = tensor(300)
    assert arrcomp.compress(x, RANDOM, seed=torch.tensor(5, dtype=getattr(torch, dtype))).to_bytes() == expected(x, 5)
    if dtype.startswith("int"):
        minus = torch.tensor(-5, dtype=getattr(torch, dtype))
        assert arrcomp.compress(x, RANDOM, seed=minus).to_bytes() == expected(x, 2**64 - 5)


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (None, r"seed: expected an integer, or a 0-dimensional integer array, for QSGD.*, got None"),
        (1.5, r"seed: expected an integer, or a 0-dimensional integer array, for QSGD.*, got 1\.5"),
        (True, r"seed: expected an integer, or a 0-dimensional integer array, for QSGD.*, got True"),
        (torch.tensor(1.5), r"seed: expected a tensor of one integer, got torch\.float32\[\]"),
        (torch.tensor(True), r"seed: expected a tensor of one integer, got torch\.bool\[\]"),
        (torch.tensor([1, 2]), r"seed: expected a tensor of one integer, got torch\.int64\[2\]"),
        (torch.tensor([[1]]), r"seed: expected a tensor of one integer, got torch\.int64\[1, 1\]"),
        (torch.tensor(1, device="meta"), "seed: expected a tensor on cpu like x, got one on meta"),
        (np.array(3), r"seed: expected an integer, or a torch\.Tensor of one, got numpy\.ndarray"),
    ],
    ids=repr,
)
def test_what_is_no_seed_is_refused(seed: Any, message: str) -> None:
    for function in (arrcomp.torch.compress, arrcomp.torch.roundtrip):
        with pytest.raises(TypeError, match=message):
            function(tensor(10), RANDOM, seed=seed)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    for function in (arrcomp.torch.compress, arrcomp.torch.roundtrip):
        with pytest.raises(ValueError, match=f"seed: expected an integer from 0 to .*, got {seed}"):
            function(tensor(10), RANDOM, seed=seed)


def test_codecs_without_random_numbers_ignore_the_seed() -> None:
    x = tensor(100)
    for codec in (arrcomp.Lossless(), QSGD()):
        for seed in (None, 7, -1, torch.tensor(1.5)):
            assert arrcomp.torch.compress(x, codec, seed=seed).to_bytes() == expected(x, None, codec)
            arrcomp.torch.roundtrip(x, codec, seed=seed)


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("elements", [0, 1, 250, 5000])
def test_fixed_rate_payloads_are_all_of_their_buffers(codec: Codec, elements: int) -> None:
    x = tensor(elements)
    room = torch.empty(arrcomp.max_compressed_nbytes(x) + 64, dtype=torch.uint8)
    single = arrcomp.torch.compress(x, codec, seed=7)
    filled = arrcomp.torch.compress(x, codec, seed=7, out=room)
    many = arrcomp.compress_many([x, x[:30]], codec, seed=7)
    assert filled.payload.buffer.data_ptr() == (room.data_ptr() if elements else 0)
    for c in (single, filled, *many, copy.deepcopy(single), pickle.loads(pickle.dumps(single))):  # noqa: S301
        assert c.payload.length is None
        assert c.payload.buffer.numel() == c.payload.nbytes == c.spec.capacity
    for c in (single, filled, many[0]):
        assert c.to_bytes() == expected(x, 7, codec)
    assert many[1].to_bytes() == expected(x[:30], 7, codec)


def test_pickles_of_another_length_are_refused() -> None:
    _, (payload, *rest) = pickling.reduced(arrcomp.compress(tensor(6, 50), RANDOM, seed=1))
    for wrong in (payload[:-8], torch.cat([payload, payload[:8]])):
        with pytest.raises(
            CorruptStreamError, match=r"payload length: expected 136 bytes for shape \(6, 50\), got (128|144)"
        ):
            _pickling.rebuild(wrong, *rest)


def test_the_gradient_passes_random_rounding() -> None:
    x = tensor(50).requires_grad_()
    for seed in (3, torch.tensor(3)):
        (gradient,) = torch.autograd.grad((arrcomp.torch.roundtrip(x, RANDOM, seed=seed) * 2).sum(), x)
        assert torch.equal(gradient, torch.full((50,), 2.0))


@pytest.mark.parametrize("function", ["roundtrip", "operator", "with a gradient"])
def test_vmap_gives_every_item_the_seed_or_its_own(function: str) -> None:
    x, seeds = tensor(4, 300), torch.arange(4)
    call: Callable[[Any, Any], Any] = lambda x, seed: arrcomp.torch.roundtrip(x, RANDOM, seed=seed)  # noqa: E731
    if function == "operator":
        call = lambda x, seed: _ops.roundtrip(x, RANDOM.id, RANDOM.core_parameters(), 0, seed)  # noqa: E731
    if function == "with a gradient":
        x.requires_grad_()
    alone = [[arrcomp.torch.roundtrip(item, RANDOM, seed=seed) for item in x] for seed in range(4)]
    same = torch.func.vmap(call, in_dims=(0, None))(x, torch.tensor(2))
    assert torch.equal(same, torch.stack(alone[2]))
    own = torch.func.vmap(call)(x, seeds)
    assert torch.equal(own, torch.stack([alone[i][i] for i in range(4)]))
    draws = torch.func.vmap(call, in_dims=(None, 0))(x[0], seeds)
    assert torch.equal(draws, torch.stack([alone[i][0] for i in range(4)]))


def test_transforms_take_a_seed() -> None:
    x = tensor(6)
    call = lambda x: arrcomp.torch.roundtrip(x, RANDOM, seed=torch.tensor(1))  # noqa: E731
    assert torch.equal(torch.func.jacrev(call)(x), torch.eye(6))
    assert torch.equal(torch.func.jacfwd(call)(x), torch.eye(6))
    assert torch.equal(torch.func.jvp(lambda x: arrcomp.torch.roundtrip(x, RANDOM, seed=1), (x,), (x,))[1], x)


# Operators


_X = tensor(64, 32)
_CODING = (RANDOM.id, RANDOM.core_parameters())
_PAYLOAD = arrcomp.compress(_X, RANDOM, seed=1).payload.buffer
_SEED = torch.tensor(9)
OPERATORS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "encode": (_ops.encode, ([_X], *_CODING, 5)),
    "encode, several": (_ops.encode, ([_X, _X[:0], _X[:5]], *_CODING, 0, _SEED)),
    "encode_trimmed": (_ops.encode_trimmed, ([_X, _X.T], *_CODING, -5)),
    "encode_out": (_ops.encode_out, ([_X], [torch.zeros(20_000, dtype=torch.uint8)], *_CODING, 0, _SEED[None])),
    "decode": (_ops.decode, ([_PAYLOAD], [None], [64, 32], [2], *_CODING, torch.float32, True)),
    "roundtrip": (_ops.roundtrip, (_X, *_CODING, 5)),
    "roundtrip, with a gradient": (_ops.roundtrip, (_X.clone().requires_grad_(), *_CODING, 0, _SEED)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_what_their_schemas_say(name: str) -> None:
    operator, arguments = OPERATORS[name]
    torch.library.opcheck(operator, arguments)


def test_operators_refuse_seeds_that_are_elsewhere() -> None:
    for wrong in (torch.tensor(1.0), torch.tensor([1, 2]), torch.tensor(1, dtype=torch.int32)):
        with pytest.raises(TypeError, match=r"seed_at: expected int64\[\] on cpu, got .* on cpu"):
            _ops.encode([_X], *_CODING, 0, wrong)


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("elements", [0, 1, 99, 100, 4097])
def test_symbolic_sizes_are_the_real_ones(codec: Codec, elements: int) -> None:
    coding = _tensors.coding_of(codec)
    terms = _tensors._capacity_terms(*coding, "float32")
    needed = arrcomp.compress(torch.zeros(elements), codec, seed=0).payload.nbytes
    assert _tensors.capacities([torch.zeros(elements)], *coding) == [needed]
    assert sum(_tensors._term(elements, *term) for term in terms) == (needed if terms else 0)


# torch.compile


@pytest.mark.parametrize("function", ["compress", "roundtrip", "compress_many"])
def test_a_new_seed_does_not_compile_anew(counter: Counter, function: str) -> None:
    def call(x: Any, seed: Any) -> Any:
        if function == "compress_many":
            return arrcomp.compress_many([x, x[:100]], RANDOM, seed=seed)[0]
        return getattr(arrcomp.torch, function)(x, RANDOM, seed=seed)

    def check(found: Any, seed: int) -> None:
        if function == "roundtrip":
            assert torch.equal(found, arrcomp.torch.roundtrip(x, RANDOM, seed=seed))
        else:
            assert found.to_bytes() == expected(x, seed)

    x = tensor(40, 50)
    compiled = torch.compile(call, fullgraph=True, backend=counter)
    for seed in range(20):
        check(compiled(x, seed), seed)
    assert counter.graphs <= 3  # the first number, and those that come after it; 0 and 1 may be kept apart
    before = counter.graphs
    for seed in range(20):
        check(compiled(x, torch.tensor(seed)), seed)
    assert counter.graphs == before + 1


def test_large_seeds_compile(counter: Counter) -> None:
    x = tensor(40, 50)
    compiled = torch.compile(
        lambda x, seed: arrcomp.torch.compress(x, RANDOM, seed=seed), fullgraph=True, backend=counter
    )
    for seed in SEEDS:
        assert compiled(x, seed).to_bytes() == expected(x, seed)


@pytest.mark.parametrize("codec", then_full(CODECS[:1], CODECS[1:]), ids=repr)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_payloads_are_all_of_their_buffers(codec: Codec, dynamic: bool) -> None:
    torch.compiler.reset()

    def both(x: Any, room: Any) -> Any:
        c = arrcomp.torch.compress(x, codec, seed=7)
        many = arrcomp.compress_many({"x": x, "y": x[:3]}, codec, seed=7)
        filled = arrcomp.torch.compress(x, codec, seed=7, out=room)
        return c, many, filled, arrcomp.torch.decompress(c), arrcomp.torch.roundtrip(x, codec, seed=7)

    compiled = torch.compile(both, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for rows in (5, 90):
        x = tensor(rows, 33)
        room = torch.zeros(arrcomp.max_compressed_nbytes(x), dtype=torch.uint8)
        c, many, filled, y, z = compiled(x, room)
        for made in (c, many["x"], many["y"], filled):
            assert made.payload.length is None
            assert made.payload.buffer.numel() == made.spec.capacity
        assert c.to_bytes() == many["x"].to_bytes() == filled.to_bytes() == expected(x, 7, codec)
        assert many["y"].to_bytes() == expected(x[:3], 7, codec)
        assert torch.equal(y, arrcomp.decompress(c))
        assert torch.equal(z, y)


def test_compiled_code_meets_other_codecs(counter: Counter) -> None:
    compiled = torch.compile(
        lambda xs, codec: arrcomp.compress_many(xs, codec, seed=7), fullgraph=True, backend=counter
    )
    x = tensor(9, 70)
    for codec in CODECS:
        for c in compiled([x, x[:2]], codec):
            assert c.to_bytes() == expected(x if c.shape == (9, 70) else x[:2], 7, codec)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_seeds_pass_the_backends(backend: str) -> None:
    torch.compiler.reset()
    call = torch.compile(
        lambda x, seed: arrcomp.torch.roundtrip(x * 2, RANDOM, seed=seed) + 1, fullgraph=True, backend=backend
    )
    x = tensor(30, 40)
    for seed in (5, 6, 2**40, torch.tensor(5), torch.tensor(6)):
        assert torch.equal(call(x, seed), arrcomp.torch.roundtrip(x * 2, RANDOM, seed=seed) + 1)


def test_exported_programs_take_a_seed() -> None:
    class Model(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def forward(self, x: Any, seed: Any) -> Any:
            return arrcomp.torch.roundtrip(x, RANDOM, seed=seed)

    batch = torch.export.Dim("batch", min=2, max=100_000)
    shapes = {"x": {0: batch}, "seed": None}
    program = torch.export.export(Model(), (tensor(8, 32), torch.tensor(1)), dynamic_shapes=shapes).module()
    for rows in (2, 300):
        x = tensor(rows, 32)
        assert torch.equal(program(x, torch.tensor(rows)), arrcomp.torch.roundtrip(x, RANDOM, seed=rows))
