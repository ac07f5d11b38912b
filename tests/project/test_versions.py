"""What says the version says the same one."""

import re
import tomllib
from pathlib import Path

import pytest

import arrcomp

pytestmark = pytest.mark.wheel

TOP = Path(__file__).parents[2]


def test_the_version_is_the_same_wherever_it_stands() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]
    citation = re.search(r"^version: (\S+)$", (TOP / "CITATION.cff").read_text(), re.MULTILINE)
    released = re.search(r"^## \[(\d\S*)\]", (TOP / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert arrcomp.__version__ == project
    assert citation is not None
    assert citation[1] == project
    assert released is None or released[1] == project
