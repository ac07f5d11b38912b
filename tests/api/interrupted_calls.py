"""What test_interruption.py runs in a process of its own: signals in the middle of long calls.

Usage: interrupted_calls.py CASE FOLDER    (writes a JSON object)
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("support", "independent")]

import numpy as np
import zstandard

import arrcomp
import checks
from arrcomp import QSGD, BaseDelta, Codec, Lossless, _core

Call = Callable[[], Any]

LONG = 0.7  # seconds of a processor's time that a call takes at least, where memory allows
FIRST, MOST = 1 << 25, 1 << 27  # bytes, about: less is not interrupted, and 600 MB are enough for a case
ATTEMPTS = 10
AT = 0.15  # of its processors' time after the start the signal comes
EARLY = 0.7  # of that time, at most: the call ended in its midst
FOLDER = Path(sys.argv[2])


@dataclass(frozen=True)
class Taken:
    """What a call took.

    Attributes:
        seconds, cpu: by the clock, and of all threads' processor time.
        result: what it gave; None where Ctrl-C ended it.
        reaction: seconds from the signal to the exception.
    """

    seconds: float
    cpu: float
    result: Any = None
    reaction: float | None = None


def normals(count: int, kind: Any, scale: float) -> Any:
    """Normal values, with repetitions far apart."""
    block = np.random.default_rng(0).normal(0, scale, 1 << 20).astype(kind)
    return np.tile(block, count >> 20)


def integers(count: int) -> Any:
    """Values of one byte."""
    return normals(count, np.int8, 9)


def floats(count: int) -> Any:
    """Values of two bytes, half as many."""
    return normals(count >> 1, np.float16, 0.02)


def compress(x: Any, codec: Codec, threads: int, seed: int | None = None) -> Call:
    """Of one array."""
    return lambda: arrcomp.compress(x, codec, seed=seed, threads=threads)


def decompress(x: Any, codec: Codec, threads: int) -> Call:
    """Of one array."""
    c = arrcomp.compress(x, codec)
    return lambda: arrcomp.decompress(c, threads=threads)


def compress_many(count: int) -> Call:
    """Small arrays, which threads take one by one."""
    arrays = list(floats(count).reshape(-1, 1 << 15))
    return lambda: arrcomp.compress_many(arrays, QSGD(rounding="stochastic"), seed=1, threads=2)


def compress_sum(count: int) -> Call:
    """Of many payloads."""
    terms = [arrcomp.compress(floats(1 << 23), QSGD(bits=4))] * (count >> 20)
    return lambda: arrcomp.compress_sum(terms, threads=1)


def save_framed(count: int) -> Call:
    """To a file, with Zstandard at a level that takes long."""
    c = arrcomp.compress(checks.gradients(count >> 2), QSGD())
    return lambda: arrcomp.save_file({"x": c}, FOLDER / "framed.safetensors", zstd_level=15, threads=1)


CALLS: dict[str, Callable[[int], Call]] = {
    "compress": lambda count: compress(integers(count), Lossless(), 1),
    "compress, 2 threads": lambda count: compress(integers(count), Lossless(), 2),
    "compress, base-delta": lambda count: compress(floats(count), BaseDelta(drop_bits=4, rounding="stochastic"), 1, 1),
    "decompress": lambda count: decompress(integers(count), Lossless(), 1),
    "decompress, 2 threads": lambda count: decompress(integers(count), Lossless(), 2),
    "decompress, buckets": lambda count: decompress(floats(count), QSGD(coding="entropy"), 1),
    "compress_many": compress_many,
    "compress_sum": compress_sum,
    "save_file, with a frame": save_framed,
}


def taken(call: Call, sent: list[float] | None = None) -> Taken:
    """Make a call, which Ctrl-C may end; `sent` gets the time of that."""
    start, cpu = time.monotonic(), time.process_time()
    result = reaction = None
    try:
        result = call()
    except KeyboardInterrupt:
        reaction = time.monotonic() - (sent or [start])[0]
    return Taken(time.monotonic() - start, time.process_time() - cpu, result, reaction)


@contextlib.contextmanager
def signals(seconds: list[float]) -> Iterator[list[float]]:
    """Send SIGINT to this process at these times, from another thread; gives the times when they were sent."""
    sent: list[float] = []
    over = threading.Event()

    def send() -> None:
        start = time.monotonic()
        for at in seconds:
            if over.wait(max(0.0, start + at - time.monotonic())):
                return
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()


def long_call(make: Callable[[int], Call]) -> tuple[Call, Taken]:
    """A call that takes long, and what it takes where nothing interrupts it."""
    count = FIRST
    while True:
        call = make(count)
        whole = taken(call)
        if whole.cpu >= LONG or count >= MOST:
            return call, whole
        count *= 2


def interrupt(name: str) -> dict[str, Any]:
    """End a call by Ctrl-C, again and again until one was ended in its midst."""
    call, whole = long_call(CALLS[name])
    found: dict[str, Any] = {"early": EARLY * whole.cpu, "attempts": []}
    for _ in range(ATTEMPTS):
        try:
            with signals([AT * whole.cpu]) as sent:
                part = taken(call, sent)
        except KeyboardInterrupt:  # after the call
            part = Taken(whole.seconds, whole.cpu)
        found["attempts"].append({"cpu": part.cpu, "reaction": part.reaction})
        if part.reaction is not None and part.cpu < EARLY * whole.cpu:
            break
    small = np.arange(10_000, dtype=np.float32)
    found["works afterwards"] = bool((arrcomp.decompress(arrcomp.compress(small)) == small).all())
    found["left behind"] = sorted(path.name for path in FOLDER.iterdir())
    return found


def unframe() -> dict[str, Any]:
    """Ctrl-C ends the wait for Zstandard's decoder, which here does not end by itself."""
    stream = arrcomp.compress(checks.gradients(1 << 21), QSGD()).to_bytes(zstd_level=1)
    over = threading.Event()

    class Endless:
        def __init__(self, **options: Any) -> None:
            pass

        def decompress(self, data: memoryview, **options: Any) -> bytes:
            assert threading.current_thread() is not threading.main_thread(), "who waits here, handles no signals"
            over.wait()
            return b""

    zstandard.ZstdDecompressor = Endless  # type: ignore[assignment, misc]
    with signals([0.2]) as sent:
        part = taken(lambda: arrcomp.decompress(arrcomp.from_bytes(stream)), sent)
    still = not over.is_set()
    over.set()
    return {"framed": checks.is_framed(stream), "reaction": part.reaction, "still going on": still}


