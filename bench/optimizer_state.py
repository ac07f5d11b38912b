"""Measures optimizers with compressed state beside plain ones, and writes OPTIMIZER_STATE.md beside this file.

    python bench/optimizer_state.py                    some minutes on two cores
    python bench/optimizer_state.py --output /tmp

It ends with an error where 8 bits cost more than half a point of accuracy.
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
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.functional import cross_entropy

from arrcomp import Codebook, FloatFormat, Lossless
from arrcomp.jax.optim import compressed_optimizer, eight_bit, state_nbytes
from arrcomp.torch.optim import CompressedOptimizer
from conditions import machine_found, version
from text_table import table

SHAPES = [(5000, 512), *[(512, 1024), (1024,), (1024, 512), (512,)] * 7]
STEPS, WIDTH, BATCH, EPOCHS, SEEDS, RATE = 15, 256, 32, 20, (0, 1, 2), 1e-3
MOST_LOST = 0.5  # points of accuracy, by 8 bits
PLAIN, EIGHT = "float32", "8 bits"


def _nearest(levels: Sequence[float], bucket_size: int) -> Codebook:
    """A codebook that gives each value the nearest level."""
    return Codebook([(a + b) / 2 for a, b in pairwise(levels)], levels, scaling="absmax", bucket_size=bucket_size)


def _four_bits() -> dict[str, Codebook]:
    """The tables of B. Li et al., arXiv:2309.01507: a dynamic map, and for second moments even levels without a 0."""
    sizes = [(0.1 + 0.9 * (k + 0.5) / 2**i) * 10.0 ** (i - 2) for i in range(3) for k in range(2**i)]
    signed = sorted([0.0, 1.0, *sizes, *(-size for size in sizes)])
    return {"exp_avg": _nearest(signed, 128), "exp_avg_sq": _nearest([k / 16 for k in range(1, 17)], 128)}


_SIGNED, _UNSIGNED = Codebook.dynamic8(), Codebook.dynamic8(signed=False)
_SPEED: dict[str, Callable[[Any], Any]] = {
    PLAIN: lambda adam: adam,
    EIGHT: lambda adam: CompressedOptimizer.eight_bit(adam, threads=1),
    "8 bits, 16 MiB at a time": lambda adam: CompressedOptimizer.eight_bit(adam, threads=1, scratch=1 << 24),
    "8 bits, a group at a time": lambda adam: CompressedOptimizer.eight_bit(adam, threads=1, scratch=None),
    "bfloat16, stochastic": lambda adam: CompressedOptimizer(
        adam, FloatFormat("bf16", rounding="stochastic"), threads=1
    ),
    "4 bits": lambda adam: CompressedOptimizer(adam, _four_bits(), threads=1),
    "lossless": lambda adam: CompressedOptimizer(adam, Lossless(), threads=1),
}
_ACCURACY: dict[str, Callable[[Any], Any]] = {
    **{name: _SPEED[name] for name in (PLAIN, EIGHT, "bfloat16, stochastic", "4 bits")},
    "8 bits, small second moments become 0": lambda adam: CompressedOptimizer(
        adam, {"exp_avg": _SIGNED, "exp_avg_sq": _nearest(_UNSIGNED.levels, 256)}
    ),
    "8 bits, signed map for both": lambda adam: CompressedOptimizer(adam, _SIGNED),
}
_HOW_SPEED = f"""\
Adam on {sum(int(np.prod(shape)) for shape in SHAPES):,} parameters in {len(SHAPES)} tensors, float32; bytes are
those of the state between steps, with counters and what is too small to be compressed; scratch is what is decompressed
at a time (64 MiB unless said otherwise). Milliseconds are medians of {STEPS} steps; in each round every optimizer makes
one, so that they share what else the machine does. PyTorch and the codecs have one thread, XLA all. JAX: one jitted
update with donated parameters and state; its scratch is all temporary memory, by XLA's own count."""
_HOW_ACCURACY = f"""\
scikit-learn's digits, half of them for training, by a perceptron with layers of 64, {WIDTH}, {WIDTH} and 10; {EPOCHS}
epochs of Adam, {BATCH} pictures a step, a rate of {RATE}. Accuracy is that on the other half after the last epoch, in
percent, the mean of {len(SEEDS)} seeds, with the least and the most. The largest step is that of any weight, in rates:
float32 has some above 1 too, where gradients grow after steps without any. "4 bits" are the tables of arXiv:2309.01507.
The last two are what `eight_bit()` is not: second moments come back as 0 beside first ones that do not, and steps are
hundreds of rates, which this small model survives."""


