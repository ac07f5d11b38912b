"""Checks the CUDA kernels on an NVIDIA GPU, with PyTorch or CuPy: every byte is the CPU's. Each task is a process.

`codec`: every codec at three sizes. `stress`: look-back with groups of very different work, many streams at once, many
arrays in a call. `cold`: a process whose first call is captured into a CUDA graph.

Exit status: 0; 1 where a check failed; 2 without a GPU.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import _core, _dtypes
from arrcomp._arrays.contract import Payload
from arrcomp._arrays.numpy import numpy_bytes
from kernels import lines
from kernels.cases import CASES, HEADLINE, SEED, Case, normal, values_of
from kernels.device import framework, machine_name
from kernels.lines import Line
from kernels.slots import Slot, WrongResultError, check_equal, checked_slots

Array = NDArray[Any]
Check = Callable[[Any], Iterator[Line]]

TASK_SECONDS = 90.0
# Elements: a part of a row, groups of two chunks, and groups of four, none of them full at the end.
COUNTS = (777, (1 << 18) + 77, (1 << 24) + 7)
REHEARSED_COUNTS = (5, 777, 9000)


def outcome(what: str, check: Callable[[], None]) -> Line:
    """A line that says whether the GPU's bytes are the CPU's."""
    line: Line = {"kind": "check", "what": what}
    try:
        check()
    except WrongResultError as error:
        return line | {"wrong": str(error)}
    return line | {"passed": True}


# --- every codec


def check_codec(memory: Any, name: str, counts: Sequence[int]) -> Iterator[Line]:
    """All cases of a codec, by its name in configurations."""
    for label, case in CASES.items():
        if case.codec.name != name:
            continue
        for count in counts:
            itemsize = _dtypes.by_name(case.data.rpartition(" ")[2]).itemsize
            values = values_of(case.data, count * itemsize)
            yield outcome(f"{label}, {count} elements", lambda c=case, v=values: checked_slots(memory, c.codec, [v]))


# --- stress


def uneven(count: int) -> Array:
    """Groups of very different work: most are zeros, some weights, some random bits, in no order."""
    rng = np.random.default_rng(1)
    values, chunk = np.zeros(count, np.float32), 4096
    for at in range(0, count, chunk):
        part = values[at : at + chunk]
        kind = rng.integers(8)
        if kind == 0:
            part[:] = rng.integers(0, 1 << 32, part.size, np.uint32).view(np.float32)
        elif kind < 3:
            part[:] = normal(rng, part.size)
    return values


def check_look_back(memory: Any, count: int, rounds: int) -> Iterator[Line]:
    """Groups that are done at once beside groups that take long, again and again."""
    # Below 2^18 elements a group is one chunk: the most groups for their work.
    arrays = {
        "zeros": np.zeros(count, np.float32),
        "uneven": uneven(count),
        "uneven, groups of one chunk": uneven(min(count, (1 << 18) - 3)),
    }
    for name, values in arrays.items():
        for label in (HEADLINE, "Lossless", "BaseDelta", "SmaQ nearest"):

            def repeated(codec: arrcomp.Codec = CASES[label].codec, values: Array = values) -> None:
                expected = arrcomp.compress(values, codec, seed=SEED)
                slot = Slot(memory, codec, values)
                for _ in range(rounds):
                    slot.poison()
                    slot.encode()
                    slot.check_encoded(expected)

            yield outcome(f"{label}, {name}, {rounds} times", repeated)


def check_streams(memory: Any, count: int, streams: int, rounds: int) -> Iterator[Line]:
    """Streams that encode and decode at once, each its own array."""
    for label in (HEADLINE, "QSGD 4 bits", "SmaQ nearest", "QSGD 4 bits entropy"):

        def at_once(codec: arrcomp.Codec = CASES[label].codec) -> None:
            arrays = [normal(np.random.default_rng(n), count + 1000 * n) for n in range(streams)]
            expected = [arrcomp.compress(array, codec, seed=SEED) for array in arrays]
            slots = [Slot(memory, codec, array) for array in arrays]
            for slot in slots:
                slot.poison()
            memory.synchronize()
            contexts = memory.streams(streams)
            for _ in range(rounds):
                for slot, context in zip(slots, contexts, strict=True):
                    with context:
                        slot.encode()
                        slot.decode()
            memory.synchronize()
            for slot, payload in zip(slots, expected, strict=True):
                slot.check_encoded(payload)
                slot.check_decoded(arrcomp.decompress(payload))

        yield outcome(f"{label}, {streams} streams, {rounds} times", at_once)


def check_many(memory: Any, count: int) -> Iterator[Line]:
    """Many arrays of very different lengths in one call, through the public functions."""
    for label in (HEADLINE, "ErrorBounded rel 1e-3", "Lossless", "BaseDelta", "QSGD 4 bits", "SmaQ nearest"):

        def together(codec: arrcomp.Codec = CASES[label].codec) -> None:
            rng = np.random.default_rng(2)
            arrays = [normal(rng, int(size)) for size in rng.integers(0, 9000, count)]
            expected = arrcomp.compress_many(arrays, codec, seed=SEED)
            made = arrcomp.compress_many([memory.array(array) for array in arrays], codec, seed=SEED)
            for i, (one, other) in enumerate(zip(made, expected, strict=True)):
                check_equal(f"payload {i}", one.host_payload(), other.host_payload())
            back = arrcomp.decompress_many(made)
            wanted = arrcomp.decompress_many(expected)
            for i, (one, other) in enumerate(zip(back, wanted, strict=True)):
                check_equal(f"array {i}", memory.bytes_of(one), numpy_bytes(other))

        yield outcome(f"{label}, {count} arrays in a call", together)


# --- the first call of a process, in a graph


def payload_now(compressed: arrcomp.Compressed) -> Array:
    """The payload of the last replay: a `Compressed` reads its length once."""
    known = compressed.payload
    return Payload(known.adapter, known.buffer, known.length).to_host()


def check_cold(memory: Any, case: Case, count: int) -> Iterator[Line]:
    """Capture the public functions before anything else has called a kernel; replay, on other values too."""

    def captured() -> None:
        values = values_of(case.data, 2 * count * _dtypes.by_name(case.data.rpartition(" ")[2]).itemsize)
        first, second = values[:count], values[count : 2 * count]
        x, made = memory.array(first.copy()), {}

        def work() -> None:
            made["payload"] = arrcomp.compress(x, case.codec, seed=SEED)
            made["back"] = arrcomp.decompress(made["payload"])

        replay = memory.capture(work)
        for source in (first, second):
            memory.assign(x, source)
            replay()
            memory.synchronize()
            expected = arrcomp.compress(source, case.codec, seed=SEED)
            check_equal("payload", payload_now(made["payload"]), expected.host_payload())
            check_equal("array", memory.bytes_of(made["back"]), numpy_bytes(arrcomp.decompress(expected)))

    yield outcome("the first call is captured, and replayed", captured)


def check_cold_decoding(memory: Any, case: Case, count: int) -> Iterator[Line]:
    """Capture decoding before anything else has called a kernel."""

    def captured() -> None:
        values = values_of(case.data, 4 * count)
        expected = arrcomp.compress(values, case.codec, seed=SEED)
        payload, made = memory.compressed(expected), {}

        def work() -> None:
            made["back"] = arrcomp.decompress(payload)

        replay = memory.capture(work)
        replay()
        memory.synchronize()
        check_equal("array", memory.bytes_of(made["back"]), numpy_bytes(arrcomp.decompress(expected)))

    yield outcome("the first call, which decodes, is captured, and replayed", captured)


# --- tasks


def tasks(rehearse: bool) -> dict[str, Check]:
    """What checks, by name."""
    counts = REHEARSED_COUNTS if rehearse else COUNTS
    count, rounds, many = (9000, 2, 50) if rehearse else (1 << 22, 20, 3000)
    each: dict[str, Check] = {}
    for name in arrcomp.available_codecs():
        each[f"codec {name}"] = lambda memory, name=name: check_codec(memory, name, counts)
    each["stress look-back"] = lambda memory: check_look_back(memory, count, rounds)
    each["stress streams"] = lambda memory: check_streams(memory, count, 8, rounds)
    each["stress many arrays"] = lambda memory: check_many(memory, many)
    for name, case in CASES.items():
        if case.by_size:
            each[f"cold {name}"] = lambda memory, case=case: check_cold(memory, case, counts[-1] // 8)
    for name in (HEADLINE, "QSGD 4 bits"):
        each[f"cold decoding {name}"] = lambda memory, name=name: check_cold_decoding(
            memory, CASES[name], counts[-1] // 8
        )
    return each


def show(line: Line) -> None:
    """Print one result."""
    bad = line.get("wrong") or line.get("failed")
    print(f"{line['task']}: {line.get('what', '')}: {f'WRONG: {bad}' if bad else 'passed'}", flush=True)


def write_examples(path: Path) -> None:
    """Write the codecs of all cases for the native program: id, data type and parameters as numbers, the name."""
    with path.open("w", encoding="utf-8") as file:
        for name, case in CASES.items():
            dtype = _dtypes.by_name(case.data.rpartition(" ")[2])
            parameters = [float(number).hex() for number in case.codec.core_parameters()]
            file.write(" ".join([str(case.codec.id), str(dtype.id), str(len(parameters)), *parameters, name]) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, check; gives the exit status."""
    parser = argparse.ArgumentParser(description="Checks the CUDA kernels: every byte is the CPU's.")
    parser.add_argument("--results", type=Path, metavar="FILE", help="append what is found to this file, lines of JSON")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="tasks of such names: 'cold *'")
    parser.add_argument("--list", action="store_true", help="print the tasks' names, and check nothing")
    parser.add_argument("--rehearse", action="store_true", help="without a GPU: run every line on the CPU")
    parser.add_argument("--examples", type=Path, metavar="FILE", help="only write the codecs for the native program")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="number of the CUDA device (default: 0)")
    parser.add_argument(
        "--within", type=float, default=math.inf, metavar="S", help="begin no task after so many seconds"
    )
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.examples is not None:
        write_examples(options.examples)
        return lines.PASSED
    names = lines.chosen(tasks(options.rehearse), options.only)
    if options.list:
        print("\n".join(names))
        return lines.PASSED
    if not options.rehearse and _core.cuda_device_count() == 0:
        print("No GPU to check: arrcomp finds no CUDA device.", file=sys.stderr)
        return lines.NO_GPU
    if options.task is not None:
        memory = framework(options.device, options.rehearse)
        about = {"task": options.task, "machine": machine_name(memory)}
        return lines.in_one_process(tasks(options.rehearse)[options.task](memory), about, options.results, show)
    own = ["--rehearse"] * options.rehearse + ["--device", str(options.device)]
    own += ["--results", str(options.results)] if options.results else []
    command = lines.this_program(own)
    return lines.run_all(command, names, options.results, seconds=TASK_SECONDS, within=options.within)


if __name__ == "__main__":
    sys.exit(main())
