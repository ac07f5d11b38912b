"""`compressed_activations` around and inside of compiled functions."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from arrcomp import Lossless

torch = pytest.importorskip("torch")

from arrcomp.torch._saved_activations import compressed_activations

from .activation_models import encoder, gradients, same

LOSSLESS = Lossless()


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
