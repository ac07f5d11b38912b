"""What test_collectives.py runs in a process of its own: something is wrong with one of three processes."""

from __future__ import annotations

import datetime
import functools
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist

import arrcomp.torch.distributed as collectives
import processes
from arrcomp import QSGD, Lossless
from processes import PATIENCE, message_of

WORLD = 3
SOON = PATIENCE.total_seconds() / 3  # when errors have come that need no group's patience
GONE = ("imed out", "closed", "reset by peer", "Broken pipe")  # what Gloo says of who does not answer, or has ended
CODEC = QSGD(bits=4)


def check_differences(rank: int) -> None:
    """All ranks raise, say what differs, and can go on."""
    odd = rank == 1
    x = torch.ones(1001 if odd else 1000)
    text = message_of(ValueError, lambda: collectives.all_reduce(x, CODEC))
    assert text == "rank 1: shape of tensor: expected (1000,) as on rank 0, got (1001,)", text
    x = torch.ones(1000, dtype=torch.float16 if odd else torch.float32)
    text = message_of(ValueError, lambda: collectives.all_reduce(x, CODEC))
    assert text == "rank 1: dtype of tensor: expected float32 as on rank 0, got float16", text
    x = torch.ones(1000)
    text = message_of(ValueError, lambda: collectives.all_reduce(x, QSGD(bits=8) if odd else CODEC))
    assert text == f"rank 1: codec of tensor: expected {CODEC} as on rank 0, got {QSGD(bits=8)}"
    op = dist.ReduceOp.MAX if odd else dist.ReduceOp.SUM
    text = message_of(ValueError, lambda: collectives.all_reduce(x, CODEC, op))
    assert text == "rank 1: operation: expected all_reduce SUM scatter as on rank 0, got all_reduce MAX scatter", text
    action = collectives.broadcast if odd else collectives.all_reduce
    text = message_of(ValueError, lambda: action(x, CODEC))
    assert text == "rank 1: operation: expected all_reduce SUM scatter as on rank 0, got broadcast from 0", text
    many = [torch.ones(10 + i) for i in range(100)]
    if odd:
        many[99] = torch.ones(5)
    text = message_of(ValueError, lambda: collectives.all_reduce_coalesced(many, CODEC))
    assert text == "rank 1: shape of tensors[99]: expected (109,) as on rank 0, got (5,)", text
    text = message_of(ValueError, lambda: collectives.all_reduce_coalesced([y[odd:] for y in many], CODEC))
    assert text.endswith("; shape of tensors[2]: expected (12,) as on rank 0, got (11,); and 97 more differences"), text
    assert (x == 1).all()
    collectives.all_reduce(x, CODEC)
    assert (x == WORLD).all()


def check_finite(rank: int) -> None:
    """All ranks raise where one has a NaN, if that is asked for."""
    x = torch.ones(1000)
    if rank == 2:
        x[5] = torch.nan
    for action in (collectives.all_reduce, collectives.broadcast):
        text = message_of(ValueError, functools.partial(action, x, CODEC, check_finite=True))
        assert "expected finite values, got NaN or infinity on ranks [2]" in text
    collectives.all_reduce(x, CODEC)
    assert x[:512].isnan().all()
    assert (x[512:] == WORLD).all()


def check_alone(rank: int) -> None:
    """A rank with a wrong argument raises at once; the others do by the group's timeout."""
    group = dist.new_group(timeout=datetime.timedelta(seconds=3))
    x = torch.ones(1000)
    start = time.monotonic()
    if rank == 1:
        message_of(TypeError, lambda: collectives.all_reduce(x, "qsgd", group=group))  # type: ignore[arg-type]
    else:
        text = message_of(RuntimeError, lambda: collectives.all_reduce(x, CODEC, group=group))
        assert any(words in text for words in GONE), text
    assert time.monotonic() - start < SOON


def check_death(rank: int) -> None:
    """Where a process is gone, the others raise, in the middle of an operation too."""
    x = torch.randn(100_000)

    def reduced() -> None:
        work = collectives.all_reduce(x, Lossless(), async_op=True)
        if rank == 1:
            os._exit(0)
        assert work is not None
        work.wait()
        collectives.all_reduce(x, CODEC)

    start = time.monotonic()
    message_of(RuntimeError, reduced)
    assert time.monotonic() - start < SOON
    print(f"rank {rank} survived", flush=True)
    os._exit(0)  # without waiting for a group that is no more


def run(rank: int, folder: Path) -> None:
    """All checks, in one of the processes."""
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=WORLD, timeout=PATIENCE)
    check_differences(rank)
    check_finite(rank)
    check_alone(rank)
    check_death(rank)


if __name__ == "__main__":
    processes.start(run, WORLD)
