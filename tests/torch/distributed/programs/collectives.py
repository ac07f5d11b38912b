"""What test_collectives.py runs in a process of its own, which starts others that work together over Gloo."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

import arrcomp
import arrcomp.torch.distributed as collectives
from arrcomp import QSGD, Codec, ErrorBounded, FloatFormat, Lossless, SmaQ

WORLD = int(sys.argv[2])  # processes
Group = tuple[int, int, Any]  # of processes: this one's rank, their number, PyTorch's group
SUM, AVG, MAX, MIN = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX, dist.ReduceOp.MIN
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
COUNTS = (0, 1, 17, 1000, 4096 * 3 + 77)
# Their values do not depend on where an array is cut.
CODECS = (QSGD(bits=4), QSGD(bits=8, bucket_size=100), QSGD(coding="entropy"), FloatFormat("mxfp8"), Lossless())


def tensors(count: int, dtype: torch.dtype, world: int, scale: float = 1.0) -> list[Tensor]:
    """What each rank has, known to all of them."""
    generator = torch.Generator().manual_seed(count)
    return [(torch.randn(count, generator=generator) * scale + 0.1 * rank).to(dtype) for rank in range(world)]


def coded(x: Tensor, codec: Codec) -> Tensor:
    """What comes back of a tensor."""
    y: Tensor = arrcomp.decompress(arrcomp.compress(x, codec, seed=0))
    return y


def check_all_alike(x: Tensor, group: Any) -> None:
    """All ranks have the same bits."""
    raw = x.contiguous().view(-1).view(torch.uint8)
    others = [torch.empty_like(raw) for _ in range(dist.get_world_size(group))]
    dist.all_gather(others, raw, group=group)
    for other in others:
        assert torch.equal(other, raw)


def plain_reduction(xs: list[Tensor], op: Any) -> Tensor:
    """In rank order, of 16-bit floats in float32, as documented."""
    terms = [x.float() for x in xs]
    if op in (MAX, MIN):
        return torch.stack(terms).amax(0) if op == MAX else torch.stack(terms).amin(0)
    total = torch.zeros_like(terms[0])
    for term in terms:
        total += term
    return total / len(terms) if op == AVG else total


def check_all_reduce(group: Group) -> None:
    """The result is what the codec makes of the sum of what it makes of the summands, and all have the same bits."""
    rank, world, processes = group
    cases = [*itertools.product(COUNTS[-1:], FLOATS, CODECS, (SUM, AVG, MAX, MIN))]
    cases += itertools.product(COUNTS[:-1], FLOATS[:1], CODECS, (SUM,))
    for count, dtype, codec, op in cases:
        xs = tensors(count, dtype, world)
        x = xs[rank].clone()
        assert collectives.all_reduce(x, codec, op, processes) is None
        check_all_alike(x, processes)
        if world == 1:
            assert torch.equal(x, xs[0])
            continue
        expected = coded(plain_reduction([coded(x, codec) for x in xs], op).to(dtype), codec)
        if op == AVG and world & world - 1 and isinstance(codec, QSGD):  # weighs with 1 / W, which is rounded here
            unit = float(torch.stack(xs).max() - torch.stack(xs).min()) / (2**codec.bits - 1)
            assert (x.float() - expected.float()).abs().max() <= unit
        else:
            assert torch.equal(x, expected), (count, dtype, codec, op, world)


def largest_unit(x: np.ndarray[Any, Any], codec: QSGD) -> Iterator[float]:
    """The distance of two levels in each bucket, for each value."""
    for first in range(0, x.size, codec.bucket_size):
        bucket = x[first : first + codec.bucket_size]
        yield from [float(bucket.max() - bucket.min()) / (2**codec.bits - 1)] * bucket.size


def check_bounds(group: Group) -> None:
    """Errors against a float64 reference stay within half a unit of each summand's bucket and of the sum's."""
    rank, world, processes = group
    for bits, count in itertools.product((1, 2, 4, 8), (1000, 20_000)):
        codec = QSGD(bits=bits)
        xs = [x.numpy().astype(np.float64) for x in tensors(count, torch.float32, world)]
        x = torch.from_numpy(xs[rank].astype(np.float32))
        collectives.all_reduce(x, codec, group=processes)
        exact = np.sum(xs, axis=0)
        half = np.sum([0.5 * np.array(list(largest_unit(y, codec))) for y in xs], axis=0)
        # The sum that is quantized has the summands' errors, which widen its buckets.
        total = np.array(list(largest_unit(exact, codec))) + 2 * half.max() / (2**bits - 1)
        bound = (half + 0.5 * total) * (1 + 1e-5) if world > 1 else 0
        assert (np.abs(x.numpy() - exact) <= bound).all()
    for bound in (1e-2, 1e-4):
        plain = tensors(10_000, torch.float32, world)
        x = plain[rank].clone()
        collectives.all_reduce(x, ErrorBounded(abs=bound), group=processes)
        assert (x.double() - sum(y.double() for y in plain)).abs().max() <= (world + 1) * bound + 1e-5


def check_tests_of_cgx(group: Group) -> None:
    """Constants come out exactly, and ranges within CGX's formula."""
    rank, world, processes = group
    for bits, dtype in itertools.product((1, 2, 4, 8), FLOATS):
        x = torch.full((3000,), float(rank + 1), dtype=dtype)
        collectives.all_reduce(x, QSGD(bits=bits), group=processes)
        assert (x == world * (world + 1) / 2).all()
        x = torch.full((3000,), 2.5, dtype=dtype)
        collectives.all_reduce(x, QSGD(bits=bits), AVG, group=processes)
        error = (x - 2.5).abs().max()
        assert error == 0 if world & world - 1 == 0 else error <= 2.5 * torch.finfo(dtype).eps
    for bits, size, count in itertools.product(range(2, 9), (64, 512, 2048), (128, 1000, 10_000)):
        x = torch.arange(count, dtype=torch.float32) * (rank + 1)
        collectives.all_reduce(x, QSGD(bits=bits, bucket_size=size), group=processes)
        exact = torch.arange(count) * (world * (world + 1) / 2)
        allowed = 2 * min(size, count) / (2**bits - 1) * world * (world + 1)
        assert (x - exact).abs().max() <= allowed, (bits, size, count)


