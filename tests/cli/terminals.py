"""The program as a person runs it: in a terminal of some width, or with its output piped."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

import pytest

PROGRAM = (sys.executable, "-P", "-m", "arrcomp")
SECONDS = 300  # far more than anything takes

_TELLS_OF_TERMINALS = re.compile(
    r"(NO|FORCE|PY)_COLOR|CLICOLOR.*|COLUMNS|LINES|TERM|TTY_.*|.*_COMPLETE.*|GITHUB_ACTIONS"
)


def environment(**settings: str) -> dict[str, str]:
    """This process's environment, without what would tell of another terminal, and with settings."""
    kept = {name: value for name, value in os.environ.items() if not _TELLS_OF_TERMINALS.fullmatch(name)}
    return kept | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | settings


def piped(*arguments: str, data: bytes = b"", **settings: str) -> subprocess.CompletedProcess[bytes]:
    """Run the program with all streams piped."""
    command = [*PROGRAM, *arguments]
    return subprocess.run(
        command, input=data, capture_output=True, env=environment(**settings), timeout=SECONDS, check=False
    )


def in_terminal(width: int, *arguments: str, **settings: str) -> tuple[int, str]:
    """Exit code of the program, and what it writes to a terminal that is its standard output and error."""
    termios, fcntl = pytest.importorskip("termios"), pytest.importorskip("fcntl")
    try:
        ours, theirs = os.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal: {error}")
    rows_and_columns = (50).to_bytes(2, sys.byteorder) + width.to_bytes(2, sys.byteorder)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, rows_and_columns + bytes(4))
    with subprocess.Popen(
        [*PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment(**settings)
    ) as process:
        os.close(theirs)
        written = _all_of(ours, process)
    os.close(ours)
    return process.returncode, written.decode().replace("\r\n", "\n")


def without_styles(text: str) -> str:
    """A terminal's text without colours and cursor movements."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def unread(*arguments: str) -> tuple[int, str]:
    """As `written_to` a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output:
        return written_to(output, *arguments)


def written_to(output: BinaryIO, *arguments: str) -> tuple[int, str]:
    """Exit code of the program, and what it writes to standard error, with its output in a file."""
    result = subprocess.run(
        [*PROGRAM, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE,
        env=environment(),
        timeout=SECONDS,
        check=False,
    )
    return result.returncode, result.stderr.decode()


def folder_with_program(folder: Path) -> str:
    """A PATH whose first folder has the program `arrcomp`."""
    folder.mkdir()
    program = folder / "arrcomp"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m arrcomp "$@"\n')
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def _all_of(descriptor: int, process: subprocess.Popen[bytes]) -> bytes:
    written, end = b"", time.monotonic() + SECONDS
    while time.monotonic() < end:
        if not select.select([descriptor], [], [], 1)[0]:
            continue
        try:
            piece = os.read(descriptor, 1 << 16)
        except OSError:  # Linux's way to say that the other side is closed
            return written
        if not piece:
            return written
        written += piece
    process.kill()
    raise AssertionError(f"still running after {SECONDS} seconds: {written!r}")
