"""Training benchmarks: runs on their models, the command line, bad input, and what is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("sklearn")
pytest.importorskip("typer")
pytest.importorskip("matplotlib")
pytest.importorskip("tensorboard")
pytest.importorskip("transformers")

from typer.testing import CliRunner

from arrcomp.torch.training import STRUCTURES, Size, chosen_codecs
from harness.page import BENCH
from training import SECTIONS
from training.choice import settings_for
from training.cli import app
from training.data import DATASETS, MODELS, Data
from training.plots import draw_histograms, draw_rates
from training.rows import Row, document, result_table
from training.run import Result, load, train
from training.settings import Settings

PNG = b"\x89PNG\r\n\x1a\n"


def small(settings: Settings, count: int = 96) -> Data:
    """The first few of a data set."""
    data = load(settings)
    parts = [tuple(tensor[:count] for tensor in part) for part in (data.train, data.test)]
    return replace(data, train=parts[0], test=parts[1])


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits of which there are few."""
    real = DATASETS.find("digits").load

    def load_few(kind: str, folder: Path, **options: Any) -> Data:
        data = real(kind, folder, **options)
        return replace(data, train=tuple(x[:64] for x in data.train), test=tuple(x[:64] for x in data.test))

    monkeypatch.setattr(DATASETS.find("digits"), "load", load_few)


def run(*arguments: str, code: int = 0) -> str:
    """What the program prints; an error is one line without a traceback."""
    result = CliRunner().invoke(app, ["run", "--threads", str(torch.get_num_threads()), *arguments])
    assert result.exit_code == code, result.output
    if code:
        assert len(result.stderr.splitlines()) == 1, result.stderr
        return result.stderr
    assert result.stderr == ""  # no bar where there is no terminal, and no notes of Lightning's
    return result.stdout


@pytest.mark.parametrize("model", ["resnet8", "bert-tiny"])
def test_all_structures_are_compressed_and_counted(model: str) -> None:
    settings = settings_for(model=model, epochs=1, codecs=chosen_codecs("smaq", "all,optimizer.exp_avg_sq:bf16"))
    result = train(settings, data=small(settings))
    assert set(result.sizes) == set(STRUCTURES)
    assert all(4 < result.sizes[name].ratio < 6 for name in ("weights", "gradients", "forward", "backward"))
    assert 6 < result.bits < 8
    assert 0 < result.value <= 1
    assert len(result.history) == 1
    families = {name.partition(".")[0] for name in result.samples}
    assert families == set(STRUCTURES)


def test_a_model_and_a_data_set_of_ones_own_are_one_class_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_for_arrcomp.py").write_text(
        "import torch\n"
        "from training.data import DATASETS, MODELS, Data, DataSet, Images, Model\n\n\n"
        "@MODELS.add\nclass Mine(Model):\n    name = 'mine'\n    kind = 'images'\n\n"
        "    @classmethod\n    def build(cls, inputs):\n"
        "        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, inputs.outputs))\n\n\n"
        "@DATASETS.add\nclass Signs(DataSet):\n    name = 'signs'\n    kinds = ('images',)\n\n"
        "    @classmethod\n    def load(cls, kind, folder, *, task=None, download=False):\n"
        "        x = torch.randn(64, 1, 2, 2)\n        y = (x.sum((1, 2, 3)) > 0).long()\n"
        "        return Data(Images(1, 2, 2, 2), (x, y), (x, y))\n"
    )
    try:
        out = run(
            "--import", "mine_for_arrcomp", "--dataset", "signs", "--model", "mine", "--compress", "smaq",
            "--epochs", "3", "-o", str(tmp_path / "out"), "--no-plots", "--json",
        )  # fmt: skip
    finally:
        MODELS._classes.pop("mine", None)
        DATASETS._classes.pop("signs", None)
    (found,) = json.loads(out)
    assert found["codec"] == "smaq"
    assert found["value"] > 0.5