def check_ring(group: Group) -> None:
    """The ring's result is near the exact one, the same on all, and exact where nothing is lost."""
    rank, world, processes = group
    for count, dtype, codec in itertools.product(COUNTS[1:], FLOATS, (QSGD(bits=8), Lossless(), FloatFormat("fp16"))):
        for op in (SUM, MAX) if count == 1000 else (SUM,):
            xs = tensors(count, dtype, world)
            x = xs[rank].clone()
            collectives.all_reduce(x, codec, op, processes, algorithm="ring")
            check_all_alike(x, processes)
            exact = plain_reduction(xs, op)
            hop = 0.1 if isinstance(codec, QSGD) else 0.04 if dtype == torch.bfloat16 else 0.01
            assert (x.float() - exact).abs().max() <= hop * world
    x = torch.full((3000,), float(rank))
    collectives.all_reduce(x, QSGD(bits=4), AVG, processes, algorithm="ring")
    assert (x - (world - 1) / 2).abs().max() <= 1e-5


def check_parts(group: Group) -> None:
    """reduce_scatter, all_gather and broadcast."""
    rank, world, processes = group
    for count, dtype, codec in itertools.product((0, 1000), FLOATS, CODECS):
        xs = tensors(world * count, dtype, world)
        out = torch.empty(count, dtype=dtype)
        collectives.reduce_scatter(out, xs[rank], codec, group=processes)
        mine = [x[rank * count : (rank + 1) * count] for x in xs]
        expected = plain_reduction([coded(x, codec) for x in mine], SUM).to(dtype)
        assert torch.equal(out, expected), (count, dtype, codec)
        gathered = torch.empty(world * count, dtype=dtype)
        collectives.all_gather(gathered, mine[rank].contiguous(), codec, processes)
        source = tensors(world * count, dtype, world)
        parts = [coded(x[r * count : (r + 1) * count], codec) for r, x in enumerate(source)]
        assert torch.equal(gathered, torch.cat(parts))
        x = xs[rank].clone()
        collectives.broadcast(x, codec, world - 1, processes)
        assert torch.equal(x, coded(xs[world - 1], codec))


