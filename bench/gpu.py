"""Times the CUDA kernels on an NVIDIA GPU, with PyTorch or CuPy: every codec, by size, beside a copy.

Each task is a process of its own, so that a fault loses one. Every case is checked first: the GPU's payload is the
CPU's, byte for byte, and the GPU decodes it to the same array. Then encoding and decoding into preallocated memory are
timed by device events, medians of 10 to 20. In front of each sample runs a copy larger than the L2 cache, and the calls
of a sample go around equal arrays, so that nothing is read from the cache and the device does not wait for the host
(`*`: it may have). Beside that stand the kernels alone, as PyTorch's profiler times them, and the public call with its
allocations, until the device is done. "% copy" compares bytes of the array plus bytes of the payload in a second with
the bytes that a device-to-device copy reads plus writes in the same process. (A bound relative to the range reads the
array twice, which counts once.)

Results are appended to a file as lines of JSON; bench/gpu_page.py writes the page from them.

Exit status: 0; 1 where a check failed or a task did; 2 without a GPU.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import _core
from arrcomp._arrays.numpy import numpy_bytes
from kernels import lines, others
from kernels.activations import measure_activations
from kernels.cases import (
    CASES,
    HEADLINE,
    MEBIBYTE,
    REHEARSED_SIZES,
    SEED,
    SIZES,
    WEIGHTS,
    Case,
    normal,
    sizes_of,
    values_of,
)
from kernels.device import MOST_CALLS, Gpu, describe, framework, machine_name
from kernels.lines import Line
from kernels.slots import Slot, WrongResultError, checked_slots
from kernels.sums import measure_sums

Array = NDArray[Any]
Call = Callable[[], None]

TASK_SECONDS = 120.0


@dataclass(frozen=True)
class Extent:
    """How much is measured.

    Attributes:
        largest: bytes of the largest array.
        common: bytes of the arrays of what is measured at one size.
        copied: bytes of the copy.
        samples: of each time.
        rehearse: whether the CPU stands in for the GPU.
    """

    largest: int = SIZES[-1]
    common: int = 256 * MEBIBYTE
    copied: int = 512 * MEBIBYTE
    samples: int = 20
    rehearse: bool = False

    def sizes(self, case: Case) -> list[int]:
        """Bytes of a case's arrays."""
        return list(REHEARSED_SIZES) if self.rehearse else sizes_of(case, self.largest)


FULL = Extent()
QUICK = Extent(largest=64 * MEBIBYTE, common=64 * MEBIBYTE, copied=256 * MEBIBYTE, samples=10)
REHEARSED = Extent(largest=1 << 18, common=1 << 18, copied=1 << 18, samples=2, rehearse=True)


# --- what is measured


def arrays_of(gpu: Gpu, values: Array) -> int:
    """How many arrays of this size calls go around, so that the cache holds none."""
    wanted = math.ceil(4 * int(gpu.framework.machine()["l2_nbytes"]) / values.nbytes)
    return min(max(wanted, 1), MOST_CALLS)


def measure_case(gpu: Gpu, name: str, nbytes: int) -> Line:
    """Time one case with arrays of so many bytes, encoded and decoded in turn, once they are checked."""
    case = CASES[name]
    values = values_of(case.data, nbytes)
    line: Line = {"kind": "case", "case": name, "nbytes": values.nbytes}
    try:
        slots = checked_slots(gpu.framework, case.codec, [values])
    except WrongResultError as error:
        return line | {"wrong": str(error)}
    for _ in range(arrays_of(gpu, values) - 1):  # equal arrays, so the check holds for them
        slots.append(Slot(gpu.framework, case.codec, values, slots[0].scratch))
        slots[-1].encode()
    payload = slots[0].nbytes
    line |= {"payload_nbytes": payload, "ratio": nbytes / payload}
    calls = public_calls(gpu, values, case.codec)
    for half in ("encode", "decode"):
        work = [getattr(slot, half) for slot in slots]
        timing = gpu.time(work)
        line[half] = timing | {
            "bytes_per_second": nbytes / timing["seconds"],
            "moved": (nbytes + payload) / timing["seconds"],
            "kernels": gpu.kernels(work),
            "call": gpu.time_on_host(calls[half], count=1)["seconds"],
        }
    return line


