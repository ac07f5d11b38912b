"""What trains in less memory, on a GPU: the CPU's bits, nothing waits, less memory is held."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from arrcomp import Lossless, _core
from arrcomp.activations import ACTIVATIONS, steps_of

torch = pytest.importorskip("torch")

import arrcomp.torch
from arrcomp.torch import nn as few_nn
from arrcomp.torch._few_bit_ops import activate_op, step_grad_op

from .gpu import impatient

TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
PARAMETERS = {"threshold": (0.25, -1.5)}


@pytest.fixture(autouse=True)
def gpu() -> None:
    if _core.cuda_device_count() == 0:
        pytest.skip("arrcomp finds no CUDA device")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no CUDA device")


def tensor(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(7))


def layers() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 16))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("function", ACTIVATIONS)
def test_the_gpu_s_activations_have_other_bits(function: str, dtype: Any) -> None:
    parameters = PARAMETERS.get(function, ACTIVATIONS[function].defaults)
    steps = steps_of(function, parameters, 3).core_parameters()
    for elements in (0, 1, 33, 1025, 300_001):
        x = (3 * tensor(elements)).to(dtype)
        values, packed = activate_op(x, function, parameters, steps)
        found, found_packed = activate_op(x.cuda(), function, parameters, steps)
        assert torch.equal(found.cpu(), values)
        assert torch.equal(found_packed.cpu(), packed)
        gradient = step_grad_op(found, found_packed, steps)
        assert torch.equal(gradient.cpu(), step_grad_op(values, packed, steps))


def test_few_bit_layers_wait() -> None:
    model, x = few_nn.convert(layers()).cuda(), tensor(64, 256).cuda()
    with impatient():
        model(x).sum().backward()


def test_a_captured_activation_is_another_one() -> None:
    steps = steps_of("gelu", (), 3).core_parameters()
    x = tensor(5000).cuda()
    activate_op(x, "gelu", (), steps)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        values, packed = activate_op(x, "gelu", (), steps)
    x.copy_(tensor(5000).flip(0))
    graph.replay()
    expected = activate_op(x.cpu(), "gelu", (), steps)
    assert torch.equal(values.cpu(), expected[0])
    assert torch.equal(packed.cpu(), expected[1])


def test_lossless_activations_change_gradients_on_the_gpu() -> None:
    model, x = layers().cuda(), tensor(512, 256).cuda()
    model(x).square().sum().backward()
    wanted = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    with arrcomp.torch.compressed_activations(Lossless()):
        loss = model(x).square().sum()
    loss.backward()
    for parameter, gradient in zip(model.parameters(), wanted, strict=True):
        assert torch.equal(parameter.grad, gradient)


@pytest.mark.parametrize("less", ["bits", "compressed"])
def test_the_gpu_holds_as_much_between_the_passes(less: str) -> None:
    x = tensor(4096, 256).cuda()

    def held(model: Any, context: Any) -> int:
        before = torch.cuda.memory_allocated()
        with context:
            y = model(x)
        after = int(torch.cuda.memory_allocated())
        y.sum().backward()
        return after - before

    plain = held(layers().cuda(), contextlib.nullcontext())
    if less == "bits":
        found = held(few_nn.convert(layers().cuda()), contextlib.nullcontext())
    else:
        found = held(layers().cuda(), arrcomp.torch.compressed_activations())
    assert found < 0.75 * plain


def test_eight_bit_states_wait_or_take_as_much() -> None:
    model, x = layers().cuda(), tensor(64, 256).cuda()
    optimizer = arrcomp.torch.CompressedOptimizer.eight_bit(torch.optim.AdamW(model.parameters(), capturable=True))
    with impatient():
        for _ in range(3):
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert optimizer.memory().ratio > 3
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())