def check_several(group: Group) -> None:
    """Many tensors in one exchange, each with its own codec, dtype and shape, contiguous or not."""
    rank, world, processes = group
    shapes = [(3, 700), (), (5000,), (0,), (64, 64), (2, 3, 4)]
    codecs = [QSGD(bits=2), Lossless(), QSGD(bits=8), QSGD(), FloatFormat("mxfp8"), ErrorBounded(abs=1e-3)]
    for chosen in (codecs, QSGD(bits=8)):
        each = chosen if isinstance(chosen, list) else [chosen] * len(shapes)
        dtypes = [torch.float32, torch.float16, torch.bfloat16, torch.float32, torch.float32, torch.float32]
        kinds = list(zip(shapes, dtypes, strict=True))
        generator = torch.Generator().manual_seed(1)
        ranks = [[torch.randn(s, generator=generator).to(t) for s, t in kinds] for _ in range(world)]
        own = [x.T.contiguous().T if x.dim() == 2 else x.clone() for x in ranks[rank]]
        addresses = [x.data_ptr() for x in own]
        collectives.all_reduce_coalesced(own, chosen, group=processes)
        assert [x.data_ptr() for x in own] == addresses
        for i, (x, codec) in enumerate(zip(own, each, strict=True)):
            check_all_alike(x, processes)
            error = (x.float() - sum(other[i].float() for other in ranks)).abs()
            assert x.numel() == 0 or error.max() <= world * (2.5 if codec == QSGD(bits=2) else 0.3)


def check_asynchronous(group: Group) -> None:
    """Several operations under way give what they give one by one."""
    rank, world, processes = group
    for codec in (QSGD(bits=4), QSGD(coding="entropy"), QSGD(rounding="stochastic"), SmaQ()):
        xs = [tensors(count, torch.float32, world)[rank] for count in (100, 20_000, 7)]
        expected = [x.clone() for x in xs]
        for i, x in enumerate(expected):
            collectives.all_reduce(x, codec, group=processes, seed=i)
        works: list[Any] = [
            collectives.all_reduce(x, codec, group=processes, seed=i, async_op=True) for i, x in enumerate(xs)
        ]
        assert world == 1 or not works[1].is_completed()
        for work, x, y in zip(works, xs, expected, strict=True):
            assert work.wait()
            assert work.is_completed()
            assert torch.equal(work.get_future().wait()[0], y)
            assert torch.equal(x, y)


def check_seeds(group: Group) -> None:
    """Stochastic rounding: the same seed gives the same sums, others average to the exact one."""
    rank, world, processes = group
    codec = QSGD(bits=2, rounding="stochastic")
    count, seeds = 2000, 60
    xs = tensors(count, torch.float32, world)
    made = []
    for seed in [*range(seeds), 0]:
        x = xs[rank].clone()
        collectives.all_reduce(x, codec, group=processes, seed=seed)
        made.append(x.double())
    assert torch.equal(made[0], made[-1])
    if world == 1:
        return
    assert not torch.equal(made[0], made[1])
    results = torch.stack(made[:-1])
    deviation = (results.mean(0) - sum(x.double() for x in xs)) / (results.std(0) / seeds**0.5)
    # Means of 2000 values' deviations: their own standard error is 1 / sqrt(2000); square ones are 1 on average.
    assert abs(deviation.mean()) < 4 / count**0.5
    assert deviation.square().mean() < 1.3


def check_not_finite(group: Group) -> None:
    """A NaN of one rank reaches all, in its bucket alone."""
    rank, world, processes = group
    for value, op in itertools.product((float("nan"), float("inf")), (SUM, AVG)):
        x = torch.ones(5000)
        if rank == world - 1:
            x[700] = value
        collectives.all_reduce(x, QSGD(bits=8), op, processes)
        if world > 1:
            assert x[512:1024].isnan().all()
        assert x[:512].isfinite().all()
        assert x[1024:].isfinite().all()


ALWAYS = (check_all_reduce, check_bounds, check_parts)
OFTEN = (check_tests_of_cgx, check_ring, check_several, check_asynchronous, check_seeds, check_not_finite)


def run(rank: int, folder: Path) -> None:
    """All checks with groups of one to all processes, in one of the processes."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=WORLD)
    try:
        for world in range(1, WORLD + 1):
            processes = dist.new_group(list(range(world)))
            if rank < world:
                for check in (*ALWAYS, *OFTEN) if world in (1, 2, 3, WORLD) else ALWAYS:
                    check((rank, world, processes))
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(run, (Path(sys.argv[1]),), nprocs=WORLD)  # type: ignore[attr-defined]
    print("passed")
