"""Time against size, threads and number of arrays: writes SCALING.md, scaling.json and scaling.png beside this file.

python bench/scaling.py                        minutes; needs 13 GB of memory
python bench/scaling.py --largest 28           arrays up to 2^28 bytes
python bench/scaling.py --output /tmp
python bench/scaling.py --redraw               picture and page again, from scaling.json
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import FloatFormat, _core
from arrcomp.codecs import Codec
from conditions import machine_found, version
from measure import median_seconds
from report import table

mpl.use("Agg")
import matplotlib.pyplot as plt

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

_HEAD = """\
# Time against size, threads and number

Written by `python bench/scaling.py`: normal float32 values of deviation 0.02, medians, into memory that was there."""


def values_of(nbytes: int) -> NDArray[np.float32]:
    """Weights as initialised; of more than 64 MiB the same ones again."""
    some = np.random.default_rng(0).standard_normal(min(nbytes, 1 << 26) // 4, np.float32) * np.float32(0.02)
    return np.resize(some, nbytes // 4)


def both_ways(x: NDArray[np.float32], codec: Codec, threads: int) -> dict[str, float]:
    """Seconds to encode and to decode an array."""
    buffer = np.zeros(arrcomp.max_compressed_size(x), np.uint8)
    back = np.zeros_like(x)

    def encode() -> Any:
        return arrcomp.compress(x, codec, out=buffer, threads=threads)

    def decode() -> Any:
        return arrcomp.decompress(c, out=back, threads=threads)

    c = encode()
    decode()
    return {"encode": median_seconds(encode), "decode": median_seconds(decode)}


def copied(x: NDArray[np.float32]) -> dict[str, float]:
    """Seconds to copy an array."""
    target = np.ones_like(x)
    seconds = median_seconds(lambda: np.copyto(target, x))
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
    found: Seconds = {name: {way: {} for way in WAYS} for name in CODECS}
    for threads in sorted({1 << i for i in range(cores.bit_length())} | {cores}):
        if threads <= cores:
            for name, codec in CODECS.items():
                _note(found[name], str(threads), both_ways(x, codec, threads))
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


# The page and the picture


def _size_rows(found: Seconds, way: str) -> list[list[str]]:
    sizes = list(next(iter(found.values()))[way])
    rows = []
    for name, seconds in found.items():
        speeds = [(1 << int(size)) / seconds[way][size] / 1e9 for size in sizes]
        power = f"{slope(seconds[way], STRAIGHT):.3f}" if int(sizes[-1]) > STRAIGHT + 2 else ""
        rows.append([name, *[f"{speed:.2f}" for speed in speeds], power])
    return rows


def _name_of_size(size: int) -> str:
    return f"{1 << size % 10} {('B', 'KiB', 'MiB', 'GiB')[size // 10]}"


def page(report: dict[str, Any]) -> str:
    """SCALING.md."""
    sizes = [_name_of_size(int(size)) for size in report["sizes"][COPY]["encode"]]
    parts = [_HEAD, "", *(f"- {key}: {value}" for key, value in report["conditions"].items())]
    parts += ["", "![Time against size, threads and number](scaling.png)"]
    for way in WAYS:
        title = f"## {way.capitalize()}: GB/s by size, one thread"
        note = "The last column is the power of the size that times grow with from 1 MiB on: 1 is a straight line."
        parts += ["", title, "", note, "", table(["<codec", *sizes, "power"], _size_rows(report["sizes"], way))]
    for title, key, unit in (
        ("Threads", "threads", f"GB/s of an array of {_name_of_size(THREADS_NBYTES.bit_length() - 1)}"),
        ("Many arrays in one call", "number", "microseconds for each array of 64 KiB, one thread"),
    ):
        parts += ["", f"## {title}: {unit}"]
        for way in WAYS:
            parts += ["", table([f"<{way}", *report[key][next(iter(CODECS))][way]], _rows(report[key], way, key))]
    return "\n".join([*parts, ""])


def _rows(found: Seconds, way: str, key: str) -> list[list[str]]:
    if key == "threads":
        return [[name, *[f"{THREADS_NBYTES / t / 1e9:.2f}" for t in seconds[way].values()]]
                for name, seconds in found.items()]  # fmt: skip
    return [[name, *[f"{1e6 * t / int(count):.1f}" for count, t in seconds[way].items()]]
            for name, seconds in found.items()]  # fmt: skip


def draw(report: dict[str, Any], path: Path) -> None:
    """Time against size, threads and number, encoding above and decoding below."""
    figure, axes = plt.subplots(2, 3, figsize=(15, 8.5), layout="constrained")
    panels = (("sizes", "bytes of the array", 2.0), ("threads", "threads", 1.0), ("number", "arrays of 64 KiB", 1.0))
    for line, way in zip(axes, WAYS, strict=True):
        for panel, (key, label, base) in zip(line, panels, strict=True):
            for name, seconds in report[key].items():
                x = [base ** int(size) if key == "sizes" else int(size) for size in seconds[way]]
                style = {"color": "#555555", "linestyle": ":"} if name == COPY else {"marker": "o", "markersize": 4}
                panel.plot(x, list(seconds[way].values()), label=name, **style)
            panel.set(xscale="log", yscale="log", xlabel=label, ylabel=f"seconds to {way}")
            panel.xaxis.get_major_locator().set_params(base=2 if key == "threads" else 10)
            panel.grid(color="#dddddd", linewidth=0.6)
            panel.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False)
    figure.suptitle("One thread, but for the middle; straight lines: time grows as the work does", x=0.01, ha="left")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def measured(largest: int) -> dict[str, Any]:
    """Everything, and under which conditions."""
    load = os.getloadavg()[0]
    conditions = machine_found() | {
        "versions": f"arrcomp {version('arrcomp')}, numpy {version('numpy')}",
        "date": datetime.now(UTC).date().isoformat(),
        "load average before": f"{load:.1f}",
    }
    return {
        "conditions": conditions,
        "sizes": by_size(range(SMALLEST, largest + 1, 2)),
        "threads": by_threads(THREADS_NBYTES),
        "number": by_number(MOST_ARRAYS),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or read what was measured; draw and write."""
    parser = argparse.ArgumentParser(description="Times codecs against size, threads and the number of arrays.")
    parser.add_argument("--largest", type=int, default=LARGEST, metavar="LOG2", help="largest array, log2 of bytes")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="folder (default: beside this file)")
    parser.add_argument("--redraw", action="store_true", help="picture and page again, from scaling.json")
    options = parser.parse_args(arguments)
    path = options.output / "scaling.json"
    if not options.redraw:
        path.write_text(json.dumps(measured(options.largest), indent=1) + "\n")
    report = json.loads(path.read_text())
    (options.output / "SCALING.md").write_text(page(report))
    draw(report, options.output / "scaling.png")


if __name__ == "__main__":
    main()
