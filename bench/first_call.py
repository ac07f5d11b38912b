"""What the first calls of a process cost, in each framework: milliseconds, medians over fresh processes.

`python bench/first_call.py` prints the table; results.py puts it into RESULTS.md.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.tables import table

PROCESSES = 5
_PROCESS = Path(__file__).with_name("first_call_process.py")
FRAMEWORKS = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}
STEPS = (
    "the framework itself", "import arrcomp", "compress", "decompress", "compress again", "decompress again",
    "jit: trace and compile", "jit: first run",
)  # fmt: skip
_ABOUT = """\
Milliseconds in a new process, medians of {processes} processes, for an array of 1 KiB. "The framework itself" is the
time to import the framework and to make an array. "compress" includes the import of arrcomp's adapter; in JAX it also
includes compilation, once for each codec, dtype and shape. "jit" is a function that compresses and decompresses: it is
traced and compiled, then run. `python bench/first_call.py` prints only this table."""


def measured(processes: int = PROCESSES) -> dict[str, dict[str, float]]:
    """Milliseconds of each step, by framework, of those that are installed."""
    return {name: _median(module, processes) for module, name in FRAMEWORKS.items() if importlib.util.find_spec(module)}


def _median(module: str, processes: int) -> dict[str, float]:
    runs = []
    for _ in range(processes):
        command = [sys.executable, _PROCESS, module]
        runs.append(json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout))  # noqa: S603
    return {step: statistics.median(run[step] for run in runs) for step in runs[0]}


def section(found: Mapping[str, Mapping[str, float]]) -> str:
    """What was measured, as text."""
    steps = [step for step in STEPS if any(step in times for times in found.values())]
    rows = [[name, *(f"{times[step]:.1f}" if step in times else "" for step in steps)] for name, times in found.items()]
    return _ABOUT.format(processes=PROCESSES) + "\n\n" + table(["<", *steps], rows)


def main() -> int:
    """Measure and print."""
    print(section(measured()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
