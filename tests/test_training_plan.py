"""What a training run is told: codecs by structure, settings, registries, and how wrong ones are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from arrcomp import QSGD, S2FP8, BaseDelta, ErrorBounded, FloatFormat, SmaQ
from arrcomp.errors import DataNotFoundError, UnknownNameError

torch = pytest.importorskip("torch")

from arrcomp.torch.training import CODECS, DATASETS, MODELS, STRUCTURES, Settings, TrainingCodec, chosen_codecs
from arrcomp.torch.training.extras import Extras


def test_every_codec_has_its_usual_setting_and_rounds_at_random() -> None:
    made = {name: CODECS.find(name).make({}) for name in CODECS.names()}
    assert made == {
        "fp32": None,
        "fp16": FloatFormat("fp16", rounding="stochastic"),
        "bf16": FloatFormat("bf16", rounding="stochastic"),
        "fp8": FloatFormat("fp8_e5m2", rounding="stochastic"),
        "s2fp8": S2FP8(rounding="stochastic"),
        "smaq": SmaQ(),
        "qsgd": QSGD(rounding="stochastic"),
        "error-bounded": ErrorBounded(rel=1e-3),
        "bdi": BaseDelta(drop_bits=16, rounding="stochastic"),
    }
    assert CODECS.find("fp8").make({"format": "fp8_e4m3"}).format == "fp8_e4m3"  # type: ignore[union-attr]
    assert CODECS.find("error-bounded").make({"abs": 0.5}) == ErrorBounded(abs=0.5)


def test_all_structures_take_the_codec_and_second_moments_stay_positive() -> None:
    codecs = chosen_codecs("smaq", "all")
    assert {name: codecs[name] for name in STRUCTURES} == dict.fromkeys(STRUCTURES, SmaQ())
    assert codecs["optimizer.exp_avg_sq"] == SmaQ(all_positive=True)


@pytest.mark.parametrize(
    ("what", "settings", "expected"),
    [
        ("weights", [], {"weights": SmaQ()}),
        ("weights, gradients:qsgd", [], {"weights": SmaQ(), "gradients": QSGD(rounding="stochastic")}),
        ("all,weights:fp32", [], {**dict.fromkeys(STRUCTURES, SmaQ()), "weights": None}),
        ("weights,backward", ["smaq.main_bits=4"], {"weights": SmaQ(4), "backward": SmaQ(4)}),
        ("weights,backward", ["smaq.main_bits=4", "backward.main_bits=5"], {"weights": SmaQ(4), "backward": SmaQ(5)}),
        ("weights", ["weights.block_size=null"], {"weights": SmaQ(block_size=None)}),
        ("weights", ["weights.rounding=nearest"], {"weights": SmaQ(rounding="nearest")}),
        (
            "optimizer,optimizer.exp_avg_sq:bf16",
            ["optimizer.main_bits=5"],
            {
                "optimizer": SmaQ(5),
                "optimizer.exp_avg_sq": FloatFormat("bf16", rounding="stochastic"),
                "optimizer.max_exp_avg_sq": SmaQ(5, all_positive=True),
            },
        ),
    ],
)
def test_structures_get_codecs_and_settings_of_their_own(what: str, settings: list[str], expected: Any) -> None:
    found = chosen_codecs("smaq", what, settings)
    if "all" in what:
        found = {name: codec for name, codec in found.items() if "." not in name}
    assert found == expected


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("zip", "all"), UnknownNameError, "codec 'zip' is unknown; there are fp32, fp16"),
        (("smaq", "weight"), UnknownNameError, "structure 'weight' is unknown; there are weights"),
        (("smaq", "weights:zip"), UnknownNameError, "codec 'zip'"),
        (("smaq", "weights.x"), UnknownNameError, "structure 'weights.x'"),
        (("smaq", "weights", ["smaq"]), ValueError, "--set smaq: CODEC.PARAMETER=VALUE"),
        (("smaq", "weights", ["bits=4"]), ValueError, "--set bits=4"),
        (("smaq", "weights", ["qsgd.bits=4"]), ValueError, "qsgd is not in use; there are weights, smaq"),
        (("smaq", "weights", ["gradients.bits=4"]), ValueError, "gradients is not in use"),
        (("smaq", "weights", ["smaq.bits=4"]), ValueError, "weights: bits: codec smaq has no such parameter"),
        (("smaq", "weights", ["smaq.main_bits=99"]), ValueError, "weights: main_bits=99: 3 to 8"),
        (("fp32", "weights", ["fp32.bits=4"]), ValueError, "weights: bits: codec fp32 has no parameters"),
    ],
)
def test_wrong_choices_are_refused_by_name(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        chosen_codecs(*arguments)


def test_models_and_optimizers_suit_the_data_set() -> None:
    assert (Settings().model, Settings().optimizer) == ("resnet8", "sgd")
    assert (Settings(dataset="imdb").model, Settings(dataset="imdb").optimizer) == ("bert-tiny", "adamw")
    assert Settings(model="bert-tiny").lr == 1e-3
    assert Settings().lr == 0.05


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": "vgg"}, UnknownNameError, "model 'vgg' is unknown; there are"),
        ({"dataset": "mnist"}, UnknownNameError, "data set 'mnist' is unknown; there are"),
        (
            {"dataset": "imdb", "model": "resnet18"},
            ValueError,
            "resnet18 takes images, data set imdb has tokens",
        ),
        ({"dataset": "cifar10", "model": "bert"}, ValueError, "bert takes tokens, data set cifar10 has images"),
        ({"dataset": "glue"}, ValueError, "task=None: data set glue has cola"),
        ({"dataset": "glue", "task": "ax"}, ValueError, "task='ax'"),
        ({"task": "cola"}, ValueError, "data set digits has no tasks"),
        ({"optimizer": "lion"}, ValueError, "optimizer='lion': 'sgd' or 'adam' or 'adamw'"),
        ({"lr": 0}, ValueError, "lr=0"),
        ({"lr": "fast"}, TypeError, "lr='fast'"),
        ({"momentum": 1.0}, ValueError, "momentum=1.0"),
        ({"weight_decay": -1}, ValueError, "weight_decay=-1"),
        ({"epochs": 0}, ValueError, "epochs=0"),
        ({"batch": 2.5}, TypeError, "batch=2.5"),
        ({"seed": -1}, ValueError, "seed=-1"),
        ({"milestones": (30,), "epochs": 20}, ValueError, "milestones=30: 1 to 20"),
        ({"master_weights": True}, ValueError, "master_weights=True"),
    ],
)
def test_settings_that_do_not_fit_are_refused(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Settings(**arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"activation_bits": 9}, ValueError, "activation_bits=9: 1 to 8"),
        ({"randomized_linear": 1.5}, ValueError, "randomized_linear=1.5"),
        ({"randomized_linear": 0}, ValueError, "randomized_linear=0"),
        ({"optimizer_state": "4bit"}, ValueError, "optimizer_state='4bit': '8bit'"),
    ],
)
def test_wrong_extras_are_refused(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Extras(**arguments)


def test_a_codec_of_ones_own_is_one_class() -> None:
    class Mine(TrainingCodec):
        name = "mine"
        config = {"codec": "qsgd", "bits": 2}  # noqa: RUF012

    CODECS.add(Mine)
    try:
        assert chosen_codecs("mine", "weights") == {"weights": QSGD(bits=2)}
        with pytest.raises(ValueError, match="there is a codec 'mine' already"):
            CODECS.add(Mine)
    finally:
        del CODECS._classes["mine"]
    Mine.name = "a b"
    with pytest.raises(TypeError, match=r"Mine.name is 'a b'"):
        CODECS.add(Mine)


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "imdb", "glue"])
def test_a_data_set_that_is_not_there_says_what_to_do(name: str, tmp_path: Path) -> None:
    dataset = DATASETS.find(name)
    task = "mnli" if name == "glue" else None
    with pytest.raises(DataNotFoundError, match=r"not found. --data DIR must hold .*--download") as caught:
        dataset.load(dataset.kinds[0], tmp_path, task=task)
    assert isinstance(caught.value, FileNotFoundError)
    assert str(tmp_path) in str(caught.value)


def test_models_have_names_that_messages_list() -> None:
    assert set(MODELS.names()) == {"resnet8", "resnet18", "resnet34", "resnet50", "inception", "bert-tiny", "bert"}
