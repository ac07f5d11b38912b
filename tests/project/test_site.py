"""What the site's hooks make of pages: what the copy button copies, and where links of included texts lead."""

from __future__ import annotations

import html
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("latex2mathml")

TOOLS = Path(__file__).resolve().parents[2] / "docs" / "tools"


@pytest.fixture(scope="module")
def hooks() -> Any:
    """The names of docs/tools/hooks.py, which finds its neighbours as MkDocs lets it."""
    sys.path.insert(0, str(TOOLS))
    try:
        return runpy.run_path(str(TOOLS / "hooks.py"))
    finally:
        sys.path.remove(str(TOOLS))


def test_the_copy_button_copies_commands_without_prompts_and_output(hooks: Any) -> None:
    session = (
        '<div class="highlight"><pre><code><span class="gp">$ </span>a &gt; &quot;b&quot;\n<span class="go">x</span>\n'
    )
    shown = hooks["on_page_content"](session + '<span class="gp">$ </span>c | d\n</code></pre></div>')
    copied = re.search(r'data-copy="([^"]*)"', shown)
    assert copied is not None
    assert html.unescape(copied[1]) == 'a > "b"\nc | d'


def test_the_copy_button_copies_the_code_of_a_docstring_without_prompts(hooks: Any) -> None:
    code = (
        '<span class="gp">&gt;&gt;&gt; </span>for i in x:\n<span class="gp">... </span>    print(i)\n<span>0</span>\n'
    )
    shown = hooks["on_page_content"](f'<div class="highlight"><pre><code>{code}</code></pre></div>')
    assert 'data-copy="for i in x:\n    print(i)"' in shown


def test_links_of_an_included_text_lead_to_pages(hooks: Any) -> None:
    page = SimpleNamespace(meta={}, file=SimpleNamespace(src_uri="index.md"))
    include = "<!-- include: README.md#What a bound does to a real model -->"
    text = hooks["on_page_markdown"](include, page=page, config=SimpleNamespace(site_url=None))
    assert "](bounds.md)" in text


def test_the_copy_button_copies_other_code_as_it_is(hooks: Any) -> None:
    code = '<div class="highlight"><pre><code>x = 1\n</code></pre></div>'
    assert hooks["on_page_content"](code) == code
