"""Two processes train with FSDP2 and compressed communications; a program of test_backend.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

import arrcomp
import processes
from arrcomp.torch.distributed.fsdp import QuantizedAllGather, QuantizedReduceScatter, compress_fsdp
from processes import check_same, inputs

WORLD = 2
RATE = 0.1
STEPS = 5
ERROR = 1e-3
BOUND = arrcomp.ErrorBounded(abs=ERROR)


def model(**arguments: Any) -> Any:
    """A model, sharded layer by layer, whose weights are the same each time."""
    torch.manual_seed(0)
    made = torch.nn.Sequential(
        torch.nn.Linear(75, 80), torch.nn.ReLU(), torch.nn.Linear(80, 71), torch.nn.Linear(71, 3)
    )
    for layer in made:
        if not isinstance(layer, torch.nn.ReLU):
            fully_shard(layer, mesh=init_device_mesh("cpu", (WORLD,)), **arguments)
    return fully_shard(made, mesh=init_device_mesh("cpu", (WORLD,)), **arguments)


def batch(rank: int, step: int) -> torch.Tensor:
    """Other data for each process and step."""
    return inputs(8 * 75, WORLD, seed=step)[rank].view(8, 75)


def whole(module: Any) -> list[torch.Tensor]:
    """The parameters, gathered without compression."""
    return [x.full_tensor().detach() for x in module.parameters()]


def trained(module: Any, rank: int, steps: int = STEPS) -> list[torch.Tensor]:
    """Parameters after a few steps."""
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    for step in range(steps):
        optimizer.zero_grad()
        module(batch(rank, step)).square().mean().backward()
        optimizer.step()
    return whole(module)


def check_gradients(rank: int) -> None:
    """Each gradient is off by the codec's bound at most, is compressed, and the small layer's is exact."""
    exact, lossy = model(), model()
    compress_fsdp(lossy, reduce_scatter=BOUND)
    for module in (exact, lossy):
        module(batch(rank, 0)).square().mean().backward()
    for i, (x, y) in enumerate(zip(exact.parameters(), lossy.parameters(), strict=True)):
        error = (x.grad.full_tensor() - y.grad.full_tensor()).abs().max()
        assert error <= ERROR + 1e-7
        assert (error > 0) == (i < 4), "the last layer has fewer values than min_size"


def check_training(rank: int) -> None:
    """A few steps end near where they end without compression; what is lossless ends there."""
    expected = trained(model(), rank)
    started = whole(model())
    moved = max(float((x - y).abs().max()) for x, y in zip(expected, started, strict=True))
    kinds = (
        ({"reduce_scatter": arrcomp.Lossless()}, 1e-6),
        ({"reduce_scatter": BOUND}, 2 * STEPS * RATE * ERROR),
        ({"reduce_scatter": arrcomp.QSGD(bits=8, bucket_size=64, rounding="stochastic")}, 0.1 * moved),
        ({"all_gather": arrcomp.Lossless()}, 1e-6),
        ({"all_gather": arrcomp.QSGD(bits=8, bucket_size=64)}, 0.1 * moved),
        ({"all_gather": arrcomp.QSGD(bits=8, bucket_size=64, rounding="stochastic")}, 0.1 * moved),
        ({"all_gather": arrcomp.FloatFormat("bf16"), "reduce_scatter": arrcomp.QSGD(bits=8)}, 0.1 * moved),
    )
    for codecs, bound in kinds:
        module = model()
        compress_fsdp(module, **codecs)
        for x, y in zip(trained(module, rank), expected, strict=True):
            assert (x - y).abs().max() <= bound, codecs
    with pytest.warns(UserWarning, match="bits: expected at least 2 for gradients, got 1"):
        compress_fsdp(model(), reduce_scatter=arrcomp.QSGD(bits=1))


def check_gathered(rank: int) -> None:
    """All processes compute with the same bits, whether they wait at once or later; the shards keep theirs."""
    for is_async in (False, True):
        module = model()
        codec = arrcomp.QSGD(bits=4, bucket_size=64)
        compress_fsdp(module, all_gather=codec, min_size=0)
        exact = whole(module)
        layers = [layer for layer in module.modules() if isinstance(layer, FSDPModule)]
        for handle in [layer.unshard(async_op=is_async) for layer in layers]:
            if handle is not None:
                handle.wait()
        for x, y in zip(module.parameters(), exact, strict=True):
            check_same(x.detach().clone())
            assert x.shape == y.shape
            assert 0 < (x - y).abs().max() < 0.5 * (y.max() - y.min())
        for layer in layers:
            layer.reshard()
        for x, y in zip(whole(module), exact, strict=True):
            assert torch.equal(x, y)


class Recorder(QuantizedAllGather):
    """Remembers what was gathered."""

    def __call__(self, output_tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
        """Gather, and remember."""
        work = super().__call__(output_tensor, *args, **options)
        self.found = [*getattr(self, "found", []), output_tensor.clone()]
        return work


def check_seeds(rank: int) -> None:
    """Forward and backward see the same parameters; the next step, other random numbers."""
    module = model()
    codec = arrcomp.QSGD(bits=2, rounding="stochastic")
    scatter = QuantizedReduceScatter(None, min_size=0)
    module[0].set_custom_reduce_scatter(scatter)
    module[0].set_custom_all_gather(recorder := Recorder(codec, reduce_scatter=scatter))
    for step in range(2):
        module(batch(rank, step)).sum().backward()
    forward, backward, later, _ = recorder.found
    assert torch.equal(forward, backward)
    assert not torch.equal(forward, later), "no optimizer changed the parameters"
    assert scatter.steps == 2


def check_types(rank: int) -> None:
    """Mixed precision, float64, and parameters of several types, which PyTorch gathers as bytes."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    module = model(mp_policy=policy)
    compress_fsdp(module, reduce_scatter=arrcomp.QSGD(bits=8), all_gather=arrcomp.QSGD(bits=8))
    assert all(x.isfinite().all() for x in trained(module, rank))
    half = model(mp_policy=MixedPrecisionPolicy(param_dtype=torch.float16))
    compress_fsdp(half, reduce_scatter=arrcomp.QSGD(bits=8, bucket_size=64))
    reference = trained(model(mp_policy=MixedPrecisionPolicy(param_dtype=torch.float16)), rank)
    for x, y in zip(trained(half, rank), reference, strict=True):
        assert (x - y).abs().max() < 0.02
    mixed: Any = torch.nn.Sequential(torch.nn.Linear(60, 60), torch.nn.Linear(60, 60).bfloat16().requires_grad_(False))
    fully_shard(mixed, mesh=init_device_mesh("cpu", (WORLD,)))
    exact = [x.full_tensor() for x in mixed.parameters()]
    compress_fsdp(mixed, all_gather=arrcomp.QSGD(bits=2))
    mixed.unshard()
    for x, y in zip(mixed.parameters(), exact, strict=True):
        assert torch.equal(x, y), "bytes are no numbers to round"


