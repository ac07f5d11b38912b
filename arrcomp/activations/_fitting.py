"""The steps that are nearest to an activation's derivative, weighted by how the inputs are distributed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arguments import check_choice, checked_integer, checked_numbers
from ..codecs import _codebook_fit
from ..codecs._codebook_fit import Array, Function
from ._steps import StepFunction

MOST_BITS = 8
DOMAIN = (-10.0, 10.0)
CELLS = 2048  # between which the dynamic programme cuts
_PARTS = 64  # of a cell, between which the cuts then move
DENSITIES = ("normal", "uniform")
_PARITIES = ("even", "odd")
_SAME = 1e-6  # how far from its parity a derivative may be, relatively

Parity = Literal["even", "odd"]
Density = Literal["normal", "uniform"] | Callable[[Array], ArrayLike]
Real = Callable[[Array], ArrayLike]


def fit(
    function: Real,
    bits: int,
    *,
    density: Density = "normal",
    domain: tuple[float, float] = DOMAIN,
    derivative: Real | None = None,
    parity: Parity | None = None,
    jumps: Sequence[float] = (),
) -> StepFunction:
    """The steps for the backward pass of an activation of your own; in half a second for 3 bits, seconds for 8.

    The integral of density(x) (f'(x) - step(x))^2 over the domain is least: exactly so among all steps whose borders
    are on a grid of 2048 cells, by dynamic programming (G. Novikov et al., arXiv:2202.00441, section 3); then borders
    move together, within the cells next to them, on a grid 64 times as fine. Outside of the domain the first and the
    last step go on.

    Args:
        function: the activation, of float64 arrays of any shape.
        bits: of each index, 1 to 8; there are 2^bits levels.
        density: of the inputs: "normal", with mean 0 and variance 1; "uniform"; or a function, nowhere below 0.
        domain: the least and the largest x, finite.
        derivative: the function's, of the same kind; None: differences of the function, which is not called else.
        parity: "even" where f'(-x) = f'(x): all levels are of |x|, which are twice as many. "odd" where
            f'(-x) + f'(x) is the same for all x, as of gelu: half of the levels mirror the other half. Both need a
            domain from -x to x, of which one half is fitted.
        jumps: where the derivative jumps, so that borders can be exactly there.

    Raises:
        TypeError, ValueError: an argument is not allowed, or the derivative is not of this parity.

    >>> fit(lambda x: np.maximum(x, 0), bits=1, jumps=[0]).borders
    (0.0,)
    """
    checked_integer("bits", bits, 1, MOST_BITS)
    slopes = _slopes(function, derivative)
    return fits(slopes, [bits], density=density, domain=domain, parity=parity, jumps=jumps)[0]


def fits(
    slopes: Function,
    bits: Sequence[int],
    *,
    density: Density,
    domain: tuple[float, float] = DOMAIN,
    parity: Parity | None = None,
    jumps: Sequence[float] = (),
    cells: int = CELLS,
) -> list[StepFunction]:
    """`fit` for several numbers of bits, in the time of the largest.

    `slopes` gives the derivative between each two neighbours of a list of ascending numbers. There are so many coarse
    cells; time and memory grow with their square. The rest is as of `fit`.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    low, high = checked_domain(domain)
    weight, runs, total = density_of(density), [1 << count for count in bits], 0.0
    if parity is not None:
        check_choice("parity", parity, _PARITIES)
        total = _checked_parity(slopes, low, high, parity)
        weight, low = _folded(weight), 0.0
        runs = [count // 2 for count in runs] if parity == "odd" else runs
    points = _points(slopes, weight, (low, high), jumps, cells)
    return [_unfolded(*_best_runs(points, cuts), parity, total) for cuts in _coarse_cuts(points, runs)]


@dataclass(frozen=True)
class _Points:
    """The points of a fine grid, and those of a coarse one among them.

    Attributes:
        lower: the lower edges of the points' cells, ascending.
        values: the derivative in each cell.
        weights: the part of the density in each.
        cells: the coarse cells' first points.
    """

    lower: Array
    values: Array
    weights: Array
    cells: NDArray[np.intp]


def _points(
    slopes: Function, density: Function, domain: tuple[float, float], jumps: Sequence[float], cells: int
) -> _Points:
    """Points between the domain's ends: many where the density is high, and where the derivative varies."""
    low, high = domain

    def variation(x: Array) -> Array:
        slope = slopes(np.append(x, 2 * x[-1] - x[-2]))
        return np.abs(np.diff(slope, append=slope[-1:]))

    coarse = _codebook_fit.edges_of(low, high, [density, variation], cells)
    inner = [jump for jump in checked_numbers("jumps", jumps) if low < jump < high]
    coarse = np.unique(np.concatenate([coarse, inner]))
    inside = np.diff(coarse)[:, None] * np.arange(_PARTS) / _PARTS
    edges = np.append((coarse[:-1, None] + inside).reshape(-1), coarse[-1])
    weights = density((edges[1:] + edges[:-1]) / 2) * np.diff(edges)
    if not weights.sum() > 0:
        raise ValueError(f"density is 0 on all of {domain!r}; a density above 0 is allowed")
    return _Points(edges[:-1], slopes(edges), weights, np.arange(coarse.size - 1) * _PARTS)


def _coarse_cuts(points: _Points, runs: Sequence[int]) -> list[NDArray[np.intp]]:
    """The best cuts between coarse cells, as places among the points."""
    totals = np.add.reduceat(points.weights, points.cells)
    means = _codebook_fit.means_of_runs(points.values, _weights(points), points.cells[1:])
    return [points.cells[cuts] for cuts in _codebook_fit.cuts_for_each(means, totals, runs)]


def _best_runs(points: _Points, cuts: NDArray[np.intp]) -> tuple[Array, Array]:
    """The borders and the levels, from cuts that are nearly the best."""
    cuts = _codebook_fit.moved_cuts(points.values, points.weights, cuts, _PARTS)
    return points.lower[cuts], _codebook_fit.means_of_runs(points.values, _weights(points), cuts)


def _weights(points: _Points) -> Array:
    """None of them 0, so that tails without weight have a mean."""
    return np.maximum(points.weights, np.finfo(np.float64).tiny)


def _unfolded(borders: Array, levels: Array, parity: Parity | None, total: float) -> StepFunction:
    """Steps of all x from those of x > 0, where there is a parity."""
    if parity == "odd":
        borders = np.concatenate([-borders[::-1], [0.0], borders])
        levels = np.concatenate([total - levels[::-1], levels])
    return StepFunction(borders.tolist(), levels.tolist(), "even" if parity == "even" else "ascending")


def squared_error(
    steps: StepFunction, derivative: Real, *, density: Density = "normal", domain: tuple[float, float] = DOMAIN
) -> float:
    """The integral over the domain of density(x) (derivative(x) - steps(x))^2: what `fit` makes least.

    Raises:
        TypeError, ValueError: an argument is not allowed.
    """
    low, high = checked_domain(domain)
    weight, slope = density_of(density), _codebook_fit.sampled("derivative", derivative)
    borders = np.array(steps.borders, np.float64)
    even = np.linspace(low, high, 1 << 19)
    edges = np.unique(np.concatenate([even, np.clip(np.concatenate([borders, -borders]), low, high)]))
    middles = (edges[1:] + edges[:-1]) / 2
    error = slope(middles) - steps(middles)
    return float((weight(middles) * error * error * np.diff(edges)).sum())


def density_of(density: Density) -> Function:
    """The density as a function of arrays.

    Raises:
        TypeError, ValueError: it is not one.
    """
    if callable(density):
        return _codebook_fit.sampled("density", density)
    check_choice("density", density, DENSITIES)
    return _codebook_fit.normal_density if density == "normal" else np.ones_like


def slopes_of(derivative: Real) -> Function:
    """What `fits` takes of a derivative: its values in the middles."""
    checked = _codebook_fit.sampled("derivative", derivative)
    return lambda edges: checked((edges[1:] + edges[:-1]) / 2)


def _slopes(function: Real, derivative: Real | None) -> Function:
    if derivative is not None:
        return slopes_of(derivative)
    checked = _codebook_fit.sampled("function", function)
    return lambda edges: np.diff(checked(edges)) / np.diff(edges)


def checked_domain(domain: tuple[float, float]) -> tuple[float, float]:
    """The domain's ends as floats.

    Raises:
        TypeError, ValueError: it is no domain.
    """
    ends = checked_numbers("domain", domain)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise ValueError(f"domain={domain!r}: two numbers, the lower one first, are allowed")
    return ends[0], ends[1]


def _checked_parity(slopes: Function, low: float, high: float, parity: Parity) -> float:
    """f'(x) + f'(-x), if the derivative is odd about its centre."""
    if low != -high:
        raise ValueError(f"domain=({low}, {high}): one from -x to x is allowed where there is a parity")
    edges = np.linspace(0, high, 1001)
    right, left = slopes(edges), slopes(-edges[::-1])[::-1]
    rest = right - left if parity == "even" else right + left - (right + left).mean()
    if np.abs(rest).max() > _SAME * np.abs(right).max():
        at = edges[np.abs(rest).argmax()]
        raise ValueError(f"parity={parity!r}: the derivative is not {parity} near x={at:.3g}; None is allowed")
    return float((right + left).mean())


def _folded(density: Function) -> Function:
    return lambda x: density(x) + density(-x)
