"""What programs do with an optimizer, done with one whose state is compressed."""

from __future__ import annotations

from typing import Any

import pytest

from arrcomp import CorruptStreamError

torch = pytest.importorskip("torch")

from torch import nn, optim
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR
from torch.optim.optimizer import register_optimizer_step_post_hook

from arrcomp.torch.optim import CompressedOptimizer

from .optimizer_models import adam, compressed_keys, equal, lossless, pair, set_gradients


@pytest.mark.parametrize("of_inner", [False, True])
def test_schedulers_drive_it(of_inner: bool) -> None:
    seen = []
    for wrap in (lambda o: o, lossless):
        parameters = pair()
        inner = adam(parameters)
        optimizer = wrap(inner)
        target = inner if of_inner else optimizer
        schedulers = [CosineAnnealingLR(target, 10), StepLR(target, 2)]
        for step in range(6):
            set_gradients(parameters, step)
            optimizer.step()
            for scheduler in schedulers:
                scheduler.step()
        seen.append((parameters, optimizer.param_groups[0]["lr"], optimizer.state_dict()["param_groups"]))
    assert equal(seen[0][0], seen[1][0])
    assert seen[0][1:] == seen[1][1:]
    assert seen[0][1] < 1e-4


@pytest.mark.parametrize("fused", [False, True])
def test_a_gradient_scaler_skips_steps_that_are_not_finite(fused: bool) -> None:
    seen = []
    for wrap in (lambda o: o, lossless):
        parameters = pair()
        optimizer = wrap(adam(parameters, fused=fused))
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        for step in range(4):
            optimizer.zero_grad()
            factor = float("inf") if step == 2 else 1.0
            scaler.scale(sum((p**2).sum() for p in parameters) * factor).backward()
            scaler.step(optimizer)
            scaler.update()
        seen.append(parameters)
        assert float(optimizer.state[parameters[0]]["step"]) == 3
        assert scaler.get_scale() == 4.0
    assert equal(*seen)


def test_hooks_of_both_are_called_once_a_step() -> None:
    parameters, calls = pair(), []
    inner = adam(parameters)
    inner.register_step_pre_hook(lambda *_: calls.append("inner"))
    optimizer = lossless(inner, scratch=1)
    optimizer.register_step_pre_hook(lambda o, *_: calls.append(o))
    inner.register_step_post_hook(lambda *_: calls.append("post"))
    everywhere = register_optimizer_step_post_hook(lambda *_: calls.append("global"))
    set_gradients(parameters, 0)
    optimizer.step()
    everywhere.remove()
    assert calls == ["inner", optimizer, "post", "global"]


def test_a_step_called_from_compiled_code_is_made_as_it_is() -> None:
    seen = []
    for compiled in (False, True):
        parameters = pair()
        optimizer = lossless(adam(parameters))
        step = (
            torch.compile(lambda optimizer=optimizer: optimizer.step(), backend="eager") if compiled else optimizer.step
        )
        for number in range(3):
            set_gradients(parameters, number)
            step()
        seen.append(parameters)
    assert equal(*seen)


def test_groups_keep_their_settings_and_may_be_added() -> None:
    seen = []
    for wrap in (lambda o: o, lambda o: lossless(o, scratch=1)):
        first, second, third = [*pair(), pair()[0]]
        optimizer = wrap(adam([{"params": [first], "lr": 0.1}, {"params": [second], "weight_decay": 0.1}]))
        for step in range(4):
            if step == 2:
                optimizer.add_param_group({"params": [third], "lr": 0.5})
            set_gradients([first, second, third], step)
            optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.0
        set_gradients([first, second, third], 9)
        optimizer.step()
        assert [len(group["params"]) for group in optimizer.param_groups] == [1, 1, 1]
        seen.append([first, second, third])
        optimizer.zero_grad()
        assert first.grad is None
    assert equal(*seen)


def test_state_of_parameters_without_gradients_is_not_touched() -> None:
    parameters = pair()
    optimizer = CompressedOptimizer.eight_bit(adam(parameters))
    set_gradients(parameters, 0)
    optimizer.step()
    before = optimizer.state[parameters[1]]["exp_avg"]
    payload = before.to_bytes()
    for step in range(3):
        set_gradients(parameters, step)
        parameters[1].grad = None
        optimizer.step()
    assert optimizer.state[parameters[1]]["exp_avg"] is before
    assert before.to_bytes() == payload
    assert float(optimizer.state[parameters[1]]["step"]) == 1


def test_sparse_gradients_work_where_the_optimizer_takes_them() -> None:
    seen = []
    for wrap in (lambda o: o, lossless):
        torch.manual_seed(0)
        table = nn.Embedding(300, 20, sparse=True)
        optimizer = wrap(optim.SparseAdam(table.parameters()))
        for step in range(3):
            optimizer.zero_grad()
            table(torch.tensor([1, step, 7])).square().sum().backward()
            optimizer.step()
        seen.append([table.weight])
    assert equal(*seen)
    optimizer = lossless(adam(table.parameters()))
    with pytest.raises(RuntimeError, match="sparse gradients"):
        optimizer.step()