def public_calls(gpu: Gpu, values: Array, codec: arrcomp.Codec) -> dict[str, Call]:
    """What users call, until the device is done."""
    x = gpu.framework.array(values)
    compressed = arrcomp.compress(x, codec, seed=SEED)

    def encode() -> None:
        arrcomp.compress(x, codec, seed=SEED)
        gpu.framework.synchronize()

    def decode() -> None:
        arrcomp.decompress(compressed)
        gpu.framework.synchronize()

    return {"encode": encode, "decode": decode}


def measure_latencies(gpu: Gpu) -> Iterator[Line]:
    """Seconds on the host of public calls for 1 KiB. All but the last only enqueue."""
    codec = CASES[HEADLINE].codec
    x = gpu.framework.array(normal(np.random.default_rng(0), 256))
    compressed = arrcomp.compress(x, codec)

    def both() -> None:
        arrcomp.decompress(arrcomp.compress(x, codec))
        gpu.framework.synchronize()

    calls: dict[str, Callable[[], Any]] = {
        "x + 1": lambda: x + 1,
        "compress": lambda: arrcomp.compress(x, codec),
        "decompress": lambda: arrcomp.decompress(compressed),
        "both, waiting": both,
    }
    for name, call in calls.items():
        yield {"kind": "call", "what": f"{name}, 1 KiB"} | gpu.time_on_host(call, count=50)


def measure_many(gpu: Gpu, count: int) -> Iterator[Line]:
    """Seconds for so many arrays of 4 KiB until the device is done: together, and one by one."""
    codec, rng = CASES[HEADLINE].codec, np.random.default_rng(0)
    xs = [gpu.framework.array(normal(rng, 1024)) for _ in range(count)]
    small = arrcomp.compress_many(xs, codec)

    def waiting(work: Callable[[], Any]) -> Call:
        def call() -> None:
            work()
            gpu.framework.synchronize()

        return call

    calls = {
        "compress_many": waiting(lambda: arrcomp.compress_many(xs, codec)),
        "compress each": waiting(lambda: [arrcomp.compress(x, codec) for x in xs]),
        "decompress_many": waiting(lambda: arrcomp.decompress_many(small)),
        "decompress each": waiting(lambda: [arrcomp.decompress(c) for c in small]),
    }
    for name, call in calls.items():
        yield {"kind": "call", "what": f"{name}, {count} arrays of 4 KiB"} | gpu.time_on_host(call, count=3)


def measure_graph(gpu: Gpu, nbytes: int) -> Iterator[Line]:
    """Capture encoding and decoding in a graph; replay it on the same data, and for encoding on new data."""
    codec, line = CASES[HEADLINE].codec, {"kind": "call", "what": "replay of a graph: encode + decode, 4 MiB"}
    first, second = np.split(values_of(WEIGHTS, 2 * nbytes), 2)
    slot, expected = Slot(gpu.framework, codec, first), arrcomp.compress(first, codec)

    def both() -> None:
        slot.encode()
        slot.decode()

    def check_replay(wanted: arrcomp.Compressed) -> None:
        slot.poison()
        gpu.framework.synchronize()
        replay()
        gpu.framework.synchronize()
        slot.check_encoded(wanted)

    try:
        slot.check(first)
        replay = gpu.framework.capture(both)
        for _ in range(2):
            check_replay(expected)
            slot.check_decoded(arrcomp.decompress(expected))
        gpu.framework.fill(slot.source, numpy_bytes(second))
        check_replay(arrcomp.compress(second, codec))
    except WrongResultError as error:
        yield line | {"wrong": str(error)}
        return
    yield line | gpu.time_on_host(replay, count=10)


def measure_other(gpu: Gpu, name: str, extent: Extent) -> Iterator[Line]:
    """What a user would pick instead, by size; a line that says why where it is not there."""
    for nbytes in extent.sizes(Case(CASES[HEADLINE].codec)):
        yield others.measure(gpu, name, values_of(WEIGHTS, nbytes))


# --- tasks, each a process


def measure_machine(gpu: Gpu) -> Iterator[Line]:
    """The machine, and its copy."""
    yield {"kind": "machine", "copied": gpu.copy_nbytes} | describe(gpu.framework)


