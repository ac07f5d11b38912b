"""What `import arrcomp` needs, loads and shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import arrcomp
from arrcomp import _core

# What takes milliseconds, and neither NumPy nor a small call needs.
HEAVY = {
    *("asyncio", "concurrent.futures", "ctypes", "difflib", "hashlib", "importlib.metadata", "importlib.resources"),
    *(
        "multiprocessing",
        "pathlib",
        "pydoc",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "typing_extensions",
        "unittest",
    ),
    *("urllib.parse", "zipfile", "rich", "safetensors", "typer", "zstandard", "torch", "jax", "cupy", "zarr"),
    *("arrcomp._cli", "arrcomp._files", "arrcomp.activations", "arrcomp.stores", "arrcomp.torch", "arrcomp.jax"),
}


def python(code: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, code], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("options", [("-c", "import arrcomp"), ("-m", "arrcomp")])
def test_the_source_tree_says_that_it_has_no_extension(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, str]
) -> None:
    source = Path(arrcomp.__file__).parent
    if Path(_core.__file__).parent != source:
        pytest.skip("an editable installation has the extension module for every copy of the package")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    shutil.copytree(source, tmp_path / "arrcomp", ignore=shutil.ignore_patterns("_core.*", "__pycache__"))
    found = python(options[1], tmp_path, options[0])
    *_, last = found.stderr.splitlines()
    assert found.returncode == 1
    assert last.startswith(
        f"ImportError: {tmp_path / 'arrcomp'} has no compiled extension for this Python; if it is in"
    )
    assert "run Python from another folder, or as `python -P`" in last


def test_safe_path_finds_the_installed_package_in_the_source_tree(tmp_path: Path) -> None:
    (tmp_path / "arrcomp").mkdir()
    (tmp_path / "arrcomp" / "__init__.py").write_text("raise ImportError")
    found = python("import arrcomp; print(arrcomp.__file__)", tmp_path, "-P", "-c")
    assert found.stdout.strip() == arrcomp.__file__, found.stderr


def test_importing_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys, numpy; before = set(sys.modules); import arrcomp; print(*sorted(set(sys.modules) - before))"
    found = python(code, tmp_path, "-P", "-c")
    loaded = set(found.stdout.split())
    assert "arrcomp._core" in loaded, found.stderr
    assert loaded & HEAVY == set()


def test_names_that_are_loaded_later_are_listed_and_found() -> None:
    assert set(arrcomp.__all__) <= set(dir(arrcomp))
    assert all(getattr(arrcomp, name) is not None for name in arrcomp.__all__)
    with pytest.raises(AttributeError, match="module 'arrcomp' has no attribute 'nothing'"):
        _ = arrcomp.nothing


def test_nothing_internal_is_listed(tmp_path: Path) -> None:
    found = python("import arrcomp; arrcomp.load_file; print(*dir(arrcomp))", tmp_path, "-P", "-c")
    public = {name for name in found.stdout.split() if not name.startswith("_")}
    assert public == {*arrcomp.__all__, "codecs", "errors"}, found.stderr


# Modules and functions that Windows or macOS lack. (Python's own libraries that look for them are imported before.)
ELSEWHERE = """
import asyncio, multiprocessing, os, pkgutil, shutil, subprocess, sys, tempfile
import numpy, ml_dtypes, xxhash, safetensors

for name in ("fcntl", "grp", "posix_ipc", "pwd", "resource", "syslog", "termios"):
    sys.modules[name] = None
for name in ("O_TMPFILE", "copy_file_range", "fchmod", "fork", "memfd_create", "preadv", "register_at_fork",
             "sched_getaffinity", "sched_setaffinity", "sendfile"):
    if hasattr(os, name):
        delattr(os, name)

import arrcomp

others = ("arrcomp.torch", "arrcomp.jax", "arrcomp.cupy", "arrcomp.stores.", "arrcomp.__main__", "arrcomp._cli")
for module in pkgutil.walk_packages(arrcomp.__path__, "arrcomp.", onerror=lambda name: None):
    if not module.name.startswith(others):
        __import__(module.name)

x = numpy.arange(100_000)
path = os.path.join(sys.argv[1], "x.arrcomp.safetensors")
for _ in range(2):
    arrcomp.save_file({"x": x}, path)
assert (arrcomp.load_file(path)["x"] == x).all()
with arrcomp.open_file(path) as file:
    assert (file.slice("x")[5000:5010] == x[5000:5010]).all()
"""


def test_what_other_systems_lack_is_not_needed(tmp_path: Path) -> None:
    script = tmp_path / "elsewhere.py"
    script.write_text(ELSEWHERE)
    found = python(str(tmp_path), tmp_path, str(script))
    assert found.returncode == 0, found.stderr
