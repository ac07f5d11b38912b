"""The version stands in one place, `arrcomp/__init__.py`, and what is released says the same one."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

import arrcomp

pytestmark = pytest.mark.wheel

TOP = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))


def test_the_package_gets_its_version_from_the_module() -> None:
    assert "version" not in PYPROJECT["project"]
    provider = PYPROJECT["tool"]["scikit-build"]["metadata"]["version"]
    assert (TOP / provider["input"]).read_text("utf-8").count("\n__version__ = ") == 1
    assert importlib.metadata.version("arrcomp").partition("+")[0] == arrcomp.__version__


def test_labels_of_wheels_keep_the_version() -> None:
    overrides = [table for table in PYPROJECT["tool"]["scikit-build"]["overrides"] if "metadata" in table]
    provider = PYPROJECT["tool"]["scikit-build"]["metadata"]["version"]
    labels = {table["if"]["env"]["ARRCOMP_VARIANT"].strip("^$"): table["metadata"]["version"] for table in overrides}
    assert labels == {label: provider | {"result": f"{{value}}+{label}"} for label in ("cpu", "cu12")}


def test_no_other_file_has_a_version_of_its_own() -> None:
    assert not re.search(r"^version:", (TOP / "CITATION.cff").read_text("utf-8"), re.MULTILINE)


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    released = re.search(r"^## \[(\d\S*)\]", (TOP / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert released is None or released[1] == arrcomp.__version__
