"""Swapping the activations of a transformers model, and what is told of those that stay."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
activations = pytest.importorskip("transformers.activations")
pytestmark = pytest.mark.full  # the extra test-full has transformers

from torch import nn

from arrcomp.torch import functional as few
from arrcomp.torch import nn as few_nn

CONVERTED = ["gelu", "gelu_new", "gelu_fast", "gelu_accurate", "gelu_python", "gelu_pytorch_tanh", "quick_gelu", "silu"]
CONVERTED += ["mish"]


class SnakeActivation(nn.Module):
    """An activation of some other library."""

    def forward(self, x: Any) -> Any:
        return x + torch.sin(x).square()


def report_of(model: Any) -> str:
    return str(few_nn.activation_report(model))


@pytest.mark.parametrize("name", CONVERTED)
def test_an_activation_of_transformers_becomes_the_same_function(name: str) -> None:
    original = activations.ACT2FN[name].eval()
    converted: Any = few_nn.convert(nn.Sequential(original), bits=8)
    assert isinstance(converted[0], (few_nn.GELU, few_nn.SiLU, few_nn.Mish, few_nn.Stepwise))
    assert not converted[0].training, "the mode is kept"
    x = torch.linspace(-6, 6, 1001, requires_grad=True)
    y, expected = converted.train()(x), original(x)
    torch.testing.assert_close(y, expected, rtol=1e-6, atol=2e-6)
    gradients = [torch.autograd.grad(one.sum(), x)[0] for one in (y, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=0.06)
    assert report_of(converted) == f"converted: 1 {type(original).__name__}; left: none"


def test_a_bert_has_all_of_its_activations_converted() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=64, vocab_size=50
    )
    model = transformers.BertModel(config)
    assert report_of(model) == "converted: none; left: 3 GELUActivation, 1 Tanh"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert few_nn.convert(model, bits=3) is model
    assert report_of(model) == "converted: 3 GELUActivation, 1 Tanh; left: none"
    model(torch.arange(7)[None]).last_hidden_state.sum().backward()


def test_an_activation_without_a_form_is_named_in_a_warning() -> None:
    model: Any = nn.Sequential(nn.GELU(), SnakeActivation(), SnakeActivation(), nn.PReLU(), nn.Softmax(-1))
    with pytest.warns(UserWarning, match=r"left 2 SnakeActivation, 1 PReLU, without .* types={SnakeActivation: "):
        few_nn.convert(model)
    found = few_nn.activation_report(model)
    assert (found.converted, found.left) == ({"GELU": 1}, {"SnakeActivation": 2, "PReLU": 1})
    assert str(found) == "converted: 1 GELU; left: 2 SnakeActivation (no few-bit form), 1 PReLU (no few-bit form)"
    few_nn.convert(model, types={SnakeActivation: lambda module: few_nn.GELU()})
    assert report_of(model) == "converted: 1 GELU, 2 SnakeActivation; left: 1 PReLU (no few-bit form)"
    with pytest.raises(TypeError, match=r"model: expected a torch\.nn.Module, got list"):
        few_nn.activation_report([])  # type: ignore[arg-type]


def test_other_functions_of_transformers_stay() -> None:
    for name in ("relu2", "laplace", "gelu_10"):
        module = activations.ACT2FN[name]
        with pytest.warns(UserWarning, match=f"left 1 {type(module).__name__}"):
            few_nn.convert(nn.Sequential(module, nn.ReLU()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few_nn.convert(nn.Sequential(activations.ACT2FN["linear"], nn.ReLU()))  # saves nothing


def test_classes_of_transformers_can_be_chosen() -> None:
    model: Any = nn.Sequential(activations.GELUActivation(), nn.ReLU())
    few_nn.convert(model, bits=2, types=activations.GELUActivation)
    assert [type(module) for module in model] == [few_nn.GELU, nn.ReLU]
    assert model[0].steps.bits == 2


@pytest.mark.parametrize(
    "call", [lambda: few_nn.GELU(3), lambda: few_nn.SiLU(3), lambda: few.gelu(torch.ones(2), 3)]  # type: ignore[arg-type]
)  # fmt: skip
def test_bits_without_their_name_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"got 3 \(int\); pass the number of bits by name, bits=3"):
        call()
