"""Which cases of a function with parameters are ordinary, and which run with `-m full` alone.

An ordinary run has each value of each parameter at least once, and leaves the other combinations out. Of a parameter
whose values are several codecs, it has an instance of each codec.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest

from arrcomp import Codec

_Case = frozenset[tuple[tuple[str, ...], tuple[str, ...]]]  # names of parameters, their values


def mark_products(items: list[pytest.Item], every: int = 1) -> list[pytest.Item]:
    """Mark `full` what no value of a parameter needs; take all of these but every nth out of the list, and return them.

    The case of a function that is collected alone is ordinary: whoever names it wants it.
    """
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not (item.get_closest_marker("slow") or item.get_closest_marker("full")):
            functions[item.nodeid.partition("[")[0]].append(item)
    left_out = []
    for cases in functions.values():
        kept = covering(_values(cases))
        for number, item in enumerate(cases):
            if number in kept:
                continue
            item.add_marker(pytest.mark.full)
            if zlib.crc32(item.nodeid.encode()) % every != 0:  # the same cases in whatever order they come
                left_out.append(item)
    out = set(left_out)
    items[:] = [item for item in items if item not in out]
    return left_out


def then_full(first: Iterable[object], rest: Iterable[object]) -> list[object]:
    """Values of a parameter: the first are ordinary, the rest run with `-m full` alone."""
    return [*first, *_marked(pytest.mark.full, rest)]


def then_slow(first: Iterable[object], rest: Iterable[object], slow: Iterable[object]) -> list[object]:
    """The same, and values that take a minute each: these run with `-m slow` alone."""
    return [*then_full(first, rest), *_marked(pytest.mark.slow, slow)]


def _marked(mark: pytest.MarkDecorator, values: Iterable[object]) -> list[object]:
    return [pytest.param(value, marks=mark) for value in values]


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


def _values(items: Sequence[pytest.Item]) -> list[_Case]:
    """What the cases of a function are given; combinations of what its marks `together` name count as values too."""
    given: list[dict[str, object]] = [item.callspec.params for item in items]  # type: ignore[attr-defined]
    several = {name for name in given[0] if len({type(values[name]) for values in given}) > 1}
    groups = [*((name,) for name in given[0]), *(mark.args for mark in items[0].iter_markers("together"))]

    def told(name: str, value: object) -> str:
        return type(value).__name__ if name in several and isinstance(value, Codec) else repr(value)

    return [
        frozenset((names, tuple(told(name, values[name]) for name in names)) for names in groups) for values in given
    ]
