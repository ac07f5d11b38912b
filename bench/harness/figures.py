"""results.csv: every figure that was measured, one a line.

    benchmark  what was asked, a section of RESULTS.md
    subject    what it was measured on: an array, a model, a framework, a function
    setting    a bound, a size, a number of bits, a seed
    method     a compressor, a codec, a call
    metric     what was measured
    value      a number; a text where the unit says so
    unit       of the value
    machine    where it was measured; the lines of "machine" describe it

Lines with the subject "conditions" say when a benchmark ran, how busy the machine was, and with which packages.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

COLUMNS = ("benchmark", "subject", "setting", "method", "metric", "value", "unit", "machine")
_MACHINE, _CONDITIONS = "machine", "conditions"
_TEXT = "text"
_UNITS = {"minutes": "min", "copy": "GB/s"}  # of the conditions

Document = dict[str, Any]


class Layout(Protocol):
    """Where a benchmark's figures stand in the table.

    Attributes:
        levels: columns of the keys of its nested figures, from the outermost on. A path that is shorter than these
            leaves columns empty; its last key is the metric, if that column is the last.
        units: of each metric.
        metric: of all its figures, where no level is the metric.
    """

    levels: Sequence[str]
    units: Mapping[str, str]
    metric: str


def read(path: Path, layouts: Mapping[str, Layout]) -> Document:
    """What a file holds: `machines`, and of each benchmark with a layout its conditions and what it `found`."""
    document: Document = {"machines": {}}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name, value = row["benchmark"], _value(row["value"], row["unit"])
            if name == _MACHINE:
                document["machines"].setdefault(row["subject"], {})[row["metric"]] = value
                continue
            if name not in layouts:
                continue
            made = document.setdefault(name, {"machine": row["machine"], "versions": {}, "found": {}})
            if row["subject"] == _CONDITIONS:
                made.update({row["metric"]: value} if row["metric"] != "version" else {})
                made["versions"].update({row["method"]: value} if row["metric"] == "version" else {})
            else:
                _put(made["found"], [row[level] for level in layouts[name].levels if row[level]], value)
    return document


def write(path: Path, document: Document, layouts: Mapping[str, Layout]) -> None:
    """Write all of it anew."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        lines.writeheader()
        lines.writerows(_rows(document, layouts))


def _rows(document: Document, layouts: Mapping[str, Layout]) -> Iterator[dict[str, str]]:
    for machine, about in document["machines"].items():
        for metric, value in about.items():
            yield _row(_MACHINE, machine, value, "", subject=machine, metric=metric)
    for name in (name for name in layouts if name in document):
        made, layout = document[name], layouts[name]
        for metric, value in made.items():
            if metric not in ("machine", "versions", "found"):
                yield _row(name, made["machine"], value, _UNITS.get(metric, ""), subject=_CONDITIONS, metric=metric)
        for package, version in made["versions"].items():
            yield _row(name, made["machine"], version, "", subject=_CONDITIONS, method=package, metric="version")
        for keys, value in _leaves(made["found"]):
            columns = _columns(keys, layout)
            yield _row(name, made["machine"], value, layout.units.get(columns["metric"], ""), **columns)


def _row(benchmark: str, machine: str, value: Any, unit: str, **columns: str) -> dict[str, str]:
    text = f"{value:.10g}" if isinstance(value, float) else str(int(value) if isinstance(value, bool) else value)
    unit = _TEXT if isinstance(value, str) else unit
    return {"benchmark": benchmark, "machine": machine, "value": text, "unit": unit, **columns}


def _columns(keys: Sequence[str], layout: Layout) -> dict[str, str]:
    levels = list(layout.levels)
    if len(keys) < len(levels) and levels[-1] == "metric":
        levels = [*levels[: len(keys) - 1], "metric"]
    return {"metric": layout.metric} | dict(zip(levels, keys, strict=False))


def _leaves(found: Mapping[str, Any], keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*keys, key))
        elif value is not None:
            yield (*keys, key), value


def _put(found: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        found = found.setdefault(key, {})
    found[keys[-1]] = value


def _value(text: str, unit: str) -> Any:
    if unit == _TEXT:
        return text
    return int(text) if text.lstrip("-").isdigit() else float(text)
