"""Models whose gradients the communication hook reduces in the tests, and what their programs share."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from arrcomp import QSGD, Rule
from arrcomp.torch.distributed import quantized_allreduce_hook
from processes import PATIENCE, start

WORLD = 3
SHAPES = ((40, 50), (33, 7, 9), (30,), (5, 5))  # two large ones, which three processes do not divide; two small ones
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class Given(torch.nn.Module):
    """A model whose gradients are what it is given."""

    def __init__(self, shapes: Any = SHAPES, dtype: Any = torch.float32) -> None:
        super().__init__()
        self.layers = torch.nn.ParameterList([torch.zeros(shape, dtype=dtype) for shape in shapes])

    def forward(self, gradients: Any) -> Any:
        return sum((p.float() * g.float()).sum() for p, g in zip(self.layers, gradients, strict=True))


# Compresses small layers, too: three ranks' gradients Gloo adds in another order where they are elsewhere in a bucket.
EVERYTHING: dict[str, Any] = {"rules": [Rule(QSGD(bits=3), max_ndim=1)], "layer_min_size": 0}

# All layers in one bucket in the first step, as DDP always has it, and in several ones later.
SMALL: dict[str, Any] = {"bucket_cap_mb": 0.01}


def rank() -> int:
    return dist.get_rank()


def hooked(model: Any, state: Any = None, hook: Any = quantized_allreduce_hook, **options: Any) -> Any:
    """A model with the hook; without a state, with PyTorch's own, which does not compress."""
    ddp = DistributedDataParallel(model, **options)
    ddp.register_comm_hook(state, allreduce_hook if state is None else hook)
    return ddp


def random_gradients(seed: int, of: int | None = None, dtype: Any = torch.float32) -> list[Any]:
    """Gradients of a rank, this one's by default."""
    generator = torch.Generator().manual_seed(1000 * seed + (rank() if of is None else of))
    return [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES]


def averaged(ddp: Any, gradients: Any) -> list[Any]:
    """What comes back of gradients."""
    ddp.zero_grad()
    ddp(gradients).backward()
    return [p.grad.clone() for p in ddp.parameters()]


def network(seed: int = 0, width: int = 64) -> Any:
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 4))


def inputs(step: int, width: int = 64) -> Any:
    generator = torch.Generator().manual_seed(100 * step + rank())
    return torch.randn(16, width, generator=generator)


def train(ddp: Any, optimizer: Any, steps: Any) -> None:
    for step in steps:
        optimizer.zero_grad()
        x = inputs(step)
        (ddp(x) - x[:, :4].sin()).square().mean().backward()
        optimizer.step()


def trained(state: Any, steps: int = 4, hook: Any = quantized_allreduce_hook, **options: Any) -> list[Any]:
    """Weights after a few steps, the same on all ranks."""
    ddp = hooked(network(), state, hook, **options)
    if state is not None:
        state.register_model(ddp)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9), range(steps))
    return same_everywhere(ddp)


def same_everywhere(model: Any) -> list[Any]:
    """The weights of a model, which all ranks have bit for bit."""
    weights = [p.detach() for p in model.parameters()]
    flat = torch.cat([x.view(-1).view(torch.uint8) for x in weights])
    all_flat = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(all_flat, flat)
    assert all(torch.equal(x, flat) for x in all_flat)
    assert all(x.isfinite().all() for x in weights)
    return weights


def equal(xs: Any, ys: Any) -> bool:
    return all(torch.equal(x, y) for x, y in zip(xs, ys, strict=True))


def refused(error: Any, message: str, call: Any) -> None:
    with pytest.raises(error, match=message):
        call()


def one_step(ddp: Any) -> None:
    ddp(inputs(0)).square().mean().backward()


def run_checks(module: dict[str, Any], long: Collection[str]) -> None:
    """Run the checks of a program in three processes: without the long ones, or if the command line ends with all."""
    names = [name for name in module if name.startswith("check_") and (sys.argv[2] == "all" or name not in long)]

    def run(number: int, folder: Path) -> None:
        meeting = f"file://{folder}/meeting"
        dist.init_process_group("gloo", init_method=meeting, rank=number, world_size=WORLD, timeout=PATIENCE)
        try:
            for name in names:
                start_time = time.perf_counter()
                module[name](folder)
                if number == 0:
                    print(f"{name}: {time.perf_counter() - start_time:.1f} s", flush=True)
        finally:
            dist.destroy_process_group()

    start(run, WORLD)
