"""The workflows of `.github/` run what is in the tree, on the Pythons of pyproject.toml, with the rights they need."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

TOP = Path(__file__).parents[2]
FILES = sorted((TOP / ".github" / "workflows").glob("*.yml"))
WORKFLOWS: dict[str, Any] = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in FILES}
JOBS = [(f"{name}.{key}", job) for name, workflow in WORKFLOWS.items() for key, job in workflow["jobs"].items()]
STEPS = [(name, step) for name, job in JOBS for step in job.get("steps", ())]
PYPROJECT = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))
PYTHON = "Programming Language :: Python :: "
PYTHONS = [text.removeprefix(PYTHON) for text in PYPROJECT["project"]["classifiers"] if text.startswith(f"{PYTHON}3.")]
# What a job may do besides reading the tree. An identity token is for the package registry and for the site alone.
RIGHTS = {
    "release.publish": {"id-token": "write"},
    "release.attach": {"contents": "write"},
    "release.site": {"contents": "read", "pages": "write", "id-token": "write"},
    "docs.deploy": {"pages": "write", "id-token": "write"},
}


def test_there_are_workflows_for_tests_wheels_documentation_and_releases() -> None:
    assert WORKFLOWS.keys() == {"tests", "wheels", "docs", "release"}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_and_has_a_group(name: str) -> None:
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    # In a called workflow, github.workflow is the caller: both would wait for the same group.
    assert "github.workflow" not in WORKFLOWS[name]["concurrency"]["group"]
    groups = [re.sub(r"\$.*", "", workflow["concurrency"]["group"]) for workflow in WORKFLOWS.values()]
    assert len(set(groups)) == len(groups)


def test_few_jobs_may_more() -> None:
    assert {name: job["permissions"] for name, job in JOBS if "permissions" in job} == RIGHTS


def test_jobs_end_and_leave_no_credentials() -> None:
    assert [name for name, job in JOBS if "timeout-minutes" not in job and "uses" not in job] == []
    checkouts = [step for _, step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert len(checkouts) > 5


def test_actions_are_pinned_by_their_major_version() -> None:
    used = [step["uses"] for _, step in STEPS if "uses" in step]
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", action)] == []


def paths_in(command: str) -> Iterator[str]:
    """Files of the tree that a command names."""
    yield from re.findall(r"(?<![\w./-])(?:\.ci|tools|bench|tests)/[\w./*-]+", command)


def test_what_is_run_is_there() -> None:
    named = [(name, path) for name, step in STEPS for path in paths_in(str(step.get("run", "")))]
    named += [(name, step["with"]["cache-dependency-path"]) for name, step in STEPS if "cache" in step.get("with", {})]
    named += [(name, job["uses"]) for name, job in JOBS if "uses" in job]
    assert [item for item in named if not list(TOP.glob(item[1].removeprefix("./")))] == []
    assert {".ci/run", ".ci/wheels.sh", "tools/make_wheel_index.py"} <= {path for _, path in named}


def test_the_pythons_are_those_of_the_package() -> None:
    assert PYTHONS[0] == PYPROJECT["project"]["requires-python"].removeprefix(">=")
    assert WORKFLOWS["tests"]["jobs"]["pythons"]["strategy"]["matrix"]["python"] == PYTHONS
    built = re.findall(r"cp3(\d+)-", PYPROJECT["tool"]["cibuildwheel"]["build"])
    assert [f"3.{minor}" for minor in built] == PYTHONS
    # 3.11 has wheels of its own, the next one makes those of all later ones.
    stable = PYPROJECT["tool"]["scikit-build"]["wheel"]["py-api"].removeprefix("cp3")
    assert WORKFLOWS["wheels"]["jobs"]["cuda12"]["strategy"]["matrix"]["python"] == [PYTHONS[0], f"3.{stable}"]
    pinned = {step["with"]["python-version"] for _, step in STEPS if "python-version" in step.get("with", {})}
    assert {version for version in pinned if "matrix" not in version} <= set(PYTHONS)


def test_cibuildwheel_takes_its_settings_from_pyproject() -> None:
    job = WORKFLOWS["wheels"]["jobs"]["wheels"]
    (step,) = (step for step in job["steps"] if "cibuildwheel --" in step.get("run", ""))
    assert step["env"].keys() == {"ARRCOMP_VARIANT", "CIBW_ARCHS"}
    linux = PYPROJECT["tool"]["cibuildwheel"]["linux"]
    assert "ARRCOMP_VARIANT" in linux["environment-pass"]  # else it would not reach the container
    labels = {row["label"] for row in job["strategy"]["matrix"]["include"]}
    known = [table["if"]["env"]["ARRCOMP_VARIANT"] for table in PYPROJECT["tool"]["scikit-build"]["overrides"]]
    assert all(f"^{label}$" in known for label in labels - {""})
    changed = [name for step in job["steps"] for name in re.findall(r"CIBW_\w+", step.get("run", ""))]
    assert sorted(changed) == ["CIBW_BEFORE_ALL", "CIBW_CONFIG_SETTINGS"]
    assert linux.keys() >= {"before-all", "config-settings"}


def test_only_a_release_publishes_and_a_maintainer_confirms_it() -> None:
    publishers = [name for name, step in STEPS if "pypi-publish" in step.get("uses", "")]
    assert publishers == ["release.publish"]
    # `on` is a boolean to YAML 1.1.
    assert WORKFLOWS["release"][True] == {"push": {"tags": ["v*"]}}
    publish = WORKFLOWS["release"]["jobs"]["publish"]
    assert publish["environment"] == "release"
    assert publish["needs"] == ["tests", "check"]


@pytest.mark.parametrize("name", [path.name for path in (TOP / ".github" / "ISSUE_TEMPLATE").iterdir()])
def test_a_form_has_questions_and_no_address(name: str) -> None:
    text = (TOP / ".github" / "ISSUE_TEMPLATE" / name).read_text("utf-8")
    form = yaml.safe_load(text)
    assert form.keys() >= {"name", "description", "body"}
    assert any(field.get("validations", {}).get("required") for field in form["body"])
    assert "://" not in text
