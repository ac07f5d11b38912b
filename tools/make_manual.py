"""Write the manual page, man/arrcomp.1, from the commands' help: ``python tools/make_manual.py [--check] [FILE]``.

With --check nothing is written, and the exit code is 1 if the file is out of date. (click-man cannot replace this
module: Typer has a Click of its own, whose options click-man does not recognize, and it has no examples, exit status
and environment.)
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer
from typer.core import TyperGroup

from arrcomp import __version__
from arrcomp._cli import app
from arrcomp._cli.page import FAILED, PROGRAM, Example, Page, pages

_FILES = (
    (".npy, .npz", "NumPy's files of one array, and of several."),
    (".safetensors", "A model's arrays by name. `arrcomp compress` writes one stream for each."),
    (".pt, .pth", "PyTorch's files: tensors and plain values in dicts, lists and tuples. They need PyTorch."),
    (".arrcomp", "One stream: a self-describing compressed array with a checksum."),
)
_ENVIRONMENT = (
    ("NO_COLOR", "If not empty: no colours on terminals. Other output never has colours."),
    ("COLUMNS", "Width of help and tables, in place of the terminal's. In pipes lines have any length without it."),
    ("TMPDIR", "Folder for temporary files of standard input and output."),
)


def manual() -> str:
    """The manual page, in the macros of man(7), the same with all versions of Typer."""
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    program, *commands = pages(command)
    lines = [
        f'.TH {PROGRAM.upper()} 1 "" "{PROGRAM} {__version__}" "User Commands"',
        ".SH NAME",
        rf"{PROGRAM} \- {_text(program.about[0][0].lower() + program.about[0][1:].rstrip('.'))}",
        ".SH SYNOPSIS",
        *_synopsis([program, *commands]),
        ".SH DESCRIPTION",
        *_prose(" ".join(program.about)),
        *_examples(program.examples),
        ".SH OPTIONS",
        *_terms(program.sections["Options"]),
        ".SH COMMANDS",
    ]
    for page in commands:
        lines += _command(page)
    lines += [".SH EXIT STATUS", *_terms(program.sections["Exit codes"])]
    lines += [".SH ENVIRONMENT", *_terms(_ENVIRONMENT), ".SH FILES", *_terms(_FILES)]
    return "\n".join(lines) + "\n"


def _command(page: Page) -> list[str]:
    lines = [f".SS {_text(page.name)}", *_prose(page.about[0])]
    for paragraph in page.about[1:]:
        lines += [".PP", *_prose(paragraph)]
    lines += _terms([*page.sections.get("Arguments", ()), *page.sections["Options"]])
    failed = dict(page.sections["Exit codes"]).get(str(FAILED))
    if failed is not None:
        lines += [".PP", *_prose(f"Exit status {FAILED}: {failed}.")]
    return lines + _examples(page.examples)


def _synopsis(pages: Sequence[Page]) -> list[str]:
    lines = [rf"\fB{_text(page.name)}\fR {_text(page.synopsis.removeprefix(page.name).strip())}" for page in pages]
    return "\n.br\n".join(lines).splitlines()


def _examples(examples: Iterable[Example]) -> list[str]:
    lines = []
    for example in examples:
        command = [_text(line) for line in example.command.splitlines()]
        lines += [".PP", *_prose(f"{example.about}:"), ".PP", ".RS 4", ".nf", *command, ".fi", ".RE"]
    return lines


def _terms(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [line for term, meaning in rows for line in (".TP", rf"\fB{_text(term)}\fR", *_prose(meaning))]


def _prose(text: str) -> list[str]:
    """Lines of text that roff may fill. None begins like a request of roff."""
    lines = textwrap.wrap(_text(text), 79, break_long_words=False, break_on_hyphens=False)
    return [rf"\&{line}" if line.startswith(".") else line for line in lines]


def _text(text: str) -> str:
    """A line of text. Text in backticks becomes bold."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("^", r"\(ha")
    return re.sub(r"`([^`]*)`", r"\\fB\1\\fR", escaped)


def main() -> None:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description="Write the manual page from the commands' help.")
    parser.add_argument("file", nargs="?", type=Path, default=Path("man") / f"{PROGRAM}.1")
    parser.add_argument("--check", action="store_true", help="fail if the file is out of date")
    arguments = parser.parse_args()
    if not arguments.check:
        arguments.file.write_text(manual(), encoding="utf-8")
    elif not arguments.file.exists() or arguments.file.read_text(encoding="utf-8") != manual():
        sys.exit(f"{arguments.file} is out of date: python tools/make_manual.py {arguments.file}")


if __name__ == "__main__":
    main()
