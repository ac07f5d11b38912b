"""PyTorch's RandomizedLinear, compiled, checkpointed, in autocast, in groups of processes and on GPUs."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from arrcomp._methods.projections import KINDS
from reference_projections import weight_gradient

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint

from arrcomp.torch.functional import randomized_linear
from arrcomp.torch.nn import RandomizedLinear

from ..gpu import impatient
from .randomized_linear_checks import IN, OUT, QUICK, ROWS, compiled_by, kept_by, row_drawn, steps, tensor

# PyTorch's own, from what torch.compile needs and from what it does.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]


@pytest.mark.parametrize("backend", [None, QUICK, "inductor"])
@pytest.mark.parametrize("seed", [None, 7])
def test_steps_have_the_same_projection_or_the_way_back_another(backend: str | None, seed: int | None) -> None:
    layer: Any = RandomizedLinear(IN, OUT, proj_dim=1, seed=seed)
    function = compiled_by(backend, layer)
    x, y = tensor(ROWS, IN, dtype=torch.float32), tensor(ROWS, OUT, dtype=torch.float32)
    drawn = []
    for _ in range(12):
        layer.zero_grad()
        function(x).backward(y)
        drawn.append(row_drawn(layer.weight.grad, x, y))
    assert len(set(drawn)) > 6


@pytest.mark.parametrize("seed", [None, 7])
def test_processes_of_a_group_have_the_same_projections(seed: int | None) -> None:
    runs = []
    for rank in range(2):
        torch.distributed.init_process_group("fake", rank=rank, world_size=2, store=torch.distributed.HashStore())
        try:
            torch.manual_seed(0)
            runs.append(steps(RandomizedLinear(IN, OUT, seed=seed, dtype=torch.float64)))
        finally:
            torch.distributed.destroy_process_group()
    assert not any(torch.equal(a, b) for a, b in zip(*runs, strict=True))


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("seed", [None, 7])
def test_a_checkpoint_calculates_with_two_projections(reentrant: bool, seed: int | None) -> None:
    layer: Any = RandomizedLinear(IN, OUT, proj_dim=1, seed=seed)
    x, y = tensor(ROWS, IN, dtype=torch.float32), tensor(ROWS, OUT, dtype=torch.float32)
    for _ in range(5):
        layer.zero_grad()
        checkpoint(layer, x.clone().requires_grad_(), use_reentrant=reentrant).backward(y)
        row_drawn(layer.weight.grad, x, y)


@pytest.mark.parametrize("backend", [None, QUICK])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_is_not_followed(backend: str | None, dtype: Any) -> None:
    layer: Any = RandomizedLinear(IN, OUT, proj_dim_ratio=0.2)
    function = compiled_by(backend, layer)
    x = tensor(ROWS, IN, dtype=torch.float32)
    with torch.autocast("cpu", dtype):
        kept = kept_by(lambda: (result := function(x), result.sum().backward())[0])
        assert function(x).dtype == dtype
    assert {(tuple(each.shape), each.dtype) for each in kept} == {((12, IN), dtype), ((), torch.int64)}
    assert layer.weight.grad.dtype == torch.float32
    assert layer.weight.grad.isfinite().all()
    with torch.autocast("cpu", dtype):
        assert layer.double()(x.double()).dtype == torch.float64


def test_other_batches_are_compiled_wrongly() -> None:
    weight = tensor(OUT, IN).requires_grad_()

    def estimated(x: Any, seed: Any) -> Any:
        return randomized_linear(x, weight, seed=seed, proj_dim_ratio=0.3, projection="dct")

    function = compiled_by(QUICK, estimated, dynamic=True)
    for rows in (40, 41, 57):
        x = tensor(rows, IN)
        weight.grad = None
        function(x, torch.tensor(3)).sum().backward()
        expected = weight_gradient("dct", x.numpy(), np.ones((rows, OUT)), -(-rows * 3 // 10), 3)
        np.testing.assert_allclose(weight.grad, expected, rtol=1e-6, atol=1e-6)


def test_compiled_layers_share_a_projection() -> None:
    layers = [RandomizedLinear(IN, OUT, proj_dim=1) for _ in range(4)]

    def all_of(x: Any) -> Any:
        return [checkpoint(layer, x, use_reentrant=False) for layer in layers[:2]] + [layer(x) for layer in layers[2:]]

    function = compiled_by(QUICK, all_of)
    x, y = tensor(ROWS, IN, dtype=torch.float32), tensor(ROWS, OUT, dtype=torch.float32)
    drawn = []
    for _ in range(5):
        for layer in layers:
            layer.zero_grad()
        torch.autograd.backward(function(x), [y] * 4)
        drawn.append([row_drawn(layer.weight.grad, x, y) for layer in layers])
    assert len(set(zip(*drawn, strict=True))) == 4


def test_copies_and_pickles_have_other_parameters() -> None:
    layer: Any = RandomizedLinear(IN, OUT, projection="dct", proj_dim_min=3, seed=4)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):  # noqa: S301
        assert repr(twin) == repr(layer)
        assert torch.equal(twin.weight, layer.weight)


# On GPUs


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA device")


@needs_gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [None, 7])
def test_the_gpu_waits_or_has_other_projections(kind: str, seed: int | None) -> None:
    x, y = tensor(ROWS, IN, dtype=torch.float32), tensor(ROWS, OUT, dtype=torch.float32)
    layer: Any = RandomizedLinear(IN, OUT, projection=kind, seed=seed)
    layer(x).backward(y)
    twin = RandomizedLinear(IN, OUT, projection=kind, seed=seed, device="cuda")
    here, there = x.cuda(), y.cuda()
    with impatient():
        twin(here).backward(there)
    if seed is not None:
        torch.testing.assert_close(twin.weight.grad.cpu(), layer.weight.grad, rtol=1e-4, atol=1e-3)  # type: ignore[union-attr]


@needs_gpu
def test_replays_of_a_cuda_graph_have_the_same_projection() -> None:
    layer: Any = RandomizedLinear(IN, OUT, proj_dim=1, device="cuda")
    x, y = (tensor(ROWS, columns, dtype=torch.float32).cuda() for columns in (IN, OUT))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        layer(x).backward(y)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        layer.weight.grad.zero_()
        layer(x).backward(y)
    drawn = set()
    for _ in range(12):
        graph.replay()
        drawn.add(row_drawn(layer.weight.grad.cpu(), x.cpu(), y.cpu()))
    assert len(drawn) > 6
