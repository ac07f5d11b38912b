"""Counts the warp instructions that the CUDA kernels take for a row of 32 values, in their machine code for sm_90.

Needs no GPU: nvcc, and nvdisasm (pip install nvidia-cuda-nvdisasm). The sources are compiled as the extension's are.
What is counted is marked in the source (machine_code/regions.py): every loop over rows on the path of an ordinary row.
Of each, the shortest way around is taken, which does what `needed` asks for and leaves out what is rare; conditional
instructions count whether they are switched off or not. What is done once a chunk or group is not in these sums.

python bench/gpu_instructions.py           counts; writes gpu_instructions.json and the section of GPU.md
python bench/gpu_instructions.py --check   counts; fails where a budget is missed, where something takes a tenth more
                                           instructions than the file says, or where the page is not what it gives
python bench/gpu_instructions.py --list    every innermost loop that was compiled, for whoever looks for instructions

Exit status: 0; 1 where a check fails; 2 where there is no compiler or no disassembler.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.tables import between_marks, table
from machine_code.cases import CASES, Case, Part
from machine_code.listing import Instruction, Listing, Place, disassemble, kernels_of
from machine_code.loops import Flow, Loop
from machine_code.regions import Region, regions_of

BENCH = Path(__file__).parent
NATIVE = BENCH.parent / "native"
RECORD = BENCH / "gpu_instructions.json"
PAGE = BENCH / "GPU.md"
BEGIN, END = "<!-- instructions: written by bench/gpu_instructions.py -->", "<!-- /instructions -->"

# As cmake/cuda.cmake compiles the kernels, and where each instruction came from.
FLAGS = ("-std=c++20", "-O3", "-fmad=false", "-arch=sm_90", "-lineinfo", "-Xptxas=-v", "-cubin", f"-I{NATIVE}")
GROWTH = 1.1
SLOTS = 132 * 4 * 1.755e9  # warp instructions that an H200 issues a second at most
_HALF = 0.5  # of a loop's instructions, at least, are from the lines that are marked
_REGISTERS = re.compile(r"Compiling entry function '(?P<kernel>\S+)' for .*?Used (?P<registers>\d+) registers", re.S)
_DEVICE = re.compile(r"^(LDG|STG|LD|ST)\b")
_WIDE = 16


@dataclass(frozen=True)
class Count:
    """What a case takes.

    Attributes:
        parts: instructions for a row, of each part.
        narrow: accesses to device memory of fewer than 16 bytes a lane, for a row.
        registers: of a thread.
    """

    parts: Mapping[str, float]
    narrow: float
    registers: int

    @property
    def total(self) -> float:
        """Instructions for a row."""
        return sum(self.parts.values())


class Compiled:
    """A source's kernels."""

    def __init__(self, source: str, nvcc: str, nvdisasm: str) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            written, cubin = folder / f"{source}.cu", folder / f"{source}.cubin"
            written.write_text(text_of(source))
            made = subprocess.run(  # noqa: S603
                [nvcc, *FLAGS, "-o", str(cubin), str(written)], capture_output=True, text=True, check=False
            )
            if made.returncode != 0:
                raise SystemExit(f"{source}: {made.stderr}")
            self.registers = {m["kernel"]: int(m["registers"]) for m in _REGISTERS.finditer(made.stderr)}
            self.kernels = list(kernels_of(disassemble(cubin, nvdisasm).splitlines()))
        self._flows: dict[str, Flow] = {}

    def kernel(self, pattern: str) -> Listing:
        """The one kernel with such a name."""
        found = [kernel for kernel in self.kernels if re.search(pattern, kernel.name)]
        if len(found) != 1:
            raise SystemExit(f"kernels with {pattern!r} in their names: expected 1, got {len(found)}")
        return found[0]

    def flow(self, kernel: Listing) -> Flow:
        """Its ways, which are found once."""
        return self._flows.setdefault(kernel.name, Flow(kernel))