def return_from_handler() -> dict[str, Any]:
    """A handler that returns changes nothing; it ran while the call did."""
    call, whole = long_call(CALLS["compress, 2 threads"])
    expected = whole.result.to_bytes()
    times: list[float] = []
    signal.signal(signal.SIGINT, lambda number, frame: times.append(time.monotonic()))
    same, during = True, 0
    for _ in range(ATTEMPTS):
        times.clear()
        with signals([fraction * whole.cpu for fraction in (0.05, 0.1, 0.15, 0.2, 0.25)]):
            result = call()
            end = time.monotonic()
        same = same and result.to_bytes() == expected
        # What waits for the call's end is handled right before it.
        during = sum(at < end - whole.cpu / 10 for at in times)
        if during >= 2:
            break
    return {"same": same, "handled during the call": during}


def fork_in_handler() -> dict[str, Any]:
    """The process that made the call gets what it would; the one that a handler forks learns that it does not."""
    call, whole = long_call(CALLS["compress"])
    expected = whole.result.to_bytes()
    parent = os.getpid()
    children: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: children.append(os.fork()))
    warnings.simplefilter("ignore")  # Python warns of a fork of a process with threads
    for _ in range(ATTEMPTS):
        children.clear()
        with signals([AT * whole.cpu]):
            message, result = "", None
            try:
                result = call()
            except RuntimeError as error:
                message = str(error)
            if os.getpid() != parent:
                os._exit(CHILD_CODES.index(told_of_fork(message)))
        outcomes = [CHILD_CODES[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] for child in children]
        if outcomes not in ([], ["too late"]):
            break
    return {"same": result is not None and result.to_bytes() == expected, "children": outcomes}


CHILD_CODES = ("told, and works", "told, and does not work", "too late", "another error")


def told_of_fork(message: str) -> str:
    """What became of the child, of CHILD_CODES."""
    if not message:
        return "too late"  # the call had ended
    if "forked" not in message:
        return "another error"
    small = np.arange(10_000)
    works = (arrcomp.decompress(arrcomp.compress(small)) == small).all()
    return "told, and works" if works else "told, and does not work"


CASES: dict[str, Call] = {
    "a frame": unframe,
    "a handler that returns": return_from_handler,
    "a handler that forks": fork_in_handler,
    **{name: lambda name=name: interrupt(name) for name in CALLS},  # type: ignore[misc]
}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent without a terminal may have it ignored
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    _core.use_instruction_set("plain")
    print(json.dumps(CASES[sys.argv[1]]()))
