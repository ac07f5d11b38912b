"""Four processes use the backend "arrcomp"; a program of test_backend.py."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

import arrcomp
import arrcomp.torch.distributed
import processes
from arrcomp.torch.distributed import BackendOptions, configure, register_layer, set_quantization_bits
from processes import check_same, check_sum, inputs, quantization_error, summed

WORLD = 4
BITS = 8
OPTIONS = BackendOptions(arrcomp.QSGD(bits=BITS), minimal_size=100)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def reduced(x: torch.Tensor, **arguments: Any) -> torch.Tensor:
    """A copy, reduced."""
    result = x.clone()
    dist.all_reduce(result, **arguments)
    return result


def check_compressed(rank: int) -> None:
    """Large sums and averages of floats are compressed, in every way to ask for them."""
    for dtype in FLOATS:
        xs = inputs(10_007, WORLD, dtype)
        total = reduced(xs[rank])
        check_sum(total, xs, BITS)
        check_same(total)
        check_sum(reduced(xs[rank], op=dist.ReduceOp.AVG), [x / WORLD for x in xs], BITS)
        work = dist.all_reduce(again := xs[rank].clone(), async_op=True)
        assert work.get_future().wait()[0] is again or torch.equal(work.get_future().wait()[0], again)
        assert work.wait()
        assert work.is_completed()
        assert torch.equal(again, total)
    assert torch.equal(functional.all_reduce(xs[rank], "sum", world_group()), total)
    transposed = xs[rank][:10_000].reshape(100, 100).T.clone(memory_format=torch.contiguous_format).T
    assert not transposed.is_contiguous()
    expected = reduced(xs[rank][:10_000].reshape(100, 100))
    dist.all_reduce(transposed)
    assert torch.equal(transposed, expected)
    with torch.inference_mode():
        assert torch.equal(reduced(xs[rank].clone()), total)
    for call in (lambda group, x: group.allreduce(x), lambda group, x: group.allreduce([x], dist.ReduceOp.SUM)):
        call(dist.group.WORLD, again := xs[rank].clone()).wait()
        assert torch.equal(again, total)


def world_group() -> Any:
    return dist.group.WORLD


def check_left_alone(rank: int) -> None:
    """What is small, no float, or neither sum nor average comes back exactly."""
    xs = inputs(99, WORLD)
    torch.testing.assert_close(reduced(xs[rank]), summed(xs), rtol=1e-6, atol=1e-6)
    xs = inputs(1000, WORLD)
    assert torch.equal(reduced(xs[rank], op=dist.ReduceOp.MAX), torch.stack(xs).amax(0))
    whole = [(100 * x).long() for x in xs]
    assert torch.equal(reduced(whole[rank]), summed(whole))
    product = reduced(xs[rank].double(), op=dist.ReduceOp.PRODUCT)
    torch.testing.assert_close(product, torch.stack(xs).double().prod(0))
    sparse = torch.eye(1000)[rank].to_sparse()
    dist.all_reduce(sparse)
    assert sparse.to_dense().sum() == WORLD


def check_others(rank: int) -> None:
    """All other operations do what they do without us, bit for bit."""
    xs = inputs(1000, WORLD)
    mine, total = xs[rank], summed(xs)
    dist.barrier()
    dist.broadcast(got := mine.clone(), 2)
    assert torch.equal(got, xs[2])
    dist.all_gather(parts := [torch.empty(1000) for _ in xs], mine)
    assert all(map(torch.equal, parts, xs))
    dist.reduce(got := mine.clone(), 1)
    assert rank != 1 or torch.allclose(got, total)
    dist.reduce_scatter(got := torch.empty(250), list(mine.split(250)))
    assert torch.allclose(got, total.split(250)[rank], atol=1e-6)
    dist.all_to_all_single(got := torch.empty(1000), mine)
    assert torch.equal(got, torch.cat([x.split(250)[rank] for x in xs]))
    dist.gather(mine, parts if rank == 3 else None, 3)
    dist.scatter(got := torch.empty(1000), xs if rank == 0 else None, 0)
    assert torch.equal(got, mine)
    operations = [dist.P2POp(dist.isend, mine, (rank + 1) % WORLD)]
    operations += [dist.P2POp(dist.irecv, got := torch.empty(1000), (rank - 1) % WORLD)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert torch.equal(got, xs[rank - 1])
    dist.all_gather_object(objects := [None] * WORLD, {"rank": rank})
    assert objects == [{"rank": i} for i in range(WORLD)]
    dist.broadcast_object_list(chosen := [rank], src=2)
    assert chosen == [2]
    assert dist.get_backend() == "arrcomp"


def check_all_to_all(rank: int) -> None:
    """Rows of floats are compressed where the options say so, whatever their number; integers never are."""
    configure(all_to_all_codec=arrcomp.QSGD(bits=BITS, bucket_size=16))
    xs = [x.view(20, 16) for x in inputs(320, WORLD)]
    rows = [2, 0, 17, 1]  # of each rank, for rank 0 and on
    got = torch.empty(rows[rank] * WORLD, 16)
    dist.all_to_all_single(got, xs[rank], [rows[rank]] * WORLD, rows)
    exact = torch.cat([x.split(rows)[rank] for x in xs])
    unit = (exact.amax(1) - exact.amin(1)).amax() / (2**BITS - 1) if rows[rank] else 0
    assert torch.equal(got, exact) if rows[rank] == 0 else 0 < (got - exact).abs().max() <= 0.5001 * unit
    again = functional.all_to_all_single(xs[rank], [rows[rank]] * WORLD, rows, world_group())
    assert torch.equal(again, got)
    whole = [(100 * x).long() for x in xs]
    dist.all_to_all_single(numbers := torch.empty(20, 16, dtype=torch.int64), whole[rank])
    assert torch.equal(numbers, torch.cat([x.split(5)[rank] for x in whole]))
    configure(all_to_all_codec=None)


def check_fusion(rank: int) -> None:
    """Every element of a large call is reduced; small tensors of one call go together, each in its own way."""
    xs = inputs(20_003, WORLD)
    whole = reduced(xs[rank])
    for nbytes in (1, 5000, 80_011, 80_012):
        configure(fusion_nbytes=nbytes)
        assert torch.equal(reduced(xs[rank]), whole), nbytes
    configure(fusion_nbytes=3000)
    sizes = (600, 99, 3, 1500, 100)
    each = [inputs(size, WORLD, seed=size) for size in sizes]
    mine = [xs[rank].clone() for xs in each]
    world_group().allreduce_coalesced(mine).wait()
    for x, size, xs in zip(mine, sizes, each, strict=True):
        if size < OPTIONS.minimal_size:
            torch.testing.assert_close(x, summed(xs), rtol=1e-6, atol=1e-6)
        else:
            check_sum(x, xs, BITS)
        check_same(x)
    configure(fusion_nbytes=OPTIONS.fusion_nbytes)


def check_settings(rank: int) -> None:
    """A seed for each call; a part where only a part is asked for; nothing where nothing is."""
    xs = inputs(4000, WORLD)
    configure(codec=arrcomp.QSGD(bits=2, rounding="stochastic"), seed=3)
    many = torch.stack([reduced(xs[rank]) for _ in range(30)])
    assert len(many.unique(dim=0)) == 30
    spread = quantization_error(xs, 2)
    assert (many.mean(0) - summed(xs)).abs().max() < 0.5 * spread, "unbiased: the mean over the calls is the sum"
    configure(codec=arrcomp.QSGD(bits=8), fake_ratio=0.25)
    part = reduced(xs[rank])
    check_sum(part[:1000], [x[:1000] for x in xs], BITS)
    assert torch.equal(part[1000:], xs[rank][1000:])
    configure(codec=None, fake_ratio=1.0)
    assert torch.allclose(reduced(xs[rank]), summed(xs), atol=1e-6)
    configure(codec=OPTIONS.codec, seed=0, local_size=2)
    nodes = reduced(xs[rank])
    check_same(nodes)
    check_sum(nodes, [xs[0] + xs[1], xs[2] + xs[3]], BITS)
    configure(local_size=None, algorithm="ring")
    around = reduced(xs[rank])
    check_same(around)
    assert 0 < (around - summed(xs)).abs().max() < WORLD * quantization_error(xs, BITS)
    configure(algorithm="scatter")
    assert configure() == OPTIONS


def check_groups(rank: int) -> None:
    """Groups compress what their own options say, whatever others do meanwhile."""
    plain = dist.new_group([0, 1, 3])
    assert rank == 2 or type(plain) is dist.ProcessGroup
    halves = [dist.new_group(ranks, pg_options=OPTIONS) for ranks in ([0, 2], [3, 1])]
    mine, members = (halves[0], (0, 2)) if rank in (0, 2) else (halves[1], (1, 3))
    xs = inputs(5000, WORLD)
    if rank != 2:
        assert torch.allclose(reduced(xs[rank], group=plain), xs[0] + xs[1] + xs[3], atol=1e-6)
    works = []
    tensors = [xs[rank].clone() for _ in range(4)]
    for i, x in enumerate(tensors):
        works.append(dist.all_reduce(x, group=mine if i % 2 else None, async_op=True))
        dist.broadcast(got := xs[rank].clone(), 1)
        assert torch.equal(got, xs[1])
    for work in works[:: 1 if rank else -1]:
        work.wait()
    check_sum(tensors[0], xs, BITS)
    check_sum(tensors[1], [xs[i] for i in members], BITS)
    assert torch.equal(tensors[0], tensors[2])
    assert torch.equal(tensors[1], tensors[3])
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("node", "place"))
    pair = [x for i, x in enumerate(xs) if i // 2 == rank // 2]
    assert torch.equal(reduced(xs[rank], group=mesh["place"].get_group()), summed(pair))
    dist.destroy_process_group(mine)
    assert torch.equal(reduced(xs[rank]), tensors[0])


def model() -> Any:
    """The same for all processes."""
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(60, 60) for _ in range(5)))


def gradients(parallel: Any, rank: int, steps: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Gradients of the last of some equal steps of DDP, and what they would be without compression."""
    plain, batches = model(), inputs(8 * 60, WORLD, seed=5)
    for _ in range(steps):
        parallel.zero_grad()
        parallel(batches[rank].view(8, 60)).square().sum().backward()
    found = [x.grad for x in parallel.parameters()]
    check_same(torch.cat([x.flatten() for x in found]))
    (sum(plain(batch.view(8, 60)).square().sum() for batch in batches) / WORLD).backward()
    return found, [x.grad for x in plain.parameters()]


