"""Time against size, threads and number of arrays.

python bench/scaling.py                        minutes; needs 13 GB of memory
python bench/scaling.py --largest 28           arrays up to 2^28 bytes

Prints the tables that results.py puts into RESULTS.md.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import FloatFormat, _core
from arrcomp.codecs import Codec
from harness.tables import table
from harness.timing import Call, by_turns, median_seconds

CODECS: dict[str, Codec] = {
    "ErrorBounded(abs=1e-3)": arrcomp.ErrorBounded(abs=1e-3),
    "Lossless()": arrcomp.Lossless(),
    "QSGD(bits=4)": arrcomp.QSGD(bits=4),
    'FloatFormat("mxfp8_e4m3")': FloatFormat("mxfp8_e4m3"),
}
COPY = "copy"
AT_ONCE = ", at once"
SMALLEST, LARGEST = 10, 32  # binary logarithms of bytes
STRAIGHT = 20  # from these bytes on, times are compared with a straight line
THREADS_NBYTES = 1 << 28
MANY_NBYTES = 1 << 16
MOST_ARRAYS = 1 << 12
WAYS = ("encode", "decode")
_ROUNDS = 15

Seconds = dict[str, dict[str, dict[str, float]]]  # by codec, way and size, threads or number

_ABOUT = """\
Normally distributed float32 values with a standard deviation of 0.02; medians; results go into memory that was
allocated before. A copy is `np.copyto`; with several threads, each copies a part. "At once" is several calls with one
thread each, at the same time, each for a part of the array: what the machine has for so many threads. Calls with
several threads and those with one take turns. `python bench/scaling.py` prints only these tables."""


def values_of(nbytes: int) -> NDArray[np.float32]:
    """Weights as initialised; of more than 64 MiB the same ones again."""
    some = np.random.default_rng(0).standard_normal(min(nbytes, 1 << 26) // 4, np.float32) * np.float32(0.02)
    return np.resize(some, nbytes // 4)


def both_calls(x: NDArray[np.float32], codec: Codec, threads: int = 1) -> dict[str, Call]:
    """Calls that encode and decode an array, each made once before."""
    buffer = np.zeros(arrcomp.max_compressed_nbytes(x), np.uint8)
    back = np.zeros_like(x)

    def encode() -> Any:
        return arrcomp.compress(x, codec, out=buffer, threads=threads)

    def decode() -> Any:
        return arrcomp.decompress(c, out=back, threads=threads)

    c = encode()
    decode()
    return {"encode": encode, "decode": decode}


def both_ways(x: NDArray[np.float32], codec: Codec) -> dict[str, float]:
    """Seconds to encode and to decode an array, with one thread."""
    return {way: median_seconds(call) for way, call in both_calls(x, codec).items()}


def copy_call(x: NDArray[np.float32]) -> Call:
    """A call that copies an array."""
    target = np.ones_like(x)
    return lambda: np.copyto(target, x)


def at_once(pool: Executor, calls: Sequence[Call]) -> Call:
    """A call that makes several at the same time."""
    return lambda: list(pool.map(lambda call: call(), calls))


def by_size(sizes: Sequence[int]) -> Seconds:
    """One thread, arrays of 2^size bytes."""
    found: Seconds = {name: {way: {} for way in WAYS} for name in (*CODECS, COPY)}
    for size in sizes:
        x = values_of(1 << size)
        for name, codec in CODECS.items():
            _note(found[name], str(size), both_ways(x, codec))
        _note(found[COPY], str(size), dict.fromkeys(WAYS, median_seconds(copy_call(x))))
    return found


def by_threads(nbytes: int) -> Seconds:
    """One array, with 1 thread to as many as there are cores."""
    x, cores = values_of(nbytes), _core.available_threads()
    numbers = sorted({1 << i for i in range(cores.bit_length())} | {cores})
    found: Seconds = {}
    with ThreadPoolExecutor(cores) as pool:
        for name, codec in CODECS.items():
            parts = {n: [both_calls(part, codec) for part in np.array_split(x, n)] for n in numbers}
            whole = {n: both_calls(x, codec, n) for n in numbers}
            for way in WAYS:
                together = {n: at_once(pool, [calls[way] for calls in parts[n]]) for n in numbers}
                found.setdefault(name, {})[way] = _by_turns({n: whole[n][way] for n in numbers})
                found.setdefault(name + AT_ONCE, {})[way] = _by_turns(together)
        copies = {n: at_once(pool, [copy_call(part) for part in np.array_split(x, n)]) for n in numbers}
        found[COPY] = dict.fromkeys(WAYS, _by_turns(copies))
    return found


def _by_turns(calls: dict[int, Call]) -> dict[str, float]:
    """Median seconds of calls that take turns."""
    samples = by_turns({str(number): call for number, call in calls.items()}, _ROUNDS, warm=1)
    return {number: statistics.median(seconds) for number, seconds in samples.items()}


def by_number(most: int) -> Seconds:
    """Several arrays of one size in one call, one thread."""
    found: Seconds = {name: {way: {} for way in WAYS} for name in CODECS}
    arrays = list(values_of(most * MANY_NBYTES).reshape(most, -1))
    for count in [1 << i for i in range(0, most.bit_length(), 2)]:
        for name, codec in CODECS.items():
            _note(found[name], str(count), _many(arrays[:count], codec))
    return found


def _many(arrays: list[NDArray[np.float32]], codec: Codec) -> dict[str, float]:
    c = arrcomp.compress_many(arrays, codec, threads=1)
    arrcomp.decompress_many(c, threads=1)
    return {
        "encode": median_seconds(lambda: arrcomp.compress_many(arrays, codec, threads=1)),
        "decode": median_seconds(lambda: arrcomp.decompress_many(c, threads=1)),
    }


def _note(found: dict[str, dict[str, float]], key: str, seconds: dict[str, float]) -> None:
    for way in WAYS:
        found[way][key] = seconds[way]


def slope(seconds: dict[str, float], least: int) -> float:
    """The power of the size that times grow with, from 2^least bytes on, by least squares of logarithms."""
    points = [(float(size), np.log2(value)) for size, value in seconds.items() if int(size) >= least]
    return float(np.polyfit(*zip(*points, strict=True), 1)[0])


def measured(largest: int = LARGEST, threads_nbytes: int = THREADS_NBYTES, most: int = MOST_ARRAYS) -> dict[str, Any]:
    """Everything, with arrays of up to 2^largest bytes."""
    return {
        "sizes": by_size(range(SMALLEST, largest + 1, 2)),
        "threads size": {"array": {"nbytes": threads_nbytes}},
        "threads": by_threads(threads_nbytes),
        "number": by_number(most),
    }


# The tables


def section(found: dict[str, Any]) -> str:
    """What was measured, as text."""
    sizes = [size_name(int(size)) for size in found["sizes"][COPY]["encode"]]
    powers = "The last column is the power of the size that times grow with from 1 MiB on: 1 is a straight line."
    threads = f"GB/s of an array of {size_name(_threads_nbytes(found).bit_length() - 1)}, by threads"
    parts = [_ABOUT, f"GB/s by size, one thread. {powers}"]
    parts += [table([f"<{way}", *sizes, "power"], _size_rows(found["sizes"], way)) for way in WAYS]
    for title, key in (
        (threads, "threads"),
        ("Microseconds for each of several arrays of 64 KiB in one call", "number"),
    ):
        parts += [f"{title}:"]
        parts += [table([f"<{way}", *found[key][next(iter(CODECS))][way]], _rows(found, way, key)) for way in WAYS]
    return "\n\n".join(parts)


def _threads_nbytes(found: dict[str, Any]) -> int:
    return int(found["threads size"]["array"]["nbytes"])


def size_name(size: int) -> str:
    """2^size bytes in words, as 16 KiB."""
    return f"{1 << size % 10} {('B', 'KiB', 'MiB', 'GiB')[size // 10]}"


def _size_rows(found: Seconds, way: str) -> list[list[str]]:
    sizes = list(next(iter(found.values()))[way])
    rows = []
    for name, seconds in found.items():
        speeds = [(1 << int(size)) / seconds[way][size] / 1e9 for size in sizes]
        power = f"{slope(seconds[way], STRAIGHT):.3f}" if int(sizes[-1]) > STRAIGHT + 2 else ""
        rows.append([name, *[f"{speed:.2f}" for speed in speeds], power])
    return rows


def _rows(found: dict[str, Any], way: str, key: str) -> list[list[str]]:
    def cell(count: str, seconds: float) -> str:
        if key == "threads":
            return f"{_threads_nbytes(found) / seconds / 1e9:.2f}"
        return f"{1e6 * seconds / int(count):.1f}"

    return [[name, *itertools.starmap(cell, times[way].items())] for name, times in found[key].items()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Times codecs against size, threads and the number of arrays.")
    parser.add_argument("--largest", type=int, default=LARGEST, metavar="LOG2", help="largest array, log2 of bytes")
    options = parser.parse_args(arguments)
    print(section(measured(options.largest)))


if __name__ == "__main__":
    main()
