"""Models whose weights stay compressed: the same outputs, gradients and states as those of the plain model."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import QSGD, ErrorBounded, Lossless, Rule
from ordinary import then_full

torch = pytest.importorskip("torch")

import arrcomp.torch as ac
from arrcomp.torch import CompressedWeight
from arrcomp.torch._weights import functions
from arrcomp.torch._weights.memory import SharedMemory

nn = torch.nn
# Models are of any type here.
compress_weights: Any = ac.compress_weights
decompress_weights: Any = ac.decompress_weights
weight_memory: Any = ac.weight_memory
DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.float64]


class Layer(nn.Module):  # type: ignore[misc, name-defined]
    """A layer with a module in a module, and a parameter of its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width, bias=False)
        self.norm = nn.LayerNorm(width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        return x + self.scale * self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):  # type: ignore[misc, name-defined]
    """A language model without attention: embeddings, a list of layers, and a head that is tied to the embeddings."""

    def __init__(self, layers: int = 3, width: int = 64, words: int = 200, tied: bool = True) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)
        if tied:
            self.head.weight = self.words.weight

    def forward(self, ids: Any) -> Any:
        return self.run(self.words(ids))

    def run(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


IDS = torch.arange(24).reshape(2, 12) * 7 % 200


def model_of(dtype: Any = torch.bfloat16, **options: Any) -> Any:
    torch.manual_seed(0)
    return Model(**options).to(dtype)


def outputs(model: Any, ids: Any = IDS) -> Any:
    with torch.no_grad():
        return model(ids)


def same(x: Any, y: Any) -> bool:
    return bool(torch.equal(x, y)) and x.dtype == y.dtype


def compressed_names(model: Any) -> set[str]:
    parameters = model.named_parameters(remove_duplicate=False)
    return {name for name, weight in parameters if isinstance(weight, CompressedWeight)}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "grad"])
def test_outputs_are_those_of_the_plain_model(mode: str, dtype: Any) -> None:
    model = model_of(dtype)
    expected = outputs(model)
    assert compress_weights(model) is model
    context = torch.enable_grad() if mode == "grad" else getattr(torch, mode)()
    with context:
        for _ in range(2):
            assert same(model(IDS), expected)
    assert same(outputs(model), expected)  # what is made in inference mode serves outside
    assert compressed_names(model) == {
        "words.weight", "head.weight", *(f"layers.{i}.{name}.weight" for i in range(3) for name in ("up", "down"))
    }  # fmt: skip


def test_weights_that_are_tied_stay_tied_and_are_kept_once() -> None:
    model, untied = compress_weights(model_of()), compress_weights(model_of(tied=False))
    assert model.head.weight is model.words.weight
    difference = weight_memory(untied).plain_nbytes - weight_memory(model).plain_nbytes
    assert difference == model.head.weight.numel() * 2
    assert decompress_weights(model).head.weight is model.words.weight


def test_the_memory_is_that_of_payloads_and_of_the_largest_block() -> None:
    model = compress_weights(model_of(layers=5))
    before = weight_memory(model)
    assert before.shared_nbytes == 0
    outputs(model)
    memory = weight_memory(model)
    weights = {id(weight): weight for weight in model.parameters()}.values()
    plain = sum(weight.numel() * weight.itemsize for weight in weights)
    assert memory.plain_nbytes == plain
    payloads = [weight.compressed.payload.nbytes for weight in weights if isinstance(weight, CompressedWeight)]
    rest = [weight.numel() * weight.itemsize for weight in weights if not isinstance(weight, CompressedWeight)]
    assert memory.nbytes == sum(payloads) + sum(rest) < 0.8 * plain
    assert memory.shared_nbytes == max(2 * 64 * 128 * 2, 200 * 64 * 2)
    assert memory.compressed == len(payloads)
    assert f"{memory.nbytes:,}" in str(memory)


def test_no_plain_weight_is_left_after_a_forward_pass_or_an_error_in_it() -> None:
    model = compress_weights(model_of())
    expected, names = outputs(model), compressed_names(model)
    handle = model.layers[1].norm.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        outputs(model)
    handle.remove()
    assert compressed_names(model) == names
    assert same(outputs(model), expected)


