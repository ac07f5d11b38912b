"""Measures everything that bench/run.py can, and writes results.json, results.png and RESULTS.md beside this file.

pip install -r bench/requirements.txt
python bench/results.py                          about five minutes
python bench/results.py --quick --output /tmp    a few small arrays
python bench/results.py --redraw                 picture and page again, from results.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import overhead
import peers
import quantizers
from conditions import machine_found, version
from data import GAUSSIAN, MINILM, Subject, standard_subjects
from measure import Result, median_seconds
from plot import plot
from report import markdown
from run import run, tasks

_VERSIONS = ("arrcomp", "numpy", "ml_dtypes", *peers.LIBRARIES)


def measured(quick: bool) -> dict[str, Any]:
    """All results, and the conditions under which they came about."""
    console = Console(stderr=True)
    start, load = time.monotonic(), os.getloadavg()[0]
    subjects = standard_subjects(quick)
    results = list(run(tasks(subjects), console))
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "minutes": (time.monotonic() - start) / 60,
        "load": [load, os.getloadavg()[0]],
        "machine": machine_found(),
        "versions": {name: version(name) for name in _VERSIONS},
        "arrays": {subject.name: _about(subject) for subject in subjects},
        "results": [dataclasses.asdict(result) for result in results],
    } | measured_aside()


def measured_aside() -> dict[str, Any]:
    """What a call costs, and the quantizers, with the speed of a copy in the same minute."""
    copied = np.ones(1 << 23, np.float32)
    target = copied.copy()
    return {
        "aside": {
            "date": datetime.now(UTC).date().isoformat(),
            "copy": copied.nbytes / median_seconds(lambda: np.copyto(target, copied)) / 1e9,
        },
        "overhead": overhead.measured(),
        "quantizers": quantizers.measured(),
    }


def _about(subject: Subject) -> str:
    values = subject.values
    shape = " x ".join(map(str, values.shape))
    return f"{subject.description}; {values.dtype}, {shape}, {values.nbytes / 1e6:.1f} MB"


def draw(results: Sequence[Result], path: Path) -> None:
    """The picture of the trained network, or of Gaussian weights without it."""
    arrays = [name for name in (MINILM, GAUSSIAN) if any(result.array == name for result in results)]
    rows = []
    for setting, heading in (("abs 1e-03", "error at most 1e-3"), ("lossless", "lossless")):
        case = [result for result in results if (result.array, result.setting) == (arrays[0], setting)]
        varied = [result for result in case if "avx" in result.compressor or "plain" in result.compressor]
        rows.append((f"{arrays[0]}, {heading}", [result for result in case if result not in varied]))
    plot(rows, path)


def main() -> int:
    """Parse the command line, measure, write the three files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few small arrays")
    parser.add_argument(
        "--aside", action="store_true", help="measure calls and quantizers alone, keep the other figures"
    )
    parser.add_argument("--redraw", action="store_true", help="measure nothing: read results.json again")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, metavar="FOLDER", help="for the files")
    options = parser.parse_args()
    path = options.output / "results.json"
    if options.aside:
        path.write_text(json.dumps(json.loads(path.read_text()) | measured_aside(), indent=1) + "\n")
    elif not options.redraw:
        path.write_text(json.dumps(measured(options.quick), indent=1) + "\n")
    document = json.loads(path.read_text())
    results = [Result(**fields) for fields in document["results"]]
    draw(results, options.output / "results.png")
    (options.output / "RESULTS.md").write_text(markdown(document, results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
