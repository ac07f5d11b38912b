"""Measures arrcomp on this machine's CPU, and writes RESULTS.md, results.json and two pictures beside this file.

pip install -r bench/requirements.txt
python bench/results.py                          ten minutes; the README's figures too
python bench/results.py --only calls,quantizers  these sections anew, the others as they are
python bench/results.py --quick --output /tmp    a little of everything
python bench/results.py --redraw                 measures nothing: pictures and pages again, from results.json
python bench/results.py --check                  whether RESULTS.md and the README are what results.json gives
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import first_call
import instructions
import overhead
import peers
import quantizers
import readme
import scaling
from conditions import machine_found, version
from data import GAUSSIAN, MINILM, Subject, standard_subjects
from measure import Result, median_seconds
from report import markdown
from run import run, tasks

_VERSIONS = ("arrcomp", "numpy", "ml_dtypes", "torch", "jax", *peers.LIBRARIES)
_QUICK_SCALING = {"largest": 24, "threads_nbytes": 1 << 24, "most": 1 << 4}

# What is measured, by its name in results.json; with True, quickly.
SECTIONS: dict[str, Callable[[bool], Any]] = {
    "compressors": lambda quick: compressors(quick),
    "quantizers": lambda quick: quantizers.measured(1 << 18 if quick else quantizers.VALUES),
    "calls": lambda quick: overhead.measured(overhead.SIZES[:1] if quick else overhead.SIZES),
    "first calls": lambda quick: first_call.measured(1 if quick else first_call.PROCESSES),
    "scaling": lambda quick: scaling.measured(**(_QUICK_SCALING if quick else {})),
    "instructions": lambda quick: instructions.measured(),
}


def measured(names: Sequence[str], quick: bool) -> dict[str, Any]:
    """These sections, and the machine."""
    found: dict[str, Any] = {
        "machine": machine_found(),
        "versions": {name: version(name) for name in _VERSIONS},
    }
    for name in names:
        start, load = time.monotonic(), os.getloadavg()[0]
        made = {"date": datetime.now(UTC).date().isoformat(), "copy": _copy_speed(), "found": SECTIONS[name](quick)}
        found[name] = made | {"minutes": (time.monotonic() - start) / 60, "load": [load, os.getloadavg()[0]]}
    return found


def _copy_speed() -> float:
    copied = np.ones(1 << 23, np.float32)
    target = copied.copy()
    return copied.nbytes / median_seconds(lambda: np.copyto(target, copied)) / 1e9


def compressors(quick: bool) -> dict[str, Any]:
    """What bench/run.py measures, and its arrays."""
    subjects = standard_subjects(quick)
    results = list(run(tasks(subjects), Console(stderr=True)))
    return {
        "arrays": {subject.name: _about(subject) for subject in subjects},
        "results": [dataclasses.asdict(result) for result in results],
    }


def _about(subject: Subject) -> str:
    values = subject.values
    shape = " x ".join(map(str, values.shape))
    return f"{subject.description}; {values.dtype}, {shape}, {values.nbytes / 1e6:.1f} MB"


def results_of(document: Mapping[str, Any]) -> list[Result]:
    """What compressors did."""
    return [Result(**fields) for fields in document["compressors"]["found"]["results"]]


def draw(document: Mapping[str, Any], folder: Path) -> None:
    """Both pictures; ratios and speeds of the trained network, or of Gaussian weights without it."""
    from plot import plot, plot_scaling

    results = results_of(document)
    arrays = [name for name in (MINILM, GAUSSIAN) if any(result.array == name for result in results)]
    rows = []
    for setting, heading in (("abs 1e-03", "error at most 1e-3"), ("lossless", "lossless")):
        case = [result for result in results if (result.array, result.setting) == (arrays[0], setting)]
        varied = [result for result in case if "avx" in result.compressor or "plain" in result.compressor]
        rows.append((f"{arrays[0]}, {heading}", [result for result in case if result not in varied]))
    plot(rows, folder / "results.png")
    plot_scaling(document["scaling"]["found"], folder / "scaling.png")


def pages(document: Mapping[str, Any], folder: Path) -> dict[Path, str]:
    """The text of the page, and of the README if the folder is the repository's."""
    results = results_of(document)
    texts = {folder / "RESULTS.md": markdown(document, results)}
    if folder.resolve() == readme.README.parent / "bench":
        texts[readme.README] = readme.with_block(readme.README.read_text(), results)
    return texts


def check(folder: Path) -> list[str]:
    """What is not as results.json gives it, as sentences."""
    texts = pages(json.loads((folder / "results.json").read_text()), folder)
    stale = [path.name for path, text in texts.items() if path.read_text() != text]
    return [f"{name} is not what results.json gives: run bench/results.py --redraw" for name in stale]


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small arrays, few calls: figures mean little")
    parser.add_argument("--only", metavar="NAME,...", help=f"measure these alone: {', '.join(SECTIONS)}")
    parser.add_argument("--redraw", action="store_true", help="measure nothing: read results.json again")
    parser.add_argument("--check", action="store_true", help="compare RESULTS.md and the README with results.json")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, metavar="FOLDER", help="for the files")
    options = parser.parse_args()
    options.names = list(SECTIONS) if options.only is None else options.only.split(",")
    for name in options.names:
        if name not in SECTIONS:
            parser.error(f"--only {name}: {', '.join(SECTIONS)} are allowed")
    return options


def main() -> int:
    """Parse the command line, measure, write the files."""
    options = _parsed()
    path = options.output / "results.json"
    if options.check:
        wrong = check(options.output)
        print("\n".join(wrong) or "RESULTS.md and the README are what results.json gives")
        return int(bool(wrong))
    if not options.redraw:
        kept = json.loads(path.read_text()) if options.only else {}
        path.write_text(json.dumps(kept | measured(options.names, options.quick), indent=1) + "\n")
    document = json.loads(path.read_text())
    draw(document, options.output)
    for page, text in pages(document, options.output).items():
        page.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
