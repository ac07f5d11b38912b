"""What test_checkpoint.py runs in a process of its own, which starts two that work together over Gloo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import arrcomp
import arrcomp.torch
from arrcomp.torch.distributed.checkpoint import SavePlanner

CODEC = arrcomp.ErrorBounded(abs=1e-3)
INPUTS = 301  # which two processes do not divide


def plain_model(seed: int) -> Any:
    """A model whose weights follow from a seed."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(INPUTS, 40), torch.nn.ReLU(), torch.nn.Linear(40, 7))


def sharded_model(seed: int) -> tuple[Any, Any]:
    """A model and an optimizer whose tensors are spread over the processes."""
    model = plain_model(seed)
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    return model, torch.optim.Adam(model.parameters())


def trained(model: Any, optimizer: Any, steps: int) -> None:
    """Train on what differs from process to process."""
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, INPUTS, generator=generator)).square().mean().backward()
        optimizer.step()


def whole(state: Any) -> dict[str, Any]:
    """Tensors of a state_dict, gathered."""
    return {name: x.full_tensor() if hasattr(x, "full_tensor") else x for name, x in state.items()}


def check_sharded(folder: Path) -> None:
    """What is sharded comes back sharded, and goes on training as it would have."""
    model, optimizer = sharded_model(0)
    trained(model, optimizer, 2)
    model_state, optimizer_state = get_state_dict(model, optimizer)
    state: dict[str, Any] = {"model": model_state, "optimizer": optimizer_state, "epoch": 3}
    dcp.save(state, checkpoint_id=folder / "lossless", planner=SavePlanner(threads=1))  # type: ignore[attr-defined]
    delta = SavePlanner(threads=1, base=folder / "lossless")
    dcp.save(state, checkpoint_id=folder / "delta", planner=delta)  # type: ignore[attr-defined]
    bounded = SavePlanner([arrcomp.Rule(CODEC, "model.*weight")], threads=1)
    dcp.async_save(state, checkpoint_id=folder / "bounded", planner=bounded).result()  # type: ignore[attr-defined, union-attr]
    twin, successor = sharded_model(1)
    model_state, optimizer_state = get_state_dict(twin, successor)
    state = {"model": model_state, "optimizer": optimizer_state, "epoch": 0}
    dcp.load(state, checkpoint_id=folder / "lossless")  # type: ignore[attr-defined]
    assert state["epoch"] == 3
    set_state_dict(twin, successor, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    expected = whole(model.state_dict())
    for name, x in whole(twin.state_dict()).items():
        assert torch.equal(x, expected[name])
    if dist.get_rank() == 0:
        torch.save(expected, folder / "expected.pt")
    trained(model, optimizer, 2)
    trained(twin, successor, 2)
    expected = whole(model.state_dict())
    for name, x in whole(twin.state_dict()).items():
        assert torch.equal(x, expected[name])


def check_replicated(folder: Path) -> None:
    """What is the same in all processes is written by one of them."""
    model = torch.nn.parallel.DistributedDataParallel(plain_model(dist.get_rank()))
    dcp.save(model.state_dict(), checkpoint_id=folder / "replicated", planner=SavePlanner(CODEC, threads=1))  # type: ignore[attr-defined]
    sizes = {path.name: path.stat().st_size for path in (folder / "replicated").glob("*.distcp")}
    assert sum(sizes.values()) < 0.6 * sum(x.nbytes for x in model.parameters()), sizes
    state = torch.nn.parallel.DistributedDataParallel(plain_model(5)).state_dict()
    dcp.load(state, checkpoint_id=folder / "replicated")  # type: ignore[attr-defined]
    for name, x in model.state_dict().items():
        assert (x - state[name]).abs().max() <= CODEC.abs


def run(rank: int, folder: Path) -> None:
    """All checks, in one of the processes."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    try:
        check_sharded(folder)
        check_replicated(folder)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(run, (Path(sys.argv[1]),), nprocs=2)  # type: ignore[attr-defined]
    print("passed")
