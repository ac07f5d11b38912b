"""How many bits each layer of a model gets: the fewest bytes whose error stays within a budget.

The rule is that of L-GreCo (M. Alimohammadi et al., "L-GreCo: Layerwise-Adaptive Gradient Compression for Efficient and
Accurate Deep Learning", arXiv:2210.17357): of all choices of a setting for each layer whose summed squared errors stay
within `alpha` times those of one setting for all, the one that sends the fewest bytes. It is a knapsack problem, solved
by dynamic programming over errors in whole parts of the budget.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Options = NDArray[np.int64]

_PARTS = 10_000  # of the budget; more for many layers, as each may round up by one part
_PARTS_A_LAYER = 20
_NEVER = 1 << 60  # bytes of what does not fit the budget


def plan_bits(nbytes: ArrayLike, errors: ArrayLike, uniform: int, alpha: float = 1.0) -> Options:
    """The option of each layer: the fewest bytes, with at most `alpha` times the error of one option for all.

    Never more bytes than the uniform option where that is within the budget, which it is with `alpha` from 1 on. Where
    no choice is within the budget, the one with the least error.

    Args:
        nbytes: integers[layers, options]: bytes of a layer with an option.
        errors: float[layers, options]: its squared L2 error.
        uniform: the option that the budget follows from.
        alpha: the budget by the error of the uniform option, above 0.

    Returns:
        An option for each layer.

    Raises:
        ValueError: the arrays are of different or other shapes, or a number is negative or not finite, or there is no
            such option.

    >>> plan_bits([[10, 20], [1000, 2000]], [[50.0, 1.0], [3.0, 2.0]], uniform=1, alpha=1.5).tolist()
    [1, 0]
    """
    sizes, costs = _checked(nbytes, errors)
    if not 0 <= uniform < costs.shape[1]:
        raise ValueError(f"uniform={uniform}: 0 to {costs.shape[1] - 1}, the options, are allowed")
    if not (np.isfinite(alpha) and alpha > 0):
        raise ValueError(f"alpha={alpha}: a finite number above 0 is allowed")
    budget = alpha * float(costs[:, uniform].sum())
    found, same = fewest_bytes(sizes, costs, budget), np.full(len(costs), uniform, np.int64)
    choices = [choice for choice in (found, same) if choice is not None and _total(costs, choice) <= budget]
    least: Options = costs.argmin(axis=1).astype(np.int64)
    return min(choices, key=lambda choice: (_total(sizes, choice), _total(costs, choice)), default=least)


def fewest_bytes(nbytes: ArrayLike, errors: ArrayLike, budget: float, parts: int | None = None) -> Options | None:
    """The option of each layer, so that errors stay within a budget and bytes are the fewest.

    Errors are rounded up to whole parts of the budget: the fewest bytes of a budget that is smaller by a part for each
    layer are never missed.

    Args:
        nbytes: as of `plan`.
        errors: as of `plan`.
        budget: the most that the errors of the choice may sum up to.
        parts: that the budget is divided into; None for 10,000, or 20 a layer if that is more.

    Returns:
        An option for each layer; None where no choice fits.

    Raises:
        ValueError: as `plan`.
    """
    sizes, costs = _checked(nbytes, errors)
    if not (np.isfinite(budget) and budget >= 0):
        raise ValueError(f"budget={budget}: a finite number from 0 on is allowed")
    parts = parts or max(_PARTS, _PARTS_A_LAYER * len(costs))
    units = _units(costs, budget, parts)
    best = np.zeros(parts + 1, np.int64)  # the fewest bytes of the layers so far, with so many parts
    taken = np.zeros((len(costs), parts + 1), np.int16)  # and the last layer's option then
    for layer, (unit_row, size_row) in enumerate(zip(units, sizes, strict=True)):
        ways = np.full((len(size_row), parts + 1), _NEVER)
        for way, unit, size in zip(ways, unit_row, size_row, strict=True):
            if unit <= parts:
                way[unit:] = best[: parts + 1 - unit] + size
        taken[layer] = ways.argmin(axis=0)
        best = np.minimum(ways.min(axis=0), _NEVER)
    return None if best[parts] >= _NEVER else _traced(taken, units, parts)


def _traced(taken: NDArray[np.int16], units: NDArray[np.int64], parts: int) -> Options:
    """The options that led to the fewest bytes, from the last layer to the first."""
    choice, left = np.zeros(len(taken), np.int64), parts
    for layer in reversed(range(len(taken))):
        choice[layer] = taken[layer, left]
        left -= int(units[layer, choice[layer]])
    return choice


def _units(costs: NDArray[np.float64], budget: float, parts: int) -> NDArray[np.int64]:
    if budget == 0:
        return np.where(costs == 0, 0, parts + 1).astype(np.int64)
    with np.errstate(over="ignore"):  # a budget may be tiny
        return np.ceil(np.minimum(costs * parts / budget, parts + 1)).astype(np.int64)


def _total(values: NDArray[Any], choice: Options) -> Any:
    return values[np.arange(len(values)), choice].sum()


def _checked(nbytes: ArrayLike, errors: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    sizes, costs = np.asarray(nbytes, np.int64), np.asarray(errors, np.float64)
    if sizes.ndim != 2 or 0 in sizes.shape or sizes.shape != costs.shape:
        raise ValueError(
            f"nbytes has shape {sizes.shape}, errors {costs.shape}; one shape, of layers and options, is allowed"
        )
    for name, values in (("nbytes", sizes), ("errors", costs)):
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"{name} has a number that is negative or not finite; finite ones from 0 on are allowed")
    return sizes, costs
