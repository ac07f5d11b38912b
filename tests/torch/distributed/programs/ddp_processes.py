"""What test_ddp_hook.py runs in three processes over Gloo: what comes back of gradients, and beside what."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import arrcomp
from arrcomp import QSGD, Codebook, ErrorBounded, FloatFormat, Lossless
from arrcomp.torch.distributed import QuantizedState, _reduction, quantized_allreduce_hook
from arrcomp.torch.distributed._arguments import Operation, Processes
from ddp_models import (
    DTYPES,
    EVERYTHING,
    SHAPES,
    SMALL,
    WORLD,
    Given,
    averaged,
    equal,
    hooked,
    inputs,
    network,
    random_gradients,
    rank,
    refused,
    run_checks,
    same_everywhere,
    train,
    trained,
)

# What comes back


def check_averages_are_within_the_bound(folder: Path) -> None:
    for dtype in DTYPES:
        mine = random_gradients(1, dtype=dtype)
        exact = averaged(hooked(Given(dtype=dtype)), mine)
        every = [random_gradients(1, of, dtype) for of in range(WORLD)]
        for bits in (2, 4, 8):
            found = averaged(hooked(Given(dtype=dtype), QuantizedState(bits=bits)), mine)
            for i, (x, y) in enumerate(zip(exact, found, strict=True)):
                assert y.dtype == dtype
                spread = max(float(g[i].max() - g[i].min()) for g in every)
                rounding = spread * torch.finfo(dtype).eps  # Gloo adds in another order where others are beside
                # Half a level for each gradient, half a level for the average.
                bound = rounding + (spread / (2**bits - 1) if i < 2 else 0)
                assert (x.double() - y.double()).abs().max() <= bound * 1.001
                assert i >= 2 or not torch.equal(x, y)


def check_constants_are_exact(folder: Path) -> None:
    for bits in (1, 2, 4, 8):
        ddp = hooked(Given(), QuantizedState(bits=bits, error_feedback=bits > 1))
        for step in range(2):
            value = 0.75 * 2**step
            for x in averaged(ddp, [torch.full(shape, value * (1 + rank())) for shape in SHAPES]):
                assert torch.equal(x, torch.full_like(x, 2 * value))  # the mean of 1, 2, 3


def check_replicas_stay_identical(folder: Path) -> None:
    settings: list[dict[str, Any]] = [
        {"bits": 1},
        {"bits": 2, "error_feedback": True},
        {"bits": 2, "rounding": "stochastic", "norm": "linf", "bucket_size": 64},
        {"bits": "auto", "plan_interval": 2, "track_error": True},
        {"coding": "entropy", "error_feedback": True},
        {"codec": ErrorBounded(abs=1e-3), "error_feedback": True},
        {"codec": FloatFormat("mxfp4", rounding="stochastic"), "layer_min_size": 0},
        {"codec": arrcomp.SmaQ()},
        {"codec": Lossless()},
    ]
    plain = trained(None, **SMALL)
    for setting in settings:
        weights = trained(QuantizedState(**setting), **SMALL)
        assert equal(weights, plain) == (setting.get("codec") == Lossless()), setting


def check_buckets_do_not_matter(folder: Path) -> None:
    settings: list[dict[str, Any]] = [
        {"bits": 2, "error_feedback": True, "rounding": "stochastic"},
        {"bits": "auto", "plan_interval": 2, "rounding": "stochastic"},
        {"coding": "entropy", "rounding": "stochastic", "error_feedback": True},
    ]
    for setting in settings:
        one = trained(QuantizedState(**setting, **EVERYTHING))
        for options in (SMALL, SMALL | {"find_unused_parameters": True}, {"gradient_as_bucket_view": True}):
            assert equal(one, trained(QuantizedState(**setting, **EVERYTHING), **options)), (setting, options)
        assert not equal(one, trained(QuantizedState(**setting, **EVERYTHING, seed=1)))


def check_first_steps_are_as_without_a_hook(folder: Path) -> None:
    state = QuantizedState(bits=2, start_iter=3)
    ddp, plain = hooked(network(), state), hooked(network())
    for model in (ddp, plain):
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), range(3))
    assert equal(ddp.parameters(), plain.parameters())
    assert state.total().saved_nbytes == 0
    for model in (ddp, plain):
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), range(3, 4))
    assert not equal(ddp.parameters(), plain.parameters())
    assert state.step == 4
    assert state.total().saved_nbytes > 0


NEAR = Codebook(
    (0.0,), (-0.25, 0.25), scaling="absmax", bucket_size=512
)  # one bit, but QSGD's levels are too far apart


def check_error_feedback_sends_everything_in_the_end(folder: Path) -> None:
    for codec in (QSGD(bits=2), QSGD(bits=2, rounding="stochastic"), QSGD(bits=3, norm="linf"), NEAR):
        distances = {}
        for feedback in (True, False):
            state = QuantizedState(codec=codec, error_feedback=feedback)
            ddp = hooked(Given(dtype=torch.float64), state)
            total = exact = torch.zeros((), dtype=torch.float64)
            state.register_model(ddp)
            for _ in range(40):
                total = total + averaged(ddp, random_gradients(1, dtype=torch.float64))[0]
                exact = exact + sum(random_gradients(1, of, torch.float64)[0] for of in range(WORLD)) / WORLD
            distances[feedback] = float((total - exact).norm() / exact.norm())
            if feedback:
                left, last = state.residuals["layers.0"].clone(), torch.zeros(1, dtype=torch.float64)
                if "layers.0" in state.sum_residuals:
                    last = state.sum_residuals["layers.0"].abs().max().view(1)
                dist.all_reduce(left)
                dist.all_reduce(last, dist.ReduceOp.MAX)
                assert (total + left / WORLD - exact).abs().max() <= last + 1e-9, "all that was not sent is kept"
        assert distances[True] < 0.5 * distances[False], (codec, distances)


def check_error_feedback_helps_a_regression(folder: Path) -> None:
    losses = {}
    for feedback in (True, False):
        ddp = hooked(network(), QuantizedState(codec=NEAR, error_feedback=feedback))
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
        train(ddp, optimizer, range(60))
        x = torch.randn(256, 64, generator=torch.Generator().manual_seed(9))
        losses[feedback] = (ddp.module(x) - x[:, :4].sin()).square().mean().item()
    assert losses[True] < losses[False], losses


def check_what_is_lost_and_what_comes_back_make_the_sum(folder: Path) -> None:
    shapes = [(7000,), (20,), (513,)]
    for op, codec in [
        ("AVG", QSGD(bits=2)),
        ("SUM", QSGD(bits=2, rounding="stochastic")),
        ("SUM", ErrorBounded(abs=0.5)),
        ("AVG", QSGD(coding="entropy")),
    ]:
        xs = [torch.randn(shape, generator=torch.Generator().manual_seed(rank())) for shape in shapes]
        lost, results = [torch.full_like(x, 7) for x in xs], [x.clone() for x in xs]
        work = _reduction.Reduction(Operation(results, [codec] * 3, op, Processes.of(None), 5, 1), lost=lost)
        own = work.shards[rank()]
        before = [torch.randn(piece.elements, generator=torch.Generator().manual_seed(7)) for piece in own]
        work.lost_sums = [x.clone() for x in before]
        nbytes = _drained_with_sizes(work)
        assert work.sent_nbytes == sum(work.sent_nbytes_each) == nbytes
        assert any(work.sent_nbytes_each)
        arrived = [x - gone for x, gone in zip(xs, lost, strict=True)]
        for x in arrived:
            dist.all_reduce(x)
        for piece, added, gone in zip(own, before, work.lost_sums, strict=True):
            exact, found = (each[piece.array][piece.first : piece.end] for each in (arrived, results))
            assert (exact / (WORLD if op == "AVG" else 1) + added - gone - found).abs().max() < 1e-4


def _drained_with_sizes(work: Any) -> int:
    """Do a reduction; bytes of its messages to others."""
    sizes: list[int] = []
    reduction: Any = _reduction
    exchange, gather = reduction.exchange, reduction.gather

    def counted_exchange(messages: Any, *rest: Any) -> Any:
        sizes.extend(size for i, size in enumerate(messages.sizes) if i != rank())
        return exchange(messages, *rest)

    def counted_gather(message: Any, *rest: Any) -> Any:
        sizes.extend([message.numel()] * (WORLD - 1))
        return gather(message, *rest)

    reduction.exchange, reduction.gather = counted_exchange, counted_gather
    try:
        for step in work.steps():
            step.wait()
    finally:
        reduction.exchange, reduction.gather = exchange, gather
    return sum(sizes)


def check_random_rounding_is_another_in_each_step_and_unbiased(folder: Path) -> None:
    settings: dict[str, Any] = {"bits": 2, "rounding": "stochastic", "seed": 5}
    ddp, twin = hooked(Given(), QuantizedState(**settings)), hooked(Given(), QuantizedState(**settings))
    found = [averaged(ddp, random_gradients(1))[0] for _ in range(64)]
    assert torch.equal(found[0], averaged(twin, random_gradients(1))[0])
    assert not torch.equal(found[0], found[1])
    exact = sum(random_gradients(1, of)[0] for of in range(WORLD)) / WORLD
    assert (torch.stack(found).mean(0) - exact).norm() < 0.2 * (found[0] - exact).norm()  # 1 / 8


def check_nan_reaches_all_and_leaves_again(folder: Path) -> None:
    for feedback in (False, True):
        for bad in (float("nan"), float("inf")):
            state = QuantizedState(bits=4, error_feedback=feedback, track_error=True)
            ddp = hooked(Given(), state)
            for place in (0, 2):
                gradients = random_gradients(1)
                if rank() == 1:
                    gradients[place].view(-1)[3] = bad
                found = averaged(ddp, gradients)
                assert not found[place].view(-1)[3].isfinite()
                assert all(x.isfinite().all() for i, x in enumerate(found) if i != place)
            assert all(x.isfinite().all() for x in averaged(ddp, random_gradients(2)))
            assert all(x.isfinite().all() for x in state.residuals.values())
            assert 0 < state.total().error < 1


def check_an_interrupted_step_leaves_nothing_behind(folder: Path) -> None:
    model, gradients = Given(), random_gradients(1)
    state = QuantizedState.for_model(model, bits=8, error_feedback=True)

    def hook(state, bucket):  # type: ignore[no-untyped-def] # DDP looks at annotations
        if bucket.index() == 1:
            raise KeyError("between two buckets")
        return quantized_allreduce_hook(state, bucket)

    broken = hooked(model, state, hook, bucket_cap_mb=0.001)
    averaged(broken, gradients)  # in one bucket
    refused(KeyError, "between two buckets", lambda: averaged(broken, gradients))
    (interrupted,) = state.pending
    model = Given()  # the other one has DDP's marks
    state.register_model(model)
    found = averaged(hooked(model, state, bucket_cap_mb=0.001), gradients)
    every = [random_gradients(1, of) for of in range(WORLD)]
    for x, y in zip(found, zip(*every, strict=True), strict=True):
        assert (x - sum(y) / WORLD).abs().max() < 0.1
    assert not interrupted.is_completed()
    assert not state.pending


class _ComplexAndReal(torch.nn.Module):
    """A layer of complex numbers beside real ones."""

    def __init__(self) -> None:
        super().__init__()
        self.complex, self.real = torch.nn.Linear(64, 64, dtype=torch.complex64), network()

    def forward(self, x: Any) -> Any:
        return self.complex(x).abs().sum() + self.real(x.real).square().mean()


def check_complex_gradients_are_not_compressed(folder: Path) -> None:
    model, found = _ComplexAndReal(), []
    state, x = QuantizedState.for_model(model, bits=4), torch.complex(inputs(0), inputs(1))
    for one, twin in ((state, model), (None, copy.deepcopy(model))):
        ddp = hooked(twin, one)
        ddp(x).backward()
        found.append([p.grad for p in ddp.parameters()])
    assert equal(*(gradients[:2] for gradients in found))
    assert not equal(*(gradients[2:] for gradients in found))
    weight = state.statistics["complex.weight"]
    assert (weight.codec, weight.values, weight.saved_nbytes) == (None, 2 * 64 * 64, 0)
    assert weight.sent_nbytes == 2 * (WORLD - 1) * 4 * 2 * 64 * 64 // WORLD


# Beside other things


class _SummedBothWays(torch.autograd.Function):
    """A sum over ranks in the forward and in the backward pass, as batch norms over processes have it."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        total = gradient.clone()
        dist.all_reduce(total)
        return total


