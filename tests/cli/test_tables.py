"""Tables at every width: names stay whole, no word is broken, and no line is too long."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import arrcomp

pytest.importorskip("typer")
safetensors_numpy = pytest.importorskip("safetensors.numpy")

from rich.cells import cell_len
from typer.testing import CliRunner

from arrcomp import _cli
from arrcomp._cli import tables, words
from arrcomp._cli.tables import Column, Row, Table

from . import terminals

RNG = np.random.default_rng(8)
LAYERS = (
    "attention.self.query.weight",
    "attention.output.LayerNorm.weight",
    "output.dense.bias",
    "output.dense.weight",
)
NAMES = [f"bert.encoder.layer.{number}.{layer}" for number in range(26) for layer in LAYERS]
WIDTHS = (80, 120)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 104 tensors with long names, one array, and a tiny one; all of them compressed too."""
    folder = tmp_path_factory.mktemp("files")
    model = {name: RNG.normal(0, 0.02, (12, 12)).astype(np.float32) for name in NAMES}
    bounded = arrcomp.ErrorBounded(abs=1e-3)
    safetensors_numpy.save_file(model, folder / "model.safetensors")
    arrcomp.save_file(model, folder / "small.safetensors", bounded)
    one = RNG.normal(0, 0.02, (500, 400)).astype(np.float32)
    for name, x in (("one", one), ("tiny", np.arange(5.0))):
        np.save(folder / f"{name}.npy", x)
        arrcomp.save_file({name: x}, folder / f"{name}.arrcomp", bounded)
    return folder


def run(width: int, *arguments: str, code: int = 0) -> list[str]:
    """The lines that a command prints at this width."""
    result = CliRunner().invoke(_cli.app, arguments, env={"COLUMNS": str(width)})
    assert result.exit_code == code, result.output
    lines = result.stdout.splitlines()
    assert [line for line in lines if cell_len(line) > width or line != line.rstrip()] == []
    assert "…" not in result.stdout
    return lines


