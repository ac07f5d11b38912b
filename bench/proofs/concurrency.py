"""Many callers at once: the tests, and the same under ThreadSanitizer and without a GIL."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.tables import table
from proofs.evidence import TESTS, Evidence

TITLE = "Many callers at once"
_SCRIPT = TESTS.parent / ".ci" / "sanitizers.sh"
_EVIDENCE = Evidence(
    TITLE,
    "Threads, forked processes, worker processes and executors call arrcomp at the same time. The bytes are those of a "
    "single caller. ThreadSanitizer runs these tests except two: a fork while threads run, and PyTorch's loader. The "
    "extension declares that it needs no GIL. Without a GIL, CPython itself cannot fork while threads run (a child "
    "hangs in a dictionary that another thread was reading), so that test is left out there.",
    ("api/test_concurrency.py", "api/test_threads.py"),
)
_HELD, _BROKEN = "held", "**broken**"
_FREE_THREADED = ("python3.14t", "python3.13t")
# The extension is there, and has not switched the GIL on.
_WITHOUT_GIL = "import sys, pytest, arrcomp; sys.exit(sys._is_gil_enabled())"


def measured(quick: bool) -> dict[str, Any]:
    """Run the tests, and where there is time and what it takes, in these two ways too."""
    found = _EVIDENCE.measured(quick)
    ways = {"under ThreadSanitizer": _under_thread_sanitizer, "on a free-threaded CPython": _without_gil}
    found["ways"] = {name: "not tried" if quick else way() for name, way in ways.items()}
    found["failures"] += sum(outcome == _BROKEN for outcome in found["ways"].values())
    return found


def markdown(found: dict[str, Any]) -> str:
    """The section's text."""
    rows = [[name, outcome] for name, outcome in found["ways"].items()]
    return f"{_EVIDENCE.markdown(found)}\n\n{table(['<all of this', '<outcome'], rows)}"


def _under_thread_sanitizer() -> str:
    missing = _missing_for_thread_sanitizer()
    if missing:
        return f"not at hand: {missing}"
    return _outcome([str(_SCRIPT)], os.environ | {"PYTHON": sys.executable, "SANITIZE": "thread"})


def _missing_for_thread_sanitizer() -> str:
    """What keeps .ci/sanitizers.sh from running; empty where nothing does."""
    for module in ("nanobind", "scikit_build_core"):
        if importlib.util.find_spec(module) is None:
            return f"no {module}"
    for program in ("bash", "setarch", "c++"):
        if shutil.which(program) is None:
            return f"no {program}"
    asked = subprocess.run(["c++", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True)  # noqa: S607
    return "" if Path(asked.stdout.strip()).is_absolute() else "no libtsan"


def _without_gil() -> str:
    # Not resolved: a virtual environment's interpreter is a link.
    for name in (sys.executable, *_FREE_THREADED):
        python = shutil.which(name)
        if python is not None and _runs([python, "-P", "-c", _WITHOUT_GIL]):
            files = [str(TESTS / file) for file in _EVIDENCE.files]
            options = ["-p", "no:cacheprovider", "-c", str(TESTS.parent / "pyproject.toml")]
            return _outcome([python, "-P", "-X", "gil=0", "-m", "pytest", "-q", *options, *files], os.environ)
    return "not at hand: no free-threaded interpreter that has arrcomp and pytest"


def _runs(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603


def _outcome(command: Sequence[str], environment: Any) -> str:
    done = subprocess.run(command, env=environment, check=False)  # noqa: S603
    return _HELD if done.returncode == 0 else _BROKEN
