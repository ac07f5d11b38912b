"""The table that the README quotes: what bounds do to a real model, between two marks, written from results.csv."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import accuracy
from harness.tables import between_marks, table

README = Path(__file__).parent.parent.parent / "README.md"
BEGIN, END = "<!-- results: written by bench/results.py -->", "<!-- /results -->"
_BEST = "error at most 0.001"
# What is kept, as the section calls it, and what the README calls that.
_ROWS = {
    "lossless": "arrcomp, lossless",
    "error at most 0.0001": "arrcomp, error at most 0.0001",
    _BEST: "arrcomp, error at most 0.001",
    "FP8 (e4m3), a scale for each array": "FP8 (e4m3), a scale for each array",
    "8-bit integers, a scale for 512 values": "INT8, a scale for 512 values",
    "NF4, a scale for 64 values": "NF4, a scale for 64 values",
}


def block(document: Mapping[str, Any]) -> str:
    """The table.

    Raises:
        LookupError: something that it shows was not measured.
    """
    found = document.get("accuracy", {}).get("found", {}).get(accuracy.MODEL, {})
    missing = [kept for kept in (accuracy.ORIGINAL, *_ROWS) if kept not in found]
    if missing:
        raise LookupError(f"not measured, but shown in {README.name}: {', '.join(missing)}")
    heads = [f"<weights of {accuracy.MODEL}", "file", "smaller", "mean cosine", "least cosine"]
    original = [accuracy.ORIGINAL, accuracy.megabytes(found[accuracy.ORIGINAL]), "", "", ""]
    return table(heads, [original, *(_row(kept, label, found[kept]) for kept, label in _ROWS.items())])


def with_block(text: str, document: Mapping[str, Any]) -> str:
    """A README with the block as these results give it.

    Raises:
        LookupError: as `block`.
        ValueError: as `between_marks`.
    """
    return between_marks(text, BEGIN, END, f"\n{block(document)}\n")


def _row(kept: str, label: str, of: Mapping[str, float]) -> list[str]:
    cosines = [accuracy.cosine_text(of, of[metric]) for metric in ("mean cosine", "least cosine")]
    cells = [label, accuracy.megabytes(of), f"{of['ratio']:.2f}x", *cosines]
    return [f"**{cell}**" for cell in cells] if kept == _BEST else cells
