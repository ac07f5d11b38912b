"""Compressed tensors in pickles, copies and state_dicts; what comes out of them is not trusted."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import CorruptStreamError, ErrorBounded, Lossless
from arrcomp._api import pickling

torch = pytest.importorskip("torch")

import arrcomp.torch
from arrcomp.torch import _import_arrcomp_torch_first as _pickling
from arrcomp.torch import _ops

RNG = np.random.default_rng(7)
X = RNG.normal(0, 1, (6, 50)).astype(np.float32)
BOUNDED = ErrorBounded(abs=1e-2)


def saved_and_loaded(value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True, **options)


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301


@pytest.mark.parametrize("twin", [saved_and_loaded, copy.copy, copy.deepcopy, pickled])
def test_compressed_tensors_pickle_and_copy(twin: Any) -> None:
    c = arrcomp.compress(torch.from_numpy(X), ErrorBounded(rel=1e-3))
    again = twin(c)
    assert again.to_bytes() == c.to_bytes()
    assert (again.codec, again.shape, again.dtype, again.device) == (c.codec, c.shape, c.dtype, c.device)
    assert isinstance(arrcomp.decompress(again), torch.Tensor)


def test_a_state_dict_holds_compressed_arrays(tmp_path: Path) -> None:
    model = torch.nn.Linear(30, 40)
    state = {name: arrcomp.compress(value, BOUNDED) for name, value in model.state_dict().items()}
    state |= {"host": arrcomp.compress(X), "plain": torch.ones(3)}
    torch.save(state, tmp_path / "state.pt")
    for options in ({}, {"mmap": True}, {"map_location": "cpu"}):
        loaded = torch.load(tmp_path / "state.pt", weights_only=True, **options)
        assert isinstance(arrcomp.decompress(loaded["host"]), np.ndarray)
        twin = torch.nn.Linear(30, 40)
        twin.load_state_dict({name: arrcomp.decompress(loaded[name]) for name in model.state_dict()})
        for mine, theirs in zip(twin.parameters(), model.parameters(), strict=True):
            assert (mine - theirs).abs().max() <= 1e-2


@pytest.mark.parametrize("shape", [(1,) * 65, (0, 1 << 62)], ids=["dimensions", "size"])
def test_a_shape_that_is_not_unpickled_is_not_pickled(shape: tuple[int, ...]) -> None:
    x = torch.empty(shape, dtype=torch.float64)
    for write in (pickle.dumps, saved_and_loaded, arrcomp.Compressed.to_bytes):
        with pytest.raises(ValueError, match=r"^shape: expected at most 64 dimensions"):
            write(arrcomp.compress(x))
    file = io.BytesIO()
    arrcomp.torch.save(x, file)  # as torch.save does
    file.seek(0)
    assert torch.equal(arrcomp.torch.load(file), x)


def test_pickles_are_as_large_as_the_payload() -> None:
    x = torch.zeros(100_000)
    room = torch.empty(arrcomp.max_compressed_nbytes(x), dtype=torch.uint8)
    # What leaves compiled code has more memory than the payload takes.
    compiled = _ops.encode([x], Lossless.id, [0.0, 0.0])
    trimmed = arrcomp.compress(x)
    payload = type(trimmed.payload)(trimmed.payload.adapter, *compiled, trusted=True)
    for c in (trimmed, arrcomp.compress(x, out=room), arrcomp.Compressed(trimmed.spec, payload)):
        assert len(pickle.dumps(c)) < c.nbytes + 1000
        assert c.to_bytes() == trimmed.to_bytes()


def test_torch_load_says_what_to_import(tmp_path: Path) -> None:
    torch.save({"x": arrcomp.compress(torch.ones(300))}, tmp_path / "compressed.pt")
    arrcomp.torch.save({"x": torch.ones(300)}, tmp_path / "streams.pt")
    for name in ("compressed.pt", "streams.pt"):
        for statement, fails in (("import torch", True), ("import torch, arrcomp.torch", False)):
            code = f"{statement}; torch.load({str(tmp_path / name)!r})"
            run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
            assert (run.returncode != 0) is fails, run.stderr
            assert ("GLOBAL arrcomp.torch._import_arrcomp_torch_first." in run.stderr) is fails


def test_what_is_unpickled_is_not_trusted() -> None:
    c = arrcomp.compress(torch.from_numpy(X))
    assert c.payload.trusted
    assert not saved_and_loaded(c).payload.trusted


@pytest.mark.parametrize(
    "arguments",
    [
        {"payload": None},
        {"payload": torch.zeros(5000)},
        {"payload": torch.zeros(50, 100, dtype=torch.uint8)},
        {"payload": torch.zeros(10, dtype=torch.uint8)},
        {"payload": torch.zeros(10_000, dtype=torch.uint8)[::2]},
        {"config": {"codec": "error-bounded"}},
        {"config": None},
        {"config": {"codec": "error-bounded", "abs": 1.0}, "dtype": "int64"},
        {"dtype": "float31"},
        {"dtype": None},
        {"shape": [6, 50]},
        {"shape": (6, -50)},
        {"shape": (6, 50.0)},
        {"shape": (1 << 40, 1 << 40, 0)},
        {"shape": (1 << 50,)},
        {"shape": (1,) * 65},
    ],
    ids=repr,
)
def test_hostile_pickles_are_refused(arguments: dict[str, Any]) -> None:
    _, (payload, config, dtype, shape) = pickling.reduced(arrcomp.compress(torch.from_numpy(X)))
    good = {"payload": payload, "config": config, "dtype": dtype, "shape": shape}
    assert _pickling.rebuild(**good).shape == (6, 50)
    with pytest.raises(CorruptStreamError):
        _pickling.rebuild(**good | arguments)


def test_altered_pickles_are_found_corrupt() -> None:
    rebuild, (payload, *rest) = pickling.reduced(arrcomp.compress(torch.from_numpy(X)))
    payload = payload.clone()
    payload[0] ^= 0xFF
    c = rebuild(payload, *rest)
    with pytest.raises(CorruptStreamError):
        arrcomp.decompress(c)
    with pytest.raises(CorruptStreamError):
        c.verify()