def text_of(source: str) -> str:
    """The source of a type of elements or of a codec, as CMake writes it."""
    elements = dict(re.findall(r"(\w+):(\w+)", _line_of("cmake/codecs.cmake", "set(elements ")))
    codecs = dict(re.findall(r"X\(\d+, (\w+), (\w+),", (NATIVE / "stream" / "codec_table.h").read_text()))
    predicted = source.removeprefix("predicted_")
    if predicted != source:
        template, name = "predicted", elements[predicted]
    else:
        template, name = ("element", elements[source]) if source in elements else ("bucketed", codecs[source])
    return (NATIVE / "cuda" / f"{template}.cu.in").read_text().replace("@name@", source).replace("@type@", name)


def _line_of(file: str, start: str) -> str:
    lines = (BENCH.parent / file).read_text().splitlines()
    return next(line for line in lines if line.strip().startswith(start))


class Counter:
    """Counts cases in compiled sources."""

    def __init__(self, compiled: Mapping[str, Compiled], regions: Sequence[Region]) -> None:
        self._compiled = compiled
        self._regions = regions

    def count(self, case: Case) -> Count:
        """What a case takes."""
        compiled = self._compiled[case.source]
        kernel = compiled.kernel(case.kernel)
        flow = compiled.flow(kernel)
        parts: dict[str, float] = {}
        narrow = 0.0
        for part in case.parts:
            region = self._region(part.loop)
            before = compiled.flow(compiled.kernel(part.kernel)) if part.kernel else flow
            way = max(self._ways(before, self._loops(before, region, part), part), key=len)
            parts[part.title or part.loop] = len(way) / region.rows
            narrow += sum(is_narrow(instruction) for instruction in way) / region.rows
        return Count(parts, narrow, compiled.registers[kernel.name])

    def _region(self, name: str) -> Region:
        found = [region for region in self._regions if region.name == name and region.rows > 0]
        if len(found) != 1:
            raise SystemExit(f"loops that are marked {name!r} in native/: expected 1, got {len(found)}")
        return found[0]

    def _mode(self, name: str) -> list[Region]:
        found = [region for region in self._regions if region.name == name and region.rows == 0]
        if not found:
            raise SystemExit(f"calls that are marked {name!r} in native/: expected some, got none")
        return found

    def _loops(self, flow: Flow, region: Region, part: Part) -> list[Loop]:
        """The loop of a region: of those that come from it the outermost, in each mode that is asked for."""
        found = [loop for loop in flow.loops if loop.share(region.places) >= _HALF and loop.closes_in(region.places)]
        for mode in part.modes:
            places = frozenset().union(*(r.places for r in self._mode(mode)))
            found = [loop for loop in found if loop.share(places) >= _HALF]
        found = [loop for loop in found if all(loop.count(opcode) == n for opcode, n in part.having.items())]
        found = [loop for loop in found if not any(other.holds(loop) for other in found)]
        if not found:
            modes = f" in mode {', '.join(part.modes)}" if part.modes else ""
            modes += f" with {dict(part.having)}" if part.having else ""
            raise SystemExit(f"{flow.kernel.name}: expected a loop {part.loop!r}{modes}, got none")
        return found

    def _ways(self, flow: Flow, loops: Sequence[Loop], part: Part) -> Iterator[list[Instruction]]:
        """Of the loops that have such a way, at least one."""
        through = [frozenset[Place]().union(*(r.places for r in self._mode(mode))) for mode in part.through]
        errors = []
        for loop in loops:
            try:
                yield loop.way_around(part.needed, through)
            except ValueError as error:
                errors.append(error)
        if len(errors) == len(loops):
            raise SystemExit(f"{part.loop}: {errors[0]}") from errors[0]


def is_narrow(instruction: Instruction) -> bool:
    """Whether it moves fewer than 16 bytes a lane between registers and device memory."""
    return bool(_DEVICE.match(instruction.opcode)) and instruction.nbytes() < _WIDE


# --- what is written


def as_document(counts: Mapping[str, Count]) -> dict[str, Any]:
    """What the file of counts has."""
    return {
        title: {"parts": dict(count.parts), "narrow": count.narrow, "registers": count.registers}
        for title, count in counts.items()
    }


