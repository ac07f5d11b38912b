"""Tables of the pages, in Markdown, and their places: between two marks of a page that people write too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the columns after those of text, marked by a leading '<', are aligned to the right."""
    names = [head.removeprefix("<") for head in heads]
    rule = ["---" if head.startswith("<") else "---:" for head in heads]
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, rule, *rows))


def between_marks(text: str, begin: str, end: str, written: str) -> str:
    """A page with other text between two marks.

    Raises:
        ValueError: the marks are not there, once each.
    """
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the page: {begin} and {end}, once each, are needed")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}{written}{end}{rest.partition(end)[2]}"
