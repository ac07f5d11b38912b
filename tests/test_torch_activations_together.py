"""`compressed_activations` with what training uses beside it: models, autocast, checkpointing, compilers, threads."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest

from arrcomp import ErrorBounded, Lossless

torch = pytest.importorskip("torch")

from torch import nn
from torch.utils.checkpoint import checkpoint

from arrcomp.torch.activations import CompressedTensor, compressed_activations

LOSSLESS = Lossless()


class Block(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """A residual block of a ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x: Any) -> Any:
        y = torch.relu_(self.norms[0](self.first(x)))
        return torch.relu(self.norms[1](self.second(y)) + x)


def residual_network() -> Any:
    stem = (nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2))
    return nn.Sequential(*stem, Block(8), Block(8), nn.Dropout(0.2), nn.Flatten(), nn.Linear(8 * 8 * 8, 10))


def encoder() -> Any:
    return nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")


MODELS = {
    "resnet": (residual_network, lambda: torch.randn(8, 3, 16, 16)),
    "channels last": (residual_network, lambda: torch.randn(8, 3, 16, 16).to(memory_format=torch.channels_last)),
    "transformer": (encoder, lambda: torch.randn(8, 24, 32)),
}


@pytest.fixture(params=MODELS)
def model_and_input(request: Any) -> tuple[Any, Any]:
    torch.manual_seed(5)
    model, x = MODELS[request.param]
    return model(), x()


