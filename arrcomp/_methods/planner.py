"""How many bits each layer of a model gets: the fewest bytes with errors within a budget.

The rule is that of L-GreCo (M. Alimohammadi et al., "L-GreCo: Layerwise-Adaptive Gradient Compression for Efficient and
Accurate Deep Learning", arXiv:2210.17357). Among all choices of one option for each layer whose summed squared errors
are at most `alpha` times those of one option for all layers, it takes the choice with the fewest bytes. This is a
knapsack problem. Dynamic programming solves it, with errors in whole units of the budget.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arguments import checked_integer, checked_real, number_array, wrong_value

Options = NDArray[np.int64]

_INFEASIBLE = 1 << 60  # bytes of choices beyond the budget


def plan_bits(nbytes: ArrayLike, errors: ArrayLike, uniform: int, alpha: float = 1.0) -> Options:
    """The option of each layer: the fewest bytes, with at most `alpha` times the error of one option for all layers.

    It never takes more bytes than the uniform option if that is within the budget, as it is with `alpha` of at least 1.
    If no choice is within the budget, it is the choice with the least error.

    Args:
        nbytes: integers[layers, options]: bytes of a layer with an option.
        errors: float[layers, options]: its squared L2 error.
        uniform: index of the option whose errors define the budget.
        alpha: the budget divided by the error of the uniform option, above 0.

    Returns:
        int64[layers]: an option for each layer.

    Raises:
        TypeError: an argument is of a wrong type.
        ValueError: the arrays have different shapes or wrong ones, a number is negative or not finite, or there is no
            such option.

    >>> plan_bits([[10, 20], [1000, 2000]], [[50.0, 1.0], [3.0, 2.0]], uniform=1, alpha=1.5).tolist()
    [1, 0]
    """
    sizes, costs = _checked(nbytes, errors)
    last = costs.shape[1] - 1
    uniform = checked_integer("uniform", uniform, 0, last, f"an option from 0 to {last}")
    alpha = checked_real("alpha", alpha, "a finite number above 0")
    budget = alpha * float(costs[:, uniform].sum())
    found, same = fewest_bytes(sizes, costs, budget), np.full(len(costs), uniform, np.int64)
    choices = [choice for choice in (found, same) if choice is not None and _total(costs, choice) <= budget]
    least: Options = costs.argmin(axis=1).astype(np.int64)
    return min(choices, key=lambda choice: (_total(sizes, choice), _total(costs, choice)), default=least)


def fewest_bytes(nbytes: ArrayLike, errors: ArrayLike, budget: float, units: int | None = None) -> Options | None:
    """The option of each layer with the fewest bytes whose errors are within a budget.

    Errors are rounded up to whole units of the budget. So the result has at most the fewest bytes of a budget that is
    smaller by one unit for each layer.

    `budget` is the largest sum of errors, and `units` divide it: 10,000, or 20 a layer if that is more, if None. Other
    arguments, and errors, are those of `plan_bits`. The result is None if no choice is within the budget.
    """
    sizes, costs = _checked(nbytes, errors)
    if not (np.isfinite(budget) and budget >= 0):
        raise wrong_value("budget", "a finite number of at least 0", budget)
    units = units or max(10_000, 20 * len(costs))  # more for many layers: each layer's error is rounded up to a unit
    weights = _in_units(costs, budget, units)
    best = np.zeros(units + 1, np.int64)  # the fewest bytes of the layers so far, by units spent
    taken = np.zeros((len(costs), units + 1), np.int16)  # the last layer's option then
    for layer, (weight_row, size_row) in enumerate(zip(weights, sizes, strict=True)):
        candidates = np.full((len(size_row), units + 1), _INFEASIBLE)
        for candidate, weight, size in zip(candidates, weight_row, size_row, strict=True):
            if weight <= units:
                candidate[weight:] = best[: units + 1 - weight] + size
        taken[layer] = candidates.argmin(axis=0)
        best = np.minimum(candidates.min(axis=0), _INFEASIBLE)
    return None if best[units] >= _INFEASIBLE else _traced(taken, weights, units)


def _traced(taken: NDArray[np.int16], weights: NDArray[np.int64], units: int) -> Options:
    """The options with the fewest bytes, traced from the last layer to the first."""
    choice, left = np.zeros(len(taken), np.int64), units
    for layer in reversed(range(len(taken))):
        choice[layer] = taken[layer, left]
        left -= int(weights[layer, choice[layer]])
    return choice


def _in_units(costs: NDArray[np.float64], budget: float, units: int) -> NDArray[np.int64]:
    """Errors in units of the budget, rounded up; units + 1 where they are beyond it."""
    if budget == 0:
        return np.where(costs == 0, 0, units + 1).astype(np.int64)
    with np.errstate(over="ignore"):  # a budget may be tiny
        return np.ceil(np.minimum(costs * units / budget, units + 1)).astype(np.int64)


def _total(values: NDArray[Any], choice: Options) -> Any:
    return values[np.arange(len(values)), choice].sum()


def _checked(nbytes: ArrayLike, errors: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    sizes = number_array("nbytes", nbytes, "integers", "iu").astype(np.int64)
    costs = number_array("errors", errors).astype(np.float64)
    if sizes.ndim != 2 or 0 in sizes.shape or sizes.shape != costs.shape:
        shapes = f"{sizes.shape} and {costs.shape}"
        raise ValueError(f"nbytes and errors: expected one shape, (layers, options), got {shapes}")
    for name, values in (("nbytes", sizes), ("errors", costs)):
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"{name}: expected finite numbers of at least 0, got others")
    return sizes, costs
