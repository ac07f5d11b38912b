"""How near steps come to derivatives of activations: arrcomp's tables beside FewBit's; writes ACTIVATIONS.md and a PNG.

Run: python bench/activation_tables.py
With other tables of FewBit's (its fewbit/data/builtin.npz): python bench/activation_tables.py --fewbit builtin.npz
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arrcomp.activations import StepFunction, squared_error, steps_of
from arrcomp.activations._functions import CONTINUOUS, Activation

HERE = Path(__file__).parent
FEWBIT = HERE / "fewbit_tables.json"
PAGE, PICTURE = HERE / "ACTIVATIONS.md", HERE / "activation_tables.png"
DOMAIN = (-10.0, 10.0)
BITS, MOST_BITS = range(1, 5), 8  # FewBit has tables for 1 to 4
DENSITIES = ("normal", "uniform")
NAMES = [activation for activation in CONTINUOUS if activation.name != "gelu_tanh"]  # which FewBit does not have

Errors = dict[str, dict[str, list[float]]]

_OURS, _FEWBIT, _CURVE = "#0072B2", "#D55E00", "#555555"

_INTRODUCTION = """\
# Steps for the derivatives of activations

Written by `python bench/activation_tables.py`.

The integral of density(x) (f'(x) - step(x))^2 from -10 to 10: with the standard normal density, as the inputs of
activations after a norm have it, and with a density of 1 everywhere. arrcomp's steps are the shipped tables, which are
fitted to the normal density, and `arrcomp.activations.steps_of(..., density="uniform")`. FewBit has one table for both,
fitted with a density of 1 from -100 to 100, for 1 to 4 bits. "times" is FewBit's error over arrcomp's.

{source}

Where both have 1.00 times, both are the optimum: FewBit's descent finds it for some functions of few steps, and with a
density of 1 there is nothing to gain. Functions whose derivative is even (sigmoid, tanh, softsign, tanhshrink) have
steps of |x| here, so that all of them are of use on both sides.
"""


_CROSS = """\
The shipped tables are for normal inputs, and have few steps where those hardly come; uniform inputs want others. The
shipped tables' error over FewBit's with uniform inputs, for 1 to 4 bits:

"""


def slope_of(activation: Activation) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """The derivative with default parameters."""
    return lambda x: activation.derivative(x, *activation.defaults)


def error_of(activation: Activation, steps: StepFunction, density: Any) -> float:
    """The squared error of the steps."""
    return squared_error(steps, slope_of(activation), density=density, domain=DOMAIN)


def ours(activation: Activation) -> dict[str, list[float]]:
    """Errors for 1 bit and more: of the shipped tables, of the best steps for uniform inputs, and of the first then."""
    shipped = [steps_of(activation.name, bits=bits) for bits in range(1, MOST_BITS + 1)]
    uniform = [steps_of(activation.name, bits=bits, density="uniform", domain=DOMAIN) for bits in BITS]
    return {
        "normal": [error_of(activation, steps, "normal") for steps in shipped],
        "uniform": [error_of(activation, steps, "uniform") for steps in uniform],
        "shipped, uniform": [error_of(activation, steps, "uniform") for steps in shipped[: len(BITS)]],
    }


def fewbit(path: Path) -> Errors:
    """Errors of FewBit's tables: arrays NAMEBB-borders, with both ends of the domain, and NAMEBB-levels."""
    found: Errors = {}
    with np.load(path) as tables:
        for activation in NAMES:
            keys = [f"{activation.name}{bits:02d}" for bits in BITS]
            steps = [StepFunction(tables[f"{key}-borders"][1:-1], tables[f"{key}-levels"]) for key in keys]
            found[activation.name] = {
                density: [error_of(activation, one, density) for one in steps] for density in DENSITIES
            }
    return found


def table(own: Errors, theirs: Errors, density: str) -> str:
    """Errors and their quotients, a function a line."""
    lines = ["| function | " + " | ".join(f"{bits} bit{'s' * (bits > 1)} | FewBit | times" for bits in BITS) + " |"]
    lines.append("| --- |" + " ---: | ---: | ---: |" * len(BITS))
    for name in theirs:
        cells = [
            f"{mine:.3g} | {other:.3g} | {other / mine:.2f}"
            for mine, other in zip(own[name][density], theirs[name][density], strict=False)
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def more_bits(own: Errors) -> str:
    """The errors for more bits than FewBit has."""
    bits = range(len(BITS) + 1, MOST_BITS + 1)
    lines = ["| function | " + " | ".join(f"{count} bits" for count in bits) + " |", "| --- |" + " ---: |" * len(bits)]
    lines += [
        f"| {name} | " + " | ".join(f"{own[name]['normal'][count - 1]:.3g}" for count in bits) + " |" for name in own
    ]
    return "\n".join(lines)


def cross(own: Errors, theirs: Errors) -> str:
    """What the shipped tables, which are for normal inputs, have with uniform ones."""
    lines = ["| function | " + " | ".join(f"{bits}" for bits in BITS) + " |", "| --- |" + " ---: |" * len(BITS)]
    for name in theirs:
        pairs = zip(own[name]["shipped, uniform"], theirs[name]["uniform"], strict=True)
        lines.append(f"| {name} | " + " | ".join(f"{mine / other:.2f}" for mine, other in pairs) + " |")
    return "\n".join(lines)


def page(own: Errors, stored: dict[str, Any]) -> str:
    """ACTIVATIONS.md."""
    theirs: Errors = stored["errors"]
    parts = [
        _INTRODUCTION.format(source=textwrap.fill(stored["source"], 120)),
        "## Normal inputs\n\n" + table(own, theirs, "normal"),
        "![Squared error against bits](activation_tables.png)",
        "## Uniform inputs from -10 to 10\n\n" + table(own, theirs, "uniform"),
        _CROSS + cross(own, theirs),
        "## More bits, normal inputs\n\n" + more_bits(own),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def plot(own: Errors, theirs: Errors) -> None:
    """A panel for each function, error against bits, and two of derivatives with their steps."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 5, figsize=(15, 9), layout="constrained")
    for panel, name in zip(axes.flat, theirs, strict=False):
        panel.semilogy(range(1, MOST_BITS + 1), own[name]["normal"], "o-", color=_OURS, label="arrcomp")
        panel.semilogy(BITS, theirs[name]["normal"], "s-", color=_FEWBIT, label="FewBit")
        panel.set_title(name, loc="left", fontsize=11)
        panel.set_xticks(range(1, MOST_BITS + 1))
        panel.grid(alpha=0.3)
    for panel in axes[:, 0]:
        panel.set_ylabel("squared error, normal inputs")
    for panel in axes.flat[10:13]:
        panel.set_xlabel("bits")
    axes[0, 0].legend(frameon=False)
    for panel, name in zip(axes.flat[len(theirs) :], ("gelu", "tanh"), strict=True):
        _draw_steps(panel, name)
    figure.suptitle("Steps for the derivatives of activations: error against bits", x=0.01, ha="left", fontsize=13)
    figure.savefig(PICTURE, dpi=100)


def _draw_steps(panel: Any, name: str) -> None:
    activation = next(one for one in NAMES if one.name == name)
    x = np.linspace(-4, 4, 4001)
    panel.plot(x, slope_of(activation)(x), color=_CURVE, linewidth=1)
    panel.plot(x, steps_of(name, bits=3)(x), color=_OURS, linewidth=1.5)
    panel.set_title(f"{name}', and its 3-bit steps", loc="left", fontsize=11)
    panel.grid(alpha=0.3)


def main() -> None:
    """Write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fewbit", type=Path, help="FewBit's tables, to calculate their errors from")
    parser.add_argument(
        "--source", default="FewBit's tables are those of a file given to this script.", help="of these"
    )
    arguments = parser.parse_args()
    if arguments.fewbit is not None:
        stored = {"source": arguments.source, "errors": fewbit(arguments.fewbit)}
        FEWBIT.write_text(json.dumps(stored, indent=1) + "\n")
    stored = json.loads(FEWBIT.read_text())
    own = {activation.name: ours(activation) for activation in NAMES}
    PAGE.write_text(page(own, stored))
    plot(own, stored["errors"])


if __name__ == "__main__":
    main()