def test_an_error_in_a_step_leaves_compressed_state() -> None:
    parameters = pair()
    optimizer = lossless(adam(parameters), scratch=1)
    set_gradients(parameters, 0)
    optimizer.step()
    parameters[1].grad = torch.zeros(5000).to_sparse()
    with pytest.raises(RuntimeError):
        optimizer.step()
    assert all(compressed_keys(optimizer, p) == {"exp_avg", "exp_avg_sq"} for p in parameters)
    assert len(optimizer.param_groups[0]["params"]) == 2
    set_gradients(parameters, 1)
    optimizer.step()


def test_state_keeps_the_order_of_its_parameter_in_memory() -> None:
    seen = []
    for wrap in (lambda o: o, lossless):
        torch.manual_seed(0)
        p = nn.Parameter(torch.randn(4, 8, 5, 5).to(memory_format=torch.channels_last))
        optimizer = wrap(optim.SGD([p], lr=0.1, momentum=0.9, fused=True))
        for step in range(3):
            p.grad = torch.full_like(p, step + 0.5)
            optimizer.step()
        seen.append([p])
        strides = optimizer.state_dict()["state"][0]["momentum_buffer"] if wrap is not lossless else None
        if strides is None:
            strides = optimizer.state_dict(compressed=False)["state"][0]["momentum_buffer"]
        assert strides.stride() == p.stride()
    assert equal(*seen)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_types_of_parameters_work(dtype: str) -> None:
    seen = []
    for wrap in (lambda o: o, lossless):
        parameters = [nn.Parameter(p.detach().to(getattr(torch, dtype))) for p in pair()]
        optimizer = wrap(adam(parameters, eps=1e-4))
        for step in range(3):
            set_gradients(parameters, step)
            optimizer.step()
        seen.append(parameters)
    assert equal(*seen)


def test_state_saved_for_parameters_of_another_type_becomes_theirs() -> None:
    parameters = pair()
    optimizer = lossless(adam(parameters))
    set_gradients(parameters, 0)
    optimizer.step()
    narrow = [nn.Parameter(p.detach().bfloat16()) for p in parameters]
    twin = lossless(adam(narrow))
    twin.load_state_dict(optimizer.state_dict())
    assert str(twin.state[narrow[0]]["exp_avg"].dtype) == "bfloat16"
    set_gradients(narrow, 1)
    twin.step()


def test_altered_state_is_found_when_it_is_used() -> None:
    parameters = pair()
    optimizer = lossless(adam(parameters))
    set_gradients(parameters, 0)
    optimizer.step()
    saved = optimizer.state_dict()
    from arrcomp.torch import _import_arrcomp_torch_first as _pickling

    spec = saved["state"][0]["exp_avg"].spec
    payload = torch.full((spec.capacity,), 255, dtype=torch.uint8)
    saved["state"][0]["exp_avg"] = _pickling.rebuild(payload, spec.codec.config(), "float32", spec.shape)
    optimizer.load_state_dict(saved)
    set_gradients(parameters, 1)
    with pytest.raises(CorruptStreamError):
        optimizer.step()


def test_the_checkpoints_of_distributed_programs_take_plain_state() -> None:
    from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict

    torch.manual_seed(0)
    nets = [nn.Linear(50, 60) for _ in range(2)]
    optimizers = [lossless(adam(net.parameters()), compressed_state_dict=False) for net in nets]
    for step in range(2):
        set_gradients(list(nets[0].parameters()), step)
        optimizers[0].step()
    set_optimizer_state_dict(nets[1], optimizers[1], get_optimizer_state_dict(nets[0], optimizers[0]))
    for name, p in nets[1].named_parameters():
        q = nets[0].get_parameter(name)
        for key in ("exp_avg", "exp_avg_sq"):
            assert optimizers[1].state[p][key].to_bytes() == optimizers[0].state[q][key].to_bytes()


@pytest.fixture
def mesh() -> Any:
    from torch import distributed

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    yield distributed.init_device_mesh("cpu", (1,))  # type: ignore[attr-defined]
    distributed.destroy_process_group()


def test_sharded_parameters_keep_sharded_state(mesh: Any) -> None:
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    seen = []
    for wrap in (lambda o: o, lossless):
        parameters = [nn.Parameter(distribute_tensor(p.detach().view(50, 100), mesh, [Shard(0)])) for p in pair()]
        optimizer = wrap(adam(parameters))
        for step in range(3):
            for p in parameters:
                p.grad = torch.full_like(p, step + 1)
            optimizer.step()
        if wrap is lossless:
            assert compressed_keys(optimizer, parameters[0]) == {"exp_avg", "exp_avg_sq"}
            plain = optimizer.state_dict(compressed=False)["state"][0]["exp_avg"]
            assert isinstance(plain, DTensor)
            assert plain.placements == parameters[0].placements  # type: ignore[attr-defined]
            twin = lossless(adam(parameters))
            twin.load_state_dict(optimizer.state_dict())
            optimizer = twin
        for p in parameters:
            p.grad = torch.full_like(p, 5)
        optimizer.step()
        seen.append([p.to_local() for p in parameters])  # type: ignore[attr-defined]
    assert equal(*seen)
