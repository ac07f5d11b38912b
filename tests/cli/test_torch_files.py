"""PyTorch files on the command line: they come back with their structure, and a missing PyTorch is named."""

from __future__ import annotations

import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp

torch = pytest.importorskip("torch")
pytest.importorskip("typer")
pytest.importorskip("safetensors")

from typer.testing import CliRunner

from arrcomp import _cli
from arrcomp._cli.words import size_text


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(_cli.app, arguments)
    assert result.exit_code == code, result.output
    assert len(result.stderr.splitlines()) == (code != 0)
    return result.stderr if code else result.stdout


def checkpoint() -> dict[str, Any]:
    """A model's and an optimizer's state, and values of all kinds."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(30, 20), torch.nn.LayerNorm(20))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 30)).sum().backward()
    optimizer.step()
    state = model.state_dict()
    state["tied"] = state["0.weight"]
    return {
        "model": state,
        "optimizer": optimizer.state_dict(),
        "plain": [3, 1e-3, "text", None, True, float("inf"), 10**30],
        "tuple": (torch.arange(3), [torch.tensor(2.5)]),
        "others": {"shape": torch.Size([2, 3]), "dtype": torch.bfloat16, "device": torch.device("cuda", 1)},
        "parameter": torch.nn.Parameter(torch.randn(3)),
        "dtypes": [torch.ones(2, 2).to(getattr(torch, name)) for name in ("bfloat16", "complex64", "bool", "int16")],
        "empty": torch.zeros(0, 3),
        "a.b": torch.ones(1),
        "a": {"b": torch.zeros(1)},
    }


def check_same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            check_same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            check_same(one, other)
    else:
        assert a == b


def test_a_checkpoint_comes_back_as_it_was() -> None:
    saved = checkpoint()
    torch.save(saved, "c.pt")
    names = run("info", "c.pt")
    for name in ("model.0.weight", "optimizer.state.0.exp_avg", "tuple.1.0", "parameter", "a.b", "a.b#2"):
        assert f"{name} " in names
    assert "tied" not in names  # it is 0.weight
    assert run("compress", "c.pt").endswith("every bit kept\n")
    assert run("verify", "c.pt", "c.pt.arrcomp.safetensors").endswith("every bit kept\n")
    run("decompress", "c.pt.arrcomp.safetensors", "-o", "back.pth")
    back = torch.load("back.pth", weights_only=True)
    check_same(saved, back)
    assert back["model"]._metadata == saved["model"]._metadata
    assert isinstance(back["model"], OrderedDict)
    assert back["model"]["tied"].data_ptr() == back["model"]["0.weight"].data_ptr()
    assert run("diff", "c.pt", "back.pth").endswith("equal: 26 arrays\n")


def test_arrays_of_other_files_become_a_state_dict() -> None:
    np.savez("m.npz", weight=np.arange(6.0).reshape(2, 3), step=np.array(7))
    run("compress", "m.npz")
    run("decompress", "m.npz.arrcomp.safetensors", "-o", "m.pt")
    check_same(
        torch.load("m.pt", weights_only=True),
        {"weight": torch.arange(6.0, dtype=torch.float64).reshape(2, 3), "step": torch.tensor(7)},
    )


def test_a_file_of_arrcomp_torch_save_is_read() -> None:
    x = torch.arange(100_000.0)
    arrcomp.torch.save({"x": x}, "c.pt", arrcomp.ErrorBounded(abs=0.25))
    in_file = Path("c.pt").stat().st_size
    assert f"c.pt: 1 array, 400 kB, in a file of {size_text(in_file)}\n" in run("info", "c.pt")


def test_a_checkpoint_is_made_of_what_has_changed_in_it() -> None:
    first, second = checkpoint(), checkpoint()
    second["parameter"].data[1] += 1
    torch.save(first, "first.pt")
    torch.save(second, "second.pt")
    run("compress", "first.pt")
    run("delta", "first.pt.arrcomp.safetensors", "second.pt")
    assert "against first.pt.arrcomp.safetensors" in run("info", "second.pt.arrcomp.safetensors")
    run("apply", "second.pt.arrcomp.safetensors", "-o", "back.pt")
    check_same(torch.load("back.pt"), second)
    assert "expected suffix .npy, .npz, .safetensors, .arrcomp" in run(
        "delta", "first.pt", "second.pt", "-o", "x.safetensors", code=2
    )


def test_a_single_tensor_is_a_file() -> None:
    torch.save(torch.ones(3), "x.pt")
    run("compress", "x.pt")
    run("decompress", "x.pt.arrcomp.safetensors", "--force")
    check_same(torch.load("x.pt"), torch.ones(3))


class Unknown:
    """An object that a checkpoint should not have."""


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (torch.nn.Linear(2, 2), "x.pt: expected tensors and plain values .* save model.state_dict() in place"),
        ({"a": torch.zeros(3, 3).to_sparse()}, "a: expected a dense tensor"),
        ({"a": {(1, 2): torch.zeros(3)}}, "x.pt, a: expected tensors and plain values .* got tuple"),
        ({"a": torch.zeros(3, device="meta")}, "x.pt, a: expected tensors and plain values"),
    ],
    ids=["module", "sparse", "key", "meta"],
)
def test_what_is_no_tensor_is_named(saved: Any, message: str) -> None:
    torch.save(saved, "x.pt")
    text = run("compress", "x.pt", code=2)
    for part in message.split(" .* "):
        assert part in text


@pytest.mark.parametrize("data", [b"", b"text", b"PK\3\4 broken", b"\x80\2."])
def test_a_damaged_file_is_told_in_one_line(data: bytes) -> None:
    Path("x.pt").write_bytes(data)
    assert "arrcomp: x.pt: expected " in run("info", "x.pt", code=2)


def test_a_damaged_structure_is_told(folder: Path) -> None:
    for number, structure in enumerate(("{", '{"tensor": "y"}', '{"set": []}', '{"dtype": "float3"}', '{"dict": 3}')):
        path = f"c{number}.safetensors"
        arrcomp.save_file({"x": np.ones(3)}, path, metadata={"torch_structure": structure})
        assert "expected the structure of a PyTorch file" in run("decompress", path, "-o", "x.pt", code=2)
    assert not Path("x.pt").exists()


def test_a_missing_pytorch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"x": torch.ones(3)}, "x.pt")
    monkeypatch.delitem(sys.modules, "arrcomp.torch._state_files", raising=False)
    monkeypatch.delattr(arrcomp.torch, "_state_files", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    message = run("compress", "x.pt", code=2)
    assert "x.pt: PyTorch's files need PyTorch" in message
    assert "pip install torch" in message
