"""Times the CUDA kernels on an NVIDIA GPU, with PyTorch or CuPy; prints tables and, with --json, writes all figures.

Every case is checked first: the GPU's payload is the CPU's, byte for byte, and the GPU decodes it to the same array.
Then encoding and decoding into preallocated memory are timed by device events, medians of 10 to 20. In front of each
sample runs a copy larger than the L2 cache, and the calls of a sample go around equal arrays, so that nothing is read
from the cache and the device does not wait for the host (`*`: it may have). "% copy" compares bytes of the array plus
bytes of the payload in a second with the bytes that a device-to-device copy reads plus writes in the same run. (A bound
relative to the range reads the array twice, which counts once.)

Exit status: 0; 1 where a check failed; 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import _core, _dtypes
from arrcomp._arrays import host, registry
from arrcomp._cli.demo_data import demo_arrays
from arrcomp.codecs import Codec
from kernels.activations import measure_activations, print_activations
from kernels.device import MOST_CALLS, Gpu, driver, framework

Array = NDArray[Any]
Call = Callable[[], None]

MEBIBYTE = 1 << 20
SEED = 7
POISON = 0xA5  # what a kernel does not write is seen
WEIGHTS = "N(0, 0.02) float32"
CODEC = arrcomp.ErrorBounded(abs=1e-3)  # of the measurements with one case

# --- data


def normal(rng: np.random.Generator, count: int, dtype: Any = np.float32) -> Array:
    """Weights as initialised, N(0, 0.02)."""
    wide: Any = np.float64 if dtype is np.float64 else np.float32
    values = rng.standard_normal(count, dtype=wide)
    values *= 0.02
    return values.astype(dtype, copy=False)


def demo(name: str, count: int) -> Array:
    """One of the demonstration's arrays, again and again: no codec looks for repetitions."""
    return np.resize(demo_arrays()[name], count)


DATA: dict[str, Callable[[np.random.Generator, int], Array]] = {
    WEIGHTS: normal,
    "N(0, 0.02) float64": lambda rng, count: normal(rng, count, np.float64),
    "N(0, 0.02) bfloat16": lambda rng, count: normal(rng, count, ml_dtypes.bfloat16),
    "N(0, 0.02) float16": lambda rng, count: normal(rng, count, np.float16),
    "sparse gradients float32": lambda _, count: demo("embedding_gradients", count),
    "smooth field float32": lambda _, count: demo("smooth_field", count),
}


