"""Tries to break what arrcomp promises, and writes TRUST.md and trust.json beside this file.

pip install -r bench/requirements.txt "arrcomp[test]"
python bench/trust.py                       hours; exits with 1 where a promise was broken
python bench/trust.py --only memory,reader  these sections anew, the others as they are
python bench/trust.py --quick --output /tmp a little of everything
python bench/trust.py --redraw              tries nothing: the page again, from trust.json
python bench/trust.py --check               whether TRUST.md is what trust.json gives
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from page import Document, Page
from proofs import fuzzing
from proofs.evidence import Evidence
from text_table import table


class Proof(Protocol):
    """A section: a module, or tests."""

    TITLE: str

    def measured(self, quick: bool) -> dict[str, Any]:
        """Try it; `failures` of what is found says how often a promise was broken."""

    def markdown(self, found: dict[str, Any]) -> str:
        """What was found, as text."""


PROOFS: Mapping[str, Proof] = {
    "reader": Evidence(
        "An independent reader",
        "`tests/reference_reader.py` is written from `native/FORMAT.md` alone, in NumPy. It reads each golden stream, "
        "and forged ones, as arrcomp does.",
        ("test_golden.py", "test_corruption.py"),
    ),
    "fuzzing": fuzzing,
}


def markdown(document: Document) -> str:
    """The page."""
    sections = [
        "# What was tried to break arrcomp",
        "Written by `python bench/trust.py`; [trust.json](trust.json) has every figure. [SECURITY.md](../SECURITY.md) "
        "says what is promised about hostile input.",
        table(["<", "<tried on", "minutes", "promises broken"], [_line(name, document[name]) for name in PROOFS]),
        "\n".join(f"- {name}: {value}" for name, value in document["machine"].items()),
        *(f"## {proof.TITLE}\n\n{proof.markdown(document[name]['found'])}" for name, proof in PROOFS.items()),
    ]
    return "\n\n".join(sections) + "\n"


def _line(name: str, made: Mapping[str, Any]) -> list[str]:
    failures = made["found"]["failures"]
    broken = f"**{failures}**" if failures else "0"
    return [PROOFS[name].TITLE, made["date"], f"{made['minutes']:.0f}", broken]


PAGE = Page(
    name="trust",
    about=__doc__,
    sections={name: proof.measured for name, proof in PROOFS.items()},
    versions=("arrcomp", "numpy", "ml_dtypes", "torch", "jax", "zstandard"),
    texts=lambda document, folder: {folder / "TRUST.md": markdown(document)},
)

if __name__ == "__main__":
    found = PAGE.main()
    sys.exit(int(any(found[name]["found"]["failures"] for name in PROOFS)))
