"""Randomized linear layers beside plain ones: writes RANDOMIZED_LINEAR.md beside this file.

    python bench/randomized_linear.py              some two minutes on the CPU
    python bench/randomized_linear.py --output /tmp

A step is a forward and a backward pass of one layer in float32, with gradients of input, weight and bias, on one
thread. Each step of a randomized layer is timed beside one of `torch.nn.Linear`, by turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from arrcomp._methods.projections import KINDS
from arrcomp.torch.nn import RandomizedLinear
from conditions import machine_found, version
from text_table import table

ROWS = 2048
LAYERS = ((768, 768), (768, 3072))  # of a transformer of BERT's size
RATIOS = (0.1, 0.2, 0.5)
PAIRS = 7
DRAWS = 40
_TEXT = f"""\
Batches of {ROWS:,} rows, float32, one thread of the CPU. "x plain" is the median of {PAIRS} quotients, each of a step
and a step of `torch.nn.Linear` timed next to it: below 1 is faster. "kept" is what the first layer keeps of its input
for the backward pass. Noise is the mean of |G' - G|^2 / |G|^2 over {DRAWS} draws of that layer's weight gradient G'.
"Even" rows come out of a layer norm, and the output's gradients depend on them, with as much noise; "uneven" ones are
the same, but a tenth of them have inputs and gradients five times as large.

"rows" is the default: it does least, and its weight gradient costs as many products as rows are kept. Where a few rows
are large in both, which layer norms prevent, "dct" and "dft" have less noise. Dense projections have more than these,
as they are no sample without replacement. On GPUs nothing has been measured yet."""


def data(features: int, outputs: int, uneven: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch, and the gradient of the loss by a layer's output."""
    generator = torch.Generator().manual_seed(0)
    x = torch.nn.functional.layer_norm(torch.randn(ROWS, features, generator=generator), (features,))
    y = x @ torch.randn(features, outputs, generator=generator) / features**0.5
    y = y + torch.randn(ROWS, outputs, generator=generator)
    if uneven:
        large = torch.randperm(ROWS, generator=generator)[: ROWS // 10]
        x[large] *= 5
        y[large] *= 5
    return x, y


def step_of(layer: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], float]:
    """What takes a step and says how many seconds it took."""
    x = x.clone().requires_grad_()

    def step() -> float:
        layer.zero_grad()
        x.grad = None
        start = time.perf_counter()
        layer(x).backward(y)
        return time.perf_counter() - start

    step()
    return step


def times_plain(kind: str, ratio: float, features: int, outputs: int) -> tuple[float, float]:
    """Time of a step by that of a plain layer, and milliseconds of the plain one; medians."""
    x, y = data(features, outputs)
    plain = step_of(torch.nn.Linear(features, outputs), x, y)
    ours = step_of(RandomizedLinear(features, outputs, projection=kind, proj_dim_ratio=ratio), x, y)
    pairs = [(ours(), plain()) for _ in range(PAIRS)]
    return statistics.median(a / b for a, b in pairs), 1e3 * statistics.median(b for _, b in pairs)


def noise(kind: str, ratio: float, uneven: bool) -> float:
    """Mean square of the gradient's error by the square of its norm."""
    features, outputs = LAYERS[0]
    x, y = data(features, outputs, uneven)
    exact, errors = y.t() @ x, []
    layer = RandomizedLinear(features, outputs, projection=kind, proj_dim_ratio=ratio, seed=1)
    for _ in range(DRAWS):
        layer.zero_grad()
        layer(x).backward(y)
        assert layer.weight.grad is not None
        errors.append(float((layer.weight.grad - exact).square().sum() / exact.square().sum()))
    return statistics.mean(errors)


def kept_nbytes(layer: torch.nn.Module) -> int:
    """Bytes that a layer keeps besides its weight, of a batch that needs no gradient."""
    x, kept = data(*LAYERS[0])[0], []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.nbytes)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(x)
    return sum(kept)


def rows_of_table() -> list[list[str]]:
    """The table's lines, a kind and a ratio each."""
    rows = []
    whole = kept_nbytes(torch.nn.Linear(*LAYERS[0]))
    rows.append(["torch.nn.Linear", "", f"{whole / 1e6:.2f}", *["1.00"] * len(LAYERS), "0", "0"])
    for kind in KINDS:
        for ratio in RATIOS:
            kept = kept_nbytes(RandomizedLinear(*LAYERS[0], projection=kind, proj_dim_ratio=ratio))
            times = [f"{times_plain(kind, ratio, *layer)[0]:.2f}" for layer in LAYERS]
            errors = [f"{noise(kind, ratio, uneven):.3f}" for uneven in (False, True)]
            rows.append([kind, f"{ratio}", f"{kept / 1e6:.2f}", *times, *errors])
            print(*rows[-1], flush=True)
    return rows


def markdown() -> str:
    """The page."""
    lines = [f"- {name}: {value}" for name, value in machine_found().items()]
    lines += [f"- torch {version('torch')}"]
    plain = ", ".join(f"{times_plain('rows', 0.5, *layer)[1]:.0f} ms ({layer[0]} to {layer[1]})" for layer in LAYERS)
    names = [f"x plain, {features} to {outputs}" for features, outputs in LAYERS]
    made = table(["<projection", "ratio", "kept, MB", *names, "noise, even", "noise, uneven"], rows_of_table())
    lines += [f"- a step of torch.nn.Linear: {plain}"]
    lines += [f"- date: {datetime.now(UTC).date().isoformat()}", f"- load average: {os.getloadavg()[0]:.1f}"]
    head = "# Randomized linear layers\n\nWritten by `python bench/randomized_linear.py`."
    return "\n\n".join([head, "\n".join(lines), _TEXT, made.rstrip()]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, measure, write the page."""
    parser: Any = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, metavar="FOLDER", help="for the page")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    (options.output / "RANDOMIZED_LINEAR.md").write_text(markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
