"""Measures arrcomp on this machine's CPU, and writes RESULTS.md, results.json and two pictures beside this file.

pip install -r bench/requirements.txt
python bench/results.py                          ten minutes; the README's figures too
python bench/results.py --only calls,quantizers  these sections anew, the others as they are
python bench/results.py --quick --output /tmp    a little of everything
python bench/results.py --redraw                 measures nothing: pictures and pages again, from results.json
python bench/results.py --check                  whether RESULTS.md and the README are what results.json gives
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
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
from data import GAUSSIAN, MINILM, Subject, standard_subjects
from measure import Result, median_seconds
from page import Page
from report import markdown
from run import run, tasks

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


PAGE = Page(
    name="results",
    about=__doc__,
    sections=SECTIONS,
    versions=("arrcomp", "numpy", "ml_dtypes", "torch", "jax", *peers.LIBRARIES),
    texts=pages,
    draw=draw,
    conditions={"copy": _copy_speed},
)

if __name__ == "__main__":
    PAGE.main()
