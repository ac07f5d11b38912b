"""PyTorch's few-bit activations: values, gradients, and what is kept for them."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import checks
from arrcomp.activations import ACTIVATIONS, StepFunction, fit, steps_of

torch = pytest.importorskip("torch")

import arrcomp.torch.functional as few
from arrcomp.torch import nn as few_nn

plain = torch.nn.functional

# The functional form's name, its arguments after the input, and the activation's name and parameters.
CALLS: list[tuple[str, tuple[Any, ...], str, tuple[float, ...]]] = [
    ("gelu", (), "gelu", ()),
    ("gelu", ("tanh",), "gelu_tanh", ()),
    *((name, (), name, ()) for name in ("silu", "mish", "sigmoid", "tanh", "softsign", "selu", "logsigmoid")),
    *((name, (), name, ()) for name in ("hardswish", "tanhshrink", "relu", "relu6", "hardsigmoid")),
    *((name, (1.5,), name, (1.5,)) for name in ("elu", "celu")),
    *((name, (0.25,), name, (0.25,)) for name in ("leaky_relu", "hardshrink", "softshrink")),
    ("softplus", (2.0, 20.0), "softplus", (2.0, 20.0)),
    ("threshold", (0.5, -1.0), "threshold", (0.5, -1.0)),
    ("hardtanh", (-0.5, 2.0), "hardtanh", (-0.5, 2.0)),
]
MODULES = sorted(name for name in few_nn.__all__ if issubclass(getattr(torch.nn, name, object), torch.nn.Module))
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
IDS = [call[2] for call in CALLS]


def inputs(dtype: Any = torch.float32, count: int = 1003) -> Any:
    x = 2.5 * torch.randn(count, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x[:12] = torch.tensor([0, 0.5, -0.5, 6, -3, 3, 2, -0.25, 0.25, 20, -20, 1e-3])
    return x.to(dtype).requires_grad_()


def module_of(name: str, **keywords: Any) -> Any:
    return getattr(few_nn, name)(*((0.5, -1.0) if name == "Threshold" else ()), **keywords)


def plain_module_of(name: str) -> Any:
    return getattr(torch.nn, name)(*((0.5, -1.0) if name == "Threshold" else ()))


def kept(call: Callable[[], Any]) -> list[Any]:
    """The tensors that are kept for the backward pass."""
    tensors: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensors.append(tensor) or tensor, lambda one: one):  # type: ignore[func-returns-value]
        call()
    return tensors


def gradient(y: Any, x: Any, weights: Any = None) -> Any:
    return torch.autograd.grad(y, x, torch.ones_like(y) if weights is None else weights)[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("name", "arguments", "activation", "parameters"), CALLS, ids=IDS)
def test_values_and_gradients_are_right(
    name: str,
    arguments: tuple[Any, ...],
    activation: str,
    parameters: tuple[float, ...],
    dtype: Any,
    device: checks.Host,
) -> None:
    """On a CPU, FewBit's gelu, silu, tanh and sigmoid give tanhshrink, and what is linear in pieces raises."""
    x = inputs(dtype).detach().to(device.device).requires_grad_()
    y = getattr(few, name)(x, *arguments)
    wide = x.detach().double()
    named = {"approximate": "tanh"} if name == "gelu" and arguments else {}
    expected = getattr(plain, name)(wide, *([] if named else arguments), **named)
    unit = torch.finfo(dtype).eps
    assert y.dtype == dtype
    torch.testing.assert_close(y.double(), expected, rtol=4 * unit, atol=4 * unit * float(wide.abs().max()))
    weights = torch.linspace(-2, 2, x.numel(), dtype=dtype, device=x.device)
    levels = torch.from_numpy(steps_of(activation, parameters, bits=3)(wide.cpu().numpy())).to(x.device)
    assert torch.equal(
        gradient(y, x, weights), (weights.to(torch.promote_types(dtype, torch.float32)) * levels).to(dtype)
    )


@pytest.mark.parametrize("name", [name for name in MODULES if ACTIVATIONS.get(name.lower(), ACTIVATIONS["relu"]).steps])
def test_pieces_have_the_gradients_of_pytorch(name: str) -> None:
    """Also on borders, and above 6, where FewBit's relu6 has 1."""
    x = inputs()
    made, expected = module_of(name)(x), plain_module_of(name)(x)
    assert torch.equal(made, expected)
    assert torch.equal(gradient(made, x), gradient(expected, x))
    assert [tensor.dtype for tensor in kept(lambda: module_of(name)(x))] == [torch.uint8]