class _WithSums(torch.nn.Module):
    """Layers with sums over ranks between them."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.layers = network(seed)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
            if isinstance(layer, torch.nn.Linear) and x.shape[1] > 4:
                x = x - _SummedBothWays.apply(x.mean(0)) / WORLD
        return x


def adversaries(make_state: Any, **options: Any) -> list[Any]:
    """A generator and a discriminator, after a few steps with other operations in between."""
    models = [hooked(_WithSums(seed), make_state(seed), **options) for seed in (0, 1)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.02) for model in models]
    generator, discriminator = models
    for step in range(4):
        fake = generator(inputs(step)).repeat(1, 16)
        losses = [discriminator(fake.detach()).square().mean() + discriminator(inputs(step + 50)).sin().mean()]
        losses.append(-discriminator(fake).mean())
        for loss, optimizer, model in zip(losses, reversed(optimizers), reversed(models), strict=True):
            model.zero_grad()
            loss.backward(retain_graph=model is discriminator)
            metric = torch.tensor([1.0 + rank()])
            dist.all_reduce(metric)
            assert metric == 6
            optimizer.step()
            if model is discriminator:
                losses[1] = -discriminator(generator(inputs(step)).repeat(1, 16)).mean()
    return [x for model in models for x in same_everywhere(model)]


def check_two_models_and_other_sums_do_not_meet(folder: Path) -> None:
    def make(seed: int) -> Any:
        return QuantizedState(bits=8, seed=seed, error_feedback=bool(seed))

    plain, found = adversaries(lambda seed: None), adversaries(make)
    assert not equal(plain, found)
    adversaries(make, **SMALL)
    lossless = adversaries(lambda seed: QuantizedState(codec=Lossless()))
    assert equal(plain, lossless), "what is not compressed is as without a hook"


def check_groups_are_the_states_own(folder: Path) -> None:
    pair, single = dist.new_group([0, 2]), dist.new_group([1])
    group = single if rank() == 1 else pair
    model, gradients = Given(), random_gradients(1)
    state = QuantizedState.for_model(DistributedDataParallel(model, process_group=group), bits=8)
    found = averaged(hooked(model, state, process_group=group), gradients)
    every = [random_gradients(1, of) for of in (0, 2)] if group is pair else [gradients]
    for x, y in zip(found, zip(*every, strict=True), strict=True):
        assert (x - sum(y) / len(every)).abs().max() < (0.05 if group is pair else 1e-9)
    assert (state.total().sent_nbytes == 0) == (group is single)
    outsider = hooked(Given(), QuantizedState(pair, bits=4)) if rank() == 1 else None
    dist.barrier(pair) if rank() != 1 else None
    if outsider is None:
        hooked(Given())  # DDP compares models in the whole group
    else:
        refused(ValueError, "expected one that contains this process", lambda: averaged(outsider, gradients))


def check_gradients_accumulate(folder: Path) -> None:
    state = QuantizedState(codec=ErrorBounded(abs=1e-6))
    ddp, plain = hooked(Given(), state), hooked(Given())
    for model in (ddp, plain):
        with model.no_sync():
            for step in range(2):
                model(random_gradients(step)).backward()
        model(random_gradients(2)).backward()
    for x, y in zip(ddp.parameters(), plain.parameters(), strict=True):
        assert (x.grad - y.grad).abs().max() < 1e-5
    assert state.step == 1


class _Branches(torch.nn.Module):
    """Of two branches, each step uses one; which, ranks may see differently."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = torch.nn.ModuleList([network(seed) for seed in range(3)])

    def forward(self, x: Any, branch: int) -> Any:
        return self.branches[branch](x)