@lru_cache(maxsize=1)
def values_of(name: str, nbytes: int) -> Array:
    """So many bytes of this data; cases of the same data follow each other."""
    itemsize = _dtypes.by_name(name.rpartition(" ")[2]).itemsize
    return DATA[name](np.random.default_rng(0), nbytes // itemsize)


BOUNDS = (1e-2, 1e-3, 1e-4)
CASES: tuple[tuple[str, Codec], ...] = (
    *((WEIGHTS, arrcomp.ErrorBounded(abs=bound)) for bound in BOUNDS),
    *((WEIGHTS, arrcomp.ErrorBounded(abs=bound, speed="fast")) for bound in BOUNDS),
    (WEIGHTS, arrcomp.ErrorBounded(rel=1e-3)),
    (WEIGHTS, arrcomp.Lossless()),
    *((WEIGHTS, arrcomp.QSGD(bits=bits)) for bits in (8, 4, 2)),
    (WEIGHTS, arrcomp.QSGD(bits=4, norm="l2", rounding="stochastic")),
    (WEIGHTS, arrcomp.QSGD(bits=4, bucket_size=1 << 20)),
    ("N(0, 0.02) bfloat16", arrcomp.Lossless()),
    ("N(0, 0.02) float16", arrcomp.Lossless()),
    ("N(0, 0.02) float64", arrcomp.ErrorBounded(abs=1e-6)),
    ("sparse gradients float32", arrcomp.ErrorBounded(rel=1e-3)),
    ("smooth field float32", arrcomp.ErrorBounded(rel=1e-3)),
)


# --- encoding and decoding into preallocated memory


class WrongResultError(Exception):
    """The GPU's result is not the CPU's."""


def check_equal(what: str, found: Array, expected: Array) -> None:
    """Raise WrongResultError unless two byte arrays are equal."""
    if found.size != expected.size:
        raise WrongResultError(f"{what}: {found.size} bytes, the CPU's has {expected.size}")
    different = np.flatnonzero(found != expected)
    if different.size:
        raise WrongResultError(f"{what}: {different.size} of {found.size} bytes differ, the first at {different[0]}")


class Slot:
    """One array on the device, with room for its payload and for what comes back. Calls on one stream share scratch."""

    def __init__(self, gpu: Gpu, codec: Codec, array: Array, scratch: Any = None) -> None:
        self.memory, self.asked = gpu.framework, codec
        memory = self.memory
        self.dtype_id, self.elements = _dtypes.by_numpy(array.dtype).id, array.size
        self.codec = coding = (codec.id, codec.core_parameters(), self.dtype_id)
        self.source, self.target = gpu.put(array), memory.empty(array.nbytes)
        self.payload = memory.empty(_core.capacity(*coding, self.elements))
        self.length, self.status = memory.empty(8), memory.empty(4)
        if scratch is None:
            scratch = memory.empty(_core.cuda_encode_scratch(*coding, [self.elements], memory.index))
        self.scratch = scratch
        self.nbytes = 0  # of the payload, once it is checked

    def encode(self) -> None:
        """Enqueue encoding."""
        source, payload, length, scratch = self._pointers(self.source, self.payload, self.length, self.scratch)
        end = (self.memory.stream(), self.memory.index)
        _core.cuda_encode(*self.codec, [(source, payload, self.elements)], length, SEED, 0, scratch, *end)

    def decode(self) -> None:
        """Enqueue decoding of what `encode` left, whose length is on the device."""
        payload, length, target, status = self._pointers(self.payload, self.length, self.target, self.status)
        array = (payload, self.payload.shape[0], length, target, self.elements)
        _core.cuda_decode(*self.codec, [array], status, 0, self.memory.stream(), self.memory.index)

    def poison(self) -> None:
        """Fill payload, length, target and status with what no kernel wrote."""
        for buffer in (self.payload, self.length, self.target, self.status):
            buffer[:] = POISON

    def check_encoded(self, expected: arrcomp.Compressed) -> None:
        """Raise WrongResultError unless the last `encode` left this payload; waits."""
        length = int(self.memory.to_host(self.length).view(np.uint64)[0])
        if length > self.payload.shape[0]:
            raise WrongResultError(f"payload: {length} bytes of {self.payload.shape[0]}")
        check_equal("payload", self.memory.to_host(self.payload[:length]), expected.host_payload())

    def check_decoded(self, expected: arrcomp.Compressed) -> None:
        """Raise WrongResultError unless the last `decode` gave what the CPU's does; waits."""
        if self.memory.to_host(self.status).view(np.uint32)[0]:
            raise WrongResultError("decoding: the status says that the payload is corrupt")
        check_equal("array", self.memory.to_host(self.target), host.numpy_bytes(arrcomp.decompress(expected)))

    def _pointers(self, *buffers: Any) -> tuple[int, ...]:
        return tuple(self.memory.pointer(buffer) for buffer in buffers)

    def check(self, array: Array) -> None:
        """Encode and decode `array`, the source's; raise WrongResultError unless all bytes are the CPU's."""
        expected = arrcomp.compress(array, self.asked, seed=SEED)
        self.poison()
        self.encode()
        self.check_encoded(expected)
        self.nbytes = expected.host_payload().size
        self.decode()
        self.check_decoded(expected)


# --- what is measured


def measure(gpu: Gpu, label: str, codec: Codec, values: Array, count: int) -> dict[str, Any]:
    """Time `values` as `count` arrays, encoded and decoded in turn, once they are checked."""
    slots: list[Slot] = []
    try:
        for part in np.split(values, count):
            slots.append(Slot(gpu, codec, part, slots[0].scratch if slots else None))
            slots[-1].check(part)
    except WrongResultError as error:
        return {"label": label, "wrong": str(error)}
    nbytes, payload = values.nbytes // count, statistics.mean(slot.nbytes for slot in slots)
    line: dict[str, Any] = {"label": label, "nbytes": nbytes, "payload_nbytes": payload, "ratio": nbytes / payload}
    for name in ("encode", "decode"):
        timing = gpu.time([getattr(slot, name) for slot in slots])
        moved = {"bytes_per_second": nbytes / timing["seconds"], "moved": (nbytes + payload) / timing["seconds"]}
        line[name] = timing | moved
    return line


def measure_cases(gpu: Gpu, nbytes: int, count: int) -> Iterator[dict[str, Any]]:
    """Lines of the first table."""
    for data, codec in CASES:
        config = codec.config()
        words = [data, config.pop("codec"), *(f"{key} {value}" for key, value in config.items() if value != "default")]
        yield measure(gpu, " ".join(words), codec, values_of(data, nbytes * count), count)


def measure_sizes(gpu: Gpu, sizes: Sequence[int], rotated: int) -> Iterator[dict[str, Any]]:
    """Lines of the second table: one case against the size of the array."""
    values = values_of(WEIGHTS, max(sizes))
    for nbytes in sizes:
        count = min(max(rotated // nbytes, 1), MOST_CALLS, max(sizes) // nbytes)
        yield measure(gpu, f"{nbytes / MEBIBYTE:g} MiB", CODEC, values[: count * nbytes // values.itemsize], count)


def measure_calls(gpu: Gpu) -> dict[str, Any]:
    """Seconds on the host of public calls for 1 KiB. All but the last only enqueue."""
    x = registry.to_cuda(normal(np.random.default_rng(0), 256), gpu.framework.index)
    compressed = arrcomp.compress(x, CODEC)

    def both() -> None:
        arrcomp.decompress(arrcomp.compress(x, CODEC))
        gpu.framework.synchronize()

    calls: dict[str, Callable[[], Any]] = {
        "x + 1": lambda: x + 1,
        "compress": lambda: arrcomp.compress(x, CODEC),
        "decompress": lambda: arrcomp.decompress(compressed),
        "both, waiting": both,
    }
    return {name: gpu.time_on_host(call, count=50) for name, call in calls.items()}


def measure_many(gpu: Gpu) -> dict[str, Any]:
    """Seconds for 1000 arrays of 4 KiB until the device is done: together, and one by one."""
    rng = np.random.default_rng(0)
    xs = [registry.to_cuda(normal(rng, 1024), gpu.framework.index) for _ in range(1000)]
    small = arrcomp.compress_many(xs, CODEC)

    def waiting(work: Callable[[], Any]) -> Call:
        def call() -> None:
            work()
            gpu.framework.synchronize()

        return call

    calls = {
        "compress_many": waiting(lambda: arrcomp.compress_many(xs, CODEC)),
        "compress each": waiting(lambda: [arrcomp.compress(x, CODEC) for x in xs]),
        "decompress_many": waiting(lambda: arrcomp.decompress_many(small)),
        "decompress each": waiting(lambda: [arrcomp.decompress(c) for c in small]),
    }
    return {name: gpu.time_on_host(call, count=3) for name, call in calls.items()}


def measure_graph(gpu: Gpu, nbytes: int) -> dict[str, Any]:
    """Capture encoding and decoding in a graph; replay it on the same data, and for encoding on new data."""
    first, second = np.split(values_of(WEIGHTS, 2 * nbytes), 2)
    slot, expected = Slot(gpu, CODEC, first), arrcomp.compress(first, CODEC)

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
            slot.check_decoded(expected)
        gpu.framework.fill(slot.source, host.numpy_bytes(second))
        check_replay(arrcomp.compress(second, CODEC))
    except WrongResultError as error:
        return {"label": "graph of encode + decode", "wrong": str(error)}
    return {"label": "graph of encode + decode", "nbytes": nbytes, "replay": gpu.time_on_host(replay, count=10)}


# --- the report


def print_head(title: str) -> None:
    """Headings of a table."""
    half = f"{'us':>10} {'GB/s':>8}{'% copy':>8}"
    print(f"\n{'':<62}{'encode':<28}decode\n{title:<52} {'ratio':>7} {half} {half}")


def print_line(line: dict[str, Any], copy: float) -> None:
    """One measurement; `copy` is the copy's bytes per second."""
    if "wrong" in line:
        print(f"{line['label']:<52} WRONG: {line['wrong']}", flush=True)
        return
    columns = [f"{line['label']:<52} {line['ratio']:7.2f}"]
    for half in (line["encode"], line["decode"]):
        mark = "*" if half["waited"] else " "
        speeds = f"{half['bytes_per_second'] * 1e-9:8.1f}{100 * half['moved'] / copy:7.1f}%"
        columns.append(f"{half['seconds'] * 1e6:10.1f}{mark}{speeds}")
    print(" ".join(columns), flush=True)


def measure_copy(gpu: Gpu, report: dict[str, Any]) -> float:
    """Bytes that a copy reads and writes in a second."""
    timing = gpu.time([gpu.copy])
    speed: float = 2 * gpu.copy_nbytes / timing["seconds"]
    report["copy"].append(timing | {"bytes_per_second": speed})
    print(f"\ncopy of {gpu.copy_nbytes // MEBIBYTE} MiB: {speed * 1e-9:.0f} GB/s, read and written")
    return speed


def measure_all(gpu: Gpu, quick: bool, report: dict[str, Any]) -> None:
    """Everything, printed as it comes and noted in `report`."""
    nbytes = (64 if quick else 256) * MEBIBYTE
    rotated = max(4 * int(report["machine"]["l2_nbytes"]), nbytes)
    sizes = [1 << n for n in range(16, 29 if quick else 31, 2)]
    copy = measure_copy(gpu, report)
    print_head(f"{nbytes // MEBIBYTE} MiB each")
    for line in measure_cases(gpu, nbytes, math.ceil(rotated / nbytes)):
        report["cases"].append(line)
        print_line(line, copy)
    print_head(f"{WEIGHTS}, abs 0.001, by size")
    for line in measure_sizes(gpu, sizes, rotated):
        report["sizes"].append(line)
        print_line(line, copy)
    report["activations"] = list(measure_activations(gpu, nbytes // 4, 4 * math.ceil(rotated / nbytes)))
    print_activations(report["activations"], copy)
    report["calls"] = measure_calls(gpu)
    shown = (f"{name} {timing['seconds'] * 1e6:.1f}" for name, timing in report["calls"].items())
    print(f"\n1 KiB, microseconds of a call on the host: {', '.join(shown)}")
    report["many"] = measure_many(gpu)
    shown = (f"{name} {timing['seconds'] * 1e3:.2f}" for name, timing in report["many"].items())
    print(f"1000 arrays of 4 KiB, milliseconds: {', '.join(shown)}")
    graph = report["graph"] = measure_graph(gpu, 4 * MEBIBYTE)
    print(f"{graph['label']}: {'WRONG: ' + graph['wrong'] if 'wrong' in graph else 'gives the bytes of the CPU'}")
    measure_copy(gpu, report)


def describe(gpu: Gpu) -> dict[str, Any]:
    """The machine."""
    processor = {"host": platform.machine(), "instruction_set": _core.instruction_set()}
    versions = {"python": platform.python_version(), "arrcomp": arrcomp.__version__}
    machine: dict[str, Any] = gpu.framework.machine()
    return machine | versions | processor | {"nvidia_smi": driver()}


def is_wrong(report: dict[str, Any]) -> bool:
    """Whether a check failed."""
    return any(
        "wrong" in line for line in (*report["cases"], *report["sizes"], *report["activations"], report["graph"])
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, measure, write; gives the exit status."""
    parser = argparse.ArgumentParser(description="Times the CUDA kernels: encoding and decoding against a copy.")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all figures to this file")
    parser.add_argument("--quick", action="store_true", help="smaller arrays and fewer samples: below 2 minutes")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="number of the CUDA device (default: 0)")
    options = parser.parse_args(arguments)
    report: dict[str, Any] = {"machine": {}, "copy": [], "calls": {}, "many": {}, "graph": {}}
    report |= {"cases": [], "sizes": [], "activations": []}
    try:
        found = framework(options.device)
    except arrcomp.DeviceUnavailableError as error:
        print(f"No GPU to measure: {error}.", file=sys.stderr)
        return 2
    copied = values_of(WEIGHTS, (256 if options.quick else 512) * MEBIBYTE)
    gpu = Gpu(found, copied, samples=10 if options.quick else 20)
    report["machine"] = describe(gpu)
    print("\n".join(f"{key}: {value}" for key, value in report["machine"].items() if key != "nvidia_smi"))
    print("\n".join(report["machine"]["nvidia_smi"]))
    try:
        measure_all(gpu, options.quick, report)
    finally:  # a fault on the device ends the run, but what was measured before it is kept
        if options.json is not None:
            options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if is_wrong(report) else 0


if __name__ == "__main__":
    sys.exit(main())