@pytest.mark.parametrize("bits", range(1, 9))
def test_kept_are_so_many_bits_and_nothing_else(bits: int) -> None:
    """FewBit keeps 4 bits for tables of 3."""
    x = inputs(count=32 * 16 * 10)
    for call in (lambda: few.gelu(x, bits=bits), lambda: few_nn.Mish(bits=bits)(x), lambda: few.tanh(x, bits=bits)):
        (only,) = kept(call)
        assert only.dtype == torch.uint8
        assert only.numel() == x.numel() * bits // 8


@pytest.mark.parametrize("name", MODULES)
def test_nothing_is_kept_where_nothing_is_trained(name: str) -> None:
    module, x = module_of(name), inputs()
    with torch.no_grad():
        assert kept(lambda: module(x)) == []
        assert torch.equal(module(x), plain_module_of(name)(x))
    assert kept(lambda: module(x.detach())) == []
    module.eval()
    assert torch.equal(gradient(module(x), x), gradient(plain_module_of(name)(x), x))


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_pytorch_s_with_bits(name: str) -> None:
    module, x = module_of(name), inputs()
    assert isinstance(module, getattr(torch.nn, name))
    assert f"bits={module.steps.bits}" in repr(module)
    assert not module.state_dict()
    stored = io.BytesIO()
    torch.save(module, stored)
    stored.seek(0)
    copies = [copy.deepcopy(module), pickle.loads(pickle.dumps(module)), torch.load(stored, weights_only=False)]  # noqa: S301
    for one in copies:
        assert torch.equal(gradient(one(x), x), gradient(module(x), x))


def test_own_steps_take_the_place_of_the_tables() -> None:
    steps, x = StepFunction((-1, 1), (0.125, 0.5, 1)), inputs()
    for y in (few.silu(x, steps=steps), few_nn.SiLU(steps=steps)(x), few.elu(x, 2.0, steps=steps)):
        assert torch.equal(gradient(y, x), torch.from_numpy(steps(x.detach().numpy())))


def test_steps_go_with_any_function() -> None:
    """FewBit's Stepwise has no kernel."""
    x = inputs()
    steps = fit(lambda x: x * np.sin(x), 4)
    for call in (
        lambda: few.stepwise(x, lambda x: x * x.sin(), steps),
        lambda: few_nn.Stepwise(lambda x: x * x.sin(), steps)(x),
    ):
        assert torch.equal(call(), x * x.sin())
        assert torch.equal(gradient(call(), x), torch.from_numpy(steps(x.detach().numpy())))
        assert [tensor.dtype for tensor in kept(call)] == [torch.uint8]
    assert torch.equal(few_nn.Stepwise(torch.sin, steps).eval()(x), x.sin())
    assert gradient(few.stepwise(x, lambda x: x.sin().double(), steps), x).dtype == x.dtype
    for wrong in (lambda x: x.sum(), lambda x: x > 0):
        with pytest.raises(
            ValueError, match=r"function\(x\): expected floats of shape \(1003,\), got torch\.(bool|float32) of shape"
        ):
            few.stepwise(x, wrong, steps)
    with pytest.raises(TypeError, match=r"function\(x\): expected a tensor, got 3 \(int\)"):
        few.stepwise(x, lambda x: 3, steps)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match=r"function: expected a function of a tensor, got 3 \(int\)"):
        few_nn.Stepwise(3, steps)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5, 7)])
def test_all_shapes_are_taken(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape, requires_grad=True)
    y = few.gelu(x)
    assert y.shape == gradient(y, x).shape == shape


