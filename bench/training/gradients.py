"""A small model trained with quantized gradients on two processes: bytes, time and accuracy; a few minutes.

It fails where 4 bits cost more than half a point of accuracy, or 8 bits more than a fifth.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from arrcomp.torch.distributed import QuantizedState, quantized_allreduce_hook
from harness.processes import in_processes
from harness.section import Found, Section
from harness.tables import table
from harness.timing import seconds_of
from training.perceptron import Halves, halves, percent, perceptron
from training.words import ACCURACY, accuracy_cells, accuracy_figures

PROCESSES, WIDTH, BATCH, EPOCHS, SEEDS = 2, 512, 32, 30, (0, 1, 2)
BOUNDS = {"4 bits": 0.5, "8 bits": 0.2}  # points of accuracy that these may cost
FLOAT = "float32"
_SETTINGS: dict[str, Callable[[], QuantizedState] | None] = {
    FLOAT: None,
    "8 bits": lambda: QuantizedState(bits=8),
    "4 bits": lambda: QuantizedState(bits=4),
    "2 bits": lambda: QuantizedState(bits=2),
    "2 bits, error feedback": lambda: QuantizedState(bits=2, error_feedback=True),
    "2 bits, stochastic": lambda: QuantizedState(bits=2, rounding="stochastic"),
    "auto: the error of 4 bits": lambda: QuantizedState(bits="auto"),
}
_HOW = f"""\
A perceptron with layers of 64, {WIDTH}, {WIDTH} and 10 learns one half of scikit-learn's digits: {EPOCHS} epochs of SGD
with momentum, {BATCH} pictures per step on each process, float32 gradients in buckets of 512 values.
DistributedDataParallel runs over Gloo on the loopback interface of this machine, with one thread per process. "float32"
is DDP without a hook. Matrices are compressed, biases are not. Bytes are what one process sends for the gradients of a
step, by the hook's statistics (for float32: by a ring all-reduce). Accuracy is in percent, on the other half, after the
last epoch: the mean of {len(SEEDS)} seeds, with the smallest and the largest. Milliseconds are medians over all steps.

Loopback is as fast as memory, and the processes share the cores with the codec. So the times show the cost of the hook,
not the gain on a network."""


def train(model: Any, seed: int, x: Tensor, y: Tensor) -> list[float]:
    """Train, and return the seconds of each step."""
    rank, world = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(seed)
    steps = len(x) // (BATCH * world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * steps)
    seconds = []
    for _ in range(EPOCHS):
        order = torch.randperm(len(x), generator=generator)  # the same on all ranks
        for batch in order[: steps * world * BATCH].view(steps, world, BATCH)[:, rank]:

            def step(batch: Tensor = batch) -> None:
                optimizer.zero_grad()
                cross_entropy(model(x[batch]), y[batch]).backward()
                optimizer.step()
                schedule.step()

            seconds.append(seconds_of(step))
    return seconds


def figures_of(make_state: Callable[[], QuantizedState] | None, data: Halves) -> dict[str, Any]:
    """Train with one setting and all seeds: bytes and milliseconds of a step, accuracies in percent."""
    x, y, tested, labels = data
    sent, seconds, accuracies = [], [], []
    for seed in SEEDS:
        model = DistributedDataParallel(perceptron(seed, WIDTH))
        state = None if make_state is None else make_state()
        if state is not None:
            model.register_comm_hook(state, quantized_allreduce_hook)
        seconds += train(model, seed, x, y)
        world = dist.get_world_size()
        whole = 2 * (world - 1) / world * sum(p.nbytes for p in model.parameters())
        sent.append(whole if state is None else state.total().sent_nbytes / state.step)
        accuracies.append(percent(model.module, tested, labels))
    return {"sent": _mean(sent), "time": 1e3 * statistics.median(seconds), "accuracies": accuracies}


def _mean(values: list[float]) -> float:
    """Over seeds and processes."""
    total = torch.tensor([statistics.fmean(values)], dtype=torch.float64)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def all_settings(quick: bool) -> dict[str, dict[str, Any]]:
    """Figures of each setting; in each of the processes."""
    data = halves()
    return {name: figures_of(make_state, data) for name, make_state in list(_SETTINGS.items())[: 2 if quick else None]}


def measured(quick: bool = False) -> dict[str, Any]:
    """Figures of each setting."""
    found: dict[str, Any] = {}
    for name, figures in in_processes(PROCESSES, partial(all_settings, quick)).items():
        whole = found[FLOAT]["accuracy"] if found else None
        found[name] = figures | accuracy_figures(figures.pop("accuracies"), whole)
    return found


def broken(found: Found) -> list[str]:
    """Settings that cost more accuracy than they may."""
    costs = {name: -found[name]["points"] for name in BOUNDS if name in found}
    return [
        f"{name} cost {cost:.2f} points; {BOUNDS[name]} may be" for name, cost in costs.items() if cost > BOUNDS[name]
    ]


def text(found: Found) -> str:
    """What was measured, as text."""
    whole = found[FLOAT]["sent"]
    rows = [
        [
            name,
            f"{figures['sent']:,.0f}",
            f"{whole / figures['sent']:.2f}",
            f"{figures['time']:.2f}",
            *accuracy_cells(figures),
        ]
        for name, figures in found.items()
    ]
    bounds = ", ".join(f"{name} at most {bound}" for name, bound in BOUNDS.items())
    note = f"The program fails where accuracy falls by more points than these: {bounds}."
    made = table(["<gradients", "bytes a step", "ratio", "ms a step", *ACCURACY], rows)
    return "\n\n".join([_HOW, made, note])


SECTION = Section(
    "Training with quantized gradients",
    measured,
    text,
    levels=("method", "metric"),
    units={"sent": "B", "time": "ms", **dict.fromkeys(("accuracy", "least", "most"), "%")},
    versions=("arrcomp", "torch", "numpy", "scikit-learn"),
    broken=broken,
)
