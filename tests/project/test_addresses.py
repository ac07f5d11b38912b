"""`[project.urls]` in pyproject.toml is the only place of the project's addresses."""

import re
import runpy
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TOP = Path(__file__).parents[2]
TOOL: dict[str, Any] = runpy.run_path(str(TOP / "docs" / "tools" / "addresses.py"))
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_site_takes_its_addresses_from_pyproject(tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(
        '[project.urls]\nRepository = "https://example.org/a/b/"\nDocumentation = "https://example.org/b"\n'
    )
    config = SimpleNamespace(site_url=None, extra={})
    TOOL["on_config"](config, TOOL["addresses"](pyproject))
    assert config.site_url == "https://example.org/b/"
    assert [link["link"] for link in config.extra["social"]] == ["https://example.org/a/b/"]


def test_without_addresses_the_site_has_none(tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text("[project]\n")
    config = SimpleNamespace(site_url=None, extra={})
    TOOL["on_config"](config, TOOL["addresses"](pyproject))
    assert vars(config) == {"site_url": None, "extra": {}}


def test_the_index_of_a_variant_has_the_sites_address_once_there_is_one() -> None:
    page = (TOP / "docs" / "wheels.md").read_text("utf-8")
    for address, shown in ((None, "SITE/"), ("https://example.org/b/", "https://example.org/b/")):
        found = TOOL["on_page_markdown"](page, config=SimpleNamespace(site_url=address))
        assert f"--extra-index-url {shown}wheels/cu12\n" in found


def test_the_citation_names_the_repository_once_there_is_one() -> None:
    cited = re.findall(r'^repository-code: "?([^"\s]+)', (TOP / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert cited == [address for name, address in PROJECT.get("urls", {}).items() if name == "Repository"]
