"""The commands `arrcomp delta` and `arrcomp apply`, and what others say of a file that needs a base."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks

pytest.importorskip("typer")
safetensors_numpy = pytest.importorskip("safetensors.numpy")

from typer.testing import CliRunner

from arrcomp import _cli

RNG = np.random.default_rng(12)
OLD: dict[str, NDArray[Any]] = {
    "w": RNG.normal(0, 0.02, (64, 100)).astype(np.float32),
    "b": np.arange(50),
    "c": np.ones(3),
}
NEW = {name: array.copy() for name, array in OLD.items()} | {"c": np.ones(4)}
NEW["w"][3] += 0.5
NEW["b"][7] = 9


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with both states, as models and as arrays."""
    monkeypatch.chdir(tmp_path)
    for name, state in (("old", OLD), ("new", NEW)):
        safetensors_numpy.save_file(state, f"{name}.safetensors")
        np.save(f"{name}.npy", state["w"])
    return tmp_path


def run(*arguments: str, code: int = 0, stdin: bytes | None = None) -> str:
    """What a command prints; it must end with this exit code, and errors in one line."""
    result = CliRunner().invoke(_cli.app, arguments, input=stdin)
    assert result.exit_code == code, result.output
    if code:
        assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr if code else result.stdout


def check_arrays(path: str, expected: dict[str, NDArray[Any]]) -> None:
    arrays = safetensors_numpy.load_file(path)
    assert set(arrays) == set(expected)
    for name, array in expected.items():
        checks.check_same_bits(arrays[name], array)


def test_a_delta_is_written_and_applied() -> None:
    table = run("delta", "old.safetensors", "new.safetensors")
    assert "wrote new.arrcomp.safetensors: " in table
    assert table.endswith("every bit kept, against old.safetensors\n")
    assert table.count("predictor=reference") == 2  # not of the array of another shape
    with arrcomp.open_file("new.arrcomp.safetensors") as file:
        assert file.base == Path("old.safetensors")
    assert "wrote back.safetensors: 3 arrays" in run("apply", "new.arrcomp.safetensors", "-o", "back.safetensors")
    check_arrays("back.safetensors", NEW)
    run("decompress", "new.arrcomp.safetensors", "-o", "again.safetensors")
    check_arrays("again.safetensors", NEW)
    assert "verified" in run("verify", "new.safetensors", "new.arrcomp.safetensors")
    run("diff", "new.safetensors", "new.arrcomp.safetensors")


def test_the_options_of_compress_are_those_of_delta() -> None:
    zstd = ["--zstd", "3"] if importlib.util.find_spec("zstandard") else []
    options = [*zstd, "--abs", "1e-4", "--rule", "b=base-delta", "--threads", "1", "--no-check", "--quiet"]
    assert run("delta", "old.safetensors", "new.safetensors", "-o", "d.safetensors", *options) == ""
    with arrcomp.open_file("d.safetensors") as file:
        assert {name: file.compressed(name).needs_reference for name in file} == {"w": True, "b": False, "c": False}
        checks.check_bound(NEW["w"], file["w"], arrcomp.ErrorBounded(abs=1e-4))
    assert "1 of" not in run("verify", "new.safetensors", "d.safetensors")
    document = json.loads(run("delta", "old.npy", "new.npy", "--rel", "1e-3", "--json"))
    assert document["arrays"][0]["codec"]["predictor"] == "reference"
    assert document["total"]["violations"] == 0
    message = run("delta", "old.npy", "new.npy", "-o", "x.arrcomp", "--rule", "q=lossless", code=2)
    assert "rule 'q=lossless': matches no array" in message


def test_one_array_is_a_stream_whose_base_is_named_when_it_is_applied() -> None:
    run("delta", "old.npy", "new.npy", "-o", "d.arrcomp")
    assert "d.arrcomp: expected a base" in run("apply", "d.arrcomp", "-o", "back.npy", code=2)
    run("apply", "d.arrcomp", "--base", "old.npy", "-o", "back.npy")
    checks.check_same_bits(np.load("back.npy"), NEW["w"])
    assert "verified d.arrcomp" in run("verify", "new.npy", "d.arrcomp", "--base", "old.npy")
    assert "checksums are right, against a file that it does not name" in run("info", "d.arrcomp")
    run("delta", "old.npy", "new.npy")  # this file names it
    run("apply", "new.npy.arrcomp.safetensors", "-o", "again.npy")
    checks.check_same_bits(np.load("again.npy"), NEW["w"])


