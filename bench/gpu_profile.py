"""Reads what Nsight Compute says of kernels, and appends its figures to results as lines of JSON.

`ncu --import FILE --csv --page details >DETAILS` and the same with `--page raw >RAW` write the tables.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernels import lines
from kernels.names import short_name

# What the page shows, by the profiler's name.
METRICS = (
    "Duration",
    "Issue Slots Busy",
    "No Eligible",
    "Active Warps Per Scheduler",
    "Eligible Warps Per Scheduler",
    "DRAM Throughput",
    "L1/TEX Hit Rate",
    "L2 Hit Rate",
    "Registers Per Thread",
    "Achieved Occupancy",
)
_STALL, _PER_ISSUE = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
MOST_STALLS = 4


def number(text: str) -> float | None:
    """A figure of the profiler's, which groups digits."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a table, behind what the profiler prints of itself."""
    text = path.read_text(encoding="utf-8", errors="replace").splitlines()
    start = next((i for i, line in enumerate(text) if line.startswith('"ID"')), len(text))
    return list(csv.DictReader(text[start:]))


def details(path: Path) -> dict[str, dict[str, Any]]:
    """Of each launch, by its number: the kernel, and the chosen figures with their units."""
    launches: dict[str, dict[str, Any]] = {}
    for row in table(path):
        launch = launches.setdefault(row["ID"], {"kernel": row["Kernel Name"], "metrics": {}})
        value = number(row.get("Metric Value") or "")
        if row.get("Metric Name") in METRICS and value is not None:
            launch["metrics"].setdefault(row["Metric Name"], {"value": value, "unit": row.get("Metric Unit") or ""})
    return launches


def stalls(path: Path) -> dict[str, dict[str, float]]:
    """Of each launch, by its number: cycles that a warp waits for each reason between two instructions, most first."""
    found = {}
    for row in table(path):
        values = {
            name.removeprefix(_STALL).removesuffix(_PER_ISSUE): number(text or "")
            for name, text in row.items()
            if name and name.startswith(_STALL) and name.endswith(_PER_ISSUE)
        }
        known = sorted(((value, name) for name, value in values.items() if value is not None), reverse=True)
        found[row["ID"]] = {name: value for value, name in known[:MOST_STALLS]}
    return found


def profile_lines(details_path: Path, raw_path: Path | None) -> Iterator[lines.Line]:
    """A line for each launch."""
    waits = {} if raw_path is None else stalls(raw_path)
    for identity, launch in details(details_path).items():
        line = {"kind": "profile", "task": "profile", "launch": int(identity), "kernel": short_name(launch["kernel"])}
        yield {**line, "metrics": launch["metrics"], "stalls": waits.get(identity, {})}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, read, append; 1 where the tables tell of no kernel."""
    parser = argparse.ArgumentParser(description="Appends what Nsight Compute says of kernels to results.")
    parser.add_argument("details", type=Path, help="a table of --page details")
    parser.add_argument("raw", type=Path, nargs="?", help="a table of --page raw")
    parser.add_argument("--results", type=Path, required=True, metavar="FILE", help="lines of JSON are appended there")
    options = parser.parse_args(arguments)
    found = list(profile_lines(options.details, options.raw))
    for line in found:
        lines.append(options.results, line)
        figures = ", ".join(f"{name} {each['value']:g} {each['unit']}" for name, each in line["metrics"].items())
        print(f"{line['kernel']}: {figures}; stalls {line['stalls']}")
    if not found:
        print(f"{options.details}: no kernel was profiled", file=sys.stderr)
    return lines.PASSED if found else lines.WRONG


if __name__ == "__main__":
    sys.exit(main())
