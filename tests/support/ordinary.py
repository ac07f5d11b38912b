"""Which cases of a function with parameters are ordinary, and which run with `-m full` alone.

An ordinary run has each value of each parameter at least once, and leaves the other combinations out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest

_Case = frozenset[tuple[tuple[str, ...], tuple[str, ...]]]  # names of parameters, their values


def mark_products(items: Iterable[pytest.Item]) -> None:
    """Mark `full` what no value of a parameter needs.

    The case of a function that is collected alone is ordinary: whoever names it wants it.
    """
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not (item.get_closest_marker("slow") or item.get_closest_marker("full")):
            functions[item.nodeid.partition("[")[0]].append(item)
    for cases in functions.values():
        kept = covering([_case(item) for item in cases])
        for number, item in enumerate(cases):
            if number not in kept:
                item.add_marker(pytest.mark.full)


def covering(cases: Sequence[_Case]) -> set[int]:
    """Returns the numbers of cases that have all values together: those with most new values come first."""
    kept: set[int] = set()
    seen: set[object] = set()
    for least in range(max(map(len, cases), default=0), 0, -1):
        for number, case in enumerate(cases):
            if len(case - seen) >= least:
                kept.add(number)
                seen |= case
    return kept


def _case(item: pytest.Item) -> _Case:
    """What a test is given; combinations of what its marks `together` name count as values too."""
    values = {name: repr(value) for name, value in item.callspec.params.items()}  # type: ignore[attr-defined]
    groups = [*((name,) for name in values), *(mark.args for mark in item.iter_markers("together"))]
    return frozenset((names, tuple(values[name] for name in names)) for names in groups)
