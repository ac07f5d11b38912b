"""What all-reduces of compressed gradients send and take: writes COLLECTIVES.md and collectives.png beside this file.

    python bench/collectives.py                    a minute on two cores; two and four processes over Gloo
    python bench/collectives.py --output /tmp

Bytes on the wire are counted twice: from the shapes, and by the kernel's counter of the loopback interface. Step times
of larger groups are simulated from the bytes, the network's bandwidth, and the codec's speed as measured here.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
import torch.distributed as dist

import arrcomp
import arrcomp.torch.distributed as collectives
from arrcomp import QSGD, Codec
from arrcomp._dtypes import by_name
from arrcomp._format.spec import Spec
from arrcomp._methods.shards import Shards
from conditions import machine_found, version
from measure import median_seconds
from text_table import table

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter

ELEMENTS = 25_000_000  # of a gradient: ResNet-50's
SENT = 4_000_000  # elements of what is really sent here
WORLDS = (8, 16, 32, 64, 128, 256, 512, 1024)
GBITS = (10, 100, 400)
LATENCY = 10e-6  # seconds of a message, assumed
BITS = (8, 4, 2, 1)
_HEAD = "# Quantized collectives\n\nWritten by `python bench/collectives.py`."
_WIRE = """\
## Bytes on the wire

Bytes that each of W processes sends in an all-reduce, by the elements of the tensor. Both algorithms send the same:
2 (W - 1) / W of the compressed size, whose buckets of 512 values have two float32 numbers each."""
_MEASURED = f"""\
Measured: {SENT:,} values, over Gloo on this machine's loopback interface, whose counter includes TCP's headers and
the 512 bytes by which processes compare what they mean. Loopback is as fast as memory, and the processes share its
cores: these times say what the codecs cost, not what a network gains."""
_SIMULATED = f"""\
## Step times, simulated

An all-reduce of {ELEMENTS:,} values (ResNet-50's gradient): bytes by bandwidth, {1e6 * LATENCY:.0f} us for each of
2 (W - 1) messages, and the codec's work, one after the other. Codecs on one CPU thread, measured here:"""
_STEPS = """\
Milliseconds; a process's bandwidth is that of one direction, and there is no other traffic. The codecs' part on GPUs is
not yet measured."""
_LOOPBACK = Path("/sys/class/net/lo/statistics/tx_bytes")


def codec_of(bits: int) -> Codec:
    """The codec of these figures."""
    return QSGD(bits=bits)


def compressed_nbytes(elements: int, codec: Codec) -> int:
    """Bytes of a float32 array's payload, of a codec of fixed rate."""
    return Spec(codec, by_name("float32"), (elements,)).capacity


def sent_nbytes(elements: int, codec: Codec | None, world: int, algorithm: str = "scatter") -> float:
    """Bytes that a process sends in an all-reduce of float32: of its shards to the others, then of its sums to them."""
    if codec is None:
        return 2 * (world - 1) / world * 4 * elements
    shard = compressed_nbytes(Shards.of(elements, world, codec.granularity).size, codec)
    assert algorithm in ("scatter", "ring")  # which send the same
    return 2 * (world - 1) * shard


# Measured on this machine


@dataclass(frozen=True)
class Speeds:
    """Seconds for each element of a gradient.

    Attributes:
        encode: a shard for each process.
        reduce: decode, add and encode again, for each of the summands.
        decode: the sums of all shards.
    """

    encode: float
    reduce: float
    decode: float


def speeds_of(codec: Codec) -> Speeds:
    """Speeds of one thread on the CPU."""
    x = torch.from_numpy(np.random.default_rng(0).normal(0, 1e-3, 2**22).astype(np.float32))
    c = arrcomp.compress(x, codec, threads=1)
    parts, out, room = (
        [c] * 4,
        torch.empty_like(x),
        torch.empty(arrcomp.max_compressed_size(x), dtype=torch.uint8),
    )
    calls = (
        lambda: arrcomp.compress(x, codec, threads=1, out=room),
        lambda: arrcomp.compress_sum(parts, threads=1, out=room),
        lambda: arrcomp.decompress(c, out=out, threads=1),
    )
    seconds = []
    for call in calls:
        call()
        seconds.append(median_seconds(call) / x.numel())
    return Speeds(seconds[0], seconds[1] / len(parts), seconds[2])


def _process(rank: int, world: int, folder: str, results: multiprocessing.Queue[list[list[float]]]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world)
    x = torch.from_numpy(np.random.default_rng(rank).normal(0, 1e-3, SENT).astype(np.float32))
    rows = []
    for bits in (32, *BITS):
        codec = None if bits == 32 else codec_of(bits)
        rows.append([bits, *_measured_call(x, codec)])
    if rank == 0:
        results.put(rows)
    dist.destroy_process_group()


def _measured_call(x: torch.Tensor, codec: Codec | None) -> tuple[float, float]:
    """Bytes that crossed the loopback interface for each process, and the median of seconds."""
    nbytes, seconds = [], []
    for _ in range(5):
        y = x.clone()
        dist.barrier()
        before, start = int(_LOOPBACK.read_text()), time.perf_counter()
        if codec is None:
            dist.all_reduce(y)
        else:
            collectives.all_reduce(y, codec)
        seconds.append(time.perf_counter() - start)
        dist.barrier()
        nbytes.append((int(_LOOPBACK.read_text()) - before) / dist.get_world_size())
    return sorted(nbytes)[2], sorted(seconds)[2]


def measured(world: int) -> list[list[float]]:
    """Bits, bytes sent by each process, and seconds, of real all-reduces over Gloo."""
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[list[list[float]]] = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=_process, args=(rank, world, folder, results)) for rank in range(world)]
        for process in processes:
            process.start()
        rows = results.get(timeout=600)
        for process in processes:
            process.join()
    return rows