MODEL_COMMANDS = {
    "compress": (["compress", "model.safetensors", "--abs", "1e-3", "--force"], 0),
    "info": (["info", "small.safetensors"], 0),
    "info of a model that is not compressed": (["info", "model.safetensors"], 0),
    "verify": (["verify", "model.safetensors", "small.safetensors"], 0),
    "decompress": (["decompress", "small.safetensors", "-o", "back.safetensors", "--force"], 0),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", MODEL_COMMANDS)
def test_a_model_takes_a_line_for_each_array_and_a_total(
    files: Path, monkeypatch: pytest.MonkeyPatch, command: str, width: int
) -> None:
    monkeypatch.chdir(files)
    arguments, code = MODEL_COMMANDS[command]
    lines = run(width, *arguments, code=code)
    for name in NAMES:
        assert sum(line.startswith(f"{name} ") for line in lines) == 1
    assert sum(line.startswith("104 arrays ") for line in lines) == 1
    assert len(lines) <= 104 + 10


@pytest.mark.parametrize("width", WIDTHS)
def test_diff_shows_names_and_a_verdict(files: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.chdir(files)
    lines = run(width, "diff", "model.safetensors", "small.safetensors", code=1)
    assert sum(line.split(" ")[0] in NAMES for line in lines) == 40
    assert lines[-1] == "different: 104 of 104 arrays differ"
    lines = run(width, "diff", "one.npy", "one.arrcomp", code=1)
    assert sum(line.startswith("arr_0 ") for line in lines) == 1
    assert "PSNR" in " ".join(lines)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["one", "tiny"])
def test_one_array_is_shown_with_all_that_is_known(
    files: Path, monkeypatch: pytest.MonkeyPatch, name: str, width: int
) -> None:
    monkeypatch.chdir(files)
    for arguments in (["info", f"{name}.arrcomp"], ["verify", f"{name}.npy", f"{name}.arrcomp"]):
        text = "\n".join(run(width, *arguments))
        for word in ("arr_0", "float", "error-bounded abs=0.001", "ratio", "stored"):
            assert word in text
        assert "Not shown" not in text
        assert not re.search(r"\d/s| ms", text)  # no speeds unless they are asked for


def test_columns_that_do_not_fit_are_named(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    lines = run(80, "info", "small.safetensors")
    assert any(line.startswith("Not shown at this width: dtype, shape") for line in lines)


@pytest.mark.parametrize("width", [40, *WIDTHS, 200])
def test_lists_of_codecs_break_no_word(width: int) -> None:
    whole = set(CliRunner().invoke(_cli.app, ["codecs"]).stdout.split())  # in a pipe lines have any length
    found = " ".join(run(width, "codecs"))
    assert {word for word in found.split() if word.strip("─")} <= whole | {"codec:", "guarantee:", "dtypes:"} | {
        "instance:",
        "as:",
        "name:",
    }


def test_speeds_are_shown_where_asked_for_and_times_of_tiny_arrays(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    large = np.zeros((2000, 200), np.float32)
    np.savez("both.npz", tiny=np.arange(5.0), large=large)
    lines = run(160, "compress", "both.npz", "--timings", "--force")
    rows = {line.split()[0]: line for line in lines if line}
    assert len(re.findall(r"\d ms", rows["tiny"])) == 2
    assert len(re.findall(r"\d [MG]B/s", rows["large"])) == 2
    assert "encode" in lines[0]


def test_a_terminal_says_how_wide_it_is(files: Path) -> None:
    code, text = terminals.in_terminal(80, "info", str(files / "small.safetensors"), NO_COLOR="1")
    lines = [line.split("\r")[-1] for line in terminals.without_styles(text).splitlines()]
    assert code == 0
    table = [line for line in lines if line.split(" ")[0] in NAMES]
    assert len(table) == 104
    assert max(map(len, table)) <= 80


def test_a_pipe_gets_a_line_for_each_array_with_all_columns(files: Path) -> None:
    text = CliRunner().invoke(_cli.app, ["info", str(files / "small.safetensors")]).stdout
    rows = [line for line in text.splitlines() if line.split(" ")[0] in NAMES]
    assert len(rows) == 104
    assert all("float32  12 x 12  error-bounded abs=0.001" in row for row in rows)


def drawn(table: Table, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    return tables.rendered(table)


def test_layouts_are_tried_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (Column("name"), Column("many words", is_prose=True, rank=1), Column("largest error", is_number=True))
    table = Table(columns, [Row(["[red]x", "one two three", "9"], "red"), Row(["y", "four", "10"])])
    assert drawn(table, 60, monkeypatch).splitlines()[2] == "[red]x  one two three              9"
    wrapped = drawn(table, 24, monkeypatch)
    assert wrapped.splitlines()[:2] == ["        many     largest", "name    words      error"]
    assert "one two        9\n" in wrapped
    narrow = drawn(table, 16, monkeypatch)
    assert "Not shown at this width: many words." in narrow
    assert "y             10\n" in narrow
    paragraphs = drawn(Table(columns[:2], [Row(["a long name", "one two three"])]), 17, monkeypatch)
    assert paragraphs == "a long name\n  many words: one\n    two three\n"


def test_empty_columns_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table((Column("name"), Column("note")), [Row(["x", ""])], Row(["all", ""]))
    assert "note" not in drawn(table, 60, monkeypatch)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_499, "999 kB"), (999_500, "1 MB"), (17_800_000, "17.8 MB")],
)
def test_sizes_are_for_people(nbytes: int, text: str) -> None:
    assert words.size_text(nbytes) == text


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (511, 100, "5.11x smaller"),
        (40, 184, "4.60x larger"),
        (7, 7, "as large as before"),
        (0, 9, "larger than before"),
    ],
)
def test_ratios_are_words(before: int, after: int, text: str) -> None:
    assert words.smaller_text(before, after) == text


def test_codecs_are_named_as_they_are_typed(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npy")
    np.save(path, RNG.normal(0, 1, 1000).astype(np.float32))
    for kind in arrcomp.available_codecs().values():
        for codec in kind.examples():
            arguments = ["compress", path, "--seed", "0", "--force", "--json", *words.codec_options(codec).split()]
            result = CliRunner().invoke(_cli.app, arguments)
            assert result.exit_code == 0, result.output
            assert json.loads(result.stdout)["arrays"][0]["codec"] == codec.config()
            assert "(" not in words.codec_text(codec)  # it is not Python
