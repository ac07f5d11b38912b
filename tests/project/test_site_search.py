"""What the site's search finds first, on a small index."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
SEARCH = runpy.run_path(str(DOCS / "tools" / "site_search.py"))


def entry(location: str, title: str, text: str, **more: Any) -> dict[str, Any]:
    """An entry of the index, with the weight of its page."""
    boost = SEARCH["boost_of"](location.partition("#")[0].replace(".html", ".md"))
    return {"location": location, "title": title, "text": text, "boost": boost, **more}


@pytest.fixture
def index() -> dict[str, Any]:
    """A measurement, a reference and two guides."""
    docs = [
        entry("measurements/a.html", "Checkpoint", "checkpoint " * 50),
        entry("reference/b.html", "load_checkpoint", "reads a checkpoint"),
        entry("use/files.html", "Files", "a checkpoint in fewer bytes", tags=list(SEARCH["words_of"]("use/files.md"))),
        entry("use/jax.html#files", "Files", "a NaN in a file"),
        entry("format.html", "NaN", "NaN " * 20),
    ]
    return {"config": {"separator": r"[\s_]+"}, "docs": docs}


def test_a_guide_is_found_before_measurements_and_reference(index: dict[str, Any]) -> None:
    assert SEARCH["found"](index, "checkpoint")[0] == "use/files.html"
    assert SEARCH["found"](index, "NaN") == ["use/jax.html", "format.html"]


def test_the_beginning_of_a_word_and_several_words_find_pages(index: dict[str, Any]) -> None:
    assert SEARCH["found"](index, "checkp")[0] == "use/files.html"
    assert SEARCH["found"](index, "save model")[0] == "use/files.html"
    assert SEARCH["found"](index, "nothing") == []


def test_all_pages_with_words_of_their_own_exist() -> None:
    assert [page for page in SEARCH["_WORDS"] if not (DOCS / page).exists()] == []
    for pages in SEARCH["EXPECTED"].values():
        assert [page for page in pages if not (DOCS / page.replace(".html", ".md")).exists()] == []