def test_an_interrupted_forward_pass_ends() -> None:
    model = compress_weights(model_of())
    expected, names = outputs(model), compressed_names(model)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt  # after which PyTorch runs no hooks

    handle = model.layers[1].norm.register_forward_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        outputs(model)
    handle.remove()
    assert same(outputs(model), expected)
    assert compressed_names(model) == names
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(same(outputs(model), expected)), daemon=True)
    thread.start()
    thread.join(60)
    assert found == [True]


class Positions(nn.Module):  # type: ignore[misc, name-defined]
    """A module that returns a part of its weight, in a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(100, 64))

    def forward(self, count: int) -> Any:
        return self.table[:count], count


def test_a_result_that_is_a_part_of_a_weight_does_not_change_with_the_next_block() -> None:
    torch.manual_seed(0)
    model = nn.ModuleDict({"positions": Positions(), "linear": nn.Linear(64, 64)})
    expected = [part.clone() for part in (outputs(model["positions"], 3)[0], outputs(model["linear"], torch.ones(64)))]
    compress_weights(model)
    part, count = outputs(model["positions"], 3)
    assert same(outputs(model["linear"], torch.ones(64)), expected[1])
    assert same(part, expected[0])
    assert count == 3
    states = torch.vmap(model["linear"])(torch.ones(2, 64))  # of wrapped tensors, which have no memory to look at
    assert states.shape == (2, 64)


def test_gradients_of_inputs_and_of_plain_parameters_are_those_of_the_plain_model() -> None:
    plain = model_of()
    small = compress_weights(copy.deepcopy(plain))
    gradients = []
    for model in (plain, small):
        x = torch.linspace(-1, 1, 2 * 5 * 64, dtype=torch.bfloat16).reshape(2, 5, 64).requires_grad_()
        model.run(x).float().square().sum().backward()
        gradients.append([x.grad, *(layer.scale.grad for layer in model.layers)])
    assert all(map(same, *gradients))
    assert small.head.weight.grad is None


def test_the_backward_pass_keeps_no_plain_weight() -> None:
    model = compress_weights(model_of(layers=1))
    kept: list[Any] = []

    def pack(x: Any) -> Any:
        kept.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        model.run(torch.ones(1, 3, 64, dtype=torch.bfloat16, requires_grad=True))
    weights = [x for x in kept if x.numel() >= 64 * 64]
    assert weights
    assert all(isinstance(x, CompressedWeight) for x in weights)


def test_weights_are_frozen() -> None:
    model = compress_weights(model_of())
    assert not any(weight.requires_grad for weight in model.parameters() if isinstance(weight, CompressedWeight))
    with pytest.raises(ValueError, match=r"^requires_grad: expected False, as a compressed weight is frozen"):
        model.requires_grad_()


def test_states_go_both_ways() -> None:
    plain = model_of()
    model = compress_weights(copy.deepcopy(plain))
    state = model.state_dict()
    assert all(same(state[name], x) for name, x in plain.state_dict().items())
    assert isinstance(state["head.weight"], CompressedWeight)
    other = model_of(layers=3)
    other.load_state_dict({name: x + 1 for name, x in plain.state_dict().items()})
    other.load_state_dict(state)  # compressed values to plain parameters
    assert same(outputs(other), outputs(plain))
    doubled = {name: 2 * x for name, x in plain.state_dict().items()}
    model.load_state_dict(doubled)  # plain values to compressed ones
    plain.load_state_dict(doubled)
    assert compressed_names(model) == compressed_names(compress_weights(other))
    assert same(outputs(model), outputs(plain))
    model.load_state_dict(state)
    assert same(state["head.weight"], model.head.weight)
    model.load_state_dict(doubled, assign=True)
    assert same(outputs(model), outputs(plain))


@pytest.mark.parametrize("weights_only", [True, False])
def test_states_are_saved_compressed(weights_only: bool) -> None:
    model = compress_weights(model_of())
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    assert file.tell() < 0.9 * weight_memory(model).plain_nbytes
    file.seek(0)
    state = torch.load(file, weights_only=weights_only)
    assert isinstance(state["head.weight"], CompressedWeight)
    assert all(same(state[name], x) for name, x in model.state_dict().items())


def test_a_damaged_weight_is_not_loaded() -> None:
    model = compress_weights(model_of())
    payload = model.head.weight.compressed.payload.buffer
    payload[payload.numel() // 2 :] = 255
    file = io.BytesIO()
    torch.save(model.head.weight, file)
    file.seek(0)
    with pytest.raises(arrcomp.CorruptStreamError):
        torch.load(file)


def test_copies_of_a_model_are_on_their_own() -> None:
    model = compress_weights(model_of())
    expected = outputs(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert compressed_names(other) == compressed_names(model)
        with torch.no_grad():
            other.head.weight.mul_(2)
            other.layers[0].up.weight.zero_()
        assert same(outputs(model), expected)
        assert not same(outputs(other), expected)
        assert same(outputs(decompress_weights(other)), outputs(other))


def test_a_copy_of_a_block_is_without_the_others() -> None:
    model = compress_weights(model_of())
    expected = outputs(model.layers[0], torch.ones(64, dtype=torch.bfloat16))
    block = copy.deepcopy(model.layers[0])
    assert same(outputs(block, torch.ones(64, dtype=torch.bfloat16)), expected)
    assert len(pickle.dumps(model.layers[0])) < 0.5 * len(pickle.dumps(model))
    removed = weakref.ref(model.layers[2])
    del model.layers[2], model.layers[1]
    gc.collect()
    assert removed() is None


def test_weights_of_another_dtype_stay_compressed() -> None:
    model = compress_weights(model_of())
    expected = outputs(model_of().double())
    names = compressed_names(model)
    outputs(model)
    model.double()
    assert compressed_names(model) == names
    assert model.head.weight is model.words.weight
    assert all(weight.dtype == torch.float64 for weight in model.parameters())
    for _ in range(2):
        assert same(outputs(model), expected)


def test_assignments_change_what_is_kept() -> None:
    x = torch.arange(3000, dtype=torch.float32).reshape(50, 60)
    weight = CompressedWeight(ac.compress(x))
    alias: Any = weight.detach()
    codec = weight.codec
    number: Any = 3
    weight[3] = 5
    weight.data[4:6] = torch.ones((), requires_grad=True)
    weight.t()[0] = 9
    x[3], x[4:6], x[:, 0] = 5, 1, 9
    weight.data = weight.data + 1
    assert same(weight.decompressed(), x + 1)
    assert same(alias.decompressed(), x + 1)
    weight.data = weight.data.t()
    assert same(weight.decompressed(), x.t() + 1)
    assert weight.stride() == (1, 60)
    for values in (x[:20], x.half(), x):
        weight.data = values
        assert (weight.shape, weight.dtype, weight.codec) == (values.shape, values.dtype, codec)
        assert same(weight.decompressed(), values)
    with torch.no_grad():
        weight.resize_(7, 2)
    assert same(weight.decompressed(), x.flatten()[:14].reshape(7, 2))
    with pytest.raises(TypeError, match=r"^data: expected a torch\.Tensor, got 3"):
        weight.data = number


def test_compiled_code_does_not_lose_changes() -> None:
    weight = compress_weights(nn.Linear(64, 64).requires_grad_(False)).weight

    def doubled(weight: Any) -> Any:
        return weight.clone().mul_(2)  # of a clone

    with pytest.raises(RuntimeError, match="expected changes of a compressed weight outside of compiled code"):
        torch.compile(lambda weight: weight.mul_(2), fullgraph=True, backend="eager")(weight)
    assert same(torch.compile(doubled, fullgraph=True, backend="aot_eager")(weight), 2 * weight)


def test_shared_memory_and_dlpack_have_the_values() -> None:
    model = compress_weights(nn.Linear(64, 64))
    expected = model.weight.decompressed()
    np.testing.assert_array_equal(np.from_dlpack(model.weight), expected.numpy())
    assert not model.weight.is_shared()
    model.share_memory()
    assert model.weight.is_shared()
    assert same(model.weight.decompressed(), expected)


def test_modules_that_keep_weights_elsewhere_let_them_go() -> None:
    model = nn.LSTM(64, 64).requires_grad_(False)
    x = torch.ones(2, 3, 64)
    weights, expected = [weakref.ref(weight) for weight in model.parameters()], outputs(model, x)[0]
    compress_weights(model, min_size=1)
    assert [weight() for weight in weights] == [None] * 4
    assert same(outputs(model, x)[0], expected)


def test_operators_that_change_a_weight_change_what_is_kept() -> None:
    x = torch.arange(3000, dtype=torch.float32).reshape(50, 60)
    weight = CompressedWeight(ac.compress(x))
    with torch.no_grad():
        assert weight.add_(1) is weight
        weight.data.mul_(2)
        weight.t()[0].zero_()  # of a copy
        weight.t().sub_(3)
        torch.add(weight.detach(), 1, out=weight.data)
    assert same(weight.decompressed(), 2 * (x + 1) - 2)
    weight.copy_(x[:1])
    assert same(weight.decompressed(), x[:1].expand(50, 60))


def test_operators_take_a_weight_as_they_take_its_values() -> None:
    x = torch.randn(40, 50)
    weight = CompressedWeight(ac.compress(x))
    assert (weight.shape, weight.stride(), weight.dtype, weight.device) == (x.shape, x.stride(), x.dtype, x.device)
    assert same(weight.t().contiguous(), x.t().contiguous())
    transposed: Any = weight.t()
    assert same(transposed.t().decompressed(), x)
    assert same(weight.transpose(0, 0).clone(), x)
    assert same(weight.half(), x.half())
    assert type(weight.half()) is torch.Tensor
    assert weight.t().clone().stride() == (1, 50)
    assert isinstance(weight.clone(), CompressedWeight)
    assert isinstance(weight.to("cpu"), CompressedWeight)
    assert isinstance(weight, nn.Parameter)
    assert same(torch.cat([weight, x]), torch.cat([x, x]))
    assert same(copy.deepcopy(weight.t()), x.t())
    assert weight.to("meta").shape == x.shape
    assert "CompressedWeight(<Compressed float32[40, 50]" in repr(weight)
    assert same(arrcomp.decompress(arrcomp.compress(weight)), x)
    np.testing.assert_array_equal(arrcomp.compress(weight).numpy(), x.numpy())


def test_rules_choose_codecs_by_name() -> None:
    bound = ErrorBounded(abs=1e-3)
    plain = model_of(torch.float32)
    model = compress_weights(copy.deepcopy(plain), [Rule(bound, "layers.*.up.weight"), Rule(Lossless(speed="fast"))])
    assert model.layers[1].up.weight.codec == bound
    assert model.layers[1].down.weight.codec == Lossless(speed="fast")
    error = (model.layers[1].up.weight - plain.layers[1].up.weight).abs().max()
    assert 0 < error <= 1e-3


def test_what_is_chosen() -> None:
    model = compress_weights(model_of(), skip=["head.weight", "layers.0.*"], min_size=64)
    assert compressed_names(model) == {
        "words.weight",
        *(f"layers.{i}.{name}" for i in (1, 2) for name in ("up.weight", "down.weight", "norm.weight")),
        *(f"layers.{i}.{name}" for i in (1, 2) for name in ("up.bias", "norm.bias", "scale")),
    }
    assert type(model.head.weight) is nn.Parameter
    noise = nn.Linear(256, 256)
    with torch.no_grad():
        noise.weight.view(torch.int32).random_(-(1 << 31), (1 << 31) - 1)
    assert compressed_names(compress_weights(noise)) == set()


def test_blocks_are_what_the_caller_names() -> None:
    model = compress_weights(model_of(), blocks="layers.?.up")
    assert {name for name, module in model.named_modules() if "_arrcomp_block" in vars(module)} == {
        "words", "head", *(f"layers.{i}.{name}" for i in range(3) for name in ("up", "down")),
    }  # fmt: skip
    assert same(outputs(model), outputs(model_of()))
    assert weight_memory(model).shared_nbytes == 200 * 64 * 2


def test_a_module_that_is_in_two_blocks_is_compressed_once(monkeypatch: Any) -> None:
    torch.manual_seed(0)
    both = nn.Linear(64, 64)
    model = nn.ModuleList([nn.Sequential(both, nn.Linear(64, 64)), nn.Sequential(nn.Linear(64, 64), both)])
    x = torch.randn(3, 64)
    expected = outputs(model[1], outputs(model[0], x))
    made: list[str] = []
    inner = functions.compressed_parameter

    def noted(weight: Any, rules: Any, name: str) -> Any:
        made.append(name)
        return inner(weight, rules, name)

    monkeypatch.setattr(functions, "compressed_parameter", noted)
    compress_weights(model)
    assert made == ["0.0.weight", "0.1.weight", "1.0.weight"]
    assert same(outputs(model[1], outputs(model[0], x)), expected)


class Nested(nn.Module):  # type: ignore[misc, name-defined]
    """A block that runs another one, and itself."""

    def __init__(self, inner: Any = None) -> None:
        super().__init__()
        self.own, self.others = nn.Linear(64, 64), [inner]  # in a list: not a module of this one

    def forward(self, x: Any, depth: int = 1) -> Any:
        (inner,) = self.others
        x = self.own(x) if inner is None else inner(self.own(x))
        return self.own(self(x, depth - 1) if depth else x)


def test_blocks_that_run_in_one_another_do_not_share_memory() -> None:
    torch.manual_seed(0)
    inner = Nested()
    model = nn.Sequential(inner, Nested(inner))
    x = torch.randn(3, 64)
    expected = outputs(model, x)
    assert same(outputs(compress_weights(model), x), expected)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 1, 1], [0, 2, 0, 1]])
def test_blocks_that_are_decompressed_ahead_have_their_own_values(order: list[int], monkeypatch: Any) -> None:
    monkeypatch.setattr(SharedMemory, "_looks_ahead", lambda self, device: True)
    model = model_of()
    layers = list(model.layers)
    model.layers = nn.ModuleList(layers[i] for i in order)
    expected = outputs(model)
    compress_weights(model)
    for _ in range(3):
        assert same(outputs(model), expected)
    with torch.no_grad():
        model.layers[0].up.weight.zero_()
    plain = decompress_weights(copy.deepcopy(model))
    assert same(outputs(model), outputs(plain))
    assert weight_memory(model).shared_nbytes == 2 * 2 * 64 * 128 * 2


def test_threads_take_turns() -> None:
    model = compress_weights(model_of())
    expected = outputs(model)
    found: list[bool] = []

    def work(grad: bool) -> None:
        with torch.set_grad_enabled(grad):
            found.extend(same(model(IDS), expected) for _ in range(20))

    threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # PyTorch's own
@pytest.mark.parametrize("grad", then_full([False], [True]))
def test_compiled_models_decompress_in_the_graph(grad: bool) -> None:
    plain = model_of(layers=1)
    small = compress_weights(copy.deepcopy(plain))
    with torch.set_grad_enabled(grad):
        expected = torch.compile(plain, fullgraph=True, backend="aot_eager")(IDS)
        assert same(torch.compile(small, fullgraph=True, backend="aot_eager")(IDS), expected)
    assert weight_memory(small).shared_nbytes == 0


def test_wrong_arguments_are_told_before_anything_changes() -> None:
    model = model_of()
    expected = copy.deepcopy(model.state_dict())
    cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (TypeError, r"^codec: expected a codec", {"codec": "lossless"}),
        (
            ValueError,
            r"^blocks: expected patterns that match a name of the model, got 'block.*'",
            {"blocks": "block.*"},
        ),
        (
            ValueError,
            r"^skip: expected patterns that match a name of the model, got 'x'$",
            {"skip": ["head.weight", "x"]},
        ),
        (TypeError, r"^skip: expected a string, or several, got", {"skip": [1]}),
        (TypeError, r"^blocks: expected a string, or several, got 3", {"blocks": 3}),
        (
            ValueError,
            r"^codec: expected a codec that needs no seed and no reference, got QSGD",
            {"codec": [Rule(Lossless(), "words.*"), Rule(QSGD(rounding="stochastic"))]},
        ),
        (ValueError, r"^min_size: expected", {"min_size": -1}),
    ]
    for error, match, arguments in cases:
        with pytest.raises(error, match=match):
            compress_weights(model, **arguments)
    assert compressed_names(model) == set()
    assert all(same(x, expected[name]) for name, x in model.state_dict().items())
    compress_weights(model)
    with pytest.raises(ValueError, match=r"^model: expected one with plain weights, got one that"):
        compress_weights(model)
    for function in (compress_weights, decompress_weights, weight_memory):
        with pytest.raises(TypeError, match=r"^model: expected a torch.nn.Module, got dict"):
            function({})
    with pytest.raises(TypeError, match=r"^compressed: expected a Compressed, got"):
        CompressedWeight(torch.ones(3))
    with pytest.raises(TypeError, match=r"^model: expected parameters on 'cpu' or 'cuda', got '1.weight' on 'meta'$"):
        compress_weights(nn.Sequential(part := nn.Linear(64, 64), nn.Linear(64, 64, device="meta")))
    assert type(part.weight) is nn.Parameter
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    with pytest.raises(TypeError, match=r"^compressed: expected values on 'cpu' or 'cuda', got a meta tensor"):
        torch.load(file, map_location="meta")
    against = ac.compress(torch.ones(9), reference=torch.ones(9))
    with pytest.raises(TypeError, match=r"^compressed: expected an array without a reference"):
        CompressedWeight(against)