@dataclass(frozen=True)
class Speed:
    """What one optimizer takes.

    Attributes:
        nbytes: of its state.
        scratch_nbytes: decompressed at a time, or by XLA's count.
        seconds: of a step, the median.
    """

    nbytes: int
    scratch_nbytes: int
    seconds: float


@dataclass(frozen=True)
class Accuracy:
    """What came of training.

    Attributes:
        values: of each seed, in percent.
        largest_step: of any weight, over the rate.
    """

    values: tuple[float, ...]
    largest_step: float

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return statistics.fmean(self.values)


def rounds(steps: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median seconds of each of several functions, which take turns; two rounds before are not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(STEPS + 2):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(found[2:]) for name, found in seconds.items()}


def torch_speeds() -> dict[str, Speed]:
    """PyTorch's Adam with each setting."""
    generator = torch.Generator().manual_seed(0)
    gradients = [torch.randn(shape, generator=generator) for shape in SHAPES]
    optimizers = {}
    for name, wrap in _SPEED.items():
        parameters = [nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
        for p, gradient in zip(parameters, gradients, strict=True):
            p.grad = gradient
        optimizers[name] = wrap(torch.optim.Adam(parameters, lr=RATE))
    seconds = rounds({name: optimizer.step for name, optimizer in optimizers.items()})
    speeds = {}
    for name, optimizer in optimizers.items():
        plain = sum(x.nbytes for entry in optimizer.state.values() for x in entry.values()) if name == PLAIN else 0
        memory = None if name == PLAIN else optimizer.memory()
        sizes = (plain, 0) if memory is None else (memory.nbytes, memory.scratch_nbytes)
        speeds[name] = Speed(*sizes, seconds[name])
    return speeds


def jax_speeds() -> dict[str, Speed]:
    """Optax's Adam, plain and with 8 bits."""
    keys = jax.random.split(jax.random.key(0), len(SHAPES))
    gradients = [jax.random.normal(key, shape) for key, shape in zip(keys, SHAPES, strict=True)]
    adam = optax.adam(RATE)
    sizes, steps = {}, {}
    for name, tx in {PLAIN: adam, EIGHT: compressed_optimizer(adam, eight_bit(), threads=1)}.items():
        params = [jax.numpy.zeros(shape) for shape in SHAPES]
        state = tx.init(params)

        def update(params: Any, state: Any, tx: Any = tx) -> Any:
            updates, state = tx.update(gradients, state, params)
            return optax.apply_updates(params, updates), state

        compiled = jax.jit(update, donate_argnums=(0, 1)).lower(params, state).compile()
        sizes[name] = state_nbytes(state), compiled.memory_analysis().temp_size_in_bytes
        held = [(params, state)]

        def step(held: list[Any] = held, compiled: Any = compiled) -> None:
            held[0] = jax.block_until_ready(compiled(*held[0]))

        steps[name] = step
    seconds = rounds(steps)
    return {name: Speed(*sizes[name], seconds[name]) for name in steps}


def accuracy(wrap: Callable[[Any], Any]) -> Accuracy:
    """Train with one setting and all seeds."""
    x, y = load_digits(return_X_y=True)
    parts = [torch.from_numpy(part) for part in train_test_split(x, y, test_size=0.5, random_state=0, stratify=y)]
    pictures, tested, labels, tested_labels = parts
    found, largest = [], 0.0
    for seed in SEEDS:
        torch.manual_seed(seed)
        hidden = [nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
        model = nn.Sequential(*hidden, nn.Linear(WIDTH, 10))
        optimizer = wrap(torch.optim.Adam(model.parameters(), lr=RATE))
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(pictures)).split(BATCH):
                optimizer.zero_grad()
                cross_entropy(model(pictures[batch].float() / 16), labels[batch]).backward()
                before = [p.detach().clone() for p in model.parameters()]
                optimizer.step()
                moved = max((p.detach() - q).abs().max() for p, q in zip(model.parameters(), before, strict=True))
                largest = max(largest, float(moved) / RATE)
        with torch.no_grad():
            found.append(100 * (model(tested.float() / 16).argmax(1) == tested_labels).float().mean().item())
    return Accuracy(tuple(found), largest)


def speed_table(speeds: dict[str, Speed]) -> str:
    """What was measured, as Markdown."""
    whole = speeds[PLAIN]
    rows = [
        [
            name,
            f"{speed.nbytes:,}",
            f"{whole.nbytes / speed.nbytes:.2f}",
            f"{speed.scratch_nbytes:,}",
            f"{1e3 * speed.seconds:.1f}",
            f"{speed.seconds / whole.seconds:.2f}",
        ]
        for name, speed in speeds.items()
    ]
    return table(["<state", "bytes", "ratio", "scratch", "ms a step", "of float32's"], rows)


def accuracy_table(results: dict[str, Accuracy]) -> str:
    """What was measured, as Markdown."""
    rows = [
        [
            name,
            f"{result.mean:.2f}",
            f"{min(result.values):.2f} to {max(result.values):.2f}",
            "" if name == PLAIN else f"{result.mean - results[PLAIN].mean:+.2f}",
            f"{result.largest_step:.1f}",
        ]
        for name, result in results.items()
    ]
    return table(["<state", "accuracy", "of seeds", "points", "largest step"], rows)


def markdown(sections: Sequence[str]) -> str:
    """The page."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("arrcomp", "torch", "jax", "optax", "scikit-learn"))
    lines = [f"- {name}: {value}" for name, value in machine_found().items()]
    lines += [f"- versions: {versions}", f"- date: {datetime.now(UTC).date().isoformat()}"]
    lines += [f"- load average over a minute, of which this run makes 1: {os.getloadavg()[0]:.1f}"]
    head = "# Optimizers with compressed state\n\nWritten by `python bench/optimizer_state.py`."
    return "\n\n".join([head, "\n".join(lines), *sections]) + "\n"


def main() -> int:
    """Parse the command line, measure, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, metavar="FOLDER", help="for the page")
    options = parser.parse_args()
    torch.set_num_threads(1)
    speeds = [f"PyTorch:\n\n{speed_table(torch_speeds())}", f"JAX:\n\n{speed_table(jax_speeds())}"]
    speeds += ["On a GPU: not yet measured."]
    print("\n\n".join(speeds), flush=True)
    results = {name: accuracy(wrap) for name, wrap in _ACCURACY.items()}
    trained = accuracy_table(results)
    print(trained)
    lost = results[PLAIN].mean - results[EIGHT].mean
    note = f"The program fails where {EIGHT} cost more than {MOST_LOST} points."
    sections = ["## Bytes and time", _HOW_SPEED, *speeds, "## Accuracy", _HOW_ACCURACY, trained, note]
    (options.output / "OPTIMIZER_STATE.md").write_text(markdown(sections))
    if lost > MOST_LOST:
        print(f"{EIGHT} cost {lost:.2f} points; {MOST_LOST} may be")
    return int(lost > MOST_LOST)


if __name__ == "__main__":
    sys.exit(main())