def check_ddp(rank: int) -> None:
    """Gradients are compressed in every bucket, and the same everywhere."""
    small: dict[str, Any] = {"bucket_cap_mb": 0.02}
    kinds: tuple[dict[str, Any], ...] = (small, {}, {**small, "gradient_as_bucket_view": True})
    for hook, arguments in ((None, kinds[0]), (None, kinds[1]), (None, kinds[2]), (nested, kinds[0])):
        parallel = DistributedDataParallel(model(), **arguments)
        if hook is not None:
            parallel.register_comm_hook(None, hook)
        found, expected = gradients(parallel, rank, steps=3)  # in the second one, buckets are made anew
        for x, y in zip(found, expected, strict=True):
            # A bucket's gradients are quantized together: its largest counts.
            assert 0 < (x - y).abs().max() < 0.02 * max(z.abs().max() for z in expected)


# DDP does not take annotations that are texts.
def nested(state, bucket):  # type: ignore[no-untyped-def]
    """A hook which reduces something more when its first reduction is done, as PowerSGD's does."""
    first = dist.all_reduce(bucket.buffer().div_(WORLD), async_op=True).get_future()

    def more(done: Any) -> torch.Tensor:
        again = dist.all_reduce(torch.full((500,), 2.0), async_op=True).get_future()
        assert (again.wait()[0] == 2 * WORLD).all()
        return done.value()[0]

    return first.then(more)


