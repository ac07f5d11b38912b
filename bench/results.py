"""Measures arrcomp on this machine's CPU, and writes results.csv, RESULTS.md, PLANS.md and pictures beside this file.

pip install -r bench/requirements.txt
python bench/results.py                          an hour; the README's figures too
python bench/results.py --only calls,quantizers  these sections anew, the others as they are
python bench/results.py --quick --output /tmp    a little of everything
python bench/results.py --redraw                 measures nothing: pictures and pages again, from results.csv
python bench/results.py --check                  whether all pages are what results.csv gives
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import accuracy
import checkpoint
import collectives
import decoding
import first_call
import instructions
import overhead
import peers
import quantizers
import run
import scaling
from data import GAUSSIAN, MINILM
from harness.page import Document, page_of_sections
from harness.section import Section
from harness.timing import median_seconds
from report import compressors, plans, readme
from training import SECTIONS as TRAINING

_QUICK_SCALING = {"largest": 24, "threads_nbytes": 1 << 24, "most": 1 << 4}
_TRIED = ("arrcomp", "numpy", "torch", "jax")


def _draw_compressors(found: Mapping[str, Any], folder: Path) -> None:
    """Ratios and speeds of the trained network, or of Gaussian weights without it; the README's picture beside it."""
    from report.plots import plot, plot_one

    results = compressors.plain(run.results_of(found))
    array = next(name for name in (MINILM, GAUSSIAN) if name in found)
    headings = {"abs 1e-03": "error at most 1e-3", "lossless": "lossless"}
    rows = [
        (f"{array}, {heading}", [result for result in results if (result.array, result.setting) == (array, setting)])
        for setting, heading in headings.items()
    ]
    plot(rows, folder / "results.png")
    title = "Weights of all-MiniLM-L6-v2" if array == MINILM else array
    plot_one((f"{title}, error at most 1e-3", rows[0][1]), folder / "speed.png")


def _draw_scaling(found: Mapping[str, Any], folder: Path) -> None:
    from report.plots import plot_scaling

    plot_scaling(found, folder / "scaling.png")


def _scaling_text(found: Mapping[str, Any]) -> str:
    return f"![Time against size, threads and number](scaling.png)\n\n{scaling.section(found)}"


# What is measured, by its name in results.csv, in the page's order.
SECTIONS: dict[str, Section] = {
    "compressors": Section(
        "Compressors",
        run.measured,
        lambda found: "",  # which has several sections: `_of_compressors`
        levels=("subject", "setting", "method", "metric"),
        units={"encode": "GB/s", "decode": "GB/s", "copy": "GB/s"},
        versions=("arrcomp", "numpy", "ml_dtypes", "torch", "jax", *peers.LIBRARIES),
        draw=_draw_compressors,
    ),
    "quantizers": Section(
        "Quantizers",
        lambda quick: quantizers.measured(1 << 18 if quick else quantizers.VALUES),
        quantizers.section,
        levels=("method", "metric"),
        units={"encode": "GB/s", "decode": "GB/s", "bits": "bit"},
        versions=("arrcomp", "numpy", "torch"),
    ),
    "calls": Section(
        "What a call costs",
        lambda quick: overhead.measured(overhead.SIZES[:1] if quick else overhead.SIZES),
        overhead.section,
        levels=("subject", "method", "setting"),
        units={"time": "us"},
        metric="time",
        versions=_TRIED,
    ),
    "first calls": Section(
        "What the first calls cost",
        lambda quick: first_call.measured(1 if quick else first_call.PROCESSES),
        first_call.section,
        levels=("subject", "method"),
        units={"time": "ms"},
        metric="time",
        versions=_TRIED,
    ),
    "scaling": Section(
        "Time against size, threads and number",
        lambda quick: scaling.measured(**(_QUICK_SCALING if quick else {})),
        _scaling_text,
        levels=("subject", "method", "metric", "setting"),
        units={"encode": "s", "decode": "s", "bits": "bit", "nbytes": "B"},
        draw=_draw_scaling,
    ),
    "instructions": Section(
        "Instructions",
        lambda quick: instructions.measured(),
        lambda found: "",  # in PLANS.md
        levels=("subject", "method", "setting", "metric"),
        units={"gigahertz": "GHz"},
        versions=("arrcomp",),
    ),
    "decoding": Section(
        "What decoding waits for",
        lambda quick: decoding.measured(1 << 14 if quick else decoding.VALUES, 1 if quick else decoding.ROUNDS),
        decoding.section,
        levels=("subject", "setting"),
        units={"speed": "GB/s"},
        metric="speed",
    ),
    "accuracy": accuracy.SECTION,
    "checkpoint": checkpoint.SECTION,
    "collectives": collectives.SECTION,
    "all-to-all": collectives.EXCHANGE_SECTION,
    **TRAINING,
}
_PLANNED = ("compressors", "scaling", "quantizers", "calls", "instructions")  # which PLANS.md needs


