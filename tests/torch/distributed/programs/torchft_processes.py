"""Two replicas of torchft all-reduce compressed tensors; a program of test_torchft.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

import processes
import torchft_interface
from arrcomp import QSGD
from arrcomp.torch.distributed.torchft import compressing_process_group
from processes import PATIENCE, check_sum, inputs, summed

WORLD = 2
BITS = 4
INTERFACE = "interface" in sys.argv
if INTERFACE:
    torchft_interface.install()


def shared(store: Any, name: str, value: str = "") -> str:
    """A value that rank 0 tells; others give none."""
    if value:
        store.set(name, value)
    return str(store.get(name).decode())


def reduced(group: Any, x: Tensor, op: Any = dist.ReduceOp.SUM) -> Tensor:
    """A copy, reduced as torchft's Manager does it."""
    options: Any = dist.AllreduceOptions()
    options.reduceOp = op
    result = x.clone()
    group.allreduce([result], options).wait()
    return result


def same(group: Any, x: Tensor) -> bool:
    """Whether the replicas have the same bits."""
    other = x.clone()
    options: Any = dist.BroadcastOptions()
    options.rootRank = 0
    group.broadcast([other], options).wait()
    return torch.equal(x, other)


def configured(address: str, rank: int, quorum: int, **options: Any) -> Any:
    """A group of both replicas."""
    import torchft

    group = compressing_process_group(torchft.ProcessGroupGloo(timeout=PATIENCE), QSGD(bits=BITS), **options)
    group.configure(f"{address}/{quorum}", f"replica {rank}", rank, WORLD, quorum)
    return group


def check_selection(rank: int, address: str) -> None:
    """Large sums of floats are compressed, nothing else."""
    group = configured(address, rank, 1)
    xs = inputs(5000, WORLD)
    total = reduced(group, xs[rank])
    check_sum(total, xs, BITS)
    assert same(group, total)
    check_sum(reduced(group, xs[rank], dist.ReduceOp.AVG), [x / WORLD for x in xs], BITS)
    transposed = [x.view(50, 100).T for x in xs]
    check_sum(reduced(group, transposed[rank]), transposed, BITS)
    for kept in (inputs(1000, WORLD), [(100 * x).long() for x in xs]):
        assert torch.equal(reduced(group, kept[rank]), summed(kept))
    assert torch.equal(reduced(group, xs[rank], dist.ReduceOp.MAX), torch.stack(xs).amax(0))


def check_feedback(rank: int, address: str) -> None:
    """Over cycles of two all-reduces nothing is lost; after a new quorum all begins anew."""
    group = configured(address, rank, 2, error_feedback_calls=2, minimal_size=0)
    places = inputs(700, WORLD), inputs(90, WORLD, seed=1)
    cycles = 12
    sums, firsts = [torch.zeros(700), torch.zeros(90)], []
    for _ in range(cycles):
        for xs, total in zip(places, sums, strict=True):
            now = reduced(group, xs[rank])
            total += now
            firsts.append(now)
    for xs, total, first in zip(places, sums, firsts, strict=False):
        lost, once = (total / cycles - summed(xs)).abs().max(), (first - summed(xs)).abs().max()
        assert 0 < 4 * lost < once, (lost, once)
    with pytest.raises(
        ValueError, match=r"^error_feedback_calls: expected .* of a cycle, got 2: all-reduce 0 of a cycle"
    ):
        reduced(group, torch.ones(90))
    group.configure(f"{address}/3", f"replica {rank}", rank, WORLD, 3)
    assert torch.equal(reduced(group, places[1][0 if rank == 0 else 1]), firsts[1])


def trained(rank: int, address: str, pg: Any) -> Tensor:
    """The parameters after some outer steps of torchft's DiLoCo."""
    import torchft
    from torchft.local_sgd import DiLoCo

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    store: Any = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    manager = torchft.Manager(
        pg=pg, min_replica_size=WORLD, use_async_quorum=False, init_sync=False,
        load_state_dict=model.load_state_dict, state_dict=model.state_dict, replica_id=f"replica {rank}",
        store_addr="localhost", store_port=store.port, rank=0, world_size=1, lighthouse_addr=address,
        timeout=PATIENCE, quorum_timeout=PATIENCE,
    )  # fmt: skip
    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    outer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    generator = torch.Generator().manual_seed(rank)
    with DiLoCo(manager, [model], inner, outer, sync_every=5):
        for _ in range(50):
            x = torch.randn(16, 32, generator=generator)
            inner.zero_grad()
            (model(x) - x[:, :4] * x[:, 4:8]).square().mean().backward()
            inner.step()
    assert manager.current_step() == 10
    manager.shutdown(wait=False)
    return torch.cat([x.detach().flatten() for x in model.parameters()])


def check_diloco(rank: int, store: Any) -> None:
    """Torchft's DiLoCo ends near where it does uncompressed, and nearer with error feedback."""
    import torchft
    from torchft.coordination import LighthouseServer

    found = []
    for number, options in enumerate([None, {}, {"error_feedback_calls": 4}]):
        lighthouse = None
        if rank == 0:
            lighthouse = LighthouseServer(bind="[::]:0", min_replicas=WORLD, join_timeout_ms=60_000)
        address = shared(store, f"lighthouse {number}", lighthouse.address() if lighthouse else "")
        pg = torchft.ProcessGroupGloo(timeout=PATIENCE)
        if options is not None:
            pg = compressing_process_group(pg, QSGD(bits=BITS), minimal_size=0, **options)
        found.append(trained(rank, address, pg))
        own = found[-1].numpy().tobytes().hex()
        assert own == shared(store, f"parameters {number}", own if rank == 0 else "")
        store.set(f"done {number} {rank}", "")
        store.wait([f"done {number} {other}" for other in range(WORLD)])
        if lighthouse is not None:
            lighthouse.shutdown()
    plain, coded, fed_back = found
    errors = [float((x - plain).norm() / plain.norm()) for x in (coded, fed_back)]
    assert 0 < 1.3 * errors[1] < errors[0] < 0.1, errors


def run(rank: int, folder: Path) -> None:
    """All checks, in one of the processes."""
    store: Any = dist.FileStore(str(folder / "store"), WORLD)  # type: ignore[attr-defined]
    server: Any = None
    if rank == 0:
        server = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    address = shared(store, "address", f"localhost:{server.port}" if server else "")
    check_selection(rank, address)
    check_feedback(rank, address)
    if not INTERFACE:
        check_diloco(rank, store)
    store.set(f"end {rank}", "")
    store.wait([f"end {other}" for other in range(WORLD)])
    os._exit(0)  # torchft's threads would go on


if __name__ == "__main__":
    processes.start(run, WORLD)
