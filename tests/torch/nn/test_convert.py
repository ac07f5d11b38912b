"""Swapping a model's activations, and few-bit activations in compiled and transformed code."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arrcomp.activations import fit, steps_of

torch = pytest.importorskip("torch")

from torch import nn

import arrcomp.torch.functional as few
from arrcomp.torch import nn as few_nn
from arrcomp.torch.nn._activation_classes import REPLACEMENTS

# PyTorch's own, from importing and running what torch.compile needs.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]


def model() -> Any:
    torch.manual_seed(2)
    shared = nn.ReLU(inplace=True)
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), shared),
        nn.ModuleDict({"conv": nn.Conv2d(8, 8, 3), "act": shared})["conv"],
        nn.Sequential(shared, nn.Flatten(), nn.Linear(128, 32), nn.GELU()),
        nn.Sequential(nn.Linear(32, 16), nn.Softplus(2.0), nn.Linear(16, 4), nn.Hardtanh(-2, 2)),
    )


def images() -> Any:
    return torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(4))


def test_converted_models_calculate_the_same_and_keep_their_weights() -> None:
    original = model()
    converted: Any = few_nn.convert(copy.deepcopy(original), bits=8)
    assert [type(one) for one in converted.modules() if type(one) in REPLACEMENTS] == []
    converted.load_state_dict(original.state_dict())
    for training in (True, False):
        y, expected = (one.train(training)(images()) for one in (converted, original))
        torch.testing.assert_close(y, expected)
        y.sum().backward()
        expected.sum().backward()
    for (name, weight), (_, same) in zip(converted.named_parameters(), original.named_parameters(), strict=True):
        assert torch.equal(weight, same)
        torch.testing.assert_close(
            weight.grad, same.grad, rtol=0.05, atol=0.05 * float(same.grad.abs().max()), msg=name
        )


def test_activations_keep_their_arguments_modes_and_hooks() -> None:
    seen: list[str] = []
    original: Any = nn.Sequential(nn.ELU(1.5, inplace=True), nn.GELU("tanh"), nn.Threshold(0.5, -1))
    handle = original[1].register_forward_hook(lambda *_: seen.append("hook"))
    original[0].eval()
    converted: Any = few_nn.convert(original, bits=2)
    assert converted is original
    assert (converted[0].alpha, converted[0].inplace, converted[0].training) == (1.5, True, False)
    assert (converted[1].approximate, converted[1].training) == ("tanh", True)
    assert [one.steps.bits for one in converted] == [2, 2, 1]
    assert converted[1].steps == steps_of("gelu_tanh", (), 2)
    converted(torch.ones(3))
    handle.remove()
    converted(torch.ones(3))
    assert seen == ["hook"]


@pytest.mark.parametrize("kind", sorted(REPLACEMENTS, key=lambda kind: str(kind)))
def test_every_kind_has_its_own_replacement(kind: Any) -> None:
    made = few_nn.convert(kind(*((0.5, 1) if kind is nn.Threshold else ())))
    assert type(made) is getattr(few_nn, kind.__name__)
    assert isinstance(made, kind)


def test_classes_of_other_libraries_become_what_types_says() -> None:
    class TheirActivation(nn.Module):
        def forward(self, x: Any) -> Any:
            return nn.functional.gelu(x)

    model: Any = nn.Sequential(nn.Linear(2, 2), TheirActivation(), nn.ReLU())
    few_nn.convert(model, types={TheirActivation: lambda module: few_nn.GELU(bits=2)})
    assert [type(module) for module in model] == [nn.Linear, few_nn.GELU, nn.ReLU]
    assert model[1].steps.bits == 2
    with pytest.raises(TypeError, match="types: expected module classes with functions of a module, got 'GELU': None"):
        few_nn.convert(model, types={"GELU": None})  # type: ignore[dict-item]


def test_types_and_patterns_choose() -> None:
    def converted(**choice: Any) -> list[str]:
        found = few_nn.convert(model(), **choice).named_modules()
        return [path for path, one in found if type(one).__module__.startswith("arrcomp")]

    assert converted() == ["0.2", "2.3", "3.1", "3.3"]
    assert converted(types=nn.GELU) == ["2.3"]
    assert converted(types=[nn.GELU, nn.ReLU]) == ["0.2", "2.3"]
    assert converted(pattern="3.*") == ["3.1", "3.3"]
    assert converted(pattern=re.compile(r"\d\.3")) == ["2.3", "3.3"]
    assert converted(pattern="2.0") == ["0.2"]  # the other place of the same module


def test_shared_activations_stay_shared() -> None:
    converted: Any = few_nn.convert(model())
    assert converted[0][2] is converted[2][0]


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        (
            (nn.Linear(2, 2),),
            {},
            ValueError,
            "model: expected one of CELU, ELU, GELU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU,",
        ),
        ((nn.GELU(),), {"types": nn.ReLU}, ValueError, "model: expected one of ReLU, got 1 GELU"),
        (
            (nn.Sequential(nn.GELU()),),
            {"pattern": "x.*"},
            ValueError,
            "model: expected one of CELU, ELU, GELU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU,",
        ),
        ((nn.GELU(), 0), {}, ValueError, "bits: expected an integer from 1 to 8, got 0"),
        ((nn.GELU(), 9), {}, ValueError, "bits: expected an integer from 1 to 8, got 9"),
        ((nn.GELU(), True), {}, TypeError, r"bits: expected an integer from 1 to 8, got True \(bool\)"),
        (
            (nn.GELU(),),
            {"types": [nn.PReLU]},
            ValueError,
            r"types: expected CELU, .*, Threshold of torch\.nn, or AccurateGELUActivation, .* of transformers, got ",
        ),
        (
            (nn.GELU(),),
            {"types": ["GELU"]},
            ValueError,
            r"types: expected CELU, .*, Threshold of torch\.nn, or AccurateGELUActivation, .* of transformers, got ",
        ),
        ((nn.GELU(),), {"types": 3}, TypeError, r"types: expected module classes, or a mapping .*, got 3 \(int\)"),
        (
            (nn.GELU(),),
            {"pattern": 3},
            TypeError,
            r"pattern: expected a glob or a compiled regular expression, got 3 \(int\)",
        ),
        (("model",), {}, TypeError, r"model: expected a torch\.nn\.Module, got 'model' \(str\)"),
    ],
)
def test_impossible_conversions_are_refused(
    arguments: tuple[Any, ...], keywords: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        few_nn.convert(*arguments, **keywords)


def test_refused_models_are_unaltered() -> None:
    original = nn.Sequential(nn.GELU(), nn.CELU(-1.0))
    with pytest.raises(ValueError, match=r"alpha: expected a number above 0, got -1\.0"):
        few_nn.convert(original)
    assert type(original[0]) is nn.GELU


def test_mapped_modules_come_in_order_and_once() -> None:
    paths: list[str] = []
    root = model()
    made = few_nn.map_modules(root, lambda module, path: paths.append(path) or module)  # type: ignore[func-returns-value]
    assert made is root
    assert paths == ["0.0", "0.1", "0.2", "0", "1", "2.1", "2.2", "2.3", "2", "3.0", "3.1", "3.2", "3.3", "3", ""]
    assert few_nn.map_modules(nn.ReLU(), lambda *_: root, "") is root
    with pytest.raises(TypeError, match=r"function\(module\): expected a torch\.nn\.Module, got None"):
        few_nn.map_modules(root, lambda *_: None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"root: expected a torch\.nn\.Module, got dict"):
        few_nn.map_modules({}, lambda *_: root)  # type: ignore[arg-type]


def test_converted_models_keep_a_fraction() -> None:
    def kept(model: Any) -> int:
        tensors: dict[int, int] = {}
        hook = lambda tensor: tensors.update({tensor.data_ptr(): tensor.nbytes}) or tensor  # noqa: E731
        with torch.autograd.graph.saved_tensors_hooks(hook, lambda one: one):
            alive.append(model(x))
        return sum(tensors.values())

    alive: list[Any] = []
    x = torch.randn(64, 1000, requires_grad=True)
    chain = nn.Sequential(*(kind() for kind in (nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish)))
    before, after = kept(chain), kept(few_nn.convert(chain, bits=3))
    assert before == 4 * x.nbytes
    assert after == before * 3 // 32


# Compiled and transformed code


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`torch.compile(fullgraph=True)`, and no code that another version has left in a cache."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch.compiler.reset()
    return lambda function, backend: torch.compile(function, fullgraph=True, backend=backend)


def test_compiled_models_have_the_same_gradients(compiled: Any) -> None:
    converted: Any = few_nn.convert(model(), bits=3)
    expected = converted(images())
    expected.square().sum().backward()
    gradients = [weight.grad.clone() for weight in converted.parameters()]
    converted.zero_grad()
    y = compiled(converted, "aot_eager")(images())
    torch.testing.assert_close(y, expected)
    y.square().sum().backward()
    for weight, same in zip(converted.parameters(), gradients, strict=True):
        torch.testing.assert_close(weight.grad, same, rtol=1e-4, atol=1e-4)


SINE = fit(np.sin, 3)


@pytest.mark.parametrize(
    ("call", "backend"),
    [
        pytest.param(lambda x: few.gelu(x * 2, bits=3), "inductor", marks=pytest.mark.full),
        (lambda x: few.elu(x * 2, 1.5), "aot_eager"),
        (lambda x: few.silu(x * 2, steps=SINE), "aot_eager"),
        pytest.param(lambda x: few.stepwise(x * 2, torch.sin, SINE), "inductor", marks=pytest.mark.full),
        (lambda x: few.relu(x * 2, inplace=True), "aot_eager"),
    ],
)
def test_compiled_functions_have_the_same_gradients(compiled: Any, call: Any, backend: str) -> None:
    x = torch.randn(7, 33, requires_grad=True)
    y, expected = compiled(call, backend)(x), call(x)
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(*(torch.autograd.grad(one.sum(), x)[0] for one in (y, expected)))


def test_transforms_of_functions_pass() -> None:
    x = torch.randn(6, 5)
    levels = torch.from_numpy(steps_of("mish")(x.numpy()))
    assert torch.equal(torch.func.grad(lambda x: few.mish(x).sum())(x), levels)
    assert torch.equal(torch.func.vmap(torch.func.grad(lambda x: few.mish(x).sum()))(x), levels)


def test_forward_mode_is_pytorch_s() -> None:
    x, tangent = torch.randn(6, 5), torch.randn(6, 5)
    made, expected = (torch.func.jvp(call, (x,), (tangent,)) for call in (few.mish, torch.nn.functional.mish))
    torch.testing.assert_close(made, expected)
