"""The step function of each activation, from the shipped tables or fitted."""

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from .._arguments import check_choice, checked_integer
from ..codecs._codebook_fit import checked_domain
from ._fitting import DENSITIES, DOMAIN, MOST_BITS, fits, midpoint_slopes
from ._functions import Activation, activation
from ._steps import StepFunction

_Density = Literal["normal", "uniform"]


def steps_of(
    function: str,
    parameters: Sequence[Any] | None = None,
    bits: int = 3,
    *,
    density: _Density = "normal",
    domain: tuple[float, float] = DOMAIN,
) -> StepFunction:
    """The step function in place of an activation's derivative.

    It is exact for piecewise linear functions, and has 1 bit then, whatever `bits` is. For other functions it is the
    best one (see `fit`). With the default parameters, density and domain it comes from the shipped tables. Otherwise
    the first call fits it, which takes half a second for 3 bits and seconds for 8.

    Args:
        function: the activation's name in `ACTIVATIONS`.
        parameters: the activation's parameters, in its order; None for the defaults.
        bits: of each index, 1 to 8.
        density: of the inputs: "normal", with mean 0 and variance 1, or "uniform".
        domain: the least and the largest x, finite.

    Raises:
        TypeError, ValueError: an argument is of a wrong type or value.

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
    # Every call of an activation comes here. The default domain needs no check.
    checked = domain if domain is DOMAIN else checked_domain(domain)
    return _steps(found, values, checked_integer("bits", bits, 1, MOST_BITS), density, checked)


@functools.lru_cache(maxsize=256)
def _exact_steps(found: Activation, values: tuple[float, ...]) -> StepFunction:
    assert found.steps is not None
    return found.steps(*values)


@functools.lru_cache(maxsize=256)
def _steps(
    found: Activation, values: tuple[float, ...], bits: int, density: _Density, domain: tuple[float, float]
) -> StepFunction:
    if (values, density, domain) == (found.defaults, "normal", DOMAIN):
        return StepFunction(**_shipped()[found.name][bits - 1])
    # Even derivatives have no parameters. Odd ones need not have mirrored steps (see tools/make_activation_tables.py).
    parity = found.parity if found.parity == "even" and domain[0] == -domain[1] else None
    slopes = midpoint_slopes(lambda x: found.derivative(x, *values))
    return fits(slopes, [bits], density=density, domain=domain, parity=parity, jumps=found.jumps)[0]


@functools.cache
def _shipped() -> dict[str, list[dict[str, Any]]]:
    """The tables of each continuous activation, for 1 to 8 bits."""
    tables: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("tables.json").read_text())
    return tables
