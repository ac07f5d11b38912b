"""Trains a small model with quantized gradients on two processes, and writes TRAINING.md beside this file.

    torchrun --nproc-per-node 2 bench/train_ddp.py                    a few minutes on two cores
    torchrun --nproc-per-node 2 bench/train_ddp.py --output /tmp

It ends with an error where 4 bits cost more than half a point of accuracy, or 8 bits more than a fifth.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from arrcomp.torch.distributed import QuantizedState, quantized_allreduce_hook
from conditions import machine_found, version
from text_table import table

WIDTH, BATCH, EPOCHS, SEEDS = 512, 32, 30, (0, 1, 2)
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
scikit-learn's digits, half of them for training, by a perceptron with layers of 64, {WIDTH}, {WIDTH} and 10; {EPOCHS}
epochs of SGD with momentum, {BATCH} pictures a step on each process, float32 gradients in buckets of 512 values;
DistributedDataParallel over Gloo on this machine's loopback interface, one thread each. "float32" is DDP without a
hook. Matrices are compressed, biases are not. Bytes are those that a process sends for the gradients of a step, by the
hook's own statistics (for float32: by a ring all-reduce); accuracy is that on the other half after the last epoch, in
percent, the mean of {len(SEEDS)} seeds, with the least and the most; milliseconds are medians over all steps.

Loopback is as fast as memory, and the processes share the cores with the codec: the times say what the hook costs, not
what a network gains."""


@dataclass(frozen=True)
class Result:
    """What came of one setting.

    Attributes:
        sent_nbytes: by a process, in a step.
        seconds: of a step, the median.
        accuracies: of each seed, in percent.
    """

    sent_nbytes: float
    seconds: float
    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        """The mean."""
        return statistics.fmean(self.accuracies)


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pictures and what they show, for training and for testing."""
    x, y = load_digits(return_X_y=True)
    parts = train_test_split(x, y, test_size=0.5, random_state=0, stratify=y)
    trained, tested, trained_labels, tested_labels = (torch.from_numpy(part) for part in parts)
    return trained.float() / 16, trained_labels, tested.float() / 16, tested_labels


def perceptron(seed: int) -> nn.Module:
    """The model, whose weights follow from a seed."""
    torch.manual_seed(seed)
    hidden = [nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(WIDTH, 10))


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
            start = time.perf_counter()
            optimizer.zero_grad()
            cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
            schedule.step()
            seconds.append(time.perf_counter() - start)
    return seconds


def run(make_state: Callable[[], QuantizedState] | None, data: Sequence[Tensor]) -> Result:
    """Train with one setting and all seeds."""
    x, y, tested, labels = data
    sent, seconds, accuracies = [], [], []
    for seed in SEEDS:
        model = DistributedDataParallel(perceptron(seed))
        state = None if make_state is None else make_state()
        if state is not None:
            model.register_comm_hook(state, quantized_allreduce_hook)
        seconds += train(model, seed, x, y)
        world = dist.get_world_size()
        whole = 2 * (world - 1) / world * sum(p.nbytes for p in model.parameters())
        sent.append(whole if state is None else state.total().sent_nbytes / state.step)
        with torch.no_grad():
            correct = model.module(tested).argmax(1) == labels
        accuracies.append(100 * correct.float().mean().item())
    return Result(_mean(sent), statistics.median(seconds), tuple(accuracies))


def _mean(values: Sequence[float]) -> float:
    """Over seeds and processes."""
    total = torch.tensor([statistics.fmean(values)], dtype=torch.float64)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def broken(results: dict[str, Result]) -> list[str]:
    """Settings that cost more accuracy than they may."""
    whole = results[FLOAT].accuracy
    costs = {name: whole - results[name].accuracy for name in BOUNDS}
    return [
        f"{name} cost {cost:.2f} points; {BOUNDS[name]} may be" for name, cost in costs.items() if cost > BOUNDS[name]
    ]


def result_table(results: dict[str, Result]) -> str:
    """What was measured, as Markdown."""
    whole = results[FLOAT]
    rows = [
        [
            name,
            f"{result.sent_nbytes:,.0f}",
            f"{whole.sent_nbytes / result.sent_nbytes:.2f}",
            f"{1e3 * result.seconds:.2f}",
            f"{result.accuracy:.2f}",
            f"{min(result.accuracies):.2f} to {max(result.accuracies):.2f}",
            "" if result is whole else f"{result.accuracy - whole.accuracy:+.2f}",
        ]
        for name, result in results.items()
    ]
    return table(["<gradients", "bytes a step", "ratio", "ms a step", "accuracy", "of seeds", "points"], rows)


def markdown(results: dict[str, Result]) -> str:
    """The page."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("arrcomp", "torch", "numpy", "scikit-learn"))
    lines = [f"- {name}: {value}" for name, value in machine_found().items()]
    lines += [f"- versions: {versions}", f"- date: {datetime.now(UTC).date().isoformat()}"]
    lines += [f"- load average over a minute, of which this run makes 2: {os.getloadavg()[0]:.1f}"]
    head = "# Training with quantized gradients\n\nWritten by `torchrun --nproc-per-node 2 bench/train_ddp.py`."
    bounds = ", ".join(f"{name} at most {bound}" for name, bound in BOUNDS.items())
    note = f"The program fails where accuracy falls by more points than these: {bounds}."
    return "\n\n".join([head, "\n".join(lines), _HOW, result_table(results), note]) + "\n"


def main() -> int:
    """Parse the command line, train, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, metavar="FOLDER", help="for the page")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("start it as torchrun --nproc-per-node 2 bench/train_ddp.py")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    data, results = digits(), {}
    for name, make_state in _SETTINGS.items():
        results[name] = run(make_state, data)
    dist.destroy_process_group()
    failures = broken(results)
    if os.environ["RANK"] == "0":
        print(result_table(results))
        print("\n".join(failures) or "accuracy is kept")
        (options.output / "TRAINING.md").write_text(markdown(results))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
