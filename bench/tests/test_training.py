"""Runs by Lightning: what they log and report."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("sklearn")
pytest.importorskip("tensorboard")

from training_models import settings_of

from arrcomp.torch.training import STRUCTURES, chosen_codecs
from training.data import DATASETS, MODELS, Data, DataSet, Images, Model, accuracy, matthews, pearson
from training.run import load, train
from training.settings import Settings


def small(settings: Settings, count: int = 96) -> Data:
    """The first few of a data set."""
    data = load(settings)
    (x, y), (test_x, test_y) = data.train, data.test
    return replace(data, train=(x[:count], y[:count]), test=(test_x[:count], test_y[:count]))


@pytest.mark.parametrize("model", ["small-net", "small-perceptron"])
def test_all_structures_are_compressed_and_counted(model: str) -> None:
    settings = settings_of(model, epochs=1, codecs=chosen_codecs("smaq", "all,optimizer.exp_avg_sq:bf16"))
    result = train(settings, data=small(settings))
    assert set(result.sizes) == set(STRUCTURES)
    assert all(4 < result.sizes[name].ratio < 6 for name in ("weights", "gradients", "forward", "backward"))
    assert 6 < result.bits < 8
    assert 0 < result.value <= 1
    assert len(result.history) == 1
    families = {name.partition(".")[0] for name in result.samples}
    assert families == set(STRUCTURES)


def test_a_run_repeats_with_its_seed() -> None:
    settings = settings_of(epochs=1, codecs=chosen_codecs("qsgd", "weights,gradients"))
    data = small(settings)
    torch.manual_seed(7)
    state = torch.get_rng_state()
    first, again = (train(settings, data=data) for _ in range(2))
    other = train(replace(settings, seed=1), data=data)
    assert torch.equal(torch.get_rng_state(), state)  # the caller's random numbers are left alone
    assert torch.equal(first.samples["weights"], again.samples["weights"])
    assert not torch.equal(first.samples["weights"], other.samples["weights"])


def test_lossless_structures_train_as_no_structures_do() -> None:
    settings = settings_of(epochs=1)
    data = small(settings)
    plain = train(settings, data=data)
    exact = train(replace(settings, codecs=chosen_codecs("bdi", "all", ["bdi.drop_bits=0"])), data=data)
    none = train(replace(settings, codecs=chosen_codecs("fp32", "all")), data=data)
    assert plain.history == exact.history == none.history
    assert plain.bits == none.bits == 32
    assert all(size.ratio == 1 for size in none.sizes.values())


def test_logs_hold_bytes_and_ratios_of_each_epoch(tmp_path: Path) -> None:
    settings = settings_of(epochs=2, codecs=chosen_codecs("fp16", "weights,forward"))
    result = train(settings, data=small(settings), logs=tmp_path, name="try")
    (table,) = tmp_path.glob("try-seed0/version_0/metrics.csv")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    logged = [row for row in rows if row.get("ratio/weights")]
    assert len(logged) == 2
    assert all(float(row["ratio/weights"]) == pytest.approx(2, abs=0.01) for row in logged)
    written = sum(int(float(row["compressed_bytes/forward"])) for row in logged)
    assert written == result.sizes["forward"].compressed
    assert any(row.get("test_accuracy") for row in rows)
    assert list(tmp_path.glob("try-seed0/version_0/events.out.tfevents*"))


def test_counting_one_step_in_many_counts_less() -> None:
    settings = settings_of(epochs=1, codecs=chosen_codecs("smaq", "forward"), batch=16)
    data = small(settings)
    every, some = (train(replace(settings, measure_every=n), data=data) for n in (1, 3))
    assert some.sizes["forward"].original * 3 == every.sizes["forward"].original
    assert some.history == every.history


def test_a_run_that_diverges_says_so_and_ends() -> None:
    settings = settings_of(epochs=30, lr=1e30)
    result = train(settings, data=small(settings))
    assert result.diverged
    assert result.value == 0
    assert len(result.history) < 30


@pytest.mark.parametrize(
    "options", [{"optimizer": "adam"}, {"optimizer": "adamw", "weight_decay": 0.1}, {"milestones": (1,)}], ids=str
)
def test_optimizers_and_schedules_train(options: dict[str, Any]) -> None:
    settings = settings_of(
        epochs=2, codecs=chosen_codecs("smaq", "weights,optimizer:fp16"), master_weights=True, **options
    )
    result = train(settings, data=small(settings))
    assert not result.diverged
    assert result.sizes["optimizer"].ratio == pytest.approx(2, abs=0.01)


def test_numbers_are_predicted_too() -> None:
    settings = settings_of("small-perceptron", epochs=1)
    data = small(settings)
    numbers = replace(
        data,
        inputs=replace(data.inputs, outputs=1),
        train=(data.train[0], data.train[1].float()),
        test=(data.test[0], data.test[1].float()),
        metric="pearson",
    )
    result = train(settings, data=numbers)
    assert result.metric == "pearson"
    assert -1 <= result.value <= 1


def test_a_model_and_a_data_set_of_ones_own_are_one_class_each() -> None:
    class Mine(Model):
        name = "mine"
        kind = "images"

        @classmethod
        def build(cls, inputs: Any) -> Any:
            return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, inputs.outputs))

    class Signs(DataSet):
        name = "signs"
        kinds = ("images",)

        @classmethod
        def load(cls, kind: str, folder: Path, *, task: str | None = None, download: bool = False) -> Data:
            x = torch.randn(64, 1, 2, 2)
            y = (x.sum((1, 2, 3)) > 0).long()
            return Data(Images(1, 2, 2, 2), (x, y), (x, y))

    MODELS.add(Mine)
    DATASETS.add(Signs)
    try:
        found = train(Settings("signs", "mine", epochs=3, codecs=chosen_codecs("smaq", "all")))
    finally:
        del MODELS._classes["mine"], DATASETS._classes["signs"]
    assert set(found.sizes) == set(STRUCTURES)
    assert found.value > 0.5


def test_metrics_are_those_of_numpy() -> None:
    outputs, labels = torch.randn(50, 2, generator=torch.Generator().manual_seed(1)), torch.arange(50) % 2
    chosen = outputs.argmax(1).numpy()
    assert accuracy(outputs, labels) == pytest.approx(np.mean(chosen == labels.numpy()))
    expected = np.corrcoef(chosen, labels.numpy())[0, 1]
    assert matthews(outputs, labels) == pytest.approx(expected)
    numbers = labels + outputs[:, 0]
    assert pearson(outputs[:, :1], numbers) == pytest.approx(np.corrcoef(outputs[:, 0], numbers)[0, 1])
    assert matthews(torch.tensor([[1.0, 0.0]] * 50), labels) == 0
