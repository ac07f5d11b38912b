"""The examples in docstrings and in the README run, and give what they say."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
MODULES = ["arrcomp", *(module.name for module in pkgutil.walk_packages(arrcomp.__path__, "arrcomp."))]
X = np.random.default_rng(0).normal(0, 0.02, (40, 50)).astype(np.float32)


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_the_examples_of_docstrings(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))
    assert doctest.testmod(module).failed == 0


class Model:
    """What the README calls a model."""

    def state_dict(self) -> dict[str, Any]:
        """Its arrays."""
        return {"weight": X, "steps": np.arange(3)}


@contextlib.contextmanager
def group_of_one(folder: Path) -> Iterator[None]:
    """Processes to talk to: this one alone."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


def module_of(block: str) -> str:
    """The framework, or the store, whose module of arrcomp a block imports."""
    found = re.search(r"^import arrcomp\.(\w+)", block, re.MULTILINE)
    return found[1] if found else "numpy"


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # by inductor's own imports
@pytest.mark.parametrize("block", BLOCKS, ids=module_of)
def test_the_examples_of_the_readme(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = module_of(block)
    names: dict[str, Any] = {"x": X, "other": X[:1], "array": np.empty_like(X), "model": Model(), "step": 3}
    names["state"] = {"params": X}
    names["codec"] = arrcomp.ErrorBounded(abs=1e-3)
    if name != "numpy":
        module = names[name] = pytest.importorskip(name)
        if name == "cupy" and not module.is_available():
            pytest.skip("CuPy finds no CUDA device")
        if name == "torch":
            names["model"] = module.nn.Linear(40, 50)
            names["gradients"] = [module.ones(1000), module.ones(2000)]
            names |= {"ac": arrcomp, "gradient": names["gradients"][0], "plan": [2, 8]}
        if name != "zarr":
            names["x"] = (module.from_numpy if name == "torch" else getattr(module, "numpy", module).asarray)(X)
    monkeypatch.chdir(tmp_path)
    # What a block's own function makes is what comes after it in the README.
    names["c"] = arrcomp.compress(names["x"], names["codec"])
    with group_of_one(tmp_path) if "torch.distributed as" in block else contextlib.nullcontext():
        exec(block, names)  # noqa: S102
    if callable(names["step"]):
        doubled = np.asarray(names["step"](names["x"]))
        assert np.all(np.abs(doubled - 2 * X) <= 2.001e-3)