def check_errors(rank: int) -> None:
    """All hear of a call that differs from the others', and go on; who does not come is not waited for for ever."""
    with pytest.raises(ValueError, match=r"^rank 1: shape of tensor: expected \(500,\) as on rank 0, got \(501,\)$"):
        reduced(torch.ones(500 + rank))
    work = dist.all_reduce(torch.ones(500 + rank), async_op=True)
    with pytest.raises(ValueError, match="rank 1: shape of tensor"):
        work.get_future().wait()
    assert not work.is_success()
    assert isinstance(work.exception(), ValueError)
    xs = inputs(500, WORLD)
    check_sum(reduced(xs[rank]), xs, BITS)
    pair = dist.new_group([0, 1], pg_options=OPTIONS)
    if rank < 2:
        reduced(xs[rank], group=pair)
    if rank == 0:
        gloo = pair._cpu_group().group._get_backend(torch.device("cpu"))
        gloo._set_default_timeout(datetime.timedelta(seconds=1))  # of an operation that nobody answers, and no other
        with pytest.raises(RuntimeError, match=r"[Tt]imed out"):
            reduced(xs[rank], group=pair)


def initialize(rank: int, meeting: Path, **arguments: Any) -> None:
    """As a script does it."""
    dist.init_process_group("arrcomp", init_method=f"file://{meeting}", rank=rank, world_size=WORLD, **arguments)


