"""Loops of the source that are counted: those whose first line ends in a comment `// counted: name, n rows`.

`n` is how many rows of an array a round of the loop works on, or stands for where it looks at a sample. A call that is
made for one of several modes, and inlined, may have `// counted as: name` behind it: what came from it is that mode's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from machine_code.listing import Place

_LOOP = re.compile(r"// counted: (?P<name>[\w ]+), (?P<rows>\d+) rows?$")
_MODE = re.compile(r"// counted as: (?P<name>[\w ]+)$")
_SUFFIXES = (".h", ".cuh", ".cu", ".inc")


@dataclass(frozen=True)
class Region:
    """Lines of the source.

    Attributes:
        name: as the comment says.
        rows: of an array, in a round; 0 of a mode.
        places: the lines.
    """

    name: str
    rows: int
    places: frozenset[Place]


def regions_of(folder: Path) -> Iterator[Region]:
    """All regions of the sources in a folder.

    Raises:
        ValueError: a loop has no end.
    """
    for path in sorted(folder.rglob("*")):
        if path.suffix not in _SUFFIXES:
            continue
        lines = path.read_text().splitlines()
        for at, line in enumerate(lines):
            for pattern in (_LOOP, _MODE):
                if match := pattern.search(line):
                    rows = int(match["rows"]) if pattern is _LOOP else 0
                    end = _end_of(lines, at, path)
                    yield Region(match["name"], rows, frozenset((str(path), n + 1) for n in range(at, end)))


def _end_of(lines: Sequence[str], begin: int, path: Path) -> int:
    """The line behind a statement: where its brackets are closed, and a semicolon or a brace ends it."""
    depth = 0
    for at in range(begin, len(lines)):
        code = lines[at].partition("//")[0].rstrip()
        depth += sum(code.count(c) for c in "({[") - sum(code.count(c) for c in ")}]")
        if depth <= 0 and code.endswith((";", "}")):
            return at + 1
    raise ValueError(f"{path}:{begin + 1}: the statement that is counted has no end")
