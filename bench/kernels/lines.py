"""Results as lines of JSON, which are kept as they come; and programs of tasks, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

Line = dict[str, Any]

PASSED, WRONG, NO_GPU = 0, 1, 2  # exit status
NOT_BEGUN = "not begun: out of time"


def append(path: Path | None, line: Mapping[str, Any]) -> None:
    """Add a line to a file of results, if there is one."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def read(path: Path) -> list[Line]:
    """All lines of a file of results, but for one that was cut off."""
    lines: list[Line] = []
    if not path.exists():
        return lines
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def is_bad(line: Mapping[str, Any]) -> bool:
    """Whether a result is wrong, or there is none."""
    return "wrong" in line or "failed" in line


def chosen(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names that match one of the patterns, or all where there are none.

    Raises:
        SystemExit: nothing matches one of the patterns.
    """
    names = list(names)
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in names):
            raise SystemExit(f"--only {pattern}: no task has such a name; --list shows them")
    return [name for name in names if not patterns or any(fnmatch(name, pattern) for pattern in patterns)]


def run_each(
    command: Sequence[str], tasks: Sequence[str], results: Path | None, *, seconds: float, within: float
) -> list[str]:
    """Run `command --task NAME` for each task; gives the names of those that failed.

    Args:
        command: the program, which appends what it finds to the file of results.
        tasks: their names.
        results: the file.
        seconds: that a task may take.
        within: after so many seconds no task is begun.
    """
    start, failed = time.monotonic(), []
    for task in tasks:
        left = within - (time.monotonic() - start)
        try:
            status = NOT_BEGUN if left <= 0 else _status([*command, "--task", task], min(seconds, left))
        except subprocess.TimeoutExpired as error:
            status = f"took more than {error.timeout:.0f} s"
        if status != PASSED:
            failed.append(task)
        if status not in (PASSED, WRONG):  # else its own lines say what
            why = f"ended with {status}" if isinstance(status, int) else status
            append(results, {"kind": "task", "task": task, "failed": why})
            print(f"{task}: FAILED: {why}", flush=True)
    return failed


def run_all(
    command: Sequence[str], tasks: Sequence[str], results: Path | None, *, seconds: float, within: float
) -> int:
    """Same as `run_each`, but counts those that passed; gives the exit status."""
    failed = run_each(command, tasks, results, seconds=seconds, within=within)
    print(f"{len(tasks) - len(failed)} of {len(tasks)} tasks passed")
    return WRONG if failed else PASSED


def _status(command: Sequence[str], seconds: float) -> int | str:
    return subprocess.run(command, timeout=seconds, check=False).returncode  # noqa: S603


def this_program(options: Sequence[str]) -> list[str]:
    """The command that runs this program again with such options."""
    return [sys.executable, str(Path(sys.argv[0]).resolve()), *options]


def in_one_process(
    found: Iterator[Line], about: Mapping[str, Any], results: Path | None, show: Callable[[Line], None]
) -> int:
    """Append and show the lines of a task as they come; gives the exit status.

    Args:
        found: what the task gives. An exception is its last line.
        about: what all its lines say too.
        results: where lines are appended.
        show: prints a line.
    """
    bad = False
    while True:
        try:
            line = {**next(found), **about}
        except StopIteration:
            return WRONG if bad else PASSED
        except Exception as error:
            traceback.print_exc()
            line = {"kind": "task", **about, "failed": f"{type(error).__name__}: {error}"}
        append(results, line)
        show(line)
        bad = bad or is_bad(line)
