"""The addresses of the repository and of the site: `[project.urls]` in pyproject.toml is their only place.

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


def set_addresses(config: Any, urls: Mapping[str, str]) -> None:
    """Tell MkDocs where the site will be, and give its pages a link to the repository at the foot.

    Not `repo_url`: Material for MkDocs asks the host of the repository for its stars then, from the reader's browser.
    """
    if "Documentation" in urls:
        config.site_url = urls["Documentation"].rstrip("/") + "/"
    if "Repository" in urls:
        config.extra["social"] = [{"icon": _ICON, "link": urls["Repository"], "name": "Source code"}]


def with_address(markdown: str, site_url: str | None) -> str:
    """A page whose commands have the site's address, once there is one."""
    return markdown.replace(PLACEHOLDER, site_url) if site_url else markdown
