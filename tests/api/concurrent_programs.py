"""What test_concurrency.py runs in a process of its own: forks, process pools, and an end in the midst of work.

Usage: concurrent_programs.py PROGRAM    (exits with 0 where all is as it shall be)
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import sys
import threading
import time
import warnings
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import numpy as np

import arrcomp
import child_programs
from arrcomp import QSGD, ErrorBounded, Lossless

COUNT = 600_000  # several threads share it
CODECS = (Lossless(), ErrorBounded(abs=1e-3), QSGD(coding="entropy"))
SECONDS = 100  # for a child


def array(seed: int, count: int = COUNT) -> Any:
    """Normal values."""
    return np.random.default_rng(seed).normal(0, 0.02, count).astype(np.float32)


def digest(seed: int) -> str:
    """Of the streams of an array, and of what comes back from them."""
    found = hashlib.sha256()
    for codec in CODECS:
        stream = arrcomp.compress(array(seed), codec, threads=2).to_bytes()
        found.update(stream)
        found.update(arrcomp.decompress(arrcomp.from_bytes(stream), threads=2).tobytes())
    return found.hexdigest()


def fork_in_the_midst_of_a_pool() -> None:
    """Children made while other threads compress do so too, and write the same bytes."""
    warnings.simplefilter("ignore", DeprecationWarning)  # Python tells of any fork of a process with threads
    expected = [digest(seed) for seed in range(2)]
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(digest, seed % 2) for seed in range(24)]
        for number in range(6):
            child = os.fork()
            if child == 0:
                try:
                    same = digest(number % 2) == expected[number % 2]
                except BaseException:  # nothing may leave the child by the parent's way
                    same = False
                os._exit(0 if same else 1)
            assert child_programs.exit_code_of_fork(child, SECONDS) == 0
        assert [work.result() for work in running] == expected * 12


async def gathered(executor: Executor) -> list[str]:
    """Digests that an executor makes."""
    loop = asyncio.get_running_loop()
    return await asyncio.gather(*(loop.run_in_executor(executor, digest, seed) for seed in range(4)))


def run_in_executors() -> None:
    """Asyncio's executors, of threads and of processes."""
    expected = [digest(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert asyncio.run(gathered(threads)) == expected
    for method in ("spawn", "forkserver"):
        if method in multiprocessing.get_all_start_methods():
            with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as processes:
                assert asyncio.run(gathered(processes)) == expected


def end_beside_a_daemon() -> None:
    """The interpreter ends while daemons' threads compress: calls of any length, one after the other."""

    def work(count: int) -> None:
        x = array(0, count)
        started.release()
        while True:
            arrcomp.decompress(arrcomp.compress(x, Lossless(), threads=2), threads=2)

    started = threading.Semaphore(0)
    counts = (1000, 100_000, 300_000, 6_000_000)
    for count in counts:
        threading.Thread(target=work, args=(count,), daemon=True).start()
    for _ in counts:
        started.acquire()
    time.sleep(0.1)


def load_batches() -> None:
    """PyTorch's workers decompress, forked and spawned."""
    import torch
    from torch.utils.data import DataLoader

    warnings.simplefilter("ignore")  # PyTorch and Python tell of forks, and of few cores
    expected = torch.from_numpy(np.stack([array(seed) for seed in range(6)]))
    digest(0)  # threads have been at work here before there are workers
    streams: Any = Streams(6)
    for method in ("fork", "spawn"):
        loader: Any = DataLoader(streams, batch_size=2, num_workers=2, multiprocessing_context=method, timeout=SECONDS)
        assert torch.equal(torch.cat(list(loader)), expected)


class Streams:
    """A data set of streams, which workers read."""

    def __init__(self, count: int) -> None:
        self.streams = [arrcomp.compress(array(seed), Lossless()).to_bytes() for seed in range(count)]

    def __len__(self) -> int:
        return len(self.streams)

    def __getitem__(self, index: int) -> Any:
        return arrcomp.decompress(arrcomp.from_bytes(self.streams[index]), threads=2)


PROGRAMS = (fork_in_the_midst_of_a_pool, run_in_executors, end_beside_a_daemon, load_batches)

if __name__ == "__main__":
    {program.__name__: program for program in PROGRAMS}[sys.argv[1]]()
