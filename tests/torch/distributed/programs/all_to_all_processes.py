"""Three processes send each other rows; a program of test_all_to_all.py."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import arrcomp
import processes
from arrcomp import QSGD, Codec, ErrorBounded, FloatFormat, Lossless
from arrcomp.torch.distributed import all_reduce, all_to_all, all_to_all_autograd
from processes import PATIENCE, message_of

WORLD = 3
ROW = 24
BY_ROW = QSGD(bits=8, bucket_size=ROW)
COARSE = QSGD(bits=3, bucket_size=ROW)
RANDOM = QSGD(bits=2, bucket_size=ROW, rounding="stochastic")
CODECS = (BY_ROW, FloatFormat("fp8", scaling="bucket", bucket_size=ROW), QSGD(coding="entropy"), Lossless())
SENT = ((3, 0, 5), (1, 2, 0), (0, 0, 0))  # rows, by sender and receiver


def rows(dtype: torch.dtype = torch.float32, seed: int = 0) -> list[list[Tensor]]:
    """The rows that each rank sends to each, which all ranks know."""
    generator = torch.Generator().manual_seed(seed)
    return [[torch.randn(count, ROW, generator=generator).to(dtype) for count in counts] for counts in SENT]


def coded(x: Tensor, codec: Codec) -> Tensor:
    """What comes back of a tensor."""
    return arrcomp.decompress(arrcomp.compress(x, codec)).view(x.shape)


def incoming(rank: int) -> list[int]:
    return [counts[rank] for counts in SENT]


def exchanged(x: Tensor, rank: int, codec: Codec | None, **options: Any) -> Tensor:
    """The rows that a rank receives."""
    out = torch.full((sum(incoming(rank)), *x.shape[1:]), 77, dtype=x.dtype)
    assert all_to_all(out, x, codec, incoming(rank), list(SENT[rank]), **options) is None
    return out


def check_rows(rank: int) -> None:
    """Each gets what the codec makes of the rows for it, of its own too."""
    for codec, dtype in itertools.product((*CODECS, ErrorBounded(abs=1e-2)), (torch.float32, torch.bfloat16)):
        every = rows(dtype)
        out = exchanged(torch.cat(every[rank]), rank, codec)
        assert torch.equal(out, torch.cat([coded(sent[rank], codec) for sent in every])), (codec, dtype)
    every = rows()
    plain = torch.cat([sent[rank] for sent in every])
    assert torch.equal(exchanged(torch.cat(every[rank]), rank, None), plain)
    out = exchanged(torch.cat(every[rank]), rank, BY_ROW)
    span = plain.amax(1, keepdim=True) - plain.amin(1, keepdim=True)
    assert ((out - plain).abs() <= 0.5001 * span / 255).all()


def check_layouts(rank: int) -> None:
    """Strides, rows of any shape, one value in a row, no rows at all, integers, equal parts, later."""
    x = torch.randn(4, 2 * WORLD, 3).transpose(0, 1) + rank
    assert not x.is_contiguous()
    everyone = [torch.empty(2 * WORLD, 4, 3) for _ in range(WORLD)]
    dist.all_gather(everyone, x.contiguous())
    out = torch.empty(2 * WORLD, 4, 3)
    work = all_to_all(out, x, async_op=True)
    assert work is not None
    assert work.wait()
    assert torch.equal(out, torch.cat([other.split(2)[rank] for other in everyone]))
    for codec in CODECS:
        all_to_all(torch.empty(0, 5), torch.empty(0, 5), codec)
        all_to_all(torch.empty(3, 0), torch.empty(3, 0), codec)
    numbers = torch.full((WORLD,), 10**12 + rank)
    all_to_all(out := torch.empty_like(numbers), numbers)
    assert out.tolist() == [10**12 + other for other in range(WORLD)]
    pair = dist.new_group([0, 2])
    if rank != 1:
        all_to_all(out := torch.empty(2), torch.tensor([rank, rank + 0.5]), group=pair)
        assert out.tolist() == ([0, 2] if rank == 0 else [0.5, 2.5])


def check_tokens(rank: int) -> None:
    """With a bucket for each row, a token comes back the same beside any others, wherever it goes."""
    token = torch.linspace(-1, 1, ROW) ** 3
    for codec in CODECS[:2]:
        x = torch.randn(2 * WORLD, ROW) * 1000 * (rank + 1)
        for place in range(2 * WORLD):
            x[place] = token
            all_to_all(out := torch.empty_like(x), x, codec)
            assert torch.equal(out[place % 2], coded(token, codec)) or place // 2 != rank
            x[place] = 5e4


def check_gradients(rank: int) -> None:
    """The gradient goes the other way, through its own codec, and is exact where that is."""
    every, gradients = rows(), [[torch.randn(n, ROW) for n in incoming(other)] for other in range(WORLD)]
    for x in itertools.chain(*gradients):
        dist.broadcast(x, 0)  # all ranks know them
    splits = incoming(rank), list(SENT[rank])
    for codec, backward in ((None, None), (BY_ROW, None), (BY_ROW, COARSE), (Lossless(), BY_ROW)):
        x = torch.cat(every[rank]).requires_grad_()
        y = all_to_all_autograd(x, codec, *splits, backward_codec=backward)
        own = codec or Lossless()
        assert torch.equal(y, torch.cat([coded(sent[rank], own) for sent in every]))
        y.backward(torch.cat(gradients[rank]))
        assert x.grad is not None
        assert torch.equal(x.grad, torch.cat([coded(sent[rank], backward or own) for sent in gradients]))


def check_compiled(rank: int) -> None:
    """A whole graph, forward and backward, gives the bits of eager mode; a seed is no constant of it."""
    splits = incoming(rank), list(SENT[rank])

    def layer(x: Tensor, seed: int) -> Tensor:
        return all_to_all_autograd(x.sin(), RANDOM, *splits, seed=seed).square().sum()

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for seed in (3, 4, 5, 6):
        found = []
        for function in (layer, compiled):
            x = torch.cat(rows()[rank]).requires_grad_()
            y = function(x, seed)
            y.backward()
            found.append((y.detach(), x.grad))
        (y, gradient), (again, other) = found
        assert torch.equal(y, again)
        assert gradient is not None
        assert other is not None
        assert torch.equal(gradient, other)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2  # one for a number, one for all


def check_seeds(rank: int) -> None:
    """The same seed gives the same bits, another seed, receiver or direction others."""
    x = torch.randn(1, ROW).expand(WORLD, ROW).contiguous()
    dist.broadcast(x, 0)
    all_to_all(first := torch.empty_like(x), x, RANDOM, seed=1)
    for seed, same in ((1, True), (2, False), ((1 << 64) - 1, False)):
        all_to_all(again := torch.empty_like(x), x, RANDOM, seed=seed)
        assert torch.equal(first, again) is same
    assert not torch.equal(first[0], first[1]), "senders draw their own"
    found = [torch.empty_like(first) for _ in range(WORLD)]
    dist.all_gather(found, first)
    assert not torch.equal(found[0][0], found[1][0]), "receivers too"
    leaf = x.clone().requires_grad_()
    y = all_to_all_autograd(leaf, RANDOM, seed=(1 << 64) - 1)
    assert torch.equal(y, again)
    y.backward(x)
    assert leaf.grad is not None
    assert not torch.equal(leaf.grad, y)


def check_mismatches(rank: int) -> None:
    """All ranks hear of what differs, and go on."""
    odd = rank == 1
    splits = [2, 2, 2 + odd]
    x, out = torch.ones(sum(splits), ROW), torch.ones(6, ROW)
    text = message_of(ValueError, lambda: all_to_all(out, x, BY_ROW, [2, 2, 2], splits))
    assert text == "rank 2: output_split_sizes[1]: expected 3 as in input_split_sizes[2] of rank 1, got 2", text
    text = message_of(ValueError, lambda: all_to_all_autograd(x, BY_ROW, [2, 2, 2], splits))
    assert text == "rank 2: output_split_sizes[1]: expected 3 as in input_split_sizes[2] of rank 1, got 2", text
    x = torch.ones(WORLD * (2 if odd else 1), ROW)
    text = message_of(ValueError, lambda: all_to_all(torch.empty_like(x), x, Lossless()))
    assert text == "rank 0: output_split_sizes[1]: expected 2 as in input_split_sizes[0] of rank 1, got 1", text
    x = torch.ones(WORLD, ROW + odd)
    text = message_of(ValueError, lambda: all_to_all(torch.empty_like(x), x, BY_ROW))
    assert text == f"rank 1: shape of rows of input: expected ({ROW},) as on rank 0, got ({ROW + 1},)", text
    x = torch.ones(WORLD, ROW, dtype=torch.float16 if odd else torch.float32)
    text = message_of(ValueError, lambda: all_to_all(torch.empty_like(x), x, BY_ROW))
    assert text == "rank 1: dtype of rows of input: expected float32 as on rank 0, got float16", text
    x = torch.ones(WORLD, ROW)
    text = message_of(ValueError, lambda: all_to_all(torch.empty_like(x), x, COARSE if odd else BY_ROW))
    assert text == f"rank 1: codec of rows of input: expected {BY_ROW} as on rank 0, got {COARSE}", text
    text = message_of(ValueError, lambda: all_reduce(x, BY_ROW) if odd else all_to_all(torch.empty_like(x), x, BY_ROW))
    assert text == "rank 1: operation: expected all_to_all as on rank 0, got all_reduce SUM scatter", text
    if odd:
        x[0, 0] = torch.nan
    text = message_of(ValueError, lambda: all_to_all(torch.empty_like(x), x, BY_ROW, check_finite=True))
    assert text == "all_to_all: expected finite values, got NaN or infinity on ranks [1]", text
    check_rows(rank)


def run(rank: int, folder: Path) -> None:
    """All checks, in one of the processes."""
    torch.manual_seed(rank)
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=WORLD, timeout=PATIENCE)
    checks = [check_rows, check_layouts, check_tokens, check_gradients, check_seeds, check_mismatches]
    for check in [check_compiled] if "compiled" in sys.argv else checks:
        check(rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    processes.start(run, WORLD)
