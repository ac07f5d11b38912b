"""What saves memory for real, in runs of the training harness and beside simulated structures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from arrcomp import QSGD

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("sklearn")

from training_models import settings_of

from arrcomp.torch import CompressedOptimizer, nn, saved_memory
from arrcomp.torch.training import Compression, Size, chosen_codecs
from arrcomp.torch.training._structures import places
from training.data import Data
from training.extras import Extras
from training.run import load, train

SETTINGS = settings_of("small-perceptron", epochs=2)


@pytest.fixture(scope="module")
def data() -> Data:
    """A few digits."""
    digits = load(SETTINGS)
    x, y = digits.train
    return replace(digits, train=(x[:64], y[:64]), test=(x[64:128], y[64:128]))


def model_of(extras: Extras, data: Data) -> Any:
    torch.manual_seed(0)
    return extras.converted(SETTINGS.model_class.build(data.inputs))


def saved_nbytes(extras: Extras, data: Data) -> int:
    model = model_of(extras, data)
    with extras.saved():
        return saved_memory(model, data.train[0][:32]).nbytes


def check_trained(extras: Extras, data: Data) -> None:
    plain, result = train(SETTINGS, data=data), train(SETTINGS, data=data, extras=extras)
    assert not result.diverged
    assert abs(result.value - plain.value) < 0.3


def test_activations_keep_few_bits_and_their_outputs_still_count(data: Data) -> None:
    extras = Extras(activation_bits=3)
    model = model_of(extras, data)
    few = [module for module in model.modules() if isinstance(module, nn.GELU)]
    assert len(few) == 2
    assert set(few) <= set(places(model))
    assert saved_nbytes(extras, data) < 0.85 * saved_nbytes(Extras(), data)
    check_trained(extras, data)


def test_randomized_layers_keep_few_rows(data: Data) -> None:
    extras = Extras(randomized_linear=0.2)
    assert saved_nbytes(extras, data) < 0.85 * saved_nbytes(Extras(), data)
    check_trained(extras, data)


def test_what_is_saved_is_compressed(data: Data) -> None:
    extras = Extras(saved_activations=QSGD(bits=8))
    assert saved_nbytes(extras, data) < 0.4 * saved_nbytes(Extras(), data)
    check_trained(extras, data)


def test_state_is_kept_in_8_bits_and_nothing_compresses_it_again(data: Data) -> None:
    extras = Extras(optimizer_state="8bit")
    model = model_of(extras, data)
    optimizer = extras.wrap(SETTINGS.optimizer_of(model))
    assert isinstance(optimizer, CompressedOptimizer)
    compression = Compression(model, chosen_codecs("smaq", "optimizer,gradients"))
    compression.attach(optimizer)
    model(data.train[0][:8]).square().sum().backward()
    optimizer.step()
    assert compression.meter.total["gradients"].ratio > 4
    small = sum(p.nbytes for p in model.parameters() if p.numel() < 4096)
    assert optimizer.memory().ratio > 2
    assert compression.meter.total.get("optimizer", Size()).original <= 2 * small
    check_trained(extras, data)
    with pytest.raises(ValueError, match="leave the optimizer out of the structures"):
        train(replace(SETTINGS, codecs=chosen_codecs("smaq", "all")), data=data, extras=extras)


def test_models_with_nothing_to_convert_are_refused(data: Data) -> None:
    with pytest.raises(ValueError, match="model: expected one of CELU, ELU, "):
        Extras(activation_bits=3).converted(torch.nn.Linear(2, 2))
