"""What all-reduces of compressed gradients and all-to-alls of tokens send and take.

`python bench/collectives.py` prints the tables that results.py puts into RESULTS.md: a minute on two cores, with two
and four processes over Gloo.

Bytes on the wire are counted twice: from the shapes, and by the kernel's counter of the loopback interface. Step times
of larger groups are simulated from the bytes, the network's bandwidth, and the codec's speed as measured here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import arrcomp
import arrcomp.torch.distributed as collectives
from arrcomp import QSGD, Codec, FloatFormat
from arrcomp._dtypes import by_name
from arrcomp._format.spec import Spec
from arrcomp._methods.shards import Shards
from harness.processes import in_processes
from harness.section import Found, Section
from harness.tables import table
from harness.timing import median_seconds

ELEMENTS = 25_000_000  # of a gradient: ResNet-50's
SENT = 4_000_000  # elements of what is really sent here
WORLDS = (8, 16, 32, 64, 128, 256, 512, 1024)
GBITS = (10, 100, 400)
LATENCY = 10e-6  # seconds of a message, assumed
BITS = (8, 4, 2, 1)
_WIRE = """\
Bytes that each of W processes sends in an all-reduce, for each element of the tensor. Both algorithms send 2 (W - 1)
/ W of the compressed size. Each bucket of 512 values has two float32 numbers."""
_MEASURED = f"""\
Measured with {SENT:,} values, over Gloo on the loopback interface of this machine. The interface's counter includes
TCP headers and the 512 bytes with which the processes check that they agree. Loopback is as fast as memory, and the
processes share its cores. So these times show the cost of the codecs, not the gain on a network."""
_SIMULATED = f"""\
An all-reduce of {ELEMENTS:,} values (the gradient of ResNet-50). The time is the bytes divided by the bandwidth,
plus {1e6 * LATENCY:.0f} us for each of 2 (W - 1) messages, plus the codec's work; nothing overlaps. The codecs were
measured on one CPU thread:"""
_STEPS = """\
Times are in milliseconds. The bandwidth is that of one process in one direction, without other traffic. The codecs
have not been measured on GPUs yet."""
ROWS, ROW = 4096, 1024  # tokens that each process sends here, and values of a token
_EXCHANGED: dict[str, Codec | None] = {
    "bfloat16": None,
    "FloatFormat('fp8'), a scale a token": FloatFormat("fp8", scaling="bucket", bucket_size=ROW),
    "QSGD(bits=8), a scale a token": QSGD(bits=8, bucket_size=ROW),
    "QSGD(bits=4), a scale a token": QSGD(bits=4, bucket_size=ROW),
    "QSGD(bits=4), a scale for 128 values": QSGD(bits=4, bucket_size=128),
}
_EXCHANGE = f"""\
Each process has {ROWS:,} tokens of {ROW:,} Gaussian bfloat16 values, and sends an equal part to each, itself included:
over Gloo on the loopback interface of this machine, with one thread per process. Bytes are those that a process sends
to others, for each value that it sends to others; counted bytes include TCP headers and what the processes compare
before. The error is the root mean square of what a value is off by, relative to that of the values. Loopback is as fast
as memory, so the times show the cost of the codecs, not the gain on a network."""
ByWorld = dict[str, dict[str, dict[str, float]]]

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
        torch.empty(arrcomp.max_compressed_nbytes(x), dtype=torch.uint8),
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


def _all_reduces() -> list[list[float]]:
    """Bits, bytes sent by each process, and seconds, of real all-reduces; in each of the processes."""
    x = torch.from_numpy(np.random.default_rng(dist.get_rank()).normal(0, 1e-3, SENT).astype(np.float32))
    return [[bits, *_measured_call(partial(_all_reduce, codec=_codec(bits)), x)] for bits in (32, *BITS)]


def _all_reduce(x: torch.Tensor, codec: Codec | None) -> None:
    if codec is None:
        dist.all_reduce(x)
    else:
        collectives.all_reduce(x, codec)


def _measured_call(call: Callable[..., Any], *xs: torch.Tensor) -> tuple[float, float]:
    """Bytes that crossed the loopback interface for each process, and the median of seconds; a call gets copies."""
    nbytes, seconds = [], []
    for _ in range(5):
        copies = [x.clone() for x in xs]
        dist.barrier()
        before = int(_LOOPBACK.read_text())
        dist.barrier()  # nobody sends before all have read
        start = time.perf_counter()
        call(*copies)
        seconds.append(time.perf_counter() - start)
        dist.barrier()
        nbytes.append((int(_LOOPBACK.read_text()) - before) / dist.get_world_size())
    return statistics.median(nbytes), statistics.median(seconds)


def _all_to_alls() -> list[list[Any]]:
    """Name, bytes sent by each process, seconds and error, of real all-to-alls; in each of the processes."""
    shape, rank = (ROWS, ROW), dist.get_rank()
    x = torch.from_numpy(np.random.default_rng(rank).normal(0, 1, shape).astype(np.float32)).bfloat16()
    exact, out = torch.empty_like(x), torch.empty_like(x)
    dist.all_to_all_single(exact, x)
    found = []
    for name, codec in _EXCHANGED.items():
        if codec is None:
            figures = _measured_call(lambda: dist.all_to_all_single(out, x))
        else:
            figures = _measured_call(lambda codec=codec: collectives.all_to_all(out, x, codec))
        error = (out.double() - exact.double()).square().mean().sqrt() / exact.double().square().mean().sqrt()
        found.append([name, *figures, float(error)])
    return found


# Simulated


def step_seconds(codec: Codec | None, speeds: Speeds | None, world: int, gbits: float) -> float:
    """Seconds of an all-reduce of a gradient, one part after the other: no overlap of coding and sending is assumed."""
    wire = sent_nbytes(ELEMENTS, codec, world) / (gbits * 1e9 / 8) + 2 * (world - 1) * LATENCY
    if speeds is None:
        return wire
    return wire + ELEMENTS * (speeds.encode + speeds.reduce + speeds.decode)


# The sections


def measured(quick: bool = False) -> dict[str, Any]:
    """Bytes on the wire, calculated and counted, the codecs' speeds here, and simulated steps."""
    speeds = {bits: speeds_of(codec_of(bits)) for bits in BITS}
    worlds = (2,) if quick else (2, 4)
    codec = {
        _name(bits): {step: 4e-9 / value for step, value in asdict(found).items()} for bits, found in speeds.items()
    }
    parts = {"wire": wire(), "loopback": {f"{world} processes": _loopback(world) for world in worlds}}
    return {**parts, "codec": {"1 thread": codec}, **{f"{gbits} Gbit/s": _steps(speeds, gbits) for gbits in GBITS}}


