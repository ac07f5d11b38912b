"""The examples in docstrings, in the README and on the pages of docs/ run and print what they show."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import arrcomp
from ordinary import then_full

from . import pages

MOST_ELSEWHERE = 6
README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
MODULES = ["arrcomp", *(module.name for module in pkgutil.walk_packages(arrcomp.__path__, "arrcomp."))]
LONG = ["arrcomp._cli.demo_data"]  # a network is trained for its arrays
DOCUMENTED = [name for name in MODULES if not name.endswith("__main__")]


@pytest.mark.parametrize("name", then_full((n for n in DOCUMENTED if n not in LONG), LONG))
def test_the_examples_of_docstrings(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))
    assert doctest.testmod(module).failed == 0


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # by inductor's own imports
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.partition("\n")[0])
def test_every_block_of_the_readme_runs_alone(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"^import (torch|jax)$", block, re.MULTILINE):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    exec(block, {})  # noqa: S102


def test_the_readme_has_blocks_for_numpy_torch_and_jax() -> None:
    assert [block.partition("\n")[0] for block in BLOCKS] == ["import numpy as np", "import torch", "import jax"]


def test_the_links_and_the_picture_of_the_readme_exist() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert "bench/speed.png" in targets
    assert [target for target in targets if not (README.parent / target).exists()] == []


# What a page needs besides arrcomp and NumPy.
NEEDS = {
    "bounds.md": ("torch", "safetensors"),
    "start.md": ("safetensors", "typer", "rich"),
    "use/pytorch.md": ("torch", "safetensors"),
    "use/jax.md": ("jax", "optax", "safetensors"),
    "use/collectives.md": ("torch",),
    "use/compressed-models.md": ("torch", "transformers", "safetensors"),
    "use/training.md": ("torch",),
    "use/files.md": ("safetensors", "zstandard", "torch", "fsspec"),
    "use/stores.md": ("xarray", "zarr", "dask", "fsspec"),
    "use/deltas.md": ("torch", "jax"),
    "use/kv-caches.md": ("torch", "transformers"),
    "use/command-line.md": ("typer", "rich", "safetensors"),
    "codecs/activations.md": ("torch",),
    "coming-from/bitsandbytes.md": ("torch",),
    "coming-from/cgx.md": ("torch",),
    "coming-from/fewbit.md": ("torch",),
    "coming-from/numcodecs.md": ("zarr", "numcodecs"),
    "coming-from/smaq.md": ("torch",),
    "fields.md": ("xarray", "zarr", "typer", "rich", "safetensors"),
    "use/transformers.md": ("torch", "transformers", "safetensors"),
}
SHOWING = [page for page in pages.pages() if "```" in (pages.DOCS / page).read_text("utf-8")]
# Those that take long, and those that need what only the extra test-full has.
FULL = {"bounds.md", "use/collectives.md"}
FULL |= {page for page, needed in NEEDS.items() if {"transformers", "xarray"}.intersection(needed)}


@pytest.fixture
def _no_group_left() -> Iterator[None]:
    """A page that fails half-way leaves no process group to the tests after it."""
    yield
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.usefixtures("_no_group_left")
@pytest.mark.parametrize(
    "page", then_full((page for page in SHOWING if page not in FULL), (page for page in SHOWING if page in FULL))
)
def test_what_a_page_shows_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in NEEDS.get(page, ()):
        pytest.importorskip(module)
    if page == "use/jax.md" and not hasattr(pytest.importorskip("jax").lax, "pcast"):
        pytest.skip("this version of JAX has no jax.lax.pcast, which the page's train step calls")
    monkeypatch.chdir(tmp_path)
    pages.run(page, tmp_path)


def test_few_blocks_are_left_to_other_machines() -> None:
    found = [block for page in pages.pages() for block in pages.blocks((pages.DOCS / page).read_text("utf-8"))]
    shown = [block for block in found if block.language in ("python", "console")]
    left = [block for block in shown if block.title in pages.ELSEWHERE]
    assert len(left) <= MOST_ELSEWHERE
    assert len(shown) > 10 * len(left)


def test_an_output_that_is_not_what_is_printed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '```python\nprint(1 + 1)\n```\n\n```text title="output"\n{}\n```\n'
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    for output in ("2", "..."):
        (tmp_path / "page.md").write_text(text.format(output))
        pages.run("page.md", tmp_path)
    (tmp_path / "page.md").write_text(text.format("3"))
    with pytest.raises(AssertionError, match=r"page.md, line 6: the page says\n3\n"):
        pages.run("page.md", tmp_path)


def numbers(text: str) -> set[str]:
    """The numbers with a decimal point in a text."""
    return set(re.findall(r"(?<![\w.])\d[\d,]*\.\d+(?:e-?\d+)?(?![\w.])", text))


@pytest.mark.parametrize("page", ["bounds.md", "limits.md", "speed.md", "../README.md"])
def test_the_figures_of_a_page_were_measured(page: str) -> None:
    text = re.sub(r"```.*?```", "", (pages.DOCS / page).read_text("utf-8"), flags=re.DOTALL)
    measured = "".join(path.read_text("utf-8") for path in sorted((pages.DOCS.parent / "bench").glob("*.md")))
    versions = {"2.0", "2.9", "0.6", "13.2", "3.1", "3.11", "12.4", "0.001", "0.0001"}
    assert len(numbers(text)) >= 2
    assert numbers(text) - numbers(measured) - versions == set()


CODEC_LIST = runpy.run_path(str(pages.DOCS / "tools" / "codec_list.py"))


def test_the_site_has_every_codec_in_the_order_of_ids() -> None:
    kinds = arrcomp.available_codecs()
    entries = "".join(f"::: arrcomp.{kind.__name__}\n\n" for kind in kinds.values())
    assert CODEC_LIST["expanded"](f"{CODEC_LIST['CODECS']}\n\n") == entries
    assert CODEC_LIST["pages"]("codecs/*.md") == [f"codecs/{name}.md" for name in (*kinds, "activations")]


def reference() -> str:
    """The text of the reference, as the site shows it."""
    text = "".join(path.read_text("utf-8") for path in sorted((pages.DOCS / "reference").glob("*.md")))
    return str(CODEC_LIST["expanded"](text))


@pytest.mark.parametrize(
    "name", ["arrcomp", "arrcomp.torch", "arrcomp.torch.nn", "arrcomp.torch.distributed", "arrcomp.jax"]
)
def test_all_public_names_are_in_the_reference(name: str) -> None:
    if name != "arrcomp":
        pytest.importorskip(name.split(".")[1])
    listed = reference()
    module = importlib.import_module(name)
    entries = {one: f"::: {place_in_reference(module, one)}\n" for one in module.__all__ if one != "nn"}
    assert {one for one, entry in entries.items() if entry not in listed} == set()


PUBLIC_MODULES = (
    "arrcomp",
    "arrcomp.codecs",
    "arrcomp.activations",
    "arrcomp.errors",
    "arrcomp.cpu",
    "arrcomp.stores.zarr",
    "arrcomp.stores.numcodecs",
    "arrcomp.torch",
    "arrcomp.torch.nn",
    "arrcomp.torch.functional",
    "arrcomp.torch.optim",
    "arrcomp.torch.distributed",
    "arrcomp.torch.distributed.fsdp",
    "arrcomp.torch.distributed.checkpoint",
    "arrcomp.torch.training",
    "arrcomp.jax",
    "arrcomp.jax.nn",
    "arrcomp.jax.optim",
    "arrcomp.cupy",
)


def directives() -> list[str]:
    """The paths of the objects that the reference documents."""
    return re.findall(r"^::: (\S+)$", reference(), re.MULTILINE)


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_the_reference_has_every_public_module(name: str) -> None:
    module, paths = imported(name), directives()
    one_by_one = any(path.startswith(f"{name}.") for path in paths)
    assert one_by_one or name in paths
    for one in getattr(module, "__all__", ()) if one_by_one else ():
        value = getattr(module, one)
        if not isinstance(value, ModuleType) and not is_error(value):
            assert any(value is resolved(path) for path in paths if path.endswith(f".{one}")), one


def test_the_reference_has_no_private_path() -> None:
    paths = directives()
    assert len(paths) > 100
    assert [path for path in paths if any(part.startswith("_") for part in path.split("."))] == []


def imported(name: str) -> ModuleType:
    """A module; the test is skipped where a package that it needs is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))


def resolved(path: str) -> Any:
    """The object that a path names, or None where a package that it needs is not installed."""
    name, _, attribute = path.rpartition(".")
    try:
        return getattr(importlib.import_module(name), attribute, None)
    except ImportError:
        return None


def is_error(value: Any) -> bool:
    """Whether a value is one of arrcomp's errors, which the reference shows as a module."""
    return isinstance(value, type) and issubclass(value, arrcomp.ArrcompError)


def place_in_reference(module: Any, name: str) -> str:
    """The path of a public name in the reference: where a module has the same name, the reference would show that."""
    path = f"{module.__name__}.{name}"
    value = getattr(module, name)
    if is_error(value):
        return "arrcomp.errors"
    if isinstance(value, ModuleType) or importlib.util.find_spec(path) is None:
        return path
    return f"{value.__module__}.{name}"
