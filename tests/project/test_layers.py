"""Modules import what is below them, frameworks are imported in their folders alone, public modules are documented."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parents[2]
FACE = "arrcomp"
# From the bottom; modules side by side do not import each other. The command line uses the package as users do.
LAYERS = (
    "_core _interrupts, errors, _arguments, _dtypes cpu, codecs, _format, _arrays _methods, activations, _api, _files"
)
LAYERS += f", stores torch jax cupy, {FACE}, _cli, __main__"
NEEDED = {"numpy", "ml_dtypes", "xxhash"}
# Who imports which other library.
LIBRARIES = {"zstandard": "_format", "safetensors": "_files", "zarr": "stores", "numcodecs": "stores", "torch": "torch"}
LIBRARIES |= {"fsspec": "_files.remote", "transformers": "torch.transformers", "lmcache": "torch.lmcache"}
LIBRARIES |= {"torchft": "torch.distributed.torchft"}
LIBRARIES |= {"jax": "jax", "jaxlib": "jax", "optax": "jax", "cupy": "cupy"}
LIBRARIES |= {"typer": "_cli", "rich": "_cli _files.progress", "matplotlib": "_cli"}
# It imports the adapters of frameworks, once an array of theirs is there.
REGISTRY = "_arrays.registry"


class Module(NamedTuple):
    """A module, the modules of its package that it imports, in functions too, and other libraries."""

    tree: ast.Module
    targets: set[str]
    libraries: set[str]


Modules = dict[str, Module]  # by their names in the package


def read(package: Path) -> Modules:
    files = {path.relative_to(package).with_suffix("").parts: path for path in sorted(package.rglob("*.py"))}
    names = {parts: ".".join(part for part in parts if part != "__init__") or FACE for parts in files}
    known, modules = {*names.values(), "_core"}, {}
    for parts, path in files.items():
        tree = ast.parse(path.read_text())
        found = [name.split(".", 1) for node in ast.walk(tree) for name in imported(node, (FACE, *parts))]
        inside = {name for first, *rest in found if first == FACE for name in rest or [FACE]}
        # `from .codecs import Lossless` imports codecs.
        targets = {name if name in known else name.rpartition(".")[0] or FACE for name in inside}
        modules[names[parts]] = Module(tree, targets, {first for first, *_ in found} - {FACE})
    return modules


def imported(node: ast.AST, parts: tuple[str, ...]) -> Iterator[str]:
    """What a statement of the file at `parts` imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = [*parts[: -node.level or -len(parts)], *filter(None, [node.module])]
        yield from (".".join([*base, alias.name]) for alias in node.names)


def not_below(modules: Modules) -> Iterator[str]:
    heights = {folder: height for height, line in enumerate(LAYERS.split(", ")) for folder in line.split()}
    for name, module in modules.items():
        here = name.split(".")[0]
        for target in sorted(module.targets):
            there = target.split(".")[0]
            if here != there and heights[there] >= heights[here] and name != REGISTRY:
                yield f"{name} -> {target}"


def circle(modules: Modules) -> list[str]:
    try:
        TopologicalSorter({name: module.targets for name, module in modules.items() if name != REGISTRY}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def strays(modules: Modules) -> Iterator[str]:
    for name, module in modules.items():
        for library in sorted(module.libraries - NEEDED - sys.stdlib_module_names):
            if not any(f"{name}.".startswith(f"{folder}.") for folder in LIBRARIES.get(library, "").split()):
                yield f"{name} imports {library}"


def undocumented(modules: Modules, pages: str) -> Iterator[str]:
    for name, module in modules.items():
        if re.search(r"(^|\.)_", name):
            continue
        names = [node for node in module.tree.body if ast.unparse(node).startswith("__all__")]
        if not names and module.tree.body[1:]:
            yield f"{name} has no __all__"
        if names and not re.search(rf"\b{re.escape(f'{FACE}.{name}' if name != FACE else FACE)}\b", pages):
            yield f"no page has {name}"


def test_imports_go_up_or_in_a_circle() -> None:
    modules = read(TOP / FACE)
    assert [*not_below(modules), *circle(modules)] == []


def test_a_library_is_imported_outside_of_its_folder() -> None:
    assert list(strays(read(TOP / FACE))) == []


def test_what_a_public_module_has_stands_nowhere() -> None:
    pages = "\n".join(page.read_text() for page in (TOP / "docs" / "reference").glob("*.md"))
    assert list(undocumented(read(TOP / FACE), pages)) == []


def test_these_checks_find_nothing(tmp_path: Path) -> None:
    (tmp_path / "codecs").mkdir()
    (tmp_path / "codecs" / "__init__.py").write_text('"""Codecs."""\nfrom ._base import Base\n')
    (tmp_path / "codecs" / "_base.py").write_text("def f():\n    from .._api import compress\n    import torch\n")
    (tmp_path / "_api.py").write_text("from . import codecs, errors\n")
    (tmp_path / "errors.py").write_text('__all__ = ["Error"]\n')
    modules = read(tmp_path)
    assert list(not_below(modules)) == ["codecs._base -> _api"]
    assert set(circle(modules)) == {"codecs", "codecs._base", "_api"}
    assert list(strays(modules)) == ["codecs._base imports torch"]
    assert list(undocumented(modules, "arrcomp.errorsome")) == ["codecs has no __all__", "no page has errors"]
