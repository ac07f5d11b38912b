"""Tests as evidence: run with pytest, and told by their names, with what they counted."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from harness.tables import table

TESTS = Path(__file__).parents[2] / "tests"
_OUTCOMES = {"failure": "failed", "error": "failed", "skipped": "skipped"}


@dataclass(frozen=True)
class Evidence:
    """A section of tests.

    Attributes:
        TITLE: its heading.
        about: what is shown, in a sentence or two.
        files: of tests, by their names in `tests/`; those marked slow run too.
    """

    TITLE: str
    about: str
    files: Sequence[str]

    def measured(self, quick: bool) -> dict[str, Any]:
        """Run the tests.

        Args:
            quick: leave out those marked slow.
        """
        return evidence(self.files, quick)

    def markdown(self, found: dict[str, Any]) -> str:
        """The section's text."""
        return f"{self.about}\n\n{evidence_table(found)}"


def evidence(files: Iterable[str], quick: bool, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Run tests, and tell what came out.

    Args:
        files: of tests, by their names in `tests/`.
        quick: leave out those marked slow.
        arguments: more for pytest, such as `["--device", "cuda"]`.

    Returns:
        `tests`, each function's name, its file, how many of its cases passed, failed and were skipped, why they were,
        and what they recorded (`record_property`: sums of integers, the largest of other numbers); and `failures`.

    Raises:
        RuntimeError: pytest could not run them.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", _configuration()]
        command += ["--rootdir", str(TESTS.parent), f"--junitxml={report}", "-o", "junit_family=xunit1"]
        command += [*arguments, *([] if quick else ["-m", "slow or not slow"])]
        done = subprocess.run([*command, *(str(TESTS / file) for file in files)], cwd=folder, check=False)  # noqa: S603
        if done.returncode not in (0, 1):
            raise RuntimeError(f"pytest ended with {done.returncode}")
        cases = ElementTree.parse(report).getroot().iter("testcase")  # noqa: S314
        tests = [_test(name, list(group)) for name, group in groupby(cases, _function)]
    return {"tests": tests, "failures": sum(test["failed"] for test in tests)}


def evidence_table(found: dict[str, Any]) -> str:
    """A line for each test."""
    rows = [
        [_sentence(test["name"]), str(test["passed"]), _recorded(test["recorded"]), _outcome(test)]
        for test in found["tests"]
    ]
    return table(["<", "cases", "<counted", "<outcome"], rows)


def _configuration() -> str:
    return str(TESTS.parent / "pyproject.toml")


def _function(case: ElementTree.Element) -> tuple[str, str]:
    return case.attrib["classname"], case.attrib["name"].partition("[")[0]


def _test(function: tuple[str, str], cases: Sequence[ElementTree.Element]) -> dict[str, Any]:
    file, name = function
    test: dict[str, Any] = {"file": file, "name": name, "passed": 0, "failed": 0, "skipped": 0}
    reasons, recorded = set(), {}
    for case in cases:
        outcome = next((child for child in case if child.tag in _OUTCOMES), None)
        test["passed" if outcome is None else _OUTCOMES[outcome.tag]] += 1
        if outcome is not None and outcome.tag == "skipped":
            reasons.add(outcome.attrib["message"])
        for found in case.iter("property"):
            name, value = found.attrib["name"], _number(found.attrib["value"])
            before = recorded.get(name, value)
            together = isinstance(value, int) and name in recorded
            recorded[name] = before + value if together else max(before, value)
    return test | {"why": sorted(reasons), "recorded": recorded}


def _number(text: str) -> Any:
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _sentence(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")


def _recorded(recorded: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:{',' if isinstance(value, int) else '.3g'}}" for name, value in recorded.items())


def _outcome(test: dict[str, Any]) -> str:
    if test["failed"]:
        return f"**{test['failed']} failed**"
    if test["skipped"]:
        return f"{'held; ' if test['passed'] else ''}{test['skipped']} skipped: {'; '.join(test['why'])}"
    return "held"
