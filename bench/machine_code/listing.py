"""What nvdisasm lists of a compiled CUDA source: kernels, their instructions, and where each came from."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_KERNEL = re.compile(r"^\.text\.(?P<name>\S+):$")
_LABEL = re.compile(r"^(?P<name>\.L_\S+|\$\S+):$")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@(?P<predicate>!?U?P[0-9T]) )?(?P<text>.*?) ?;")
_TARGET = re.compile(r"`\((?P<name>[^)]+)\)")
_TARGETS = re.compile(r"BRANCH_TARGETS (?P<names>[^\"]+)")
_PLACE = re.compile(r'"(?P<file>[^"]+)", line (?P<line>\d+)')
_WIDTH = re.compile(r"\.(?P<bits>128|64)\b")
_NARROW = re.compile(r"\.[US](?P<bits>16|8)\b")

Place = tuple[str, int]


@dataclass(frozen=True)
class Instruction:
    """One instruction of a kernel.

    Attributes:
        opcode: with its modifiers: `LDG.E.128`.
        operands: the rest of the line.
        conditional: whether a predicate may switch it off.
        places: file and line that it came from, and those into which that was inlined.
    """

    opcode: str
    operands: str
    conditional: bool
    places: frozenset[Place]

    @property
    def target(self) -> str | None:
        """The label that it names."""
        match = _TARGET.search(self.operands)
        return match["name"] if match else None

    @property
    def targets(self) -> tuple[str, ...]:
        """The labels that it may jump to."""
        if match := _TARGETS.search(self.operands):
            return tuple(match["names"].split(","))
        return (self.target,) if self.target else ()

    def nbytes(self) -> int:
        """Bytes that a lane moves, of an access to memory."""
        match = _WIDTH.search(self.opcode) or _NARROW.search(self.opcode)
        return int(match["bits"]) // 8 if match else 4


@dataclass(frozen=True)
class Listing:
    """A kernel's code: its instructions, and where its labels are among them."""

    name: str
    code: list[Instruction]
    labels: dict[str, int]


def disassemble(cubin: Path, nvdisasm: str) -> str:
    """The listing of an object, which was compiled with -lineinfo."""
    command = [nvdisasm, "-c", "-gi", str(cubin)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603


def kernels_of(lines: Iterable[str]) -> Iterator[Listing]:
    """The kernels of a listing."""
    kernel: Listing | None = None
    places: set[Place] = set()
    begins = True  # whether a note of places is the first after an instruction
    for line in lines:
        if line.lstrip().startswith("//##"):
            places = set() if begins else places
            places |= {(found["file"], int(found["line"])) for found in _PLACE.finditer(line)}
            begins = False
        elif match := _KERNEL.match(line):
            if kernel is not None:
                yield kernel
            kernel = Listing(match["name"], [], {})
        elif kernel is None:
            continue
        elif match := _LABEL.match(line):
            kernel.labels[match["name"]] = len(kernel.code)
        elif match := _INSTRUCTION.match(line):
            begins = True
            opcode, _, operands = match["text"].partition(" ")
            kernel.code.append(Instruction(opcode, operands, match["predicate"] is not None, frozenset(places)))
    if kernel is not None:
        yield kernel