def _copy_speed() -> float:
    copied = np.ones(1 << 23, np.float32)
    target = copied.copy()
    return copied.nbytes / median_seconds(lambda: np.copyto(target, copied)) / 1e9


def markdown(document: Document) -> str:
    """RESULTS.md, of what was measured."""
    parts = list(_parts(document))
    contents = "\n".join(f"- [{title}](#{_anchor(title)})" for title, _ in parts)
    head = "Written by `python bench/results.py`; [results.csv](results.csv) has every figure, one a line."
    sections = [f"## {title}\n\n{text}" for title, text in parts]
    return "\n\n".join(["# Results", head, contents, *sections]) + "\n"


def _parts(document: Document) -> Iterator[tuple[str, str]]:
    """Titles and texts."""
    yield "How it is measured", f"{_machines(document)}\n\n{compressors.HOW}"
    if "compressors" in document:
        yield from _of_compressors(document)
    for name, section in SECTIONS.items():
        text = section.text(document[name]["found"]) if name in document else ""
        if text:
            yield section.title, f"{text}\n\n{_when(document, name)}"
    if "compressors" in document:
        found = document["compressors"]["found"]
        yield "Every array", compressors.every_array(found, run.results_of(found))


def _of_compressors(document: Document) -> Iterator[tuple[str, str]]:
    results = run.results_of(document["compressors"]["found"])
    picture = "![Ratio against speed](results.png)"
    yield "Ratio against speed", f"{picture}\n\n{_when(document, 'compressors')}"
    short = compressors.short_summary(results)
    if short:
        yield "In short", short
    yield "Error-bounded: arrcomp, SZ3 and pcodec", compressors.bounded_summary(results)
    yield "Lossless: arrcomp, pcodec, zipnn and Zstandard", compressors.lossless_summary(results)
    yield "Where a peer is ahead", compressors.ahead(results)
    yield "Instruction sets and threads", compressors.variants(results)


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _machines(document: Document) -> str:
    lines = [[f"- {name}: {value}" for name, value in about.items()] for about in document["machines"].values()]
    return "\n\n".join("\n".join(about) for about in lines)


def _when(document: Document, name: str) -> str:
    """When a section was measured, how busy and how fast the machine was, and with what."""
    made = document[name]
    text = f"Measured on {made['date']}"
    text += f" on {made['machine']}" if len(document["machines"]) > 1 else ""
    text += f" in {made['minutes']:.1f} minutes" if "minutes" in made else ""
    if "load before" in made:
        text += f", with a load average of {made['load before']:.1f} and {made['load after']:.1f} before and after"
        text += " (a run alone makes about 1)"
    elif "load" in made:
        text += f", with a load average of {made['load']:.1f}"
    text += f", while a copy of 34 MB ran at {made['copy']:.1f} GB/s" if "copy" in made else ""
    text += f"; ratios and errors of arrcomp on {made['ratios']}" if "ratios" in made else ""
    versions = ", ".join(f"{package} {version}" for package, version in made["versions"].items())
    text += f"; {versions}" if versions else ""
    return textwrap.fill(f"{text}.", 120, break_on_hyphens=False)


def _texts(document: Document, folder: Path) -> dict[Path, str]:
    """The texts of the pages, and of the README if the folder is the repository's."""
    texts = {folder / "RESULTS.md": markdown(document)}
    if all(name in document for name in _PLANNED):
        results = run.results_of(document["compressors"]["found"])
        texts[folder / "PLANS.md"] = plans.page(document, results)
    if folder.resolve() == readme.README.parent / "bench":
        texts[readme.README] = readme.with_block(readme.README.read_text(), document)
    return texts


def _draw(document: Document, folder: Path, names: Sequence[str]) -> None:
    for name in names:
        SECTIONS[name].draw(document[name]["found"], folder)


PAGE = page_of_sections("results", __doc__, SECTIONS, _texts, draw=_draw, conditions={"copy": _copy_speed})


def measure(names: Sequence[str], *, quick: bool = False, folder: Path | None = None) -> int:
    """Measure some sections anew, and print them; 1 if something is worse than it may be."""
    document = PAGE.measure(names, quick=quick, **({} if folder is None else {"folder": folder}))
    broken = []
    for name in names:
        found = document[name]["found"]
        print(SECTIONS[name].text(found), end="\n\n")
        broken += SECTIONS[name].broken(found)
    if broken:
        print("\n".join(broken), file=sys.stderr)
    return int(bool(broken))


if __name__ == "__main__":
    PAGE.main()
