"""Programs that tests run in processes of their own: those that limits, signals or a crash are tried on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

SECONDS = 300  # for what takes one or two


def environment() -> dict[str, str]:
    """Of a child: libraries start no threads, no bytecode is written, large memory goes back when it is freed."""
    return os.environ | {
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": str(1 << 17),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def command(program: str, *arguments: object) -> list[str]:
    """What runs a program."""
    return [sys.executable, "-P", "-c", program, *map(str, arguments)]


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """A running program, whose output is a pipe."""
    return subprocess.Popen(
        command(program, *arguments),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(program: str, *arguments: object) -> str:
    """What a program prints; it must end well."""
    return run_command(command(program, *arguments))


def run_command(words: list[str], **options: Any) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run(
        words,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        **options,
    )
    assert done.returncode == 0, f"exit code {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def exit_code_of_fork(child: int, seconds: float) -> int:
    """The exit code of a process that `os.fork` made; it is killed if it hangs."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError(f"the child hung for {seconds} s")
