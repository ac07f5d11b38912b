"""The codecs for the site, as arrcomp/codecs/ declares them: a page or a list of the site needs no line for a codec."""

from __future__ import annotations

import re
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
CODECS = "<!-- codecs -->"  # in a page: an entry of the reference for each codec
_CLASS = re.compile(
    r'^class (\w+)\(Codec\):$.*?^    name: ClassVar\[str\] = "([\w-]+)"$\n^    id: ClassVar\[int\] = (\d+)$',
    re.MULTILINE | re.DOTALL,
)


def _codecs() -> list[tuple[str, str]]:
    """Class and name of each codec, by ids."""
    sources = sorted((TREE / "arrcomp" / "codecs").glob("_*.py"))
    found = [match.groups() for path in sources for match in _CLASS.finditer(path.read_text(encoding="utf-8"))]
    return [(kind, name) for kind, name, _ in sorted(found, key=lambda codec: int(codec[2]))]


def expanded(text: str) -> str:
    """The text of a page, with the entries of all codecs."""
    return text.replace(CODECS, "\n\n".join(f"::: arrcomp.{kind}" for kind, _ in _codecs()))


def pages(pattern: str) -> list[str]:
    """The pages of docs/ that match: those of codecs by ids, then the others by name."""
    names = [name for _, name in _codecs()]
    found = sorted(path.relative_to(TREE / "docs") for path in (TREE / "docs").glob(pattern))
    return [page.as_posix() for page in sorted(found, key=lambda page: (*names, page.stem).index(page.stem))]