@pytest.mark.usefixtures("tiny")
def test_the_command_line_trains_several_codecs_and_draws(tmp_path: Path) -> None:
    table = run("--compress", "fp32,fp8", "--epochs", "1", "--seeds", "2", "-o", str(tmp_path))
    for word in ("fp32", "fp8", "accuracy", "weights", "32.00", " to "):
        assert word in table
    document = json.loads((tmp_path / "results.json").read_text())
    assert [(entry["codec"], entry["seed"]) for entry in document["runs"]] == [
        ("fp32", 0), ("fp32", 1), ("fp8", 0), ("fp8", 1),
    ]  # fmt: skip
    assert document["runs"][2]["sizes"]["weights"]["ratio"] == pytest.approx(4, abs=0.05)
    assert document["settings"]["model"] == "resnet8"
    for name in ("rates", "values-fp32", "values-fp8"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "vgg"], "model 'vgg' is unknown; there are"),
        (["--compress", "zip"], "codec 'zip' is unknown"),
        (["--compress", "smaq", "--what", "weight"], "structure 'weight' is unknown"),
        (["--compress", "smaq", "--set", "smaq.bits=3"], "config: expected parameters of smaq"),
        (["--dataset", "cifar10"], "data_batch_1.bin and 5 more not found. --data DIR must hold"),
        (["--dataset", "imdb", "--model", "resnet8"], "model resnet8 takes images"),
        (["--dataset", "glue", "--task", "sst2"], "train.tsv and 1 more not found"),
        (["--dataset", "glue"], "task: expected one of data set glue's (cola"),
        (["--milestones", "x"], "--milestones: expected epochs, as 60,80, got x"),
        (["--seeds", "0"], "seeds: expected an integer from 1 to 1048576, got 0"),
        (["--compress", "smaq", "--optimizer-state", "8bit"], "leave the optimizer out of the structures"),
        (["--activation-bits", "12"], "activation_bits: expected an integer from 1 to 8, got 12"),
        (["--saved-activations", "qsgd:bits=9"], "bits: expected an integer from 1 to 8, got 9"),
        (["--import", "no_such_module_here"], "No module named 'no_such_module_here'"),
    ],
)
def test_wrong_usage_is_told_in_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in run(*arguments, code=2)
    assert not list(tmp_path.iterdir())  # nothing was written


def test_without_lightning_the_program_says_what_to_install() -> None:
    program = f"import sys; sys.path.insert(0, {str(BENCH)!r}); sys.modules['lightning'] = None; "
    command = [sys.executable, "-P", "-c", f"{program}from training.__main__ import main; main()"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 2
    assert result.stderr.startswith("arrcomp: training needs lightning")
    assert "pip install" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_every_measured_question_has_a_command() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout
    assert all(name.replace(" ", "-") in shown for name in SECTIONS)


def result(seed: int, value: float, sizes: dict[str, Size], **options: Any) -> Result:
    return Result(seed, "accuracy", value, (value,), sizes, 1.0, options.pop("diverged", False), **options)


def test_tables_hold_means_ranges_and_what_diverged(tmp_path: Path) -> None:
    sizes = {"weights": Size(100, 25), "forward": Size(300, 75)}
    rows = [
        Row("fp32", [result(0, 0.9, {}), result(1, 0.8, {})]),
        Row("half", [result(0, 0.7, sizes), result(1, 0.0, sizes, diverged=True)]),
    ]
    assert rows[0].value == pytest.approx(0.85)
    assert (rows[0].bits, rows[1].bits) == (32, 8)
    assert (rows[0].ratio("weights"), rows[1].ratio("forward")) == (None, 4)
    table = result_table(rows)
    cells = [list(column) for column in zip(*(row.cells for row in table.rows), strict=True)]
    assert len(cells) == len(table.columns)
    assert cells[1] == ["0.8500", "0.3500"]
    assert cells[2] == ["0.8000 to 0.9000", "0.0000 to 0.7000 (1 diverged)"]
    assert cells[4] == ["", "4.00"]
    assert document(rows)[3]["diverged"] is True
    rates = {row.name: (row.bits, [result.value for result in row.results]) for row in rows}
    draw_rates(tmp_path / "rates.png", "a title", "accuracy", rates)
    assert (tmp_path / "rates.png").read_bytes().startswith(PNG)


def test_histograms_leave_out_what_is_not_finite(tmp_path: Path) -> None:
    values = {"weights": torch.randn(1000), "forward": torch.zeros(50), "gradients": torch.full((5,), float("nan"))}
    draw_histograms(tmp_path / "values.png", "a title", values)
    assert (tmp_path / "values.png").read_bytes().startswith(PNG)
    with pytest.raises(ValueError, match="with finite values is needed"):
        draw_histograms(tmp_path / "other.png", "a title", {"gradients": values["gradients"]})
    assert not (tmp_path / "other.png").exists()
