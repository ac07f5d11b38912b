"""Optimizers of PyTorch whose state is compressed between steps."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from arrcomp import QSGD, Codebook, Compressed, Lossless
from ordinary import then_full

torch = pytest.importorskip("torch")

import itertools

from torch import nn, optim

from arrcomp.torch.optim import CompressedOptimizer, eight_bit

Make = Callable[[Any], Any]

MAKERS: dict[str, Make] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-2, foreach=True),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "Adam foreach": lambda p: optim.Adam(p, lr=0.01, foreach=True),
    "Adam fused": lambda p: optim.Adam(p, lr=0.01, fused=True),
    "Adam capturable": lambda p: optim.Adam(p, lr=torch.tensor(0.01), foreach=False),
    "amsgrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, foreach=False),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, foreach=True),
    "NAdam": lambda p: optim.NAdam(p, lr=0.01),
    "RAdam": lambda p: optim.RAdam(p, lr=0.01),
    "Adamax": lambda p: optim.Adamax(p, lr=0.01),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    "Adafactor": lambda p: optim.Adafactor(p),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "Rprop": lambda p: optim.Rprop(p),
    "ASGD": lambda p: optim.ASGD(p),
    "LBFGS": lambda p: optim.LBFGS(p, lr=0.1, max_iter=4),
}
COMMON = ("momentum", "Adam", "AdamW", "RMSprop")


def model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5))


def data() -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(128, 20, generator=generator)
    return x, torch.sin(x[:, :5]) + x[:, 5:10]


def train(net: Any, optimizer: Any, steps: int = 20) -> float:
    x, y = data()

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        return loss.detach()

    for step in range(steps):
        if step % 2 or "LBFGS" in repr(optimizer):
            last = optimizer.step(closure)
        else:
            last = closure()
            assert optimizer.step() is None
    return float(last)


def parameters_equal(one: Any, other: Any) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def compressed_in(optimizer: Any) -> list[Compressed]:
    return [value for entry in optimizer.state.values() for value in entry.values() if isinstance(value, Compressed)]


def seeded(optimizer: Any, seed: int = 5) -> CompressedOptimizer:
    codec = QSGD(bits=8, norm="linf", rounding="stochastic")
    return CompressedOptimizer(optimizer, {"exp_avg": codec, "exp_avg_sq": Lossless()}, min_size=100, seed=seed)


@pytest.mark.parametrize("scratch", [1, 20_000, None])
@pytest.mark.parametrize("name", then_full(COMMON, (name for name in MAKERS if name not in COMMON)))
def test_lossless_state_changes_no_bit_of_training(name: str, scratch: int | None) -> None:
    plain, other = model(), model()
    train(plain, MAKERS[name](plain.parameters()))
    optimizer = CompressedOptimizer(MAKERS[name](other.parameters()), Lossless(), min_size=0, scratch=scratch)
    train(other, optimizer)
    assert parameters_equal(plain, other)
    if name not in ("SGD", "LBFGS"):
        assert len(compressed_in(optimizer)) >= 6


def test_lists_of_tensors_are_compressed_too() -> None:
    net = model()
    optimizer = CompressedOptimizer(MAKERS["LBFGS"](net.parameters()), Lossless())
    train(net, optimizer, 3)
    (entry,) = optimizer.state.values()
    assert isinstance(entry["d"], Compressed)
    assert all(isinstance(x, Compressed) for x in entry["old_dirs"])


def test_an_optimizer_that_looks_at_all_parameters_gets_all_state_at_once() -> None:
    class Own(optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {})
            self.calls = 0

        def step(self, closure: Any = None) -> Any:
            self.calls += 1
            loss = None if closure is None else closure()
            for p in self.param_groups[0]["params"]:
                self.state[p].setdefault("sum", torch.zeros_like(p)).add_(p.grad)
            largest = max(entry["sum"].abs().max() for entry in self.state.values())
            for p in self.param_groups[0]["params"]:
                p.data.sub_(self.state[p]["sum"] / largest, alpha=1e-2)
            return loss

    plain, other = model(), model()
    train(plain, Own(plain.parameters()))
    inner = Own(other.parameters())
    train(other, CompressedOptimizer(inner, Lossless(), min_size=0, scratch=1))
    assert parameters_equal(plain, other)
    assert inner.calls == 20


@pytest.mark.full
@pytest.mark.parametrize("name", ["Adam", "momentum", "amsgrad"])
def test_8_bits_learn_what_float32_learns(name: str) -> None:
    make = MAKERS[name]
    plain, small = model(), model()
    expected = train(plain, make(plain.parameters()), 60)
    optimizer = CompressedOptimizer.eight_bit(make(small.parameters()), min_size=1000)
    assert train(small, optimizer, 60) == pytest.approx(expected, rel=0.1)
    assert {c.codec for c in compressed_in(optimizer)} <= set(eight_bit().values())
    assert optimizer.memory().ratio > 3


def test_steps_stay_bounded_where_second_moments_differ_by_decades() -> None:
    # One gradient of a bucket is 1e5 times the others, whose second moments round to 0 beside it; theirs then stop.
    def largest_step(second: Codebook) -> float:
        p = nn.Parameter(torch.zeros(256))
        table = {"exp_avg": Codebook.dynamic8(), "exp_avg_sq": second}
        optimizer = CompressedOptimizer(optim.Adam([p], lr=1.0), table, min_size=0)
        largest = 0.0
        for step in range(20):
            p.grad = torch.full((256,), 1e-5 if step < 10 else 1e-12)
            p.grad[0] = 1.0
            before = p.detach().clone()
            optimizer.step()
            largest = max(largest, float((p.detach() - before).abs().max()))
        return largest

    ours = Codebook.dynamic8(signed=False)
    levels = ours.levels
    nearest = Codebook([(a + b) / 2 for a, b in itertools.pairwise(levels)], levels, scaling="absmax", bucket_size=256)
    assert largest_step(ours) <= 1.1
    assert largest_step(nearest) > 100


@pytest.mark.parametrize("through", ["dict", "file", "pickle", "deepcopy"])
@pytest.mark.parametrize("wrap", [seeded, CompressedOptimizer.eight_bit], ids=["seeded", "eight_bit"])
def test_training_goes_on_from_a_state_dict_to_the_bit(wrap: Any, through: str) -> None:
    net = model()
    optimizer = wrap(MAKERS["Adam"](net.parameters()))
    train(net, optimizer, 5)
    twin = model(3)
    twin.load_state_dict(net.state_dict())
    if through == "deepcopy":
        twin, again = copy.deepcopy((net, optimizer))
    elif through == "pickle":
        twin, again = pickle.loads(pickle.dumps((net, optimizer)))  # noqa: S301
    else:
        saved = optimizer.state_dict()
        if through == "file":
            file = io.BytesIO()
            torch.save(saved, file)
            file.seek(0)
            saved = torch.load(file, weights_only=True)
        again = wrap(MAKERS["Adam"](twin.parameters()))
        train(twin, again, 2)
        twin.load_state_dict(net.state_dict())
        again.load_state_dict(saved)
    kept = [c.to_bytes() for c in compressed_in(again)]
    assert kept == [c.to_bytes() for c in compressed_in(optimizer)]
    train(net, optimizer, 5)
    assert [c.to_bytes() for c in compressed_in(again)] == kept, "it shares memory with the optimizer it came from"
    train(twin, again, 5)
    assert parameters_equal(net, twin)


def test_a_state_dict_is_a_copy_of_compressed_state() -> None:
    net = model()
    optimizer = CompressedOptimizer.eight_bit(MAKERS["Adam"](net.parameters()), min_size=0)
    train(net, optimizer, 3)
    saved = optimizer.state_dict()["state"][0]["exp_avg"]
    before = saved.to_bytes()
    train(net, optimizer, 3)
    assert saved.to_bytes() == before


def test_random_rounding_follows_from_the_seed_and_differs_between_steps_and_tensors() -> None:
    def bytes_after(steps: int, seed: int) -> list[bytes]:
        parameters = [nn.Parameter(torch.zeros(500)) for _ in range(2)]
        optimizer = seeded(optim.Adam(parameters, lr=0.0, betas=(0.0, 0.999)), seed)
        for _ in range(steps):
            for p in parameters:
                p.grad = torch.linspace(-1, 1, 500)
            optimizer.step()
        return [c.to_bytes() for c in compressed_in(optimizer) if isinstance(c.codec, QSGD)]

    assert bytes_after(2, 1) == bytes_after(2, 1)
    seen = [*bytes_after(1, 1), *bytes_after(2, 1), *bytes_after(1, 2)]
    assert len(set(seen)) == len(seen) == 6


@pytest.mark.parametrize("name", ["Adam", "momentum"])
def test_an_uncompressed_optimizer_loads_compressed_state_and_fails_later(name: str) -> None:
    net = model()
    optimizer = CompressedOptimizer.eight_bit(MAKERS[name](net.parameters()), min_size=0)
    train(net, optimizer, 1)
    plain = MAKERS[name](model().parameters())
    with pytest.raises(TypeError, match=r"got a Compressed; .* CompressedOptimizer .*compressed=False"):
        plain.load_state_dict(optimizer.state_dict())
    assert not plain.state
    plain.load_state_dict(optimizer.state_dict(compressed=False))


def test_plain_state_goes_both_ways() -> None:
    net = model()
    optimizer = CompressedOptimizer(MAKERS["Adam"](net.parameters()), Lossless(), min_size=100)
    train(net, optimizer, 5)
    plain_net = copy.deepcopy(net)
    plain = MAKERS["Adam"](plain_net.parameters())
    plain.load_state_dict(copy.deepcopy(optimizer.state_dict(compressed=False)))
    third_net = copy.deepcopy(net)
    third = CompressedOptimizer(MAKERS["Adam"](third_net.parameters()), Lossless(), min_size=100)
    third.load_state_dict(plain.state_dict())
    assert len(compressed_in(third)) == 6
    for one, two in ((net, optimizer), (plain_net, plain), (third_net, third)):
        train(one, two, 5)
    assert parameters_equal(net, plain_net)
    assert parameters_equal(net, third_net)


def test_state_that_is_there_already_is_compressed() -> None:
    net = model()
    inner = MAKERS["Adam"](net.parameters())
    train(net, inner, 2)
    optimizer = CompressedOptimizer.eight_bit(inner, min_size=100)
    assert len(compressed_in(optimizer)) == 6
