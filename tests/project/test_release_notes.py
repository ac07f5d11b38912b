"""`tools/release_notes.py`: a tag is a release only if version and changelog say so."""

import runpy
from pathlib import Path
from typing import Any

import pytest

notes: Any = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "release_notes.py"))["notes"]

MODULE = '__version__ = "0.2.0"  # a comment\n'
CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2027-01-31

### Added

- Something.

## [0.1.0] - 2026-12-24

The first one.
"""


def test_the_entry_of_the_version_is_printed() -> None:
    assert notes("v0.2.0", MODULE, CHANGELOG) == "### Added\n\n- Something.\n"


@pytest.mark.parametrize("tag", ["v0.2.1", "0.2.0", "v0.2.0rc1"])
def test_another_tag_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match=rf"expected v0.2.0 as in arrcomp/__init__.py, got {tag}"):
        notes(tag, MODULE, CHANGELOG)


@pytest.mark.parametrize("heading", ["[0.2.0]", "[0.3.0] - 2027-01-31"])
def test_another_or_undated_entry_on_top_is_refused(heading: str) -> None:
    with pytest.raises(ValueError, match=r"expected '## \[0.2.0\] - YYYY-MM-DD'"):
        notes("v0.2.0", MODULE, CHANGELOG.replace("[0.2.0] - 2027-01-31", heading))


def test_what_is_unreleased_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got '## \[Unreleased\]'"):
        notes("v0.2.0", MODULE, CHANGELOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n- New.\n"))
