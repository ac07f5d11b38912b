"""What a training run is told: codecs by structure, settings, registries, and how wrong ones are refused."""

from __future__ import annotations

from typing import Any

import pytest

from arrcomp import QSGD, S2FP8, BaseDelta, ErrorBounded, FloatFormat, SmaQ
from arrcomp.errors import UnknownNameError

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from training_models import settings_of

from arrcomp.torch.training import CODECS, STRUCTURES, TrainingCodec, chosen_codecs
from training.extras import Extras
from training.settings import Settings


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
        (("smaq", "weights", ["smaq"]), ValueError, "settings: expected CODEC.PARAMETER=VALUE .*got 'smaq'"),
        (("smaq", "weights", ["bits=4"]), ValueError, "settings: expected .*, got 'bits=4'"),
        (
            ("smaq", "weights", ["qsgd.bits=4"]),
            ValueError,
            "expected one of weights, smaq before the parameter, got 'qsgd.bits=4'",
        ),
        (("smaq", "weights", ["gradients.bits=4"]), ValueError, "got 'gradients.bits=4'"),
        (
            ("smaq", "weights", ["smaq.bits=4"]),
            ValueError,
            r"weights: config: expected parameters of smaq \(.*\), got 'bits'",
        ),
        (
            ("smaq", "weights", ["smaq.main_bits=99"]),
            ValueError,
            "weights: main_bits: expected an integer from 3 to 8, got 99",
        ),
        (("fp32", "weights", ["fp32.bits=4"]), ValueError, "weights: bits: codec fp32 has no parameters"),
    ],
)
def test_wrong_choices_are_refused_by_name(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        chosen_codecs(*arguments)


def test_optimizers_and_rates_suit_the_model() -> None:
    assert (settings_of().optimizer, settings_of().lr) == ("sgd", 0.05)
    assert (settings_of("small-perceptron").optimizer, settings_of("small-perceptron").lr) == ("adamw", 1e-3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": "vgg"}, UnknownNameError, "model 'vgg' is unknown; there are"),
        ({"dataset": "mnist"}, UnknownNameError, "data set 'mnist' is unknown; there are"),
        (
            {"dataset": "texts"},
            ValueError,
            "small-net takes images, data set texts has tokens; models: .*small-perceptron",
        ),
        (
            {"dataset": "texts", "model": "small-perceptron"},
            ValueError,
            r"task: expected one of data set texts's \(first, second\), got None",
        ),
        (
            {"dataset": "texts", "model": "small-perceptron", "task": "third"},
            ValueError,
            "task: expected .*, got 'third'",
        ),
        ({"task": "first"}, ValueError, "data set pictures has no tasks"),
        ({"optimizer": "lion"}, ValueError, "optimizer: expected 'sgd' or 'adam' or 'adamw', got 'lion'"),
        ({"lr": 0}, ValueError, "lr: expected .*, got 0"),
        ({"lr": "fast"}, TypeError, "lr: expected .*, got 'fast'"),
        ({"momentum": 1.0}, ValueError, "momentum: expected .*, got 1.0"),
        ({"weight_decay": -1}, ValueError, "weight_decay: expected .*, got -1"),
        ({"epochs": 0}, ValueError, "epochs: expected .*, got 0"),
        ({"batch": 2.5}, TypeError, "batch: expected .*, got 2.5"),
        ({"seed": -1}, ValueError, "seed: expected .*, got -1"),
        ({"milestones": (30,), "epochs": 20}, ValueError, "milestones: expected an integer from 1 to 20, got 30"),
        ({"master_weights": True}, ValueError, "master_weights: expected False"),
    ],
)
def test_settings_that_do_not_fit_are_refused(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Settings(**{"dataset": "pictures", "model": "small-net", **arguments})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"activation_bits": 9}, ValueError, "activation_bits: expected an integer from 1 to 8, got 9"),
        ({"randomized_linear": 1.5}, ValueError, "randomized_linear: expected .*, got 1.5"),
        ({"randomized_linear": 0}, ValueError, "randomized_linear: expected .*, got 0"),
        ({"optimizer_state": "4bit"}, ValueError, "optimizer_state: expected '8bit', got '4bit'"),
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
    with pytest.raises(TypeError, match=r"Mine.name: expected .*, got 'a b'"):
        CODECS.add(Mine)
