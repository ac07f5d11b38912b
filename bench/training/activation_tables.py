"""How near steps come to derivatives of activations: arrcomp's tables beside FewBit's; half a minute."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arrcomp.activations import StepFunction, squared_error, steps_of
from arrcomp.activations._functions import CONTINUOUS, Activation
from harness import figures
from harness.page import BENCH
from harness.section import Found, Section
from harness.tables import table
from training.words import bits_text

NAME = "activation tables"  # in results.csv
PICTURE = "activation_tables.png"
DOMAIN = (-10.0, 10.0)
BITS, MOST_BITS = range(1, 5), 8  # FewBit has tables for 1 to 4
_NORMAL, _UNIFORM = "error, normal inputs", "error, uniform inputs"
_SHIPPED = "shipped tables' error, uniform inputs"
DENSITIES = {_NORMAL: "normal", _UNIFORM: "uniform"}
NAMES = [activation for activation in CONTINUOUS if activation.name != "gelu_tanh"]  # which FewBit does not have


_OURS, _FEWBIT, _CURVE = "#0072B2", "#D55E00", "#555555"

_INTRODUCTION = """\
The error is the integral of density(x) (f'(x) - step(x))^2 from -10 to 10. The density is either the standard normal
one, as for the inputs of activations after a norm, or 1 everywhere. arrcomp's steps are the shipped tables, which
are fitted to the normal density, and `arrcomp.activations.steps_of(..., density="uniform")`. FewBit has one table
for both, fitted with a density of 1 from -100 to 100, for 1 to 4 bits. "times" is FewBit's error divided by
arrcomp's.

{source}

Where "times" is 1.00 with both, both tables are optimal: FewBit's descent finds the optimum for some functions with
few steps, and with a density of 1 nothing can be gained. Functions whose derivative is even (sigmoid, tanh,
softsign, tanhshrink) have steps of |x| here, so that all steps are used on both sides."""


_CROSS = """\
The shipped tables are for normal inputs, and have few steps where such inputs are rare. Uniform inputs need other
steps. The error of the shipped tables divided by FewBit's, with uniform inputs, for 1 to 4 bits:"""


def slope_of(activation: Activation) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """The derivative with default parameters."""
    return lambda x: activation.derivative(x, *activation.defaults)


def error_of(activation: Activation, steps: StepFunction, density: Any) -> float:
    """The squared error of the steps."""
    return squared_error(steps, slope_of(activation), density=density, domain=DOMAIN)


def ours(activation: Activation) -> dict[str, dict[str, float]]:
    """Errors by bits: of the shipped tables, of the best steps for uniform inputs, and of the first with these."""
    found = {}
    for bits in range(1, MOST_BITS + 1):
        shipped = steps_of(activation.name, bits=bits)
        errors = found[bits_text(bits)] = {_NORMAL: error_of(activation, shipped, "normal")}
        if bits in BITS:
            uniform = steps_of(activation.name, bits=bits, density="uniform", domain=DOMAIN)
            errors[_UNIFORM] = error_of(activation, uniform, "uniform")
            errors[_SHIPPED] = error_of(activation, shipped, "uniform")
    return found


def theirs(path: Path, source: str) -> dict[str, Any]:
    """Errors of FewBit's tables: arrays NAMEBB-borders, with both ends of the domain, and NAMEBB-levels."""
    found: dict[str, Any] = {"tables": {"FewBit": {"source": source}}}
    with np.load(path) as tables:
        for activation in NAMES:
            for bits in BITS:
                key = f"{activation.name}{bits:02d}"
                steps = StepFunction(tables[f"{key}-borders"][1:-1], tables[f"{key}-levels"])
                errors = {metric: error_of(activation, steps, density) for metric, density in DENSITIES.items()}
                found.setdefault(activation.name, {}).setdefault("FewBit", {})[bits_text(bits)] = errors
    return found


def measured(quick: bool = False) -> dict[str, Any]:
    """Errors of both; FewBit's are those of results.csv, unless the environment's FEWBIT names a file of its tables."""
    path = os.environ.get("FEWBIT")
    if path is None:
        found = figures.read(BENCH / "results.csv", {NAME: SECTION})[NAME]["found"]
    else:
        found = theirs(Path(path), f"FewBit's tables are those of {path}.")
    for activation in NAMES:
        found[activation.name] = {"arrcomp": ours(activation), "FewBit": found[activation.name]["FewBit"]}
    return found


def _functions(found: Found) -> dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Arrcomp's and FewBit's errors, by function."""
    return {name: (made["arrcomp"], made["FewBit"]) for name, made in found.items() if name != "tables"}


def error_table(found: Found, metric: str) -> str:
    """Errors and their quotients, a function a line."""
    rows = []
    for name, (own, other) in _functions(found).items():
        pairs = [(own[bits][metric], other[bits][metric]) for bits in other]
        rows.append([name, *(cell for a, b in pairs for cell in (f"{a:.3g}", f"{b:.3g}", f"{b / a:.2f}"))])
    return table(["<function", *(head for bits in BITS for head in (bits_text(bits), "FewBit", "times"))], rows)


def more_bits(found: Found, counts: Iterable[int]) -> str:
    """The errors for more bits than FewBit has."""
    names = [bits_text(count) for count in counts]
    rows = [[name, *(f"{own[bits][_NORMAL]:.3g}" for bits in names)] for name, (own, _) in _functions(found).items()]
    return table(["<function", *names], rows)


def cross(found: Found) -> str:
    """What the shipped tables, which are for normal inputs, have with uniform ones."""
    rows = [
        [name, *(f"{own[bits][_SHIPPED] / other[bits][_UNIFORM]:.2f}" for bits in other)]
        for name, (own, other) in _functions(found).items()
    ]
    return table(["<function", *map(str, BITS)], rows)


def text(found: Found) -> str:
    """What was measured, as text."""
    source = textwrap.fill(found["tables"]["FewBit"]["source"], 120)
    parts = [_INTRODUCTION.format(source=source), "### Normal inputs", error_table(found, _NORMAL)]
    parts += [f"![Squared error against bits]({PICTURE})", "### Uniform inputs from -10 to 10"]
    parts += [error_table(found, _UNIFORM), _CROSS, cross(found), "### More bits, normal inputs"]
    return "\n\n".join([*parts, more_bits(found, range(len(BITS) + 1, MOST_BITS + 1))])


def draw(found: Found, folder: Path) -> None:
    """A panel for each function, error against bits, and two of derivatives with their steps."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 5, figsize=(15, 9), layout="constrained")
    functions = _functions(found)
    for panel, (name, both) in zip(axes.flat, functions.items(), strict=False):
        for errors, style, color, label in zip(
            both, ("o-", "s-"), (_OURS, _FEWBIT), ("arrcomp", "FewBit"), strict=True
        ):
            values = [error[_NORMAL] for error in errors.values()]
            panel.semilogy(range(1, len(values) + 1), values, style, color=color, label=label)
        panel.set_title(name, loc="left", fontsize=11)
        panel.set_xticks(range(1, MOST_BITS + 1))
        panel.grid(alpha=0.3)
    for panel in axes[:, 0]:
        panel.set_ylabel("squared error, normal inputs")
    for panel in axes.flat[10:13]:
        panel.set_xlabel("bits")
    axes[0, 0].legend(frameon=False)
    for panel, name in zip(axes.flat[len(functions) :], ("gelu", "tanh"), strict=True):
        _draw_steps(panel, name)
    figure.suptitle("Steps for the derivatives of activations: error against bits", x=0.01, ha="left", fontsize=13)
    figure.savefig(folder / PICTURE, dpi=100)
    plt.close(figure)


def _draw_steps(panel: Any, name: str) -> None:
    activation = next(one for one in NAMES if one.name == name)
    x = np.linspace(-4, 4, 4001)
    panel.plot(x, slope_of(activation)(x), color=_CURVE, linewidth=1)
    panel.plot(x, steps_of(name, bits=3)(x), color=_OURS, linewidth=1.5)
    panel.set_title(f"{name}', and its 3-bit steps", loc="left", fontsize=11)
    panel.grid(alpha=0.3)


SECTION = Section(
    "Steps for the derivatives of activations",
    measured,
    text,
    levels=("subject", "method", "setting", "metric"),
    draw=draw,
)