def cgx_hook(state, bucket):  # type: ignore[no-untyped-def]
    """As scripts for CGX have it: tells the backend, in the third step, what is where in each bucket."""
    if state["step"] == 2:
        for index, x in enumerate(bucket.gradients()):
            bits = 4 if x.dim() > 1 else 32
            register_layer(bucket.index(), index, x.numel(), bits, 64)
    if bucket.is_last():
        state["step"] += 1
    bucket.buffer().div_(dist.get_world_size())
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def check_cgx_script(rank: int) -> None:
    """With CGX's hook: matrices are compressed once it has told of them, biases are not, nor what else is reduced."""
    parallel = DistributedDataParallel(model(), bucket_cap_mb=0.03)
    parallel.register_comm_hook({"step": 0}, cgx_hook)
    for step in range(4):
        for mine, theirs in zip(*gradients(parallel, rank, steps=1), strict=True):
            error = (mine - theirs).abs().max() / theirs.abs().max()
            if step < 2 or mine.dim() == 1:
                assert error < 1e-5, (step, mine.shape)
            else:
                assert 1e-4 < error < 0.3, (step, error)
        loss = reduced(torch.full((3001,), 0.1 + rank))
        assert torch.allclose(loss, torch.tensor(0.4 + 6))
    set_quantization_bits(0, 0, 32)
    xs = inputs(2048, WORLD)
    assert torch.allclose(reduced(xs[rank]), summed(xs), atol=1e-6)


def check_environment(rank: int) -> None:
    """With CGX's variables alone every large all-reduce is compressed, those of new groups are not."""
    xs = inputs(5000, WORLD)
    check_sum(reduced(xs[rank]), xs, 4)
    assert torch.allclose(reduced(xs[rank][:15]), summed(x[:15] for x in xs), atol=1e-6)
    check_sum(reduced(xs[rank][:16]), [x[:16] for x in xs], 4)
    found, expected = gradients(DistributedDataParallel(model()), rank, steps=2)
    for x, y in zip(found, expected, strict=True):
        assert 0 < (x - y).abs().max() < 0.2 * max(z.abs().max() for z in expected)
    assert torch.allclose(reduced(xs[rank], group=dist.new_group(range(WORLD))), summed(xs), atol=1e-6)


def run(rank: int, folder: Path) -> None:
    """All checks, in one of the processes."""
    initialize(rank, folder / "options", pg_options=OPTIONS)
    basic = (check_compressed, check_left_alone, check_others, check_all_to_all, check_fusion)
    for check in (*basic, check_settings, check_groups, check_ddp):
        check(rank)
    check_errors(rank)
    dist.barrier()
    dist.destroy_process_group()
    initialize(rank, folder / "cgx")
    check_cgx_script(rank)
    dist.destroy_process_group()
    os.environ |= {"CGX_COMPRESSION_QUANTIZATION_BITS": "4", "CGX_COMPRESSION_BUCKET_SIZE": "128"}
    initialize(rank, folder / "environment")
    check_environment(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    processes.start(run, WORLD)
