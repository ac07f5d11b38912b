"""A hook of MkDocs for the addresses of repository and site: `[project.urls]` in pyproject.toml is their only place.

Until they are set, pages have no link to the repository, and commands with an address of the site say SITE for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
_ICON = "fontawesome/brands/git-alt"
PLACEHOLDER = "SITE/"


def addresses(pyproject: Path = _PYPROJECT) -> Mapping[str, str]:
    """`[project.urls]`, as far as it is set."""
    urls: Mapping[str, str] = tomllib.loads(pyproject.read_text("utf-8"))["project"].get("urls", {})
    return urls


def on_config(config: Any, urls: Mapping[str, str] | None = None) -> Any:
    """Tell MkDocs where the site will be, and give its pages a link to the repository at the foot.

    Not `repo_url`: Material for MkDocs asks the host of the repository for its stars then, from the reader's browser.
    """
    urls = addresses() if urls is None else urls
    if "Documentation" in urls:
        config.site_url = urls["Documentation"].rstrip("/") + "/"
    if "Repository" in urls:
        config.extra["social"] = [{"icon": _ICON, "link": urls["Repository"], "name": "Source code"}]
    return config


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Put the site's address into commands, once there is one."""
    return markdown.replace(PLACEHOLDER, config.site_url) if config.site_url else markdown
