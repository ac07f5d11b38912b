"""Two processes train alone and average what they learnt; a program of test_local_updates.py."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import processes
from arrcomp import QSGD, Codec, Lossless
from arrcomp.torch.distributed import LocalUpdates
from processes import PATIENCE, check_same, message_of

WORLD = 2
SIZE = 600  # of the problem: more than a bucket
INNER, OUTER = 8, 60


def problem() -> Any:
    """A model of several shapes and strides, the same on all ranks."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 2), torch.nn.Flatten(), torch.nn.Linear(4, 40))
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def inner_steps(model: Any, rank: int, seed: int) -> None:
    """Change the parameters, differently on each rank."""
    generator = torch.Generator().manual_seed(seed * WORLD + rank)
    with torch.no_grad():
        for x in model.parameters():
            x.add_(torch.randn(x.shape, generator=generator), alpha=0.1)


def outer(model: Any) -> Any:
    return torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)


def values(model: Any) -> Tensor:
    return torch.cat([x.detach().flatten() for x in model.parameters()])


def check_lossless(rank: int) -> None:
    """Without loss it is DiLoCo's algorithm, and nothing else of the model changes."""
    model, plain = problem(), problem()
    updates, optimizer = LocalUpdates(outer(model)), outer(plain)
    for step in range(4):
        inner_steps(model, rank, step)
        gradient = model[2].weight.grad = torch.ones_like(model[2].weight)
        updates.step()
        assert model[2].weight.grad is gradient
        assert model[0].weight.grad is None
        moved = copy.deepcopy(plain)
        inner_steps(moved, rank, step)
        for x, y in zip(plain.parameters(), moved.parameters(), strict=True):
            x.grad = (x - y).detach().contiguous()
            dist.all_reduce(x.grad)
            x.grad /= WORLD
        optimizer.step()
        torch.testing.assert_close(values(model), values(plain))
        check_same(values(model))
    assert updates.steps == 4
    assert updates.sent_nbytes > 0


def check_one_step(rank: int) -> None:
    """What arrives is the average within the codec's error, and its residual is what was lost."""
    model = problem()
    start = values(model)
    updates = LocalUpdates(torch.optim.SGD(model.parameters(), lr=1.0), QSGD(bits=8))
    inner_steps(model, rank, 0)
    mine = start - values(model)
    updates.step()
    exact = mine.clone()
    dist.all_reduce(exact)
    error = (start - values(model) - exact / WORLD).abs().max()
    assert 0 < error <= 2 * 0.5001 * 2 * mine.abs().max() / 255 * 1.5
    lost = torch.cat([x.flatten() for x in updates.state_dict()["residuals"]])
    assert 0 < lost.abs().max() <= 0.5001 * (mine.amax() - mine.amin()) / 255 + 1e-6
    sent = sum(x.numel() for x in model.parameters())
    assert updates.sent_nbytes < 1.5 * sent + 200


def trained(rank: int, codec: Codec, error_feedback: bool) -> float:
    """The loss of a quadratic problem with coordinates of many scales, after some outer steps."""
    generator = torch.Generator().manual_seed(5)
    target = torch.randn(SIZE, generator=generator) * 0.1
    x = torch.nn.Parameter(torch.zeros(SIZE))
    optimizer = torch.optim.SGD([x], lr=0.5)
    updates = LocalUpdates(optimizer, codec, error_feedback=error_feedback)
    shift = torch.zeros(SIZE)
    shift[::50], shift[25::50] = (
        (1.0, -1.0) if rank else (-1.0, 1.0)
    )  # data of each rank alone, which keeps the levels apart
    inner = torch.optim.SGD([x], lr=0.05)
    for step in range(OUTER):
        optimizer.param_groups[0]["lr"] = 0.5 * (1 - step / OUTER)
        for _ in range(INNER):
            inner.zero_grad()
            (x - target - shift).square().sum().mul(0.5).backward()
            inner.step()
        updates.step()
    check_same(x.detach())
    return float((x.detach() - target).square().sum() / target.square().sum())


def check_training(rank: int) -> None:
    """Few bits learn as well as all, with error feedback; without, they do not."""
    exact = trained(rank, Lossless(), error_feedback=True)
    coarse = QSGD(bits=3)
    with_feedback, without = trained(rank, coarse, True), trained(rank, coarse, False)
    assert exact < 1e-4
    assert with_feedback < 10 * exact, (exact, with_feedback)
    assert without > 50 * with_feedback, (without, with_feedback)


def check_resumed(rank: int) -> None:
    """From a saved state it goes on bit for bit."""
    model = problem()
    codec = QSGD(bits=3, bucket_size=16, rounding="stochastic")
    updates = LocalUpdates(outer(model), codec)
    for step in range(2):
        inner_steps(model, rank, step)
        updates.step()
    inner_steps(model, rank, 2)
    saved, state = copy.deepcopy(model), copy.deepcopy(updates.state_dict())
    updates.step()
    again = LocalUpdates(outer(saved), codec)
    again.load_state_dict(state)
    again.step()
    assert torch.equal(values(saved), values(model))
    assert again.steps == 3
    inner_steps(model, rank, 3)
    inner_steps(saved, rank, 3)
    updates.step()
    again.step()
    assert torch.equal(values(saved), values(model))
    assert (values(saved) - torch.cat([x.flatten() for x in again.state_dict()["parameters"]])).abs().max() == 0


def check_mismatches(rank: int) -> None:
    """All ranks hear of what differs, and nothing has changed."""
    model = problem()
    with torch.no_grad():
        model[2].bias[0] += rank
    before = values(model)
    text = message_of(ValueError, LocalUpdates(outer(model)).step)
    assert text.startswith("rank 1: hash of the parameters before the first inner step: expected "), text
    model = problem()
    text = message_of(ValueError, LocalUpdates(outer(model), QSGD(bits=2 + rank)).step)
    assert text.startswith(f"rank 1: codec of parameters[0]: expected {QSGD(bits=2)} as on rank 0, got "), text
    text = message_of(ValueError, LocalUpdates(outer(model), QSGD(), error_feedback=rank == 0).step)
    assert text == "rank 1: error_feedback: expected True as on rank 0, got False", text
    updates = LocalUpdates(outer(model), QSGD(), check_finite=True)
    updates.step()
    before = values(model)
    model[0].bias.data[0] += torch.nan if rank else 1.0
    text = message_of(ValueError, updates.step)
    assert text == "LocalUpdates.step: expected finite values, got NaN or infinity on ranks [1]", text
    model[0].bias.data[0] = before[len(model[0].weight.flatten())]
    updates.step()
    assert values(model).isfinite().all()


def check_not_finite(rank: int) -> None:
    """A NaN reaches all ranks, and goes away with the parameters that it made."""
    x = torch.nn.Parameter(torch.zeros(5))
    updates = LocalUpdates(torch.optim.SGD([x], lr=1.0), QSGD(bits=4))
    x.data += torch.nan if rank else 1.0
    updates.step()
    assert x.isnan().all()
    assert all(y.isfinite().all() for y in updates.state_dict()["residuals"])


def run(rank: int, folder: Path) -> None:
    """All checks, in one of the processes."""
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=WORLD, timeout=PATIENCE)
    for check in (check_lossless, check_one_step, check_training, check_resumed, check_mismatches, check_not_finite):
        check(rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    processes.start(run, WORLD)
