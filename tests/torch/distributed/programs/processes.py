"""What the programs of the distributed tests share: processes, and what every all-reduce must keep."""

from __future__ import annotations

import datetime
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

# Of groups. A busy machine may stop a process for many seconds: who waits shorter tests the machine.
PATIENCE = datetime.timedelta(minutes=5)


def start(run: Callable[[int, Path], None], world: int) -> None:
    """Run a function in several processes, with its rank and the folder that the command line names."""
    # Forked, as each new Python would import PyTorch again.
    torch.multiprocessing.start_processes(_run, (run, Path(sys.argv[1])), nprocs=world, start_method="fork")  # type: ignore[attr-defined]
    print("passed")


def _run(rank: int, run: Callable[[int, Path], None], folder: Path) -> None:
    torch.set_num_threads(1)
    run(rank, folder)


def inputs(elements: int, world: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> list[torch.Tensor]:
    """A tensor for each rank, which all ranks know."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(elements, generator=generator).to(dtype) for _ in range(world)]


def summed(xs: Iterable[torch.Tensor]) -> torch.Tensor:
    """Their sum, in their order."""
    return functools.reduce(torch.add, xs)


def quantization_error(xs: Sequence[torch.Tensor], bits: int) -> float:
    """What the sum of tensors may be off by, each value of which `QSGD(bits)` codes, and their sum once more."""
    total = summed(x.double() for x in xs)
    spans = [float(x.double().max() - x.double().min()) for x in [*xs, total]]
    rounding = 8 * torch.finfo(xs[0].dtype).eps * float(total.abs().max()) if total.numel() else 0.0
    return 0.5001 * sum(spans) / (2**bits - 1) + rounding


def check_sum(actual: torch.Tensor, xs: Sequence[torch.Tensor], bits: int) -> None:
    """The sum within the quantizer's bound, and not exact: it was compressed."""
    total = sum(x.double() for x in xs)
    error = float((actual.double() - total).abs().max())
    assert 0 < error <= quantization_error(xs, bits), (error, quantization_error(xs, bits))


def check_same(x: torch.Tensor, group: Any = None) -> None:
    """The same bits on all ranks."""
    found = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
    dist.all_gather(found, x, group)
    for other in found:
        assert torch.equal(other.view(torch.uint8), x.view(torch.uint8))


def message_of(error: type[Exception], action: Callable[[], Any]) -> str:
    """The message of the error that an action raises, which it must."""
    try:
        action()
    except error as raised:
        return str(raised)
    raise AssertionError(f"no {error.__name__}")
