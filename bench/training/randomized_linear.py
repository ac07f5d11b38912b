"""Randomized linear layers beside plain ones: some two minutes on the CPU.

A step is a forward and a backward pass of one layer in float32, with gradients of input, weight and bias, on one
thread. Each step of a randomized layer is timed beside one of `torch.nn.Linear`, by turns.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch

from arrcomp._methods.projections import KINDS
from arrcomp.torch.nn import RandomizedLinear
from harness.section import Found, Section
from harness.tables import table
from harness.timing import Call, by_turns
from training.kept import kept_nbytes

ROWS = 2048
LAYERS = ((768, 768), (768, 3072))  # of a transformer of BERT's size
RATIOS = (0.1, 0.2, 0.5)
PAIRS = 7
DRAWS = 40
PLAIN = "torch.nn.Linear"
_HOW = f"""\
Batches of {ROWS:,} rows, float32, one CPU thread. "x plain" is the median of {PAIRS} quotients, each of a step and a
step of `torch.nn.Linear` timed next to it; below 1 is faster. "kept" is what the first layer keeps of its input for
the backward pass. Noise is the mean of |G' - G|^2 / |G|^2 over {DRAWS} draws of that layer's weight gradient G'.
"Even" rows come out of a layer norm, and the output's gradients depend on them, with as much noise. "Uneven" rows
are the same, but a tenth of them have inputs and gradients five times as large.

"rows" is the default. It does the least work: its weight gradient costs as many products as rows are kept. If a few
rows are large in both (layer norms prevent that), "dct" and "dft" have less noise. Dense projections have more noise
than these, because they do not sample without replacement. Nothing has been measured on GPUs yet."""


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


def step_of(layer: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> Call:
    """What takes a step."""
    x = x.clone().requires_grad_()

    def step() -> None:
        layer.zero_grad()
        x.grad = None
        layer(x).backward(y)

    return step


def times_plain(kind: str, ratio: float, features: int, outputs: int) -> tuple[float, float]:
    """Time of a step by that of a plain layer, and milliseconds of the plain one; medians."""
    x, y = data(features, outputs)
    layers = {kind: RandomizedLinear(features, outputs, projection=kind, proj_dim_ratio=ratio)}
    layers[PLAIN] = torch.nn.Linear(features, outputs)
    seconds = by_turns({name: step_of(layer, x, y) for name, layer in layers.items()}, PAIRS, warm=1)
    quotients = [ours / plain for ours, plain in zip(seconds[kind], seconds[PLAIN], strict=True)]
    return statistics.median(quotients), 1e3 * statistics.median(seconds[PLAIN])


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


def kept_mb(layer: torch.nn.Module) -> float:
    """MB that a layer keeps besides its weight, of a batch that needs no gradient."""
    x = data(*LAYERS[0])[0]
    return kept_nbytes(lambda: layer(x)) / 1e6


def measured(quick: bool = False) -> dict[str, Any]:
    """Figures of each projection and ratio; of plain layers too."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {PLAIN: {"1": {"kept": kept_mb(torch.nn.Linear(*LAYERS[0]))}}}
    for kind in KINDS[:1] if quick else KINDS:
        for ratio in RATIOS:
            layer = RandomizedLinear(*LAYERS[0], projection=kind, proj_dim_ratio=ratio)
            figures = found.setdefault(kind, {})[str(ratio)] = {"kept": kept_mb(layer)}
            for sizes in LAYERS:
                figures[f"time, {_name(sizes)}"], plain = times_plain(kind, ratio, *sizes)
                found[PLAIN]["1"][f"step, {_name(sizes)}"] = plain
            figures |= {"noise, even": noise(kind, ratio, False), "noise, uneven": noise(kind, ratio, True)}
            print(kind, ratio, figures, flush=True)
    return found


def _name(sizes: tuple[int, int]) -> str:
    return f"{sizes[0]} to {sizes[1]}"


def text(found: Found) -> str:
    """What was measured, as text."""
    steps = [key for key in found[PLAIN]["1"] if key.startswith("step, ")]
    names = [step.removeprefix("step, ") for step in steps]
    plain = ", ".join(f"{found[PLAIN]['1'][step]:.0f} ms ({name})" for step, name in zip(steps, names, strict=True))
    rows = [[PLAIN, "", f"{found[PLAIN]['1']['kept']:.2f}", *["1.00"] * len(names), "0", "0"]]
    for kind, ratios in found.items():
        for ratio, figures in ratios.items():
            if kind != PLAIN:
                times = [f"{figures[f'time, {name}']:.2f}" for name in names]
                noises = [f"{figures[key]:.3f}" for key in ("noise, even", "noise, uneven")]
                rows.append([kind, ratio, f"{figures['kept']:.2f}", *times, *noises])
    times = [f"x plain, {name}" for name in names]
    made = table(["<projection", "ratio", "kept, MB", *times, "noise, even", "noise, uneven"], rows)
    return f"{_HOW}\n\n{made}\n\nA step of `torch.nn.Linear`: {plain}."


SECTION = Section(
    "Randomized linear layers",
    measured,
    text,
    levels=("method", "setting", "metric"),
    units={"kept": "MB", **{f"step, {_name(sizes)}": "ms" for sizes in LAYERS}},
    versions=("arrcomp", "torch"),
)
