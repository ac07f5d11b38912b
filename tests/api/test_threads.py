"""Threads: any number of them, from any number of callers, without the GIL, and after a fork."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import arrcomp
import checks
import child_programs
from arrcomp import BaseDelta, ErrorBounded, Lossless, SmaQ
from checks import Array

pytestmark = pytest.mark.threads

CODECS: list[arrcomp.Codec] = [Lossless(), ErrorBounded(abs=1e-3), ErrorBounded(rel=1e-3, speed="fast"), BaseDelta()]
CODECS += [SmaQ(rounding="nearest")]


def array_of_size(count: int, seed: int = 0) -> Array:
    """Normal values with a stretch of zeros, so that groups differ in length."""
    array = np.random.default_rng(seed).normal(0, 0.02, count).astype(np.float32)
    array[count // 3 : count // 2] = 0
    return array


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("count", [1, 4096, 40_001, 1_100_000])
def test_number_of_threads_does_not_show(codec: arrcomp.Codec, count: int) -> None:
    array = array_of_size(count)
    stream = checks.stream_of(array, codec, threads=1)
    expected = checks.array_of(stream, threads=1)
    for threads in range(2, 9):
        assert checks.stream_of(array, codec, threads=threads) == stream
        checks.check_same_bits(checks.array_of(stream, threads=threads), expected)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no such call")
def test_callers_keep_their_cpus() -> None:
    allowed = os.sched_getaffinity(0)
    checks.stream_of(array_of_size(4_000_000), Lossless(), threads=8)
    assert os.sched_getaffinity(0) == allowed


def test_callers_do_not_disturb_each_other() -> None:
    arrays = [array_of_size(20_000 + 5_000 * i, seed=i) for i in range(8)]
    expected = [checks.stream_of(array, CODECS[i % 3], threads=1) for i, array in enumerate(arrays)]

    def call(i: int) -> bool:
        stream = checks.stream_of(arrays[i % 8], CODECS[i % 8 % 3], threads=1 + i % 3)
        decoded = checks.array_of(stream, threads=1 + i % 3)
        return stream == expected[i % 8] and decoded.shape == arrays[i % 8].shape

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(160)))


def ticks_during(work: list[float], array: Array) -> int:
    """How often this thread gets to run in the middle of a call that another thread makes."""

    def call() -> None:
        begin = time.perf_counter()
        arrcomp.compress(array, Lossless(), threads=1)
        work.extend((begin, time.perf_counter()))

    thread = threading.Thread(target=call)
    ticks = []
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    begin, end = work[-2:]
    margin = (end - begin) / 4
    return sum(begin + margin < tick < end - margin for tick in ticks)


def test_other_threads_run_meanwhile() -> None:
    array = array_of_size(16_000_000)
    assert any(ticks_during([], array) for _ in range(20)), "the GIL is held during a call"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_works_after_fork() -> None:
    array = array_of_size(1_100_000)
    expected = checks.stream_of(array, Lossless(), threads=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python and JAX warn of any fork of a process with threads
        child = os.fork()
    if child == 0:
        same = False
        with contextlib.suppress(BaseException):
            decoded = checks.array_of(expected, threads=2)
            same = checks.stream_of(decoded, Lossless(), threads=2) == expected
        os._exit(0 if same else 1)
    assert child_programs.exit_code_of_fork(child, seconds=60) == 0
    assert checks.stream_of(array, Lossless(), threads=2) == expected
