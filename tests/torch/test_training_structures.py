"""Structures of training in plain loops: what goes through a codec, when, how often, and what is counted."""

from __future__ import annotations

from typing import Any

import pytest

from arrcomp import QSGD, FloatFormat, Lossless, SmaQ
from arrcomp.errors import UnknownNameError

torch = pytest.importorskip("torch")

import arrcomp.torch
from arrcomp.torch.training import CODECS, STRUCTURES, Compression
from arrcomp.torch.training.structures import places, weights

nn = torch.nn
COARSE = QSGD(bits=2, bucket_size=32)
GENERATOR = torch.Generator().manual_seed(5)
X = torch.randn(16, 3, 8, 8, generator=GENERATOR)
LABELS = torch.arange(16) % 4


def network() -> Any:
    torch.manual_seed(1)
    convolution = [nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    return nn.Sequential(*convolution, nn.Flatten(), nn.Linear(72, 4))


def loss_of(model: Any) -> Any:
    return nn.functional.cross_entropy(model(X), LABELS)


def adam(model: Any) -> Any:
    return torch.optim.Adam(model.parameters(), lr=0.01)


class Recorder(Compression):
    """Remembers every round trip."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.trips: list[tuple[str, Any, Any]] = []
        super().__init__(*arguments, **options)

    def round_trip(self, structure: str, x: Any) -> Any:
        y = super().round_trip(structure, x)
        self.trips.append((structure, x.clone(), y.clone()))
        return y

    def names(self) -> list[str]:
        return [structure for structure, _, _ in self.trips]


def test_places_are_layers_pools_norms_and_activations_and_no_others() -> None:
    kinds = [type(place).__name__ for place in places(network())]
    assert kinds == ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d", "Linear"]
    inner = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    assert {type(place).__name__ for place in places(inner)} >= {"Linear", "LayerNorm"}
    assert not any(isinstance(place, (nn.MultiheadAttention, nn.Dropout)) for place in places(inner))


def test_weights_of_batch_norm_are_left_alone() -> None:
    model = network()
    assert weights(model) == {model[0].weight, model[5].weight, model[5].bias}
    before = [p.clone() for p in model[1].parameters()]
    Compression(model, {"weights": COARSE}).attach(adam(model))
    assert all(torch.equal(p, q) for p, q in zip(model[1].parameters(), before, strict=True))
    assert len(model[5].weight.unique()) <= 4 * 9  # levels of as many buckets


def test_outputs_become_their_round_trips_and_gradients_pass_unchanged() -> None:
    layer, x = nn.Linear(72, 4), torch.randn(32, 72, requires_grad=True)
    plain = layer(x)
    Compression(layer, {"forward": COARSE})
    y = layer(x)
    assert torch.equal(y, arrcomp.torch.roundtrip(plain.detach(), COARSE))
    assert not torch.equal(y, plain)
    gradient = torch.randn(32, 4)
    assert torch.equal(torch.autograd.grad(y, x, gradient)[0], torch.autograd.grad(plain, x, gradient)[0])


def test_gradients_at_the_places_go_through_the_codec_once() -> None:
    model = network()
    compression = Recorder(model, {"backward": COARSE})
    loss_of(model).backward()
    assert compression.names() == ["backward"] * 5
    last = compression.trips[0]
    assert torch.equal(last[2], arrcomp.torch.roundtrip(last[1], COARSE))
    assert torch.equal(model[5].bias.grad, last[2].sum(0))  # it is the round trip that goes on


def test_gradients_of_parameters_are_quantized_once_where_predecessors_did_so_twice() -> None:
    model = network()
    compression = Recorder(model, {"gradients": COARSE})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    compression.attach(optimizer)
    for _ in range(3):  # batches that add up to one step
        loss_of(model).backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    before = [p.detach().clone() for p in model.parameters()]
    assert not compression.trips
    optimizer.step()
    assert compression.names() == ["gradients"] * len(gradients)
    for p, old, gradient in zip(model.parameters(), before, gradients, strict=True):
        assert torch.equal(p.grad, arrcomp.torch.roundtrip(gradient, COARSE))
        torch.testing.assert_close(p.detach(), old - 0.5 * p.grad)


def test_step_works_without_a_closure_and_with_one_alike() -> None:
    results = []
    for closed in (False, True, "named"):
        model = network()
        optimizer = adam(model)
        compression = Recorder(model, dict.fromkeys(STRUCTURES, COARSE))
        compression.attach(optimizer)

        def closure(model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = loss_of(model)
            loss.backward()
            return loss.detach()

        for _ in range(3):
            if closed == "named":
                assert float(optimizer.step(closure=closure)) > 0
            elif closed:
                assert float(optimizer.step(closure)) > 0
            else:
                closure()
                optimizer.step()
        results.append((compression.names(), [p.detach() for p in model.parameters()]))
    for names, parameters in results[1:]:
        assert names == results[0][0]
        assert all(torch.equal(p, q) for p, q in zip(parameters, results[0][1], strict=True))


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam"])
def test_state_of_any_optimizer_is_compressed_but_not_its_counters(kind: str) -> None:
    model = network()
    options = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01, **options)
    compression = Recorder(model, {"optimizer": COARSE})
    compression.attach(optimizer)
    loss_of(model).backward()
    optimizer.step()
    kept = {name for state in optimizer.state.values() for name, value in state.items() if value.dim()}
    assert kept
    assert set(compression.names()) == {f"optimizer.{name}" for name in kept}
    counters = [value for state in optimizer.state.values() for name, value in state.items() if name == "step"]
    assert all(float(counter) == 1 for counter in counters)
    assert len(compression.trips) == 5 * len(kept)


def test_a_closure_that_is_called_often_sees_compressed_weights_and_masters_once() -> None:
    model = nn.Linear(64, 4)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    Compression(model, {"weights": COARSE}, master_weights=True).attach(optimizer)
    x = torch.randn(8, 64, generator=GENERATOR)
    losses = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        losses.append(float(loss.detach()))
        return loss

    optimizer.step(closure)
    assert len(losses) > 1
    assert losses[-1] < losses[0]


def test_small_updates_are_kept_by_master_weights_and_lost_without() -> None:
    moved = []
    for master in (False, True):
        model = nn.Linear(64, 8)
        nn.init.uniform_(model.weight, 0.5, 0.9, generator=torch.Generator().manual_seed(2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        Compression(model, {"weights": FloatFormat("e5m2")}, master_weights=master).attach(optimizer)
        before = model.weight.detach().clone()
        for _ in range(20):
            model.weight.grad = torch.full((8, 64), -1.0)  # 0.02 a step, where numbers are 0.125 apart
            optimizer.step()
        moved.append(float((model.weight.detach() - before).abs().max()))
    assert moved[0] == 0
    assert moved[1] > 0.3


def test_zeros_of_relu_stay_zeros_where_predecessors_decoded_them_to_other_numbers() -> None:
    codec = CODECS.find("smaq").make({})
    model = nn.Sequential(nn.Linear(72, 64), nn.ReLU())
    compression = Recorder(model, {"forward": codec})
    model(torch.randn(32, 72, generator=GENERATOR))
    _, before, after = compression.trips[1]
    assert 0.3 < float((before == 0).float().mean()) < 0.7
    assert torch.equal(before == 0, (after == 0) & (before == 0))
    assert float((after[before == 0]).abs().max()) == 0


def test_sampled_statistics_of_sparse_gradients_stay_near_them() -> None:
    sparse = torch.zeros(4096)
    sparse[::20] = torch.randn(205, generator=GENERATOR)
    compression = Compression(nn.Linear(1, 1), {"gradients": SmaQ(statistics="sampled")})
    for _ in range(20):  # other samples each time: 16 zeros in four draws of ten
        back = compression.round_trip("gradients", sparse)
        assert bool(back.isfinite().all())
        assert float((back - sparse).norm() / sparse.norm()) < 0.2


def test_each_round_trip_rounds_differently_and_a_seed_repeats_them_all() -> None:
    codec = FloatFormat("e5m2", rounding="stochastic")
    x = torch.randn(1000, generator=GENERATOR)
    first, again, other = (Compression(nn.Linear(1, 1), {"weights": codec}, seed=seed) for seed in (3, 3, 4))
    trips = [[c.round_trip("weights", x) for _ in range(2)] for c in (first, again, other)]
    assert not torch.equal(*trips[0])
    assert all(torch.equal(y, z) for y, z in zip(trips[0], trips[1], strict=True))
    assert not torch.equal(trips[0][0], trips[2][0])


def test_counted_bytes_are_those_of_payloads() -> None:
    compression = Compression(nn.Linear(1, 1), {"weights": SmaQ(), "gradients": None, "optimizer": COARSE})
    x = torch.randn(5000, generator=GENERATOR)
    compression.round_trip("weights", x)
    payload = arrcomp.torch.compress(x, SmaQ(), seed=0).payload.nbytes
    size = compression.meter.total["weights"]
    assert size.original == 20_000
    assert abs(size.compressed - payload) < 20  # another seed, another share of outliers
    compression.round_trip("gradients", x)
    assert compression.meter.total["gradients"].ratio == 1
    compression.round_trip("optimizer.exp_avg", x.double())
    compression.round_trip("optimizer.exp_avg_sq", x)
    assert compression.meter.total["optimizer"].original == 60_000
    assert set(compression.meter.take()) == {"weights", "gradients", "optimizer"}
    assert not compression.meter.take()
    compression.measuring = False
    y = compression.round_trip("weights", x)
    assert not compression.meter.take()
    assert float((y - x).abs().max()) < 0.2


def test_everything_lossless_changes_nothing() -> None:
    trained = []
    for codecs in ({}, {name: Lossless() for name in STRUCTURES}, dict.fromkeys(STRUCTURES)):
        model = network()
        optimizer = adam(model)
        Compression(model, codecs, master_weights="weights" in codecs).attach(optimizer)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
        trained.append([p.detach() for p in model.parameters()])
    for parameters in trained[1:]:
        assert all(torch.equal(p, q) for p, q in zip(parameters, trained[0], strict=True))


def test_removed_hooks_leave_the_model_alone() -> None:
    model = network()
    optimizer = adam(model)
    compression = Recorder(model, dict.fromkeys(STRUCTURES, COARSE))
    compression.attach(optimizer)
    compression.remove()
    compression.trips.clear()
    loss_of(model).backward()
    optimizer.step()
    assert not compression.trips


def test_pools_with_indices_and_16_bit_floats_work() -> None:
    pool = nn.MaxPool2d(2, return_indices=True)
    compression = Recorder(pool, {"forward": COARSE, "backward": COARSE})
    y, indices = pool(X.clone().requires_grad_())
    assert indices.dtype == torch.int64
    y.sum().backward()
    assert compression.names() == ["forward", "backward"]
    model = network().bfloat16()
    compression = Recorder(model, {"forward": SmaQ()})
    assert model(X.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("name", ["weight", "optimizer.", "weights.x", "all", ""])
def test_unknown_structures_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"is unknown; there are weights, gradients"):
        Compression(nn.Linear(1, 1), {name: None})
    with pytest.raises(TypeError, match=r"codec: expected a codec such as .*, got 'smaq'"):
        Compression(nn.Linear(1, 1), {"weights": "smaq"})  # type: ignore[dict-item]
