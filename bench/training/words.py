"""Words and cells that several tables share."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence


def bits_text(bits: int) -> str:
    """A number of bits, as results.csv has it."""
    return f"{bits} bit{'s' * (bits > 1)}"


def accuracy_figures(values: Sequence[float], whole: float | None = None) -> dict[str, float]:
    """Of each seed's accuracy in percent the mean and its extremes, and the points to what it is compared with."""
    mean = statistics.fmean(values)
    figures = {"accuracy": mean, "least": min(values), "most": max(values)}
    return figures if whole is None else figures | {"points": mean - whole}


def accuracy_cells(figures: Mapping[str, float]) -> list[str]:
    """Mean, extremes and points as text."""
    points = f"{round(figures['points'], 6) + 0.0:+.2f}" if "points" in figures else ""  # no -0.00
    return [f"{figures['accuracy']:.2f}", f"{figures['least']:.2f} to {figures['most']:.2f}", points]


ACCURACY = ("accuracy", "of seeds", "points")
