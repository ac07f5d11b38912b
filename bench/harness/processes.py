"""Work of several processes that talk over Gloo, on this machine."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable
from typing import Any

_MOST_SECONDS = 3600


def in_processes(world: int, work: Callable[[], Any]) -> Any:
    """Call a function of a module in each of so many processes, one thread each; what it gives in the first one.

    Raises:
        RuntimeError: a process failed.
    """
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        arguments = [(rank, world, folder, results, work) for rank in range(world)]
        processes = [context.Process(target=_process, args=each) for each in arguments]
        for process in processes:
            process.start()
        for process in processes:
            process.join(_MOST_SECONDS)
    if any(process.exitcode for process in processes):
        raise RuntimeError(f"processes ended with {', '.join(str(process.exitcode) for process in processes)}")
    return results.get()


def _process(rank: int, world: int, folder: str, results: Any, work: Callable[[], Any]) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world)
    made = work()
    if rank == 0:
        results.put(made)  # small enough for the pipe
    dist.destroy_process_group()
