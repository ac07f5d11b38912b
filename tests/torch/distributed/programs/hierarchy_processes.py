"""Six processes pretend to be nodes; a program of test_backend.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import arrcomp
import processes
from arrcomp.torch.distributed import Hierarchy, hierarchical_all_reduce
from processes import check_same, check_sum, inputs, quantization_error

WORLD = 6
SIZES = (0, 1, 5, 511, 3000, 70_001)
CODEC = arrcomp.QSGD(bits=8)


def node_sums(xs: list[torch.Tensor], local_size: int) -> list[torch.Tensor]:
    """What nodes send each other, before it is compressed."""
    return [torch.stack(xs[i : i + local_size]).sum(0) for i in range(0, len(xs), local_size)]


def check_results(hierarchy: Hierarchy, local_size: int) -> None:
    """Bounds, the same bits everywhere, and every element, for each operation and data type."""
    rank, world, group = hierarchy.whole.rank, hierarchy.whole.world, hierarchy.whole.group
    for size in SIZES:
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            xs = inputs(size, world, dtype)
            x = xs[rank].clone()
            assert hierarchical_all_reduce(x, hierarchy, CODEC) is None
            check_same(x, group)
            sums = node_sums(xs, local_size)
            if size > 100:
                check_sum(x, sums, 8)
            elif size:  # a bucket of one or two values is exact
                assert (x - torch.stack(sums).sum(0)).abs().max() <= quantization_error(sums, 8)
            work = hierarchical_all_reduce(y := xs[rank].clone(), hierarchy, CODEC, async_op=True)
            assert work is not None
            assert work.wait()
            assert torch.equal(x, y)
    xs = inputs(3000, world)
    for op, expected in (("MAX", torch.stack(xs).amax(0)), ("MIN", torch.stack(xs).amin(0))):
        hierarchical_all_reduce(x := xs[rank].clone(), hierarchy, None, getattr(dist.ReduceOp, op))
        assert torch.equal(x, expected)
    hierarchical_all_reduce(x := xs[rank].clone(), hierarchy, CODEC, algorithm="ring")
    check_same(x, group)
    assert 0 < (x - sum(xs)).abs().max() < world * quantization_error(xs, 8)
    hierarchical_all_reduce(x := xs[rank].clone(), hierarchy, CODEC, dist.ReduceOp.AVG)
    check_sum(x, [y / world for y in node_sums(xs, local_size)], 8)
    hierarchical_all_reduce(x := torch.full((5000,), 60_000.0).half(), hierarchy, CODEC, dist.ReduceOp.AVG)
    assert torch.allclose(x.float(), torch.tensor(60_000.0), rtol=2e-3), "16-bit floats do not overflow"


def check_lossless(hierarchy: Hierarchy) -> None:
    """What is exact stays exact, integers too, and tensors that are not contiguous."""
    rank, world = hierarchy.whole.rank, hierarchy.whole.world
    x = (torch.arange(4000) * (rank + 1)).view(40, 100).T
    hierarchical_all_reduce(x, hierarchy)
    assert torch.equal(x, torch.arange(4000).view(40, 100).T * (world * (world + 1) // 2))


def check_seeds(hierarchy: Hierarchy) -> None:
    """Rounding at random is unbiased, other for each seed, and the same on all ranks."""
    world, group = hierarchy.whole.world, hierarchy.whole.group
    codec = arrcomp.QSGD(bits=2, rounding="stochastic")
    x = torch.linspace(-1, 1, 2048)
    found = []
    for seed in range(40):
        hierarchical_all_reduce(y := x.clone(), hierarchy, codec, seed=seed)
        found.append(y)
    total = torch.stack(found)
    check_same(total, group)
    assert len(total.unique(dim=0)) == 40
    assert (total.mean(0) - world * x).abs().max() < 0.5 * quantization_error([x * world] * 2, 2)


def check_one_node(rank: int) -> None:
    """With one node nothing crosses nodes: what comes out is the plain sum. With nodes of one process all is coded."""
    xs = inputs(3000, WORLD)
    hierarchical_all_reduce(x := xs[rank].clone(), Hierarchy.of(local_size=WORLD), CODEC)
    assert torch.allclose(x, torch.stack(xs).sum(0), atol=1e-5)
    os.environ["LOCAL_WORLD_SIZE"] = "1"
    hierarchical_all_reduce(x := xs[rank].clone(), Hierarchy.of(), CODEC)
    check_sum(x, xs, 8)


def check_errors(rank: int, hierarchy: Hierarchy) -> None:
    """All ranks raise, and go on."""
    cases = [
        (
            r"^rank 1: shape of tensor: expected \(50,\) as on rank 0, got \(51,\)$",
            lambda: hierarchical_all_reduce(torch.ones(50 + rank), hierarchy, CODEC),
        ),
        (r"expected finite values, got NaN or infinity on ranks \[3\]", lambda: with_nan(rank, hierarchy)),
        ("local_size: expected a divisor of the group's size 6, got 4", lambda: Hierarchy.of(local_size=4)),
        (
            r"hierarchy: expected a Hierarchy .*, got 2 \(int\)",
            lambda: hierarchical_all_reduce(torch.ones(5), 2, CODEC),  # type: ignore[arg-type]
        ),
        (
            "algorithm: expected .*, got 'tree'",
            lambda: hierarchical_all_reduce(torch.ones(5), hierarchy, algorithm="tree"),  # type: ignore[arg-type]
        ),
        (
            "op: expected one of SUM, AVG, MAX, MIN",
            lambda: hierarchical_all_reduce(torch.ones(5), hierarchy, CODEC, dist.ReduceOp.PRODUCT),
        ),
    ]
    for message, call in cases:
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def with_nan(rank: int, hierarchy: Hierarchy) -> None:
    """One process has a NaN."""
    x = torch.full((50,), torch.nan if rank == 3 else 1.0)
    hierarchical_all_reduce(x, hierarchy, CODEC, check_finite=True)


def check_uneven_groups(rank: int) -> None:
    """Groups that PyTorch would name differently are refused, by all of their processes."""
    four = dist.new_group([1, 2, 4, 5])
    dist.new_group([0, 1])
    if rank not in (0, 3):
        with pytest.raises(RuntimeError, match=r"created equally many groups, got \["):
            Hierarchy.of(four, 2)


def run(rank: int, folder: Path) -> None:
    """All checks, in one of the processes."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/nodes", rank=rank, world_size=WORLD)
    four = dist.new_group([0, 1, 3, 5])
    if rank not in (2, 4):
        check_results(Hierarchy.of(four, 2), 2)
    for local_size in (3, 2):
        hierarchy = Hierarchy.of(local_size=local_size)
        check_results(hierarchy, local_size)
        check_lossless(hierarchy)
    check_seeds(hierarchy)
    check_errors(rank, hierarchy)
    check_one_node(rank)
    check_uneven_groups(rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    processes.start(run, WORLD)