def wire() -> ByWorld:
    """Bytes that a process sends, by those of a value."""
    worlds = (2, 4, 8, 64, 1024)
    return _by_world("sent", worlds, lambda bits, world: sent_nbytes(ELEMENTS, _codec(bits), world) / ELEMENTS)


def _steps(speeds: Mapping[int, Speeds], gbits: float) -> ByWorld:
    """Milliseconds of an all-reduce."""

    def milliseconds(bits: int, world: int) -> float:
        return 1e3 * step_seconds(_codec(bits), speeds.get(bits), world, gbits)

    return _by_world("time", WORLDS, milliseconds)


def _by_world(metric: str, worlds: Sequence[int], figure: Callable[[int, int], float]) -> ByWorld:
    """A figure for each number of processes and each codec."""
    return {f"W = {world}": {_name(bits): {metric: figure(bits, world)} for bits in (32, *BITS)} for world in worlds}


def _codec(bits: int) -> Codec | None:
    return None if bits == 32 else codec_of(bits)


def _loopback(world: int) -> dict[str, dict[str, float]]:
    found = {}
    for bits, nbytes, seconds in in_processes(world, _all_reduces):
        expected = sent_nbytes(SENT, _codec(int(bits)), world) / SENT
        found[_name(int(bits))] = {"calculated": expected, "counted": nbytes / SENT, "time": 1e3 * seconds}
    return found


def _name(bits: int) -> str:
    return "float32, ring" if bits == 32 else f"QSGD(bits={bits})"


def section(found: Found) -> str:
    """What was measured, as text."""
    parts = ["### Bytes on the wire", _WIRE, _wire_table(found["wire"])]
    parts += [_MEASURED, _loopback_table(found["loopback"]), "### Step times, simulated", _SIMULATED]
    parts += [_speed_table(found["codec"]["1 thread"]), _STEPS, _step_table(found)]
    return "\n\n".join([*parts, "![step times](collectives.png)"])


def _wire_table(found: Found) -> str:
    first, *others = (world.removeprefix("W = ") for world in found)
    rows = []
    for name in _methods(found):
        cells = [figures[name]["sent"] for figures in found.values()]
        less = found["W = 8"]["float32, ring"]["sent"] / found["W = 8"][name]["sent"]
        rows.append([name, *(f"{cell:.3f}" for cell in cells), f"{less:.1f}"])
    return table(["<sent as", f"W = {first}", *others, "less, W = 8"], rows)


def _methods(found: Found) -> list[str]:
    return list(next(iter(found.values())))


