"""Time against size, threads and number of arrays.

python bench/scaling.py                        minutes; needs 13 GB of memory
python bench/scaling.py --largest 28           arrays up to 2^28 bytes

Prints the tables that results.py puts into RESULTS.md.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import FloatFormat, _core
from arrcomp.codecs import Codec
from harness.tables import table
from harness.timing import median_seconds

CODECS: dict[str, Codec] = {
    "ErrorBounded(abs=1e-3)": arrcomp.ErrorBounded(abs=1e-3),
    "Lossless()": arrcomp.Lossless(),
    "QSGD(bits=4)": arrcomp.QSGD(bits=4),
    'FloatFormat("mxfp8_e4m3")': FloatFormat("mxfp8_e4m3"),
}
COPY = "copy"
SMALLEST, LARGEST = 10, 32  # binary logarithms of bytes
STRAIGHT = 20  # from these bytes on, times are compared with a straight line
THREADS_NBYTES = 1 << 28
MANY_NBYTES = 1 << 16
MOST_ARRAYS = 1 << 12
WAYS = ("encode", "decode")

Seconds = dict[str, dict[str, dict[str, float]]]  # by codec, way and size, threads or number

_ABOUT = """\
Normally distributed float32 values with a standard deviation of 0.02; medians; results go into memory that was
allocated before. A copy is `np.copyto`; with several threads, each copies a part. `python bench/scaling.py` prints only
these tables."""


def values_of(nbytes: int) -> NDArray[np.float32]:
    """Weights as initialised; of more than 64 MiB the same ones again."""
    some = np.random.default_rng(0).standard_normal(min(nbytes, 1 << 26) // 4, np.float32) * np.float32(0.02)
    return np.resize(some, nbytes // 4)


def both_ways(x: NDArray[np.float32], codec: Codec, threads: int) -> dict[str, float]:
    """Seconds to encode and to decode an array."""
    buffer = np.zeros(arrcomp.max_compressed_nbytes(x), np.uint8)
    back = np.zeros_like(x)

    def encode() -> Any:
        return arrcomp.compress(x, codec, out=buffer, threads=threads)

    def decode() -> Any:
        return arrcomp.decompress(c, out=back, threads=threads)

    c = encode()
    decode()
    return {"encode": median_seconds(encode), "decode": median_seconds(decode)}


def bits_of(codec: Codec) -> float:
    """Bits of each value that a codec stores."""
    x = values_of(1 << 24)
    return 8 * arrcomp.compress(x, codec).nbytes / x.size


def copied(x: NDArray[np.float32], threads: int = 1) -> dict[str, float]:
    """Seconds to copy an array, a part by each thread."""
    target = np.ones_like(x)
    if threads == 1:
        return dict.fromkeys(WAYS, median_seconds(lambda: np.copyto(target, x)))
    parts = list(zip(np.array_split(target, threads), np.array_split(x, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:
        seconds = median_seconds(lambda: list(pool.map(lambda part: np.copyto(*part), parts)))
    return dict.fromkeys(WAYS, seconds)


def by_size(sizes: Sequence[int]) -> Seconds:
    """One thread, arrays of 2^size bytes."""
    found: Seconds = {name: {way: {} for way in WAYS} for name in (*CODECS, COPY)}
    for size in sizes:
        x = values_of(1 << size)
        for name, codec in CODECS.items():
            _note(found[name], str(size), both_ways(x, codec, 1))
        _note(found[COPY], str(size), copied(x))
    return found


def by_threads(nbytes: int) -> Seconds:
    """One array, with 1 thread to as many as there are cores."""
    x, cores = values_of(nbytes), _core.available_threads()
    found: Seconds = {name: {way: {} for way in WAYS} for name in (*CODECS, COPY)}
    for threads in sorted({1 << i for i in range(cores.bit_length())} | {cores}):
        for name, codec in CODECS.items():
            _note(found[name], str(threads), both_ways(x, codec, threads))
        _note(found[COPY], str(threads), copied(x, threads))
    return found


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
        "rate": {name: {"bits": bits_of(codec)} for name, codec in CODECS.items()},
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
