"""Docstrings for the reference pages: doctests and literal blocks become fenced code blocks."""

from __future__ import annotations

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"(?:^>>> .*\n?(?:(?!>>> |\n).+\n?)*)+", re.MULTILINE)
_LITERAL = re.compile(r"::(\n\n)((?:[ ]{4,}.*(?:\n|\Z)|\n(?=[ ]{4}))+)")


def _dedented(found: re.Match[str]) -> str:
    lines = found[2].rstrip("\n").split("\n")
    return ":" + found[1] + "\n".join(["```text", *(line[4:] for line in lines), "```", ""])


def fenced(text: str) -> str:
    """The docstring with fences around doctests and around what follows a double colon."""
    text = _LITERAL.sub(_dedented, text)
    return _DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)


class Fences(griffe.Extension):
    """Adds fences to the docstrings of all objects."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
