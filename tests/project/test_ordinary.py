"""An ordinary run keeps one test of each law for each codec and framework; `-m full` runs what it leaves out."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import arrcomp
import frameworks
from ordinary import covering
from small_streams import SMALL

TOP = Path(__file__).parents[2]
KINDS = arrcomp.available_codecs()
OF_CODECS = {name: f"tests/codecs/test_{name.replace('-', '_')}.py" for name in KINDS}
OF_CODECS["error-bounded"] = "tests/codecs/test_bound.py"
EVERYWHERE, CONFORMANCE = "tests/arrays/test_frameworks.py", "tests/arrays/test_conformance.py"
CORRUPTION = "tests/format/test_corruption.py"


@pytest.fixture(scope="module")
def ordinary() -> list[str]:
    """The ordinary tests of the modules that hold the laws of codecs and frameworks."""
    modules = [EVERYWHERE, CONFORMANCE, CORRUPTION, *OF_CODECS.values()]
    command = [sys.executable, "-P", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *modules]
    run = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False, timeout=500)
    assert run.returncode == 0, run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if "::" in line]


def cases(tests: list[str], function: str) -> list[str]:
    """What a function is given."""
    return [test.partition("[")[2] for test in tests if test.partition("[")[0].endswith(f"::{function}")]


def functions(path: str) -> set[str]:
    """The test functions of a module, but for slow ones."""
    found = [node for node in ast.parse((TOP / path).read_text()).body if isinstance(node, ast.FunctionDef)]
    slow = {node.name for node in found if "mark.slow" in "".join(map(ast.unparse, node.decorator_list))}
    return {node.name for node in found if node.name.startswith("test_")} - slow


@pytest.mark.parametrize("name", KINDS)
def test_a_law_of_a_codec_has_no_ordinary_test(name: str, ordinary: list[str]) -> None:
    path = OF_CODECS[name]
    kept = {test.partition("[")[0] for test in ordinary}
    assert {f"{path}::{function}" for function in functions(path)} <= kept


@pytest.mark.parametrize("name", KINDS)
def test_a_codec_or_framework_is_not_compared_with_numpy(name: str, ordinary: list[str]) -> None:
    kind = KINDS[name].__name__
    assert any(case.startswith(kind) for case in cases(ordinary, "test_the_same_bytes_everywhere"))
    everywhere = cases(ordinary, "test_the_same_everywhere")
    for place in frameworks.PLACES:
        assert any(case.startswith(f"{place.name}-{place.device}-") and f"-{kind}" in case for case in everywhere)
        for way in place.ways:
            assert any(case.startswith(f"{place.name}-{place.device}-{way}-") for case in everywhere)


@pytest.mark.parametrize("name", KINDS)
def test_no_corrupt_stream_of_a_codec_is_tried(name: str, ordinary: list[str]) -> None:
    small = {case for case, make in SMALL.items() if arrcomp.from_bytes(make()).codec.name == name}
    for function in (
        "test_every_altered_byte_is_noticed",
        "test_every_cut_is_noticed",
        "test_altered_payloads_never_crash",
    ):
        assert small & {case.removesuffix("]") for case in cases(ordinary, function)}, function


def test_a_framework_takes_wrong_values(ordinary: list[str]) -> None:
    given = cases(ordinary, "test_values_that_are_not_finite_are_found")
    assert all(any(case.startswith(place.title) for case in given) for place in frameworks.PLACES)


def test_an_ordinary_test_needs_what_only_the_full_ones_install() -> None:
    extras = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {re.split(r"[^\w-]", requirement)[0] for requirement in extras["test-full"]} - {"arrcomp", "cupy-cuda13x"}
    assert {"h5py", "peft", "xarray"} <= names
    modules = names - {"scikit-learn", "orbax-checkpoint"} | {"sklearn", "orbax", "lightning", "transformers"}
    for path in (TOP / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text())
        full = {node for node in tree.body if "mark.full" in ast.unparse(node).partition("\ndef ")[0]}
        for node in tree.body if not any(isinstance(node, ast.Assign) for node in full) else ():
            needed = set(re.findall(r"importorskip\('(\w+)", ast.unparse(node)))
            assert node in full or not needed & modules, f"{path}, line {node.lineno}"


def test_a_value_is_left_out_or_is_there_too_often() -> None:
    product = [frozenset({("a", a), ("b", b)}) for a in range(4) for b in range(3)]
    kept = covering([frozenset(((name,), (str(value),)) for name, value in case) for case in product])
    assert {value for number in kept for value in product[number]} == {value for case in product for value in case}
    assert len(kept) == 4
