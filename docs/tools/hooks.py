"""MkDocs hooks: included files of the source tree, lists of codecs, formulas without a script, search, copied commands.

In a page, `<!-- include: PATH -->` inserts the file PATH of the source tree, and `PATH#Heading` only that section. So
each text exists once. Links in it to other files of the tree become links to the pages that include these, or plain
text. Its pictures are added to the site. A page of the navigation with a `*` is all pages that match, those of codecs
by ids, and `<!-- codecs -->` is replaced by an entry of the reference for each codec.
"""

from __future__ import annotations

import html
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

from codec_list import expanded, pages
from site_search import boost_of, words_of

TREE = Path(__file__).resolve().parent.parent.parent
DOCS = TREE / "docs"
PICTURES = "pictures"
_INCLUDE = re.compile(r"<!-- include: ([^#\n]+?)(?:#(.+?))? -->")
_LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_OUTSIDE = re.compile(r"(!\[[^\]\n]*\])\(\.\./(bench/[^)\s]+)\)")  # a picture from outside docs/, on a page at its top
_BAR = re.compile(r"<mo[^>]*>(?:&#x0007C;|\|)</mo>")  # around a magnitude: not an operator
_CODE = re.compile(r'<div class="highlight">(.*?</pre>)', re.DOTALL)
_TYPED = re.compile(r"^(?:\$|>>>|\.\.\.) ?(.*)$", re.MULTILINE)  # after a shell's prompt, or Python's
_MATHEMATICS = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def included(page: str) -> list[str]:
    """The files of the tree that a page of docs/ includes."""
    return [path for path, _ in _INCLUDE.findall((DOCS / page).read_text(encoding="utf-8"))]


def _pages_by_path() -> dict[str, str]:
    """The page that includes a file of the tree, by the file's path."""
    pages = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    return {path: page for page in pages for path in included(page) if f"<!-- include: {path} -->" in _source(page)}


def _source(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def on_config(config: Any) -> Any:
    """List the pages that match a pattern of the navigation."""
    config.nav = [
        {title: pages(page) if isinstance(page, str) and "*" in page else page for title, page in item.items()}
        if isinstance(item, dict)
        else item
        for item in config.nav
    ]
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pictures of included files, and those that pages show from elsewhere in the tree."""
    for page in list(files.documentation_pages()):
        pictures = [(target, TREE / target) for _, target in _OUTSIDE.findall(_source(page.src_uri))]
        for path in included(page.src_uri):
            links = _LINK.findall((TREE / path).read_text(encoding="utf-8"))
            pictures += [(target, (TREE / path).parent / target) for mark, _, target, _ in links if mark]
        for target, path in pictures:
            name = f"{PICTURES}/{target}"
            if files.get_file_from_path(name) is None:
                files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def section(text: str, heading: str | None) -> str:
    """A section of a page, without its heading; without a heading, the whole page without its title.

    The section's own sections become those of a page: the first level is the second one.

    Raises:
        ValueError: there is no such section.
    """
    if heading is None:
        return re.sub(r"\A# .*\n", "", text)
    found = re.search(rf"^(#+) {re.escape(heading)}\n", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"no section {heading!r}")
    deeper = len(found[1]) - 1
    whole = re.split(rf"^#{{1,{len(found[1])}}} ", text[found.end() :], maxsplit=1, flags=re.MULTILINE)[0].strip()
    return re.sub(rf"^#{{{deeper}}}(?=#+ )", "", whole, flags=re.MULTILINE)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Insert the included files and the codecs, and tell the search what the page weighs and which words find it."""
    page.meta.setdefault("search", {"boost": boost_of(page.file.src_uri)})
    page.meta.setdefault("tags", list(words_of(page.file.src_uri)))
    shown = _OUTSIDE.sub(rf"\1({PICTURES}/\2)", markdown)
    return _INCLUDE.sub(lambda found: _text(found[1], found[2], page.file.src_uri), expanded(shown))


def _text(path: str, heading: str | None, page: str) -> str:
    including = _pages_by_path()

    def link(found: re.Match[str]) -> str:
        mark, text, target, anchor = found.groups()
        if "://" in target:
            return found[0]
        if mark:
            return f"![{text}]({posixpath.relpath(f'{PICTURES}/{target}', posixpath.dirname(page))})"
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        own = target.startswith("docs/") and (TREE / target).is_file()
        shown_on = target.removeprefix("docs/") if own else including.get(target)
        if shown_on is None:
            return text if text.startswith("`") else f"`{text}`"
        return f"[{text}]({posixpath.relpath(shown_on, posixpath.dirname(page))}{anchor or ''})"

    return _LINK.sub(link, section((TREE / path).read_text(encoding="utf-8"), heading))


def on_page_content(content: str, **_: Any) -> str:
    """Convert formulas to MathML, and say what the copy button copies of a session in a terminal."""
    return _CODE.sub(_with_commands, _MATHEMATICS.sub(_formula, content))


def _formula(found: re.Match[str]) -> str:
    """MathML, which browsers render without a script; wide formulas scroll."""
    display = "block" if found[1] == "div" else "inline"
    made = _BAR.sub(
        '<mo stretchy="false" lspace="0" rspace="0">|</mo>',
        convert(html.unescape(found[2]).strip(), display=display),
    )
    return f'<div class="formula">{made}</div>' if display == "block" else made


def _with_commands(found: re.Match[str]) -> str:
    """A session whose copy button copies what is typed, without prompts and without what is printed."""
    if '<span class="gp">' not in found[1]:
        return found[0]
    commands = "\n".join(_TYPED.findall(html.unescape(re.sub(r"<[^>]*>", "", found[1]))))
    return f'<div class="highlight" data-copy="{html.escape(commands)}">{found[1]}'
