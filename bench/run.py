"""Compares arrcomp with other compressors on this machine's CPU, and prints a table for each array.

    pip install -r bench/requirements.txt
    python bench/run.py --quick
    python bench/run.py --only gaussian_weights,arrcomp,SZ3
    python bench/run.py --files weights.safetensors field.npy

Columns: bytes before by bytes after; the largest error by the bound, computed in float64 (V: bound broken, or a bit
changed); encoding and decoding in GB/s of the uncompressed bytes, and as multiples of np.copyto on an array of the same
size, measured beside them; medians of at least 5 calls after a warm-up. `python bench/results.py` runs all of it and
writes RESULTS.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import ours
import peers
from data import GAUSSIAN, LOSSLESS, Setting, Subject, file_subjects, standard_subjects
from measure import Result, measure
from peers import Compressor, Kind

Task = tuple[Subject, Setting, Compressor]
VARIED_BOUND = 1e-3  # of the instruction sets and threads


def kind_of(setting: Setting) -> Kind:
    """The kind of compressor that a setting asks for."""
    return "lossless" if setting.bound is None else "bounded"


def tasks(subjects: Sequence[Subject], threads: int = 1) -> list[Task]:
    """Every array x setting x compressor that takes it; on Gaussian weights also arrcomp's variants."""
    everything: list[Compressor] = [*ours.standard(threads), *peers.load()]
    return [
        (subject, setting, compressor)
        for subject in subjects
        for setting in subject.settings()
        for compressor in [*everything, *_variants(subject, setting)]
        if compressor.kind == kind_of(setting) and compressor.supports(subject.values)
    ]


def _variants(subject: Subject, setting: Setting) -> list[ours.Arrcomp]:
    varied = subject.name == GAUSSIAN and (setting == LOSSLESS or setting.bound == VARIED_BOUND)
    return ours.variants(kind_of(setting)) if varied else []


def select(candidates: Sequence[Task], only: Sequence[str]) -> list[Task]:
    """The tasks whose array and compressor are named; names of one sort alone leave the other free.

    A name stands for an array, or for all compressors that begin with it.

    Raises:
        ValueError: a name is neither.
    """
    array_names = {subject.name for subject, _, _ in candidates}
    arrays = [name for name in only if name in array_names]
    compressors = [name for name in only if name not in array_names]
    for name in compressors:
        if not any(compressor.name.startswith(name) for _, _, compressor in candidates):
            raise ValueError(f"--only {name}: an array or the beginning of a compressor's name is allowed")
    return [
        (subject, setting, compressor)
        for subject, setting, compressor in candidates
        if (not arrays or subject.name in arrays)
        and (not compressors or compressor.name.startswith(tuple(compressors)))
    ]


def run(chosen: Sequence[Task], console: Console) -> Iterator[Result]:
    """Measure one after the other, with a progress bar."""
    for subject, setting, compressor in track(chosen, "measuring", console=console, transient=True):
        yield measure(subject, setting, compressor)


def measured(quick: bool) -> dict[str, Any]:
    """All of it for results.csv: by array its description, and by setting and compressor the figures."""
    subjects = standard_subjects(quick)
    found: dict[str, Any] = {subject.name: {"description": _about(subject)} for subject in subjects}
    for result in run(tasks(subjects), Console(stderr=True)):
        figures = dataclasses.asdict(result)
        array, setting, compressor = (figures.pop(key) for key in ("array", "setting", "compressor"))
        found[array].setdefault(setting, {})[compressor] = figures
    return found


def _about(subject: Subject) -> str:
    values = subject.values
    shape = " x ".join(map(str, values.shape))
    return f"{subject.description}; {values.dtype}, {shape}, {values.nbytes / 1e6:.1f} MB"


def results_of(found: Mapping[str, Any]) -> list[Result]:
    """What `measured` gave, a result each."""
    return [
        Result(array, setting, compressor, **figures)
        for array, settings in found.items()
        for setting, compressors in settings.items()
        if setting != "description"
        for compressor, figures in compressors.items()
    ]


def table(subject: Subject, results: Sequence[Result]) -> Table:
    """What was measured on an array."""
    size = f"{subject.values.dtype} {'x'.join(map(str, subject.values.shape))}, {subject.values.nbytes / 1e6:.1f} MB"
    lines = Table(title=f"{subject.name} ({size}): {subject.description}", title_justify="left")
    for heading in ("setting", "compressor"):
        lines.add_column(heading)
    for heading in ("ratio", "error/bound", "encode GB/s", "x copy", "decode GB/s", "x copy"):
        lines.add_column(heading, justify="right")
    previous = ""
    for result in results:
        if previous and result.setting != previous:
            lines.add_section()
        lines.add_row(*cells(result), style="bold" if result.compressor == "arrcomp" else None)
        previous = result.setting
    return lines


def cells(result: Result) -> list[str]:
    """A result as text, column by column."""
    head = [result.setting, result.compressor]
    if result.failure is not None:
        return [*head, "failed", result.failure, "", "", "", ""]
    speeds = (f"{speed:#.3g}" for rate in (result.encode, result.decode) for speed in (rate, rate / result.copy))
    return [*head, ratio_text(result), error_text(result), *speeds]


def ratio_text(result: Result) -> str:
    """A ratio with four digits."""
    return f"{result.ratio:#.4g}".removesuffix(".")


def error_text(result: Result) -> str:
    """The error by the bound; V and what is above 1 where the bound is broken."""
    if result.broken:
        return "V" if result.error is None else f"V +{result.error - 1:.0e}"
    return "" if result.error is None else f"{result.error:.4f}"


def main() -> int:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few small arrays: about half a minute")
    parser.add_argument("--files", type=Path, nargs="+", metavar="F", help="measure these .npy and .safetensors files")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of arrcomp (default: 1); peers use one")
    parser.add_argument("--only", default="", metavar="NAME,...", help="arrays and beginnings of compressors' names")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    try:
        subjects = file_subjects(options.files) if options.files else standard_subjects(options.quick)
        chosen = select(tasks(subjects, options.threads), [name for name in options.only.split(",") if name])
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for subject in subjects:
        results = list(run([task for task in chosen if task[0] is subject], console))
        if results:
            console.print(table(subject, results), "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
