"""Writes arrcomp/activations/tables.json, the shipped steps of continuous activations.

`python tools/make_activation_tables.py` takes minutes. With `--check` it fits the tables of few bits again, and fails
if their errors differ from the file's.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arrcomp.activations import Activation, StepFunction, squared_error
from arrcomp.activations._fitting import MOST_BITS, Parity, fits, midpoint_slopes
from arrcomp.activations._functions import CONTINUOUS

FILE = Path(__file__).resolve().parents[1] / "arrcomp" / "activations" / "tables.json"
_CELLS = 4096
_CHECKED_BITS, _CHECKED_CELLS = 4, 2048
_TOLERANCE = 1e-3  # relative, of a squared error


def fitted(activation: Activation, most_bits: int, cells: int) -> list[StepFunction]:
    """The best steps of an activation with default parameters, for normal inputs, from 1 bit to `most_bits`.

    Mirrored steps are used where they are as good as others. (For gelu and hardswish at 4 bits, one level fewer on one
    side is better.)
    """
    chosen = _fitted(activation, activation.parity, most_bits, cells)
    if activation.parity != "odd":
        return chosen
    free = _fitted(activation, None, most_bits, cells)
    return [_simpler(activation, *pair) for pair in zip(chosen, free, strict=True)]


def _simpler(activation: Activation, mirrored: StepFunction, free: StepFunction) -> StepFunction:
    return mirrored if error_of(activation, mirrored) <= (1 + _TOLERANCE) * error_of(activation, free) else free


def _fitted(activation: Activation, parity: Parity | None, most_bits: int, cells: int) -> list[StepFunction]:
    slopes = midpoint_slopes(lambda x: activation.derivative(x, *activation.defaults))
    bits = range(1, most_bits + 1)
    return fits(slopes, bits, density="normal", parity=parity, jumps=activation.jumps, cells=cells)


def error_of(activation: Activation, steps: StepFunction) -> float:
    """The squared error for normal inputs."""
    return squared_error(steps, lambda x: activation.derivative(x, *activation.defaults))


def write() -> None:
    """Write the file, one table a line."""
    lines = []
    for activation in CONTINUOUS:
        tables = [json.dumps(_plain(steps)) for steps in fitted(activation, MOST_BITS, _CELLS)]
        lines.append(f"{json.dumps(activation.name)}: [\n" + ",\n".join(tables) + "\n]")
        print(activation.name, flush=True)
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _plain(steps: StepFunction) -> dict[str, Any]:
    return {"borders": steps.borders, "levels": steps.levels, "rule": steps.rule}


def differences() -> list[str]:
    """The tables of few bits whose errors differ from those of a new fit."""
    found = []
    tables = json.loads(FILE.read_text())
    for activation in CONTINUOUS:
        for steps in fitted(activation, _CHECKED_BITS, _CHECKED_CELLS):
            shipped = error_of(activation, StepFunction(**tables[activation.name][steps.bits - 1]))
            least = error_of(activation, steps)
            if abs(shipped - least) > _TOLERANCE * least:
                found.append(f"{activation.name}, {steps.bits} bits: error {shipped:.4g}, fitted {least:.4g}")
    return found


def main(arguments: Sequence[str]) -> int:
    """Write or check. Returns the exit status."""
    if list(arguments) not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    if not arguments:
        write()
        return 0
    found = differences()
    print("\n".join(found) or "the tables are the best ones")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