def tasks(extent: Extent) -> dict[str, Callable[[Gpu], Iterator[Line]]]:
    """What measures, by name."""
    each: dict[str, Callable[[Gpu], Iterator[Line]]] = {"machine": measure_machine}
    for name, case in CASES.items():
        each[f"case {name}"] = lambda gpu, name=name, case=case: (
            measure_case(gpu, name, nbytes) for nbytes in extent.sizes(case)
        )
    each["sums"] = lambda gpu: measure_sums(gpu, extent.common // 4)
    each["activations"] = lambda gpu: measure_activations(gpu, extent.common // 4)
    each["calls"] = measure_latencies
    each["many"] = lambda gpu: measure_many(gpu, 20 if extent.rehearse else 1000)
    each["graph"] = lambda gpu: measure_graph(gpu, min(4 * MEBIBYTE, extent.common))
    for name in others.OTHERS:
        each[f"other {name}"] = lambda gpu, name=name: measure_other(gpu, name, extent)
    return each


def run_task(name: str, extent: Extent, device: int, results: Path | None) -> int:
    """Measure one task in this process; gives the exit status."""
    found = framework(device, extent.rehearse)
    copied = np.random.default_rng(0).integers(0, 1 << 63, extent.copied // 8)
    gpu = Gpu(found, copied, samples=extent.samples)
    copy = 2 * gpu.copy_nbytes / gpu.time([gpu.copy])["seconds"]
    about = {"task": name, "machine": machine_name(found), "copy": copy}
    work = tasks(extent)[name]
    return lines.in_one_process(work(gpu), about, results, show)


# --- the report


def show(line: Line) -> None:
    """Print one result."""
    name = line.get("case") or line.get("what") or line.get("other") or line.get("task") or line["kind"]
    size = f"{line['nbytes'] / MEBIBYTE:g} MiB" if "nbytes" in line else ""
    words = [f"{name:<42} {size:>9}"]
    for bad in ("wrong", "failed", "missing"):
        if bad in line:
            print(f"{words[0]} {bad.upper()}: {line[bad]}", flush=True)
            return
    words += [f"ratio {line['ratio']:6.2f}"] if "ratio" in line else []
    words += [f"{line['seconds'] * 1e6:.1f} us"] if "seconds" in line else []
    words += [f"{half} {_half_text(line[half], line['copy'])}" for half in HALVES if half in line]
    words += [str(line["gpu"]), f"copy {line['copy'] * 1e-9:.0f} GB/s"] if line["kind"] == "machine" else []
    print("  ".join(words), flush=True)


HALVES = ("encode", "decode", "forward", "backward", "accumulate", "encode_sum", "pytorch")


def _half_text(half: Line, copy: float) -> str:
    words = [f"{half['seconds'] * 1e6:.1f} us{'*' if half.get('waited') else ''}"]
    if "moved" in half:
        words.append(f"{100 * half['moved'] / copy:.1f}% copy")
    if half.get("kernels"):
        words.append(f"kernels {sum(half['kernels'].values()) * 1e6:.1f} us")
    if "call" in half:
        words.append(f"call {half['call'] * 1e6:.0f} us")
    return ", ".join(words)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, measure, write; gives the exit status."""
    parser = argparse.ArgumentParser(description="Times the CUDA kernels: every codec by size, against a copy.")
    parser.add_argument("--results", type=Path, metavar="FILE", help="append all figures to this file, lines of JSON")
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="tasks of such names: 'case QSGD*'"
    )
    parser.add_argument("--list", action="store_true", help="print the tasks' names, and measure nothing")
    parser.add_argument("--quick", action="store_true", help="arrays up to 64 MiB, fewer samples")
    parser.add_argument(
        "--rehearse", action="store_true", help="without a GPU: run every line on the CPU, a little of all"
    )
    parser.add_argument("--device", type=int, default=0, metavar="N", help="number of the CUDA device (default: 0)")
    parser.add_argument(
        "--within", type=float, default=math.inf, metavar="S", help="begin no task after so many seconds"
    )
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    extent = REHEARSED if options.rehearse else QUICK if options.quick else FULL
    if options.list:
        print("\n".join(lines.chosen(tasks(extent), options.only)))
        return lines.PASSED
    if not options.rehearse and _core.cuda_device_count() == 0:
        print("No GPU to measure: arrcomp finds no CUDA device.", file=sys.stderr)
        return lines.NO_GPU
    if options.task is not None:
        return run_task(options.task, extent, options.device, options.results)
    own = [flag for flag in ("--quick", "--rehearse") if getattr(options, flag[2:])]
    own += ["--device", str(options.device)] + (["--results", str(options.results)] if options.results else [])
    names = lines.chosen(tasks(extent), options.only)
    command = lines.this_program(own)
    return lines.run_all(command, names, options.results, seconds=TASK_SECONDS, within=options.within)


if __name__ == "__main__":
    sys.exit(main())
