"""One measured question: what measures it, where its figures stand in results.csv, and what the page says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Found = Mapping[str, Any]


@dataclass(frozen=True)
class Section:
    """A question.

    Attributes:
        title: of its section.
        measure: gives the figures, nested; with True, quickly.
        text: the section, of these figures.
        levels: same as in `figures.Layout`.
        units: same as in `figures.Layout`.
        metric: same as in `figures.Layout`.
        versions: packages whose versions matter.
        draw: draws pictures into a folder.
        broken: what is worse than it may be, a line each.
    """

    title: str
    measure: Callable[[bool], Found]
    text: Callable[[Found], str]
    levels: Sequence[str]
    units: Mapping[str, str] = field(default_factory=dict)
    metric: str = ""
    versions: Sequence[str] = ("arrcomp", "numpy")
    draw: Callable[[Found, Path], None] = lambda found, folder: None
    broken: Callable[[Found], list[str]] = lambda found: []
