"""The steps of each activation, shipped or fitted: `steps_of`."""

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from .._arguments import check_choice, checked_integer
from ._fitting import DENSITIES, DOMAIN, MOST_BITS, checked_domain, fits, slopes_of
from ._functions import Activation, activation
from ._steps import StepFunction

FILE = Path(__file__).with_name("tables.json")


def steps_of(
    function: str,
    parameters: Sequence[Any] | None = None,
    bits: int = 3,
    *,
    density: Literal["normal", "uniform"] = "normal",
    domain: tuple[float, float] = DOMAIN,
) -> StepFunction:
    """The steps that stand for an activation's derivative.

    Those of functions that are piecewise linear are exact, and have 1 bit whatever was asked for. Those of the others
    are the best there are (`fit`): from the shipped tables with the default parameters, density and domain, else fitted
    when they are first asked for, which takes half a second for 3 bits, seconds for 8.

    Args:
        function: the activation's name, as `ACTIVATIONS` has it.
        parameters: those of the activation, in its order; None: the defaults.
        bits: of each index, 1 to 8.
        density: of the inputs: "normal", with mean 0 and variance 1, or "uniform".
        domain: the least and the largest input that counts.

    Raises:
        TypeError, ValueError: an argument is not allowed.

    >>> steps_of("relu").levels
    (0.0, 1.0)
    >>> steps_of("gelu", bits=1).borders
    (0.0,)
    """
    found = activation(function)
    values = found.checked(found.defaults if parameters is None else parameters)
    if found.steps is not None:
        return _exact_steps(found, values)
    check_choice("density", density, DENSITIES)
    # Activations come here in every call: what needs no check has none.
    checked = domain if domain is DOMAIN else checked_domain(domain)
    return _steps(found, values, checked_integer("bits", bits, 1, MOST_BITS), density, checked)


@functools.lru_cache(maxsize=256)
def _exact_steps(found: Activation, values: tuple[float, ...]) -> StepFunction:
    assert found.steps is not None
    return found.steps(*values)


@functools.lru_cache(maxsize=256)
def _steps(
    found: Activation,
    values: tuple[float, ...],
    bits: int,
    density: Literal["normal", "uniform"],
    domain: tuple[float, float],
) -> StepFunction:
    if (values, density, domain) == (found.defaults, "normal", DOMAIN):
        return StepFunction(**_shipped()[found.name][bits - 1])
    # Derivatives that are even take no parameters; odd ones need not have mirrored steps (`make_tables`).
    parity = found.parity if found.parity == "even" and domain[0] == -domain[1] else None
    slopes = slopes_of(lambda x: found.derivative(x, *values))
    return fits(slopes, [bits], density=density, domain=domain, parity=parity, jumps=found.jumps)[0]


@functools.cache
def _shipped() -> dict[str, list[dict[str, Any]]]:
    """The tables of each continuous activation, for 1 to 8 bits."""
    tables: dict[str, list[dict[str, Any]]] = json.loads(FILE.read_text())
    return tables