def section(document: Mapping[str, Any]) -> str:
    """The table of the page."""
    heads = ["<for a row of 32 values", "instructions", "budget", "<of them", "narrow accesses", "registers"]
    lines = []
    for case in CASES:
        count = Count(**document[case.title])
        parts = ", ".join(f"{name} {instructions:.1f}" for name, instructions in count.parts.items())
        budget = f"{case.budget}{'' if count.total <= case.budget else ' **missed**'}"
        limit = SLOTS * 32 * case.itemsize / count.total / 1e12
        values = [f"{count.total:.1f}", budget, parts, f"{count.narrow:.2f}", str(count.registers), f"{limit:.1f}"]
        lines.append([case.title, *values])
    return table([*heads, "limit, TB/s"], lines)


def with_section(text: str, document: Mapping[str, Any]) -> str:
    """The page with the table of these counts.

    Raises:
        ValueError: as `between_marks`.
    """
    return between_marks(text, BEGIN, END, f"\n\n{section(document)}\n\n")


def problems(counts: Mapping[str, Count], recorded: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong, a sentence each."""
    for case in CASES:
        count = counts[case.title]
        if count.total > case.budget:
            yield f"{case.title}: expected at most {case.budget} instructions for a row, got {count.total:.1f}"
        if count.registers > case.registers:
            yield f"{case.title}: expected at most {case.registers} registers, got {count.registers}"
        if case.title not in recorded:
            yield f"{case.title}: {RECORD.name} has no count of it"
        elif count.total > GROWTH * (before := Count(**recorded[case.title]).total):
            yield f"{case.title}: {count.total:.1f} instructions for a row, {before:.1f} before"


def print_loops(compiled: Mapping[str, Compiled]) -> None:
    """Every innermost loop, with the accesses to memory on its shortest way."""
    for source, made in compiled.items():
        for kernel in made.kernels:
            flow = made.flow(kernel)
            print(f"{source}: {kernel.name}: {made.registers[kernel.name]} registers")
            for loop in flow.loops:
                if not any(loop.holds(other) for other in flow.loops):
                    way = loop.way_around({})
                    memory = [i.opcode for i in way if re.match(r"(LD|ST)[GS]?\b", i.opcode)]
                    shown = ", ".join(f"{memory.count(opcode)} {opcode}" for opcode in dict.fromkeys(memory))
                    print(f"  at {flow.blocks[loop.head].begin}: {len(way)} of {loop.size}; {shown}")


def _program(name: str, given: str | None, beside: str | None = None) -> str:
    path = os.pathsep.join([*([str(Path(beside).parent)] if beside else []), os.environ.get("PATH", os.defpath)])
    found = shutil.which(given or name, path=path)
    if found is None:
        print(f"{name}: expected a program, got none; --{name} names it", file=sys.stderr)
        raise SystemExit(2)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, compile, count, write or check; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where something is worse")
    parser.add_argument("--list", action="store_true", help="print the loops of all kernels")
    parser.add_argument("--nvcc", default=os.environ.get("CUDACXX"), help="the compiler (default: $CUDACXX, or nvcc)")
    parser.add_argument("--nvdisasm", help="the disassembler (default: beside nvcc, or on PATH)")
    options = parser.parse_args(arguments)
    nvcc = _program("nvcc", options.nvcc)
    nvdisasm = _program("nvdisasm", options.nvdisasm, beside=nvcc)
    with ThreadPoolExecutor(2) as pool:
        sources = list(dict.fromkeys(case.source for case in CASES))
        made = pool.map(lambda source: Compiled(source, nvcc, nvdisasm), sources)
        compiled = dict(zip(sources, made, strict=True))
    if options.list:
        print_loops(compiled)
        return 0
    counter = Counter(compiled, list(regions_of(NATIVE)))
    counts = {case.title: counter.count(case) for case in CASES}
    document = as_document(counts)
    print(section(document))
    if not options.check:
        RECORD.write_text(json.dumps(document, indent=1) + "\n")
        PAGE.write_text(with_section(PAGE.read_text(), document))
        return 0
    recorded = json.loads(RECORD.read_text())
    wrong = list(problems(counts, recorded))
    if with_section(PAGE.read_text(), recorded) != PAGE.read_text():
        wrong.append(f"{PAGE.name}: not what {RECORD.name} gives")
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
