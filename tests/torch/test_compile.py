"""PyTorch's compilers, exporters, transforms and modes on arrcomp's operators."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import arrcomp
from arrcomp import QSGD, Compressed, CorruptStreamError, ErrorBounded, Lossless
from arrcomp._api import pickling
from arrcomp._arrays.contract import Payload
from ordinary import then_full

torch = pytest.importorskip("torch")

import arrcomp.torch
from arrcomp.torch import _library, _ops, _tensors
from arrcomp.torch.functional import randomized_linear

# PyTorch's own, from importing what torch.compile needs.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")

BOUND = 1e-2
BOUNDED = ErrorBounded(abs=BOUND)
CODING = (BOUNDED.id, BOUNDED.core_parameters())
RELATIVE = ErrorBounded(rel=1e-2)


def tensor(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(7))


def both(x: Any) -> Any:
    return arrcomp.torch.decompress(arrcomp.torch.compress(x, BOUNDED))


def direct(x: Any) -> Any:
    return arrcomp.torch.roundtrip(x, BOUNDED)


def outside(x: Any) -> Any:
    return arrcomp.decompress(arrcomp.compress(x, BOUNDED))


@pytest.fixture(params=then_full(["aot_eager"], ["inductor"]))
def compiled(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`torch.compile(fullgraph=True)` with each backend, and no code that another version has left in a cache."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch.compiler.reset()

    def make(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        made: Callable[..., Any] = torch.compile(function, fullgraph=True, backend=request.param, **options)
        return made

    return make


# The operators

_X = tensor(64, 32)
_BYTES, _LENGTHS = _ops.encode([_X], *CODING)
_TRIMMED = arrcomp.compress(_X, BOUNDED).payload.buffer
OPERATORS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "encode": (_ops.encode, ([_X], *CODING)),
    "encode, strided": (_ops.encode, ([_X.T[::2]], *CODING, 0, None, 1)),
    "encode, several": (_ops.encode, ([_X, _X[:0], _X[:5]], *CODING)),
    "encode_trimmed": (_ops.encode_trimmed, ([_X, _X.T], *CODING)),
    "encode_out": (_ops.encode_out, ([_X], [torch.zeros(20_000, dtype=torch.uint8)], *CODING)),
    "decode": (_ops.decode, ([_BYTES], [_LENGTHS], [64, 32], [2], *CODING, torch.float32, True)),
    "decode, several": (
        _ops.decode,
        ([_TRIMMED, _BYTES], [None, _LENGTHS], [64, 32, 2048], [2, 1], *CODING, torch.float32),
    ),
    "decode_out": (_ops.decode_out, ([_BYTES], [_LENGTHS], [torch.zeros(64, 32)], *CODING)),
    "roundtrip": (_ops.roundtrip, (_X, *CODING)),
    "roundtrip, with a gradient": (_ops.roundtrip, (_X.clone().requires_grad_(), *CODING)),
    "roundtrip, strided": (_ops.roundtrip, (_X.T, *CODING, 0, None, 1)),
    "roundtrip, complex": (_ops.roundtrip, (torch.complex(_X, _X), Lossless.id, [0.0, 0.0])),
    "roundtrip, integers": (_ops.roundtrip, (torch.arange(50), Lossless.id, [0.0, 0.0])),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_what_their_schemas_say(name: str) -> None:
    operator, arguments = OPERATORS[name]
    torch.library.opcheck(operator, arguments)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64", "float64"])
@pytest.mark.parametrize("elements", [0, 1, 4096, 4097, 2_000_000])
def test_symbolic_sizes_are_the_real_ones(dtype: str, elements: int) -> None:
    x = torch.zeros(elements, dtype=getattr(torch, dtype))
    coding, needed = _tensors.coding_of(Lossless().with_reference()), arrcomp.max_compressed_nbytes(x)
    assert _tensors.capacities([x], *coding) == [needed]
    elements *= 1 + x.is_complex()
    assert sum(_tensors._term(elements, *term) for term in _tensors._capacity_terms(*coding, dtype)) == needed


# torch.compile


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [both, direct])
def test_compiled_code_gives_the_same_values(compiled: Any, function: Any, dynamic: bool) -> None:
    call = compiled(lambda x: function(x * 2) + 1, dynamic=dynamic)
    for rows in (3, 200):
        x = tensor(rows, 33)
        torch.testing.assert_close(call(x), function(x * 2) + 1, rtol=0, atol=0)


def test_compressed_arrays_leave_and_enter_compiled_code(compiled: Any) -> None:
    def enter(c: Compressed) -> Any:
        return arrcomp.torch.decompress(c) * 2

    x = tensor(40, 50)
    c = compiled(lambda x: arrcomp.torch.compress(x + 1, BOUNDED))(x)
    expected = arrcomp.compress(x + 1, BOUNDED)
    assert c.to_bytes() == expected.to_bytes()
    assert c.payload.length is not None
    assert c.trim().payload.buffer.untyped_storage().nbytes() == expected.payload.nbytes
    values = arrcomp.decompress(expected)
    assert torch.equal(arrcomp.decompress(c), values)
    assert torch.equal(compiled(enter)(c), values * 2)
    assert torch.equal(compiled(enter)(expected), values * 2)


def test_compiled_code_meets_other_shapes_and_codecs() -> None:
    call = torch.compile(lambda x, codec: arrcomp.torch.compress(x, codec), fullgraph=True, backend="aot_eager")
    for codec in (BOUNDED, ErrorBounded(abs=0.5), Lossless(), Lossless(speed="fast")):
        for x in (tensor(5, 7), tensor(9, 7), tensor(70, 70)):
            assert call(x, codec).to_bytes() == arrcomp.compress(x, codec).to_bytes()


def test_compiled_code_fills_the_caller_s_memory(compiled: Any) -> None:
    def fill(x: Any, room: Any, out: Any) -> Any:
        c = arrcomp.torch.compress(x, BOUNDED, out=room)
        return c, arrcomp.torch.decompress(c, out=out)

    x, out = tensor(40, 50), torch.zeros(40, 50)
    room = torch.zeros(arrcomp.max_compressed_nbytes(x), dtype=torch.uint8)
    c, filled = compiled(fill)(x, room, out)
    expected = arrcomp.compress(x, BOUNDED)
    assert c.to_bytes() == expected.to_bytes()
    assert torch.equal(room[: expected.payload.nbytes], expected.payload.buffer)
    assert torch.equal(out, arrcomp.decompress(expected))
    assert torch.equal(filled, out)


def test_gradients_pass_compiled_code(compiled: Any) -> None:
    x = tensor(50).requires_grad_()
    y = compiled(direct)(x)
    (gradient,) = torch.autograd.grad((y * 3).sum(), x)
    assert torch.equal(gradient, torch.full((50,), 3.0))


def test_corrupt_payloads_are_found_in_compiled_code() -> None:
    c = arrcomp.compress(tensor(40, 50).numpy())
    data = bytearray(c.payload.to_host())
    data[0] ^= 0xFF
    rebuild, (_, *rest) = pickling.reduced(arrcomp.compress(tensor(40, 50)))
    broken = rebuild(torch.frombuffer(data, dtype=torch.uint8), *rest)
    with pytest.raises(CorruptStreamError):
        torch.compile(arrcomp.torch.decompress, fullgraph=True, backend="aot_eager")(broken)


def test_arguments_are_checked_while_compiling() -> None:
    x = torch.arange(5)
    with pytest.raises(Exception, match="for ErrorBounded, got int64"):
        torch.compile(direct, fullgraph=True, backend="aot_eager")(x)


def test_structures_compile(compiled: Any) -> None:
    tree = {"weight": tensor(40, 50), "rest": [tensor(3), (tensor(2, 2), 7)]}
    y = compiled(lambda tree: arrcomp.decompress_many(arrcomp.compress_many(tree, BOUNDED)))(tree)
    expected = arrcomp.decompress_many(arrcomp.compress_many(tree, BOUNDED))
    assert y["rest"][1][1] == 7
    for found, wanted in ((y["weight"], expected["weight"]), (y["rest"][0], expected["rest"][0])):
        assert torch.equal(found, wanted)


def test_functions_for_all_frameworks_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tensor(40, 50)
    expected = outside(x)
    monkeypatch.delitem(arrcomp._arrays.registry._adapters, "torch")  # as in a process that has not used it yet
    assert torch.equal(torch.compile(outside, fullgraph=True, backend="aot_eager")(x), expected)


# torch.export, make_fx


class Model(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """A layer with a function behind it."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(32, 16)
        self.function = function

    def forward(self, x: Any) -> Any:
        """What the function makes of the layer's output."""
        return self.function(self.layer(x))


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("function", [both, direct])
def test_exported_programs_take_any_batch(function: Any, strict: bool) -> None:
    model = Model(function).eval()
    batch = torch.export.Dim("batch", min=2, max=100_000)
    program = torch.export.export(model, (tensor(8, 32),), dynamic_shapes=({0: batch},), strict=strict)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for rows in (2, 300):
        x = tensor(rows, 32)
        torch.testing.assert_close(loaded(x), model(x), rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_traced_graphs_hold_the_operators(mode: Any) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    x = tensor(40, 50)
    graph = make_fx(both, tracing_mode=mode)(x)
    assert torch.equal(graph(x + 1), both(x + 1))


# Modes and transforms


def test_tensors_without_data_go_through() -> None:
    from torch._subclasses import FakeTensorMode

    mode = FakeTensorMode()
    x = mode.from_tensor(tensor(40, 50))
    for y in (both(x), direct(x)):
        assert type(y) is type(x)
        assert y.shape == x.shape
    with mode:
        assert both(torch.empty(3, 4)).shape == (3, 4)


def test_modes_see_the_operators() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return function(*args, **(kwargs or {}))

    with Watch():
        both(tensor(5))
        direct(tensor(5))
    assert {_ops.encode_trimmed, _ops.decode_out, _ops.roundtrip} <= set(seen)


def test_function_modes_see_the_operators() -> None:
    from torch.overrides import TorchFunctionMode

    seen = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return function(*args, **(kwargs or {}))

    with Watch():
        both(tensor(5))
    assert {_ops.encode_trimmed, _ops.decode_out} <= set(seen)


def test_profilers_see_the_operators() -> None:
    with torch.profiler.profile() as profile:
        both(tensor(5))
    assert {"arrcomp::encode_trimmed", "arrcomp::decode_out"} <= {event.key for event in profile.key_averages()}


def test_calls_that_nobody_watches_need_no_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError("an operator was called")

    x = tensor(5)
    expected = both(x)
    for name in ("encode", "encode_trimmed", "decode", "decode_out"):
        monkeypatch.setattr(_ops, name, refuse)
    assert not _library.is_observed()
    assert torch.equal(both(x), expected)


def test_autocast_leaves_dtypes_alone() -> None:
    x = tensor(20, 20)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for function in (both, direct, torch.compile(direct, fullgraph=True, backend="aot_eager")):
            assert function(x).dtype == torch.float32
            assert function(x @ x).dtype == torch.bfloat16


def test_inference_mode_and_checkpointing() -> None:
    from torch.utils.checkpoint import checkpoint

    x = tensor(20)
    with torch.inference_mode():
        assert torch.equal(both(x), direct(x))
    x.requires_grad_()
    checkpoint(lambda x: direct(x).square(), x, use_reentrant=False).sum().backward()
    assert torch.equal(x.grad, 2 * direct(x.detach()))


@pytest.mark.parametrize("dimension", [0, 1, -1])
def test_vmap_takes_every_item_by_itself(dimension: int) -> None:
    x = tensor(6, 50) * torch.arange(1, 7)[:, None]  # ranges differ
    items = x.unbind(dimension)
    y = torch.func.vmap(lambda x: arrcomp.torch.roundtrip(x, RELATIVE), in_dims=dimension)(x)
    assert torch.equal(y, torch.stack([arrcomp.torch.roundtrip(item, RELATIVE) for item in items]))


def test_vmap_nests_and_compiles() -> None:
    x = tensor(3, 4, 50)
    expected = direct(x)
    assert torch.equal(torch.func.vmap(torch.func.vmap(direct))(x), expected)
    compiled = torch.compile(torch.func.vmap(direct), fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), expected)
    assert torch.func.vmap(_ops.roundtrip, in_dims=(0, None, None))(x, *CODING).equal(expected)
    y = torch.func.vmap(direct)(x.requires_grad_())
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.ones_like(x))