# Simulated


def step_seconds(codec: Codec | None, speeds: Speeds | None, world: int, gbits: float) -> float:
    """Seconds of an all-reduce of a gradient, one part after the other: no overlap of coding and sending is assumed."""
    wire = sent_nbytes(ELEMENTS, codec, world) / (gbits * 1e9 / 8) + 2 * (world - 1) * LATENCY
    if speeds is None:
        return wire
    return wire + ELEMENTS * (speeds.encode + speeds.reduce + speeds.decode)


def plot(speeds: dict[int, Speeds], path: Path) -> None:
    """Draw step times against the number of processes, a panel for each bandwidth."""
    figure, panels = plt.subplots(1, len(GBITS), figsize=(13, 4.2), layout="constrained", sharex=True, sharey=True)
    colours = {32: "#555555", 8: "#0072B2", 4: "#D55E00", 2: "#009E73", 1: "#CC79A7"}
    for panel, gbits in zip(panels, GBITS, strict=True):
        for bits in (32, *BITS):
            codec = None if bits == 32 else codec_of(bits)
            times = [1e3 * step_seconds(codec, speeds.get(bits), world, gbits) for world in WORLDS]
            name = "float32 ring" if bits == 32 else f"{bits} bit{'s' * (bits > 1)}"
            panel.plot(WORLDS, times, marker="o", markersize=4, color=colours[bits], label=name)
        panel.set(xscale="log", yscale="log", xlabel="processes", title=f"{gbits} Gbit/s")
        panel.set_xticks(WORLDS, [str(world) for world in WORLDS], fontsize=8)
        panel.yaxis.set_major_locator(FixedLocator([1, 2, 5, 10, 20, 50, 100, 200]))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.minorticks_off()
        panel.grid(color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("ms for an all-reduce")
    panels[-1].legend(frameon=False, fontsize=9)
    figure.suptitle(
        "All-reduce of 25 million float32 gradients, simulated with codecs on one CPU thread", x=0.01, ha="left"
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


# The page


def _wire_table() -> str:
    rows = []
    for bits in (32, *BITS):
        codec = None if bits == 32 else codec_of(bits)
        cells = [sent_nbytes(ELEMENTS, codec, world) / ELEMENTS for world in (2, 4, 8, 64, 1024)]
        share = sent_nbytes(ELEMENTS, codec, 8) / sent_nbytes(ELEMENTS, None, 8)
        rows.append([_name(bits), *[f"{cell:.3f}" for cell in cells], f"{1 / share:.1f}"])
    return table(["<sent as", "W = 2", "4", "8", "64", "1024", "less, W = 8"], rows)


def _measured_table(found: dict[int, list[list[float]]]) -> str:
    rows = []
    for world, measurements in found.items():
        for bits, nbytes, seconds in measurements:
            expected = sent_nbytes(SENT, None if bits == 32 else codec_of(int(bits)), world) / SENT
            rows.append(
                [str(world), _name(int(bits)), f"{expected:.3f}", f"{nbytes / SENT:.3f}", f"{1e3 * seconds:.1f}"]
            )
    return table(["processes", "<sent as", "bytes, calculated", "bytes, counted", "ms"], rows)


def _speed_table(speeds: dict[int, Speeds]) -> str:
    rows = [
        [_name(bits), *[f"{4e-9 / value:.1f}" for value in (found.encode, found.reduce, found.decode)]]
        for bits, found in speeds.items()
    ]
    return table(["<codec", "encode, GB/s", "decode, add, encode, GB/s of summands", "decode, GB/s"], rows)


def _step_table(speeds: dict[int, Speeds]) -> str:
    rows = []
    for gbits in GBITS:
        for bits in (32, *BITS):
            codec = None if bits == 32 else codec_of(bits)
            times = [1e3 * step_seconds(codec, speeds.get(bits), world, gbits) for world in WORLDS]
            rows.append([str(gbits), _name(bits), *[f"{value:.1f}" for value in times]])
    return table(["Gbit/s", "<sent as", *[f"W = {world}" for world in WORLDS]], rows)


def _name(bits: int) -> str:
    return "float32, ring" if bits == 32 else f"QSGD(bits={bits})"


def markdown(speeds: dict[int, Speeds], found: dict[int, list[list[float]]]) -> str:
    """The page."""
    lines = [f"- {name}: {value}" for name, value in machine_found().items()]
    lines += [f"- versions: {', '.join(f'{name} {version(name)}' for name in ('arrcomp', 'torch', 'numpy'))}"]
    lines += [f"- date: {datetime.now(UTC).date().isoformat()}", f"- load average: {os.getloadavg()[0]:.1f}"]
    sections = [_HEAD, "\n".join(lines), _WIRE, _wire_table(), _MEASURED, _measured_table(found)]
    sections += [_SIMULATED, _speed_table(speeds), _STEPS, _step_table(speeds), "![step times](collectives.png)"]
    return "\n\n".join(section.rstrip() for section in sections) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, measure, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, metavar="FOLDER", help="for the page")
    options = parser.parse_args(arguments)
    speeds = {bits: speeds_of(codec_of(bits)) for bits in BITS}
    found = {world: measured(world) for world in (2, 4)}
    plot(speeds, options.output / "collectives.png")
    (options.output / "COLLECTIVES.md").write_text(markdown(speeds, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