def gradients(model: Any, x: Any, context: Any = None, autocast: bool = False) -> list[Any]:
    """Gradients of a loss by all parameters, after a forward pass in a context."""
    torch.manual_seed(1)
    model.zero_grad()
    with context or contextlib.nullcontext(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        y = model(x)
        loss = (y.float() * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum()
    loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def same(these: list[Any], those: list[Any]) -> bool:
    return len(these) == len(those) > 0 and all(map(torch.equal, these, those))


@pytest.mark.parametrize("autocast", [False, True])
def test_lossless_gradients_are_the_same_bits(model_and_input: Any, autocast: bool) -> None:
    model, x = model_and_input
    expected = gradients(model, x, autocast=autocast)
    with compressed_activations(LOSSLESS, min_size=0) as statistics:
        assert same(gradients(model, x, autocast=autocast), expected)
    assert statistics.tensors > 5
    assert statistics.kept_tensors == 0


def test_gradients_come_closer_with_the_bound(model_and_input: Any) -> None:
    model, x = model_and_input
    expected = gradients(model, x)
    norm = sum(float(g.norm()) for g in expected)
    errors = []
    for bound in (1e-1, 1e-2, 1e-3):
        with compressed_activations(ErrorBounded(abs=bound), min_size=0) as statistics:
            made = gradients(model, x)
        errors.append(sum(float((g - e).norm()) for g, e in zip(made, expected, strict=True)) / norm)
        assert statistics.ratio > 1
    assert errors[0] > 3 * errors[1] > 9 * errors[2] > 0


def test_the_output_does_not_change(model_and_input: Any) -> None:
    model, x = model_and_input
    model.eval()
    with compressed_activations(min_size=0):
        y = model(x)
    assert torch.equal(y, model(x))


def test_casts_of_parameters_are_left_alone() -> None:
    layer, x = nn.Linear(96, 96, bias=False), torch.randn(64, 96)
    with compressed_activations() as statistics, torch.autocast("cpu", torch.bfloat16):
        y = layer(layer(x))
    assert statistics.tensors == 2
    assert not isinstance(y.grad_fn._raw_saved_mat2.data, CompressedTensor)


def test_a_scaler_sees_what_is_not_finite() -> None:
    model = nn.Linear(96, 96)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for x, is_finite in ((torch.randn(64, 96), True), (torch.full((64, 96), torch.inf), False)):
        before = model.weight.detach().clone()
        optimizer.zero_grad()
        with compressed_activations():
            loss = model(x).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(model.weight, before) is not is_finite


# Checkpointing, and other hooks


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("autocast", [False, True])
def test_inputs_of_checkpointed_regions_are_compressed(reentrant: bool, autocast: bool) -> None:
    first, second = encoder(), encoder()
    x = torch.randn(8, 24, 32)

    class Both(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([first, second])

        def forward(self, x: Any) -> Any:
            return checkpoint(second, first(x), use_reentrant=reentrant)

    expected = gradients(Both(), x, autocast=autocast)
    counted = compressed_activations(LOSSLESS)
    assert same(gradients(Both(), x, counted, autocast), expected)
    with compressed_activations(LOSSLESS) as around:  # the backward pass, which calculates again, too
        assert same(gradients(Both(), x, autocast=autocast), expected)
    with compressed_activations(LOSSLESS) as plain:
        second(first(x))
    assert around.tensors > 0
    with compressed_activations(LOSSLESS) as forward:
        y = Both()(x)
    assert 0 < forward.nbytes < plain.nbytes
    del y


def test_inside_of_a_checkpointed_region_gradients_are_right() -> None:
    layer, x = encoder(), torch.randn(8, 24, 32)

    class Inside(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def run(self, x: Any) -> Any:
            with compressed_activations(LOSSLESS):
                return self.layer(x)

        def forward(self, x: Any) -> Any:
            return checkpoint(self.run, x, use_reentrant=False)

    assert same(gradients(Inside(), x), gradients(layer, x))


def test_the_innermost_context_counts() -> None:
    x = torch.randn(64, 96, requires_grad=True) * 1.0
    with compressed_activations(LOSSLESS) as outer:
        x.sin()
        with compressed_activations(LOSSLESS) as inner:
            x.cos()
        with torch.autograd.graph.save_on_cpu():
            x.exp()
        y = (x + 1).sin()
    assert (outer.tensors, inner.tensors) == (2, 1)
    y.sum().backward()


def test_an_exception_ends_the_context() -> None:
    x = torch.randn(64, 96, requires_grad=True) * 1.0
    with pytest.raises(KeyError), compressed_activations():
        raise KeyError("inside")
    assert x.sin().grad_fn._raw_saved_self.unpack_hook is None


def test_a_context_decorates() -> None:
    layer = nn.Linear(96, 96)
    run = compressed_activations(LOSSLESS)(layer.forward)
    for _ in range(2):
        assert isinstance(run(torch.randn(64, 96)).grad_fn.next_functions, tuple)


# Several backward passes


def test_a_retained_graph_and_second_derivatives() -> None:
    x, weight = torch.randn(64, 96), torch.randn(96, 96, requires_grad=True)

    def loss() -> Any:
        return torch.tanh(x @ weight).pow(3).sum()

    def derivatives(y: Any) -> list[Any]:
        (first,) = torch.autograd.grad(y, weight, retain_graph=True)
        (again,) = torch.autograd.grad(y, weight, create_graph=True)
        (second,) = torch.autograd.grad(again.square().sum(), weight)
        return [first, again.detach(), second]

    expected = derivatives(loss())
    with compressed_activations(LOSSLESS, min_size=0):
        y = loss()
    assert same(derivatives(y), expected)
    with compressed_activations(LOSSLESS, min_size=0):
        assert same(derivatives(loss()), expected)


def test_threads_have_contexts_of_their_own() -> None:
    layer, x = encoder(), torch.randn(8, 24, 32)
    layer.eval()
    inputs = [x, x + 1, x - 1]
    expected = [torch.autograd.grad(layer(x).square().sum(), layer.linear1.weight)[0] for x in inputs]
    made: dict[int, Any] = {}

    def work(i: int) -> None:
        with compressed_activations(LOSSLESS, min_size=0) as statistics:
            y = layer(inputs[i]).square().sum()
        made[i] = (torch.autograd.grad(y, layer.linear1.weight)[0], statistics.tensors)

    with compressed_activations(LOSSLESS) as outside:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert outside.tensors == 0
    assert all(torch.equal(made[i][0], expected[i]) and made[i][1] > 0 for i in range(3))


def test_the_backward_pass_may_run_in_another_thread() -> None:
    layer, x = encoder(), torch.randn(8, 24, 32)
    expected = gradients(layer, x)
    torch.manual_seed(1)
    layer.zero_grad()
    with compressed_activations(LOSSLESS):
        y = layer(x)
        loss = (y * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum()
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    assert same([parameter.grad for parameter in layer.parameters()], expected)


# Compilers


@pytest.mark.parametrize("first", [True, False], ids=["compiled inside", "compiled before"])
def test_what_compiled_code_saves_is_compressed(first: bool) -> None:
    layer, x = encoder(), torch.randn(8, 24, 32)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    expected = None if first else gradients(compiled, x)
    with compressed_activations(LOSSLESS, min_size=0) as statistics:
        made = gradients(compiled, x)
    assert same(made, expected or gradients(compiled, x))
    assert statistics.tensors > 5
    torch._dynamo.reset()


def test_inside_of_a_compiled_function_gradients_are_right() -> None:
    weight, x = torch.randn(96, 96, requires_grad=True), torch.randn(64, 96)
    found = []

    def function(x: Any, context: Any = contextlib.nullcontext) -> Any:
        y = x * 2
        with context() as statistics:
            z = torch.tanh(y @ weight).sin()
        found.append(statistics)
        return z.sum()

    compiled = torch.compile(function, backend="aot_eager")
    (expected,) = torch.autograd.grad(function(x), weight)
    (made,) = torch.autograd.grad(compiled(x, lambda: compressed_activations(LOSSLESS)), weight)
    assert torch.equal(made, expected)
    assert found[-1].tensors > 0
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_graph_breaks_do_not_make_the_compiler_look_at_the_hooks() -> None:
    weight, x = torch.randn(96, 96, requires_grad=True), torch.randn(64, 96)

    def function(x: Any) -> Any:
        y = torch.tanh(x @ weight)
        torch._dynamo.graph_break()
        return torch.sin(y @ weight).sum()

    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(function, backend="aot_eager")
    with compressed_activations(LOSSLESS) as statistics:
        y = compiled(x)
    assert torch.equal(torch.autograd.grad(y, weight)[0], torch.autograd.grad(function(x), weight)[0])
    assert statistics.tensors > 2
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2
    torch._dynamo.reset()
