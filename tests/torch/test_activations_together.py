"""`compressed_activations` with what training uses beside it: models, autocast, checkpointing, threads."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest

from arrcomp import ErrorBounded, Lossless
from ordinary import then_full

torch = pytest.importorskip("torch")

from torch import nn
from torch.utils.checkpoint import checkpoint

from arrcomp.torch._saved_activations import CompressedTensor, compressed_activations

from .activation_models import encoder, gradients, residual_network, same

LOSSLESS = Lossless()


MODELS = {
    "resnet": (residual_network, lambda: torch.randn(8, 3, 16, 16)),
    "channels last": (residual_network, lambda: torch.randn(8, 3, 16, 16).to(memory_format=torch.channels_last)),
    "transformer": (encoder, lambda: torch.randn(8, 24, 32)),
}


@pytest.fixture(params=then_full(["transformer"], ["resnet", "channels last"]))
def model_and_input(request: Any) -> tuple[Any, Any]:
    torch.manual_seed(5)
    model, x = MODELS[request.param]
    return model(), x()


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
    assert same(gradients(Both(), x, compressed_activations(LOSSLESS), autocast), expected)
    with compressed_activations(LOSSLESS):  # the backward pass, which calculates again, too
        assert same(gradients(Both(), x, autocast=autocast), expected)
    with compressed_activations(LOSSLESS) as statistics:
        hidden = torch.randn(8, 24, 32, requires_grad=True) * 1.0
        y = checkpoint(second, hidden, use_reentrant=reentrant)
    assert (statistics.tensors, statistics.nbytes) == (1, hidden.nbytes)
    storage = weakref.ref(hidden.untyped_storage())
    del hidden
    assert storage() is None
    y.sum().backward()


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
    run = compressed_activations(LOSSLESS)(layer.forward)  # type: ignore[operator]
    for _ in range(2):
        y = run(torch.randn(64, 96))
        assert isinstance(y.grad_fn._raw_saved_mat1.data, CompressedTensor)


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
