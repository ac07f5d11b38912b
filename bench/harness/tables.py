"""Tables of the pages, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the columns after those of text, marked by a leading '<', are aligned to the right."""
    names = [head.removeprefix("<") for head in heads]
    rule = ["---" if head.startswith("<") else "---:" for head in heads]
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, rule, *rows))
