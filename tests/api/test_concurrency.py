"""Many callers at once, in threads and in processes: the same bytes as of one alone, and no process ends badly."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import QSGD, ErrorBounded, Lossless
from checks import Array

pytestmark = pytest.mark.threads

PROGRAM = Path(__file__).with_name("concurrent_programs.py")
TIMEOUT = 300  # seconds; a program takes 10
CALLERS = 8
CODECS = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]


def values(count: int) -> Array:
    """Normal values with a stretch of zeros, so that groups differ in length."""
    x = np.random.default_rng(0).normal(0, 0.02, count).astype(np.float32)
    x[count // 3 : count // 2] = 0
    return x


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What work(caller) gives to each of the callers, who begin together."""
    barrier = Barrier(CALLERS)

    def call(caller: int) -> Any:
        barrier.wait(60)
        return work(caller)

    with ThreadPoolExecutor(CALLERS) as pool:
        return list(pool.map(call, range(CALLERS)))


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_callers_share_an_array_and_a_stream(codec: arrcomp.Codec, record_property: Callable[[str, int], None]) -> None:
    x = values(300_000)
    stream = checks.stream_of(x, codec, threads=1)
    expected = checks.array_of(stream, threads=1)
    shared = arrcomp.from_bytes(stream)
    assert set(at_once(lambda caller: checks.stream_of(x, codec, threads=1 + caller % 4))) == {stream}
    for decoded in at_once(lambda caller: arrcomp.decompress(shared, threads=1 + caller % 4)):
        checks.check_same_bits(decoded, expected)
    record_property("calls", 2 * CALLERS)


def test_callers_share_a_frame_that_nobody_has_opened() -> None:
    pytest.importorskip("zstandard")
    x = checks.gradients(1 << 21)
    stream = arrcomp.compress(x, QSGD()).to_bytes(zstd_level=1)
    assert checks.is_framed(stream)
    shared = arrcomp.from_bytes(stream)
    expected = checks.array_of(stream)
    for decoded in at_once(lambda caller: arrcomp.decompress(shared, threads=1)):
        checks.check_same_bits(decoded, expected)


def test_callers_compress_and_decompress_side_by_side() -> None:
    x = values(1_100_000)
    codecs = (Lossless(), ErrorBounded(rel=1e-3), QSGD(coding="entropy"))
    streams = [checks.stream_of(x, codec, threads=1) for codec in codecs]
    arrays = [checks.array_of(stream, threads=1) for stream in streams]

    def work(caller: int) -> None:
        out = np.empty_like(x)
        room = np.empty(arrcomp.max_compressed_nbytes(x), np.uint8)
        for turn in range(6):
            which = (caller + turn) % len(codecs)
            if (caller + turn) % 2:
                compressed = arrcomp.compress(x, codecs[which], out=room, threads=4)
                assert compressed.to_bytes() == streams[which]
            else:
                arrcomp.decompress(arrcomp.from_bytes(streams[which]), out=out, threads=4)
                checks.check_same_bits(out, arrays[which])

    at_once(work)


def test_callers_compress_many_and_add() -> None:
    tree = {str(i): values(1000 * (i + 1)) for i in range(40)}
    codec = QSGD(bits=4)
    compressed = arrcomp.compress_many(tree, codec, threads=1)
    streams = [c.to_bytes() for c in compressed.values()]
    terms = [compressed["30"]] * 3
    total = arrcomp.compress_sum(terms, threads=1).to_bytes()

    def work(caller: int) -> str:
        found = hashlib.sha256()
        for c in arrcomp.compress_many(tree, codec, threads=1 + caller % 4).values():
            found.update(c.to_bytes())
        found.update(arrcomp.compress_sum(terms, threads=1 + caller % 4).to_bytes())
        return found.hexdigest()

    assert set(at_once(work)) == {hashlib.sha256(b"".join([*streams, total])).hexdigest()}


def run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM, program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == 0, done.stderr


# A child has the locks of dictionaries that other threads were reading: without a GIL CPython 3.13 hangs on them.
@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="a fork beside threads needs the GIL")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.no_tsan
def test_a_fork_in_the_midst_of_a_pools_life() -> None:
    run("fork_in_the_midst_of_a_pool")


def test_executors_of_threads_and_processes() -> None:
    run("run_in_executors")


def test_the_interpreter_ends_beside_daemons_that_compress(record_property: Callable[[str, int], None]) -> None:
    times = 3
    for _ in range(times):
        run("end_beside_a_daemon")
    record_property("ends", times)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.no_tsan
@pytest.mark.full
def test_workers_of_a_data_loader() -> None:
    pytest.importorskip("torch")
    run("load_batches")