def check_state(rank: int) -> None:
    """state_dict has what the optimizer made, and goes back."""
    module = model()
    compress_fsdp(module, reduce_scatter=arrcomp.QSGD(bits=8), all_gather=arrcomp.QSGD(bits=8))
    expected = trained(module, rank)
    twin = model()
    twin.load_state_dict(module.state_dict())
    for x, y in zip(whole(twin), expected, strict=True):
        assert torch.equal(x, y)


def check_operations(rank: int) -> None:
    """A divisor of gradients that only NCCL applies is refused, with the way to have it all the same."""
    module = model()
    compress_fsdp(module, reduce_scatter=arrcomp.QSGD(bits=8, bucket_size=64))
    module[0].set_gradient_divide_factor(4.0)
    with pytest.raises(ValueError, match="set_force_sum_reduction_for_comms"):
        module(batch(rank, 0)).sum().backward()
    exact, lossy = model(), model()
    compress_fsdp(lossy, reduce_scatter=arrcomp.QSGD(bits=8, bucket_size=64))
    for each in (exact, lossy):
        for layer in (each[0], each[2], each[3], each):
            layer.set_gradient_divide_factor(4.0)
            layer.set_force_sum_reduction_for_comms(True)
        each(batch(rank, 0)).sum().backward()
    for x, y in zip(exact.parameters(), lossy.parameters(), strict=True):
        largest = x.grad.full_tensor().abs().max()
        assert (x.grad.full_tensor() - y.grad.full_tensor()).abs().max() < 0.02 * largest


def run(rank: int, folder: Path) -> None:
    """All checks, in one of the processes."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/fsdp", rank=rank, world_size=WORLD)
    checks = (check_gradients, check_training, check_gathered, check_seeds, check_types, check_state, check_operations)
    for check in checks:
        check(rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    processes.start(run, WORLD)