def test_values_that_do_not_lie_in_order_get_their_own_gradients() -> None:
    base = inputs(count=2 * 3 * 4 * 5).detach()
    levels = torch.from_numpy(steps_of("silu")(base.numpy())).reshape(2, 3, 4, 5)
    x = base.reshape(2, 3, 4, 5)
    layouts = [
        x.contiguous(memory_format=torch.channels_last),
        x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
        torch.stack([x, x], -1)[..., 0],
    ]
    for one in layouts:
        for weights in (torch.ones(2, 3, 4, 5), torch.randn(5, 4, 3, 2).permute(3, 2, 1, 0)):
            leaf = one.detach().requires_grad_()
            assert torch.equal(gradient(few.silu(leaf), leaf, weights), weights * levels)
    channels_last = layouts[0].requires_grad_()
    y = few.relu(channels_last)
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert gradient(y, channels_last, y.detach()).is_contiguous(memory_format=torch.channels_last)


def test_in_place_means_in_place() -> None:
    for module in (few_nn.ReLU(inplace=True), few_nn.ELU(2.0, inplace=True), few_nn.SiLU(True).eval()):
        x = inputs()
        same = x * 1
        y = module(same)
        assert y.data_ptr() == same.data_ptr()
        assert torch.equal(same, y)
        y.sum().backward()
        other = copy.copy(module)
        other.inplace = False
        assert torch.equal(x.grad, gradient(other(x), x))
    with pytest.raises(RuntimeError, match="in-place"):
        few.relu(inputs(), inplace=True)


def test_gradients_have_gradients_in_turn() -> None:
    x, weights = inputs(), torch.randn(1003, requires_grad=True)
    (first,) = torch.autograd.grad(few.gelu(x), x, weights, create_graph=True)
    levels = torch.from_numpy(steps_of("gelu")(x.detach().numpy()))
    assert torch.equal(gradient(first, weights), levels)


def test_recomputed_activations_have_the_same_gradients() -> None:
    from torch.utils.checkpoint import checkpoint

    module = torch.nn.Sequential(torch.nn.Linear(8, 8), few_nn.GELU(), torch.nn.Linear(8, 8))
    for reentrant in (False, True):
        x = torch.randn(5, 8, requires_grad=True)
        checkpoint(module, x, use_reentrant=reentrant).sum().backward()
        torch.testing.assert_close(x.grad, gradient(module(x), x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_short_floats_pass_autocast(dtype: Any) -> None:
    model, x = torch.nn.Sequential(torch.nn.Linear(16, 16), few_nn.GELU()), torch.randn(4, 16)
    with torch.autocast("cpu", dtype):
        y = model(x)
    assert y.dtype == dtype
    y.float().sum().backward()
    assert model[0].weight.grad.dtype == torch.float32
    assert model[0].weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: few.gelu([1.0]), TypeError, r"x: expected a torch\.Tensor, got list"),  # type: ignore[arg-type]
        (lambda x: few_nn.ReLU()(1.0), TypeError, r"x: expected a torch\.Tensor, got 1\.0 \(float\)"),
        (lambda x: few.gelu(x, bits=0), ValueError, "bits: expected an integer from 1 to 8, got 0"),
        (lambda x: few.gelu(x, bits=9), ValueError, "bits: expected an integer from 1 to 8, got 9"),
        (lambda x: few_nn.SiLU(bits=9), ValueError, "bits: expected an integer from 1 to 8, got 9"),
        (lambda x: few.gelu(x, bits="3"), TypeError, r"bits: expected an integer from 1 to 8, got '3' \(str\)"),  # type: ignore[arg-type]
        (lambda x: few.gelu(x, "fast"), ValueError, "approximate: expected 'none' or 'tanh', got 'fast'"),
        (lambda x: few.tanh(x, steps=3), TypeError, r"steps: expected a StepFunction, got 3 \(int\)"),  # type: ignore[arg-type]
        (lambda x: few_nn.Tanh(steps=(0,)), TypeError, "steps: expected a StepFunction, got tuple"),  # type: ignore[arg-type]
        (lambda x: few.celu(x, -1.0), ValueError, r"alpha: expected a number above 0, got -1\.0"),
        (
            lambda x: few_nn.CELU(0, steps=StepFunction((0,), (0, 1))),
            ValueError,
            "alpha: expected a number above 0, got 0",
        ),
        (lambda x: few.softshrink(x, -0.5), ValueError, r"lambd: expected a number of at least 0, got -0\.5"),
        (
            lambda x: few.sigmoid(x.cfloat()),
            TypeError,
            "x: expected float16, bfloat16, float32 or float64, got complex64",
        ),
    ],
)
def test_impossible_arguments_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(inputs())
