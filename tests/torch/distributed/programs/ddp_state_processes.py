"""What test_ddp_hook.py runs in three processes over Gloo: the hook's state, and PyTorch's own hooks."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_wrapper, fp16_compress_wrapper
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.nn.parallel import DistributedDataParallel

from arrcomp import QSGD, Lossless, Rule
from arrcomp.torch.distributed import QuantizedState, quantized_allreduce_hook
from ddp_models import (
    EVERYTHING,
    SHAPES,
    SMALL,
    WORLD,
    Given,
    averaged,
    equal,
    hooked,
    network,
    one_step,
    random_gradients,
    rank,
    refused,
    run_checks,
    same_everywhere,
    train,
    trained,
)

# From one run to the next


def _reloaded(state: Any, kind: str, settings: dict[str, Any]) -> Any:
    """The state as another run has it, from bytes."""
    file = io.BytesIO()
    if kind == "pickle":
        return pickle.loads(pickle.dumps(state))  # noqa: S301 - own bytes
    torch.save(state.state_dict(), file)
    file.seek(0)
    made = QuantizedState(**settings)
    made.load_state_dict(torch.load(file, weights_only=True))
    return made


def check_runs_go_on_bit_by_bit(folder: Path) -> None:
    for settings in (
        {"bits": 2, "error_feedback": True, "rounding": "stochastic", "seed": 3},
        {"bits": "auto", "error_feedback": True, "plan_interval": 3, "alpha": 2.0},
    ):
        for kind in ("pickle", "state_dict"):
            _check_restart(settings | EVERYTHING, kind, None)
    groups = [dist.new_group(ranks) for ranks in ([0, 2], [1])]  # of two processes, in which any order is the same
    _check_restart({"bits": 3, "start_iter": 5, "rounding": "stochastic"}, "pickle", groups[rank() == 1])


def _check_restart(settings: dict[str, Any], kind: str, group: Any) -> None:
    options = SMALL | {"process_group": group}
    state = QuantizedState(group, **settings)
    ddp = hooked(network(), state, **options)
    if kind == "state_dict":  # else layers are told by their order
        state.register_model(ddp)
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
    train(ddp, optimizer, range(4))
    assert any(bits != 4 for bits in state.plan.values()) == (settings["bits"] == "auto")
    saved = pickle.dumps((ddp.module.state_dict(), optimizer.state_dict()))
    other_state = _reloaded(state, kind, settings)
    train(ddp, optimizer, range(4, 8))
    model, optimizer_state = pickle.loads(saved)  # noqa: S301 - own bytes
    twin = hooked(network(5), other_state, **options)
    twin.module.load_state_dict(model)
    assert (other_state.step, other_state.process_group) == (4, None)
    other_state.process_group = group
    if kind == "state_dict":
        other_state.register_model(twin)
    successor = torch.optim.Adam(twin.parameters(), lr=0.01)
    successor.load_state_dict(optimizer_state)
    train(twin, successor, range(4, 8))
    assert equal(ddp.parameters(), twin.parameters())
    assert (other_state.step, other_state.plan) == (8, state.plan)
    assert other_state.residuals.keys() == state.residuals.keys()
    assert all(torch.equal(x, other_state.residuals[name]) for name, x in state.residuals.items())


def check_states_of_others_are_refused(folder: Path) -> None:
    state = QuantizedState(bits=4, error_feedback=True)
    ddp = hooked(network(), state)
    state.register_model(ddp)
    one_step(ddp)
    named = state.state_dict()
    unnamed, other = QuantizedState(error_feedback=True), QuantizedState(error_feedback=True)
    unnamed.load_state_dict(named)
    twin = hooked(network(), unnamed)
    refused(
        ValueError,
        "expected one saved without register_model, got one saved with register_model",
        lambda: one_step(twin),
    )
    renamed = {f"x{name}": x for name, x in named["residuals"].items()}
    other.load_state_dict(named | {"residuals": renamed})
    twin = hooked(network(), other)
    other.register_model(twin)
    refused(ValueError, "expected names of the model's parameters", lambda: one_step(twin))
    shapes = {name: x[:2] for name, x in named["residuals"].items()}
    another = QuantizedState(error_feedback=True)
    another.load_state_dict(named | {"residuals": shapes})
    twin = hooked(network(), another)
    another.register_model(twin)
    refused(ValueError, "residual of .*expected shape", lambda: one_step(twin))


# Rules, figures, plans


def check_rules_see_names(folder: Path) -> None:
    rules = [Rule(QSGD(bits=8), "0.weight"), Rule(Lossless(), "4.*"), Rule(QSGD(bits=2), "*.bias", min_size=64)]
    ddp = DistributedDataParallel(network())
    state = QuantizedState.for_model(ddp, bits=4, rules=rules, layer_min_size=100)
    ddp.register_comm_hook(state, quantized_allreduce_hook)
    one_step(ddp)
    bits = {name: getattr(layer.codec, "bits", None) for name, layer in state.statistics.items()}
    assert bits == {"0.weight": 8, "0.bias": 2, "2.weight": 4, "2.bias": 2, "4.weight": None, "4.bias": None}
    by_size = QuantizedState(bits=4, rules=[Rule(Lossless(), min_size=4000)], layer_min_size=100)
    one_step(hooked(network(), by_size))
    assert sum(layer.codec is not None for layer in by_size.statistics.values()) == 1  # 4 x 64


def check_names_are_asked_for(folder: Path) -> None:
    ddp = hooked(network(), QuantizedState(rules=[Rule(Lossless(), "*.bias")]))
    refused(ValueError, "register_model", lambda: one_step(ddp))


def check_a_state_is_of_one_model(folder: Path) -> None:
    state = QuantizedState()
    one_step(hooked(network(), state))
    other = hooked(network(), state)
    refused(ValueError, "expected parameters of the first step", lambda: one_step(other))
    state = QuantizedState.for_model(network())
    other = hooked(network(), state)
    refused(ValueError, "expected parameters of the registered model", lambda: one_step(other))


def check_differing_ranks_raise(folder: Path) -> None:
    own = rank() // 2
    for state, expected in (
        (QuantizedState(bits=2 + own), r"^rank 2: codec: expected QSGD\(bits=2.*\) as on rank 0, got QSGD\(.*\)$"),
        (QuantizedState(seed=own), "^rank 2: seed: expected 0 as on rank 0, got 1$"),
        (QuantizedState(start_iter=own), "^rank 2: start_iter: expected 0 as on rank 0, got 1$"),
    ):
        ddp = hooked(network(), state)
        refused(ValueError, expected, lambda: one_step(ddp))  # noqa: B023 - called at once
    state = QuantizedState()
    if rank() == 2:
        state.load_state_dict(state.state_dict() | {"step": 5})
    ddp = hooked(network(), state)
    refused(ValueError, "^rank 2: step: expected 0 as on rank 0, got 5$", lambda: one_step(ddp))


def check_wrong_states_and_gradients_are_refused(folder: Path) -> None:
    ddp = hooked(network(), 5)
    refused(TypeError, r"state: expected a QuantizedState.*register_comm_hook.*, got 5 \(int\)", lambda: one_step(ddp))
    sparse = hooked(torch.nn.Embedding(100, 20, sparse=True), QuantizedState())
    refused((TypeError, RuntimeError), "parse", lambda: sparse(torch.tensor([1, 2])).sum().backward())


def check_figures(folder: Path) -> None:
    state, steps = QuantizedState(bits=4, track_error=True), 3
    ddp = hooked(Given(), state)
    state.register_model(ddp)
    for step in range(steps):
        averaged(ddp, random_gradients(step))
    large, small = ([state.statistics[f"layers.{i}"] for i in pair] for pair in ((0, 1), (2, 3)))
    for layer in small:
        assert layer.codec is None
        assert layer.sent_nbytes == layer.plain_nbytes
        assert layer.saved_nbytes == 0
    for layer in large:
        assert layer.codec == QSGD(bits=4)
        assert layer.plain_nbytes == steps * (2 * 4 * layer.values * (WORLD - 1) // WORLD)
        assert layer.saved_nbytes > 0.7 * layer.plain_nbytes
        assert 0.05 < layer.error < 0.15  # 2^-4 of some 6 deviations, by the square root of 12
    sent = torch.tensor([float(sum(layer.sent_nbytes for layer in large))])
    dist.all_reduce(sent)
    # Half a byte a value and 8 bytes a bucket, from and to all other ranks; and rounded up to words here and there.
    expected = steps * 2 * (WORLD - 1) * sum(layer.values for layer in large) * (4 + 64 / 512) / 8
    assert 1 <= sent.item() / expected < 1.1
    assert state.total().sent_nbytes == sum(layer.sent_nbytes for layer in [*large, *small])
    lines = state.summary().splitlines()
    assert len(lines) == 2 + len(SHAPES) + 1
    assert "qsgd, 4 bits" in next(line for line in lines if line.startswith("layers.0"))
    assert "step 3" in lines[-1]


def check_bits_follow_the_errors_of_all_ranks(folder: Path) -> None:
    shapes = [(64, 128)] * 4
    for settings in ({}, {"rounding": "stochastic"}, {"error_feedback": True}):
        state = QuantizedState(bits="auto", plan_interval=2, alpha=1.1, **settings)
        ddp = hooked(Given(shapes), state)
        state.register_model(ddp)
        plans, sent = [], []
        for step in range(6):
            # At first one layer has gradients, then another, and that on one rank alone.
            scales = (1, 1e-4, 1e-4, 1e-4) if step < 2 else (1e-4, 1e-4, 1e-4, 1 if rank() == 1 else 1e-4)
            generator = torch.Generator().manual_seed(10 * step + rank())
            gradients = [scale * torch.randn(shape, generator=generator) for scale, shape in zip(scales, shapes)]  # noqa: B905
            if step == 2 and rank() == 2:
                gradients[0][0, 0] = float("nan")
            averaged(ddp, gradients)
            plans.append([state.plan[f"layers.{i}"] for i in range(4)])
            codecs: list[Any] = [state.statistics[f"layers.{i}"].codec for i in range(4)]
            sent.append([codec.bits for codec in codecs])
        assert plans[0] == [4, 2, 2, 2]
        assert plans[1:4] == [plans[0]] * 3, "plans are made at steps 0, 2 and 4, but not of NaN"
        assert plans[4] == plans[5] == [2, 2, 2, 4]
        assert sent == [[4] * 4, *plans[:5]], "a plan is for the steps after it"


# With PyTorch's own hooks


def _bf16_hook(state, bucket):  # type: ignore[no-untyped-def] # DDP looks at annotations
    return bf16_compress_wrapper(quantized_allreduce_hook)(state, bucket)  # whose own name DDP refuses on the CPU


def check_wrappers(folder: Path) -> None:
    exact = averaged(hooked(Given()), random_gradients(1))
    for hook, dtype in ((fp16_compress_wrapper(quantized_allreduce_hook), torch.float16), (_bf16_hook, torch.bfloat16)):
        state = QuantizedState(bits=8, error_feedback=True)
        ddp = hooked(Given(), state, hook, bucket_cap_mb=0.001)
        for _ in range(3):
            for x, y in zip(averaged(ddp, random_gradients(1)), exact, strict=True):
                assert x.dtype == torch.float32
                assert (x - y).abs().max() < 0.1
        assert {x.dtype for x in state.residuals.values()} == {dtype}
        assert state.total().plain_nbytes < 3 * 2 * sum(x.numel() for x in exact) * 2
        trained(QuantizedState(bits=4), hook=hook, **SMALL)


def check_local_steps_after_compressed_ones(folder: Path) -> None:
    own = [dist.new_group([i]) for i in range(WORLD)][rank()]
    local = PostLocalSGDState(None, own, start_localSGD_iter=0)

    def hook(state, bucket):  # type: ignore[no-untyped-def] # DDP looks at annotations
        return quantized_allreduce_hook(state, bucket) if state.step < 2 else post_localSGD_hook(local, bucket)

    ddp = hooked(network(), QuantizedState(bits=4), hook)
    optimizer, averager = torch.optim.SGD(ddp.parameters(), lr=0.1), PeriodicModelAverager(period=2, warmup_steps=2)
    for step in range(5):
        train(ddp, optimizer, [step])
        averager.average_parameters(ddp.parameters())
    same_everywhere(ddp)


if __name__ == "__main__":
    run_checks(globals(), long=("check_runs_go_on_bit_by_bit",))
