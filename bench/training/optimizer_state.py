"""Optimizers with compressed state beside plain ones: bytes, time and accuracy; some minutes on two cores."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from arrcomp import Codebook, FloatFormat, Lossless
from arrcomp.torch import CompressedOptimizer
from harness.section import Found, Section
from harness.tables import table
from harness.timing import by_turns
from training.perceptron import halves, percent, perceptron
from training.words import ACCURACY, accuracy_cells, accuracy_figures

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
Adam on {sum(math.prod(shape) for shape in SHAPES):,} parameters in {len(SHAPES)} float32 tensors. Bytes are those of
the state between steps, with counters and tensors that are too small to be compressed. Scratch is what is
decompressed at a time (64 MiB unless stated otherwise). Milliseconds are medians of {STEPS} steps. The optimizers
take turns, so that other load on the machine affects all of them. PyTorch and the codecs use one thread, XLA all. In
JAX a step is one jitted update with donated parameters and state; its scratch is all temporary memory, as XLA counts
it."""
_HOW_ACCURACY = f"""\
A perceptron with layers of 64, {WIDTH}, {WIDTH} and 10 learns one half of scikit-learn's digits: {EPOCHS} epochs of
Adam, {BATCH} pictures per step, a learning rate of {RATE}. Accuracy is in percent, on the other half, after the last
epoch: the mean of {len(SEEDS)} seeds, with the smallest and the largest. The largest step is that of any weight, in
multiples of the learning rate. float32 has some above 1 too, where gradients grow after steps without any. "4 bits"
are the tables of arXiv:2309.01507. The last two rows show what `eight_bit()` avoids: second moments become 0 while
the first moments do not, and the steps are hundreds of learning rates. This small model survives that."""


def median_ms(steps: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Median milliseconds of each of several steps, which take turns."""
    seconds = by_turns(steps, STEPS, warm=2)
    return {name: 1e3 * statistics.median(found) for name, found in seconds.items()}


def torch_speeds() -> dict[str, dict[str, float]]:
    """PyTorch's Adam with each setting."""
    generator = torch.Generator().manual_seed(0)
    gradients = [torch.randn(shape, generator=generator) for shape in SHAPES]
    optimizers = {}
    for name, wrap in _SPEED.items():
        parameters = [nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
        for p, gradient in zip(parameters, gradients, strict=True):
            p.grad = gradient
        optimizers[name] = wrap(torch.optim.Adam(parameters, lr=RATE))
    times = median_ms({name: optimizer.step for name, optimizer in optimizers.items()})
    return {name: {**_sizes(optimizer), "time": times[name]} for name, optimizer in optimizers.items()}


def _sizes(optimizer: Any) -> dict[str, int]:
    """Bytes of the state, and of what is decompressed at a time."""
    if not isinstance(optimizer, CompressedOptimizer):
        return {"nbytes": sum(x.nbytes for entry in optimizer.state.values() for x in entry.values()), "scratch": 0}
    memory = optimizer.memory()
    return {"nbytes": memory.nbytes, "scratch": memory.scratch_nbytes}


def jax_speeds() -> dict[str, dict[str, float]]:
    """Optax's Adam, plain and with 8 bits."""
    import jax
    import optax

    from arrcomp.jax.optim import compressed_optimizer, eight_bit, state_nbytes

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
        sizes[name] = {
            "nbytes": state_nbytes(state),
            "scratch": compiled.memory_analysis().temp_size_in_bytes,
        }
        held = [(params, state)]

        def step(held: list[Any] = held, compiled: Any = compiled) -> None:
            held[0] = jax.block_until_ready(compiled(*held[0]))

        steps[name] = step
    times = median_ms(steps)
    return {name: {**sizes[name], "time": times[name]} for name in steps}


def accuracy(wrap: Callable[[Any], Any]) -> tuple[list[float], float]:
    """Percent of each seed, and the largest step of any weight, in rates."""
    pictures, labels, tested, tested_labels = halves()
    found, largest = [], 0.0
    for seed in SEEDS:
        model = perceptron(seed, WIDTH)
        optimizer = wrap(torch.optim.Adam(model.parameters(), lr=RATE))
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(pictures)).split(BATCH):
                optimizer.zero_grad()
                cross_entropy(model(pictures[batch]), labels[batch]).backward()
                before = [p.detach().clone() for p in model.parameters()]
                optimizer.step()
                moved = max((p.detach() - q).abs().max() for p, q in zip(model.parameters(), before, strict=True))
                largest = max(largest, float(moved) / RATE)
        found.append(percent(model, tested, tested_labels))
    return found, largest


def accuracies(quick: bool) -> dict[str, dict[str, float]]:
    """Of each setting."""
    found: dict[str, dict[str, float]] = {}
    for name, wrap in list(_ACCURACY.items())[: 2 if quick else None]:
        values, largest = accuracy(wrap)
        whole = found[PLAIN]["accuracy"] if found else None
        found[name] = accuracy_figures(values, whole) | {"largest step": largest}
    return found


def measured(quick: bool = False) -> dict[str, Any]:
    """Bytes and times in both frameworks, and accuracies."""
    torch.set_num_threads(1)
    return {"PyTorch": torch_speeds(), "JAX": jax_speeds(), "digits": accuracies(quick)}


def speed_table(speeds: Found) -> str:
    """Bytes and times as Markdown."""
    whole = speeds[PLAIN]
    rows = [
        [
            name,
            f"{speed['nbytes']:,}",
            f"{whole['nbytes'] / speed['nbytes']:.2f}",
            f"{speed['scratch']:,}",
            f"{speed['time']:.1f}",
            f"{speed['time'] / whole['time']:.2f}",
        ]
        for name, speed in speeds.items()
    ]
    return table(["<state", "bytes", "ratio", "scratch", "ms a step", "of float32's"], rows)


def text(found: Found) -> str:
    """What was measured, as text."""
    speeds = [f"{name}:\n\n{speed_table(found[name])}" for name in ("PyTorch", "JAX")]
    rows = [
        [name, *accuracy_cells(figures), f"{figures['largest step']:.1f}"] for name, figures in found["digits"].items()
    ]
    trained = table(["<state", *ACCURACY, "largest step"], rows)
    note = f"The program fails where {EIGHT} cost more than {MOST_LOST} points."
    parts = ["### Bytes and time", _HOW_SPEED, *speeds, "On a GPU: not yet measured."]
    return "\n\n".join([*parts, "### Accuracy", _HOW_ACCURACY, trained, note])


def broken(found: Found) -> list[str]:
    """Whether 8 bits cost more accuracy than they may."""
    lost = -found["digits"][EIGHT]["points"]
    return [f"{EIGHT} cost {lost:.2f} points; {MOST_LOST} may be"] if lost > MOST_LOST else []


SECTION = Section(
    "Optimizers with compressed state",
    measured,
    text,
    levels=("subject", "method", "metric"),
    units={"nbytes": "B", "scratch": "B", "time": "ms", **dict.fromkeys(("accuracy", "least", "most"), "%")},
    versions=("arrcomp", "torch", "jax", "optax", "scikit-learn"),
    broken=broken,
)
