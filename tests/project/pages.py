"""Runs the code on the pages of docs/, in order, and compares the output with the page.

All `python` blocks of a page run in one namespace. In `console` blocks, a shell runs the lines that begin with
`$ arrcomp`. A block with the title "output" is the output of the block before it, where `...` matches anything. Blocks
whose title is one of `ELSEWHERE` are only compiled.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
ELSEWHERE = ("needs a GPU", "needs two processes", "needs a GPU and two processes")
_FENCE = re.compile(r'^```(\w+)(?: title="([^"\n]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_ARRCOMP = f"{shlex.quote(sys.executable)} -P -m arrcomp"
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A block of code on a page.

    Attributes:
        language: "python", "console", "text"...
        title: what stands above it; empty if nothing does.
        code: its text.
        line: the line that its text begins on.
    """

    language: str
    title: str
    code: str
    line: int


def pages() -> list[str]:
    """The pages, by their paths in docs/."""
    return sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def blocks(text: str) -> list[Block]:
    """The blocks of code of a page."""
    return [
        Block(found[1], found[2] or "", found[3], text[: found.start(3)].count("\n") + 1)
        for found in _FENCE.finditer(text)
    ]


def run(page: str, folder: Path) -> None:
    """Run what is on a page in a folder, which is the current one.

    Raises:
        AssertionError: something prints something else than the page says, or a command fails.
        Exception: what a block raises.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    for block in blocks((DOCS / page).read_text(encoding="utf-8")):
        place = f"{page}, line {block.line}"
        if block.title == "output":
            assert printed is not None, f"{place}: nothing was run before this output"
            check_output(place, block.code, printed)
            printed = None
        elif block.language == "python":
            code = compile("\n" * (block.line - 1) + block.code, f"docs/{page}", "exec")
            printed = None if block.title in ELSEWHERE else _printed_by(code, names)
        elif block.language == "console" and block.title not in ELSEWHERE:
            run_commands(place, block.code, folder)
            printed = None


def _printed_by(code: Any, names: dict[str, Any]) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, names)  # noqa: S102
    return output.getvalue()


def run_commands(place: str, session: str, folder: Path) -> None:
    """Run the commands of a session that are arrcomp's, and compare what they print with what stands below them."""
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        if not command.startswith("arrcomp"):
            continue
        line = re.sub(r"(^|\| *)arrcomp\b", lambda found: found[1] + _ARRCOMP, command)
        result = subprocess.run(  # noqa: S602  by a shell, as the page's reader does
            line,
            env=_environment(),
            shell=True,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=300,
        )
        assert result.returncode == 0, f"{place}: {command}: {result.stderr}"
        if shown.strip():
            check_output(f"{place}: {command}", shown, result.stdout)


def _environment() -> dict[str, str]:
    """One in which commands print the same on all machines: UTF-8, without colours."""
    colours = ("FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if name not in colours}
    return kept | {"NO_COLOR": "1", "PYTHONUTF8": "1"}


def check_output(place: str, shown: str, printed: str) -> None:
    """Raise AssertionError unless the page shows what was printed; `...` stands for anything."""
    if not doctest.OutputChecker().check_output(shown.strip() + "\n", printed.strip() + "\n", _OPTIONS):
        raise AssertionError(f"{place}: the page says\n{shown}\nand this was printed\n{printed}")
