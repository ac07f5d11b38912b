"""Tries to break what arrcomp promises, and writes TRUST.md and trust.json beside this file.

pip install -r bench/requirements.txt "arrcomp[test-full]"
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

from harness.page import Document, Page
from harness.tables import table
from proofs import concurrency, exhaustive, fuzzing, memory
from proofs.evidence import Evidence


class Proof(Protocol):
    """A section: a module, or tests."""

    TITLE: str

    def measured(self, quick: bool) -> dict[str, Any]:
        """Try it; `failures` of what is found says how often a promise was broken."""

    def markdown(self, found: dict[str, Any]) -> str:
        """What was found, as text."""


PROOFS: Mapping[str, Proof] = {
    "exhaustive": exhaustive,
    "fuzzing": fuzzing,
    "reader": Evidence(
        "An independent reader",
        "`tests/independent/` is a reader in NumPy. Its first version was written from `native/FORMAT.md` and the "
        "tables that it names, before the author looked at any code. It read the 44 golden streams of that time bit "
        "for bit. Forged streams have a correct checksum, but headers, configurations or payloads that arrcomp does "
        "not write. arrcomp and the reader both reject such a stream, or read the same array. At first they differed "
        "in a few cases that the page did not define. The page defines these cases now, and the reader follows it.",
        (
            "format/test_golden.py",
            "format/test_reader.py",
            "format/test_corruption.py",
            "format/test_corrupt_configurations.py",
        ),
    ),
    "hostile": Evidence(
        "Hostile sizes",
        "Streams and files are forged field by field, with correct checksums. A process with a limit of 256 MiB "
        "rejects them with an error that names the field. No function makes an array of more than `max_nbytes` bytes.",
        ("format/test_hostile.py", "format/test_max_size.py", "files/test_hostile.py"),
    ),
    "faults": Evidence(
        "Faults of files and memory",
        "The tests fill the file system, use a folder without permissions, kill a process while it writes, truncate a "
        "file while it is open, and limit the memory. An error says what happened, the input and the old file are "
        "unchanged, and no other file remains. For Ctrl-C the table shows the seconds until its exception.",
        ("files/test_faults.py", "api/test_memory_limits.py", "api/test_interruption.py"),
    ),
    "memory": memory,
    "concurrency": concurrency,
}


def markdown(document: Document) -> str:
    """The page."""
    sections = [
        "# How arrcomp is tested",
        "Written by `python bench/trust.py`; [trust.json](trust.json) has every figure. [SECURITY.md](../SECURITY.md) "
        'says what is guaranteed for untrusted input. Each table lists tests by name; "held" means that they passed.',
        table(["<", "<tried on", "minutes", "promises broken"], [_line(name, document[name]) for name in PROOFS]),
        *("\n".join(f"- {name}: {value}" for name, value in about.items()) for about in document["machines"].values()),
        *(f"## {proof.TITLE}\n\n{proof.markdown(document[name]['found'])}" for name, proof in PROOFS.items()),
    ]
    return "\n\n".join(sections) + "\n"


def _line(name: str, made: Mapping[str, Any]) -> list[str]:
    failures = made["found"]["failures"]
    broken = f"**{failures}**" if failures else "0"
    date = made["date"] + (", a little of it" if made.get("quick") else "")
    return [PROOFS[name].TITLE, date, f"{made['minutes']:.0f}", broken]


PAGE = Page(
    file="trust.json",
    about=__doc__,
    sections={name: proof.measured for name, proof in PROOFS.items()},
    versions=lambda name: ("arrcomp", "numpy", "ml_dtypes", "torch", "jax", "zstandard"),
    texts=lambda document, folder: {folder / "TRUST.md": markdown(document)},
)

if __name__ == "__main__":
    found = PAGE.main()
    sys.exit(int(any(found[name]["found"]["failures"] for name in PROOFS)))