def test_vmap_names_the_functions_that_it_has_no_rule_for() -> None:
    x = tensor(3, 40)
    c, q = arrcomp.torch.compress(x[0]), arrcomp.torch.compress(x[0], QSGD())
    out, payloads = torch.zeros(3, 9999, dtype=torch.uint8), torch.stack([q.payload.buffer] * 3)

    def summed(buffer: Any, out: Any = None) -> Any:
        term = arrcomp.Compressed(q.spec, Payload(q.payload.adapter, buffer, trusted=True))
        return arrcomp.torch.compress_sum([term], out=out).payload.buffer

    cases: list[tuple[str, Any, tuple[Any, ...]]] = [
        ("compress", both, (x,)),
        ("compress", arrcomp.compress, (x,)),
        ("compress", lambda x, out: arrcomp.torch.compress(x, out=out), (x, out)),
        ("compress", torch.func.grad(lambda x: both(x).sum()), (x,)),
        ("decompress", lambda x: arrcomp.torch.decompress(c, out=x), (x,)),
        ("accumulate", lambda x: arrcomp.torch.accumulate(q, x), (x,)),
        ("compress_sum", summed, (payloads,)),
        ("compress_sum", summed, (payloads, out)),
    ]
    for name, function, arguments in cases:
        with pytest.raises(NotImplementedError, match=rf"^{name}: expected no batch of torch\.vmap, got one; call it"):
            torch.func.vmap(function)(*arguments)
    for checked in (arrcomp.compress, arrcomp.torch.roundtrip):
        with pytest.raises(ValueError, match=r"^check_finite: expected False under torch\.vmap, got True"):
            torch.func.vmap(functools.partial(checked, check_finite=True))(x)
    compiled = torch.compile(torch.func.vmap(both), fullgraph=True, backend="eager")
    with pytest.raises(RuntimeError, match=r"compress: expected no batch of torch\.vmap"):
        compiled(x)
    weight = torch.ones(2, 40, requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"^randomized_linear: expected no batch of torch\.vmap"):
        torch.func.vmap(lambda x: randomized_linear(x, weight, proj_dim_ratio=0.5))(x.expand(2, 3, 40))


def test_transforms_see_a_derivative_of_one() -> None:
    from torch import func

    x = tensor(6)
    identity = torch.eye(6)
    assert torch.equal(func.jacrev(direct)(x), identity)
    assert torch.equal(func.jacfwd(direct)(x), identity)
    assert torch.equal(func.jvp(direct, (x,), (x,))[1], x)
    assert torch.equal(func.jvp(func.vmap(direct), (x[:, None],), (x[:, None],))[1], x[:, None])
    assert torch.equal(func.grad(lambda x: func.vmap(direct)(x).sum())(x), torch.ones(6))
    assert torch.equal(func.vmap(func.grad(lambda x: direct(x) ** 2))(x), 2 * direct(x))
    torch.testing.assert_close(func.hessian(lambda x: (direct(x) ** 3).sum())(x), torch.diag(6 * direct(x)))


def test_forward_mode_sees_a_derivative_of_one() -> None:
    from torch.autograd import forward_ad

    x, tangent = tensor(6), tensor(6) + 1
    with forward_ad.dual_level():
        y = direct(forward_ad.make_dual(x, tangent))
        assert torch.equal(forward_ad.unpack_dual(y).tangent, tangent)