def _loopback_table(found: Found) -> str:
    rows = [
        [world.split()[0], name, f"{made['calculated']:.3f}", f"{made['counted']:.3f}", f"{made['time']:.1f}"]
        for world, names in found.items()
        for name, made in names.items()
    ]
    return table(["processes", "<sent as", "bytes, calculated", "bytes, counted", "ms"], rows)


def _speed_table(found: Found) -> str:
    rows = [[name, *(f"{value:.1f}" for value in figures.values())] for name, figures in found.items()]
    return table(["<codec", "encode, GB/s", "decode, add, encode, GB/s of summands", "decode, GB/s"], rows)


def _step_table(found: Found) -> str:
    networks = {name.split()[0]: steps for name, steps in found.items() if name.endswith("Gbit/s")}
    rows = [
        [gbits, name, *(f"{figures[name]['time']:.1f}" for figures in steps.values())]
        for gbits, steps in networks.items()
        for name in _methods(steps)
    ]
    return table(["Gbit/s", "<sent as", *next(iter(networks.values()))], rows)


def draw(found: Found, folder: Path) -> None:
    """Draw step times against the number of processes, a panel for each bandwidth."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FixedLocator, FuncFormatter

    networks = {name: steps for name, steps in found.items() if name.endswith("Gbit/s")}
    figure, panels = plt.subplots(1, len(networks), figsize=(13, 4.2), layout="constrained", sharex=True, sharey=True)
    colours = ("#555555", "#0072B2", "#D55E00", "#009E73", "#CC79A7")
    for panel, (title, steps) in zip(panels, networks.items(), strict=True):
        worlds = [int(world.removeprefix("W = ")) for world in steps]
        for name, colour in zip(_methods(steps), colours, strict=True):
            times = [figures[name]["time"] for figures in steps.values()]
            panel.plot(worlds, times, marker="o", markersize=4, color=colour, label=name)
        panel.set(xscale="log", yscale="log", xlabel="processes", title=title)
        panel.set_xticks(worlds, [str(world) for world in worlds], fontsize=8)
        panel.yaxis.set_major_locator(FixedLocator([1, 2, 5, 10, 20, 50, 100, 200]))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.minorticks_off()
        panel.grid(color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("ms for an all-reduce")
    panels[-1].legend(frameon=False, fontsize=9)
    title = "All-reduce of 25 million float32 gradients, simulated with codecs on one CPU thread"
    figure.suptitle(title, x=0.01, ha="left")
    figure.savefig(folder / "collectives.png", dpi=110)
    plt.close(figure)


def exchanged(quick: bool = False) -> dict[str, Any]:
    """Bytes, time and error of all-to-alls."""
    found: dict[str, Any] = {}
    for world in (2,) if quick else (2, 4):
        sent = ROWS * ROW * (world - 1) / world
        found[f"{world} processes"] = {
            name: {
                "calculated": 2.0 if codec is None else _part_nbytes(world, codec) * (world - 1) / sent,
                "counted": nbytes / sent,
                "time": 1e3 * seconds,
                "error": error,
            }
            for (name, nbytes, seconds, error), codec in zip(
                in_processes(world, _all_to_alls), _EXCHANGED.values(), strict=True
            )
        }
    return found


def _part_nbytes(world: int, codec: Codec) -> int:
    """Bytes of the payload for one process."""
    return Spec(codec, by_name("bfloat16"), (ROWS // world * ROW,)).capacity


def _exchange_text(found: Found) -> str:
    rows = [
        [world.split()[0], name, f"{made['calculated']:.3f}", f"{made['counted']:.3f}", f"{made['error']:.4f}",
         f"{made['time']:.1f}"]
        for world, names in found.items()
        for name, made in names.items()
    ]  # fmt: skip
    head = ["processes", "<sent as", "bytes, calculated", "bytes, counted", "error", "ms"]
    return "\n\n".join([_EXCHANGE, table(head, rows)])


EXCHANGE_SECTION = Section(
    "All-to-all of tokens",
    exchanged,
    _exchange_text,
    levels=("setting", "method", "metric"),
    units={**dict.fromkeys(("calculated", "counted"), "B a value"), "time": "ms"},
    versions=("arrcomp", "torch", "numpy"),
)
SECTION = Section(
    "Quantized collectives",
    measured,
    section,
    levels=("subject", "setting", "method", "metric"),
    units={
        **dict.fromkeys(("sent", "calculated", "counted"), "B a value"),
        "time": "ms",
        "encode": "GB/s",
        "reduce": "GB/s",
        "decode": "GB/s",
    },
    versions=("arrcomp", "torch", "numpy"),
    draw=draw,
)


if __name__ == "__main__":
    print(section(measured()), _exchange_text(exchanged()), sep="\n\n")