def check_unused_parameters(folder: Path) -> None:
    for settings in ({"bits": 8}, {"codec": Lossless()}):
        models = []
        for state in (QuantizedState(error_feedback="bits" in settings, **settings), None):
            torch.manual_seed(0)
            ddp = hooked(_Branches(), state, find_unused_parameters=True, **SMALL)
            optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
            for step in range(4):
                optimizer.zero_grad()
                ddp(inputs(step), (step + rank()) % 2).square().mean().backward()
                optimizer.step()
            models.append(same_everywhere(ddp))
            assert equal(ddp.module.branches[2].parameters(), network(2).parameters()), "nobody used it"
        found, plain = models
        assert equal(found, plain) == ("codec" in settings)
        assert max(float((x - y).abs().max()) for x, y in zip(found, plain, strict=True)) < 0.01


def check_static_graphs(folder: Path) -> None:
    assert equal(trained(QuantizedState(codec=Lossless()), static_graph=True), trained(None, static_graph=True))
    trained(QuantizedState(bits=4, error_feedback=True), static_graph=True, **SMALL)


def check_uneven_inputs(folder: Path) -> None:
    ddp = hooked(network(), QuantizedState(bits=4, error_feedback=True), **SMALL)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    with ddp.join():
        train(ddp, optimizer, range(2 + rank()))
    same_everywhere(ddp)


if __name__ == "__main__":
    run_checks(
        globals(),
        long=(
            "check_averages_are_within_the_bound",
            "check_buckets_do_not_matter",
            "check_error_feedback_sends_everything_in_the_end",
            "check_error_feedback_helps_a_regression",
            "check_random_rounding_is_another_in_each_step_and_unbiased",
            "check_two_models_and_other_sums_do_not_meet",
            "check_unused_parameters",
        ),
    )
