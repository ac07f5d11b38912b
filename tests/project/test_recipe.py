"""The recipe for conda-forge asks for what pyproject.toml asks for."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import arrcomp

yaml = pytest.importorskip("yaml")

TOP = Path(__file__).parents[2]
RECIPE = yaml.safe_load((TOP / "recipe" / "recipe.yaml").read_text("utf-8"))
PYPROJECT = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))
PROJECT, EXTRAS = PYPROJECT["project"], PYPROJECT["project"]["optional-dependencies"]
IN_CONDA = {"xxhash": "python-xxhash", "torch": "pytorch"}


def conda(requirements: list[str]) -> set[str]:
    """Requirements of Python's packages as conda writes them, without extras."""
    found = [re.fullmatch(r"([\w-]+)(\S*)", requirement) for requirement in requirements if "[" not in requirement]
    return {f"{IN_CONDA.get(part[1], part[1])} {part[2]}".strip() for part in found if part is not None}


def flat(items: list[Any]) -> Iterator[str]:
    """The entries of a section, those under conditions too."""
    for item in items:
        if isinstance(item, dict):
            branches = [item["then"], item.get("else", [])]
            yield from flat(
                [entry for branch in branches for entry in (branch if isinstance(branch, list) else [branch])]
            )
        else:
            yield item


def test_versions_are_the_packages() -> None:
    assert RECIPE["context"]["version"] == arrcomp.__version__
    assert RECIPE["package"] == {"name": PROJECT["name"], "version": "${{ version }}"}


def test_it_runs_with_what_the_package_and_its_command_need() -> None:
    python = f"python {PROJECT['requires-python']}"
    assert set(RECIPE["requirements"]["run"]) == {python} | conda(PROJECT["dependencies"] + EXTRAS["cli"])


def test_other_libraries_are_as_new_as_the_extras_ask() -> None:
    extras = [requirement for name in ("torch", "jax", "zarr", "zstd") for requirement in EXTRAS[name]]
    assert set(RECIPE["requirements"]["run_constraints"]) == conda(extras)


def test_it_is_built_with_what_the_build_needs() -> None:
    assert set(flat(RECIPE["requirements"]["host"])) >= conda(PYPROJECT["build-system"]["requires"]) | {"python", "pip"}
    cmake = PYPROJECT["tool"]["scikit-build"]["cmake"]["version"]
    assert set(flat(RECIPE["requirements"]["build"])) >= {f"cmake {cmake}", "ninja"}
    scripts = list(flat(RECIPE["build"]["script"]))
    assert [script.rpartition("=")[2] for script in scripts] == ["OFF", "ON"]


def test_it_says_what_the_package_says() -> None:
    about = RECIPE["about"]
    assert about["summary"] == PROJECT["description"]
    assert about["license"] == PROJECT["license"]
    assert about["license_file"] == PROJECT["license-files"]
    assert (TOP / "recipe" / RECIPE["source"]["path"]).resolve() == TOP.resolve()