def test_deltas_go_through_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("new.npy").read_bytes())))
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit, match="0"):
        _cli.app(["delta", "old.npy", "-"])
    c = arrcomp.from_bytes(out.buffer.getvalue())
    checks.check_same_bits(c.decompress(reference=OLD["w"]), NEW["w"])


def test_a_delta_of_a_delta_becomes_a_full_file() -> None:
    run("delta", "old.safetensors", "new.safetensors", "-o", "d1.arrcomp.safetensors")
    newer = NEW | {"w": NEW["w"] + np.float32(1)}
    safetensors_numpy.save_file(newer, "newer.safetensors")
    options = ["-o", "d2.arrcomp.safetensors", "--rule", "b=base-delta"]
    run("delta", "d1.arrcomp.safetensors", "newer.safetensors", *options)
    run("apply", "d2.arrcomp.safetensors", "-o", "full.arrcomp.safetensors")
    for path in ("old.safetensors", "d1.arrcomp.safetensors"):
        Path(path).unlink()
    with arrcomp.open_file("full.arrcomp.safetensors") as file:
        assert file.base is None
        for name, array in newer.items():
            checks.check_same_bits(file[name], array)


def test_info_says_what_a_file_needs() -> None:
    run("delta", "old.safetensors", "new.safetensors", "-o", "d.safetensors")
    assert run("info", "d.safetensors").endswith("checksums are right, against old.safetensors\n")
    assert json.loads(run("info", "--json", "d.safetensors"))["base"] == "old.safetensors"
    Path("old.safetensors").rename("moved.safetensors")
    assert run("info", "d.safetensors").endswith(", against old.safetensors, which is missing\n")
    message = run("apply", "d.safetensors", "-o", "x.safetensors", code=2)
    assert message.startswith("arrcomp: old.safetensors: expected the base of d.safetensors, got no such file; pass")
    run("apply", "d.safetensors", "--base", "moved.safetensors", "-o", "x.safetensors")
    run("compress", "new.npy", "-o", "x.arrcomp")
    assert "base" not in json.loads(run("info", "--json", "x.arrcomp"))


def test_a_file_whose_codec_takes_no_reference_is_said_to_need_no_base() -> None:
    text = run("delta", "old.npy", "new.npy", "-o", "x.arrcomp", "--codec", "int4")
    assert text.endswith("all guarantees kept; no array was coded against old.npy\n")


def test_another_base_is_refused_and_nothing_is_written(folder: Path) -> None:
    run("delta", "old.safetensors", "new.safetensors", "-o", "d.safetensors")
    before = sorted(path.name for path in folder.iterdir())
    for command in (["apply", "d.safetensors", "-o", "x.npz"], ["verify", "new.safetensors", "d.safetensors"]):
        message = run(*command, "--base", "new.safetensors", code=2)
        assert "d.safetensors, array 'b': expected the array that it was coded against in new.safetensors" in message
    assert sorted(path.name for path in folder.iterdir()) == before
    message = run("delta", "old.safetensors", "new.safetensors", "-o", "old.safetensors", "--force", code=2)
    assert "old.safetensors: expected another file than base and those that it needs" in message
    check_arrays("old.safetensors", OLD)
    message = run("delta", "old.npy", "new.safetensors", "-o", "x.safetensors", code=2)
    assert "base: expected an array of the same name, dtype and shape as one to save, got ['arr_0']" in message
    run("apply", "d.safetensors", "-o", "old.safetensors", "--force")  # in place of the base, which is read
    check_arrays("old.safetensors", NEW)


def test_a_bound_that_breaks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run("delta", "old.npy", "new.npy", "-o", "d.safetensors")
    other = NEW["w"].copy()
    other[0, 0] += 1
    np.save("new.npy", other)
    assert "1 value breaks the guarantee of lossless" in run("verify", "new.npy", "d.safetensors", "--quiet", code=1)
