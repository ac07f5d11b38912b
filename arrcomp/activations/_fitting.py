"""The step function nearest to an activation's derivative, weighted by the inputs' density."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arguments import check_choice, checked_integer, checked_numbers, wrong_value
from ..codecs import _codebook_fit
from ..codecs._codebook_fit import Array, Function, checked_domain
from ._steps import StepFunction

MOST_BITS = 8
DOMAIN = (-10.0, 10.0)
CELLS = 2048  # of the coarse grid, on which the dynamic programme finds splits
_FINE_CELLS = 64  # of the fine grid in each coarse cell, on which splits are refined
DENSITIES = ("normal", "uniform")
_PARITIES = ("even", "odd")
_PARITY_TOLERANCE = 1e-6  # relative

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
    """The step function for the backward pass of your own activation. 3 bits take half a second, 8 bits seconds.

    It has the least integral of density(x) (f'(x) - step(x))^2 over the domain. Dynamic programming finds the optimum
    among all borders on a grid of 2048 cells (G. Novikov et al., arXiv:2202.00441, section 3). Then all borders are
    refined together, within the cells next to them, on a grid 64 times as fine. The first and the last step extend
    beyond the domain.

    Args:
        function: the activation, which maps float64 arrays of any shape.
        bits: of each index, 1 to 8; there are 2^bits levels.
        density: of the inputs: "normal", with mean 0 and variance 1; "uniform"; or a function, at least 0.
        domain: the least and the largest x, finite.
        derivative: maps arrays as `function` does; None for difference quotients of `function`, which is not called
            otherwise.
        parity: "even" if f'(-x) = f'(x): levels are a function of |x|, so that there are twice as many. "odd" if
            f'(-x) + f'(x) is the same for all x, as for gelu: one half of the levels mirrors the other half. Both need
            a domain from -x to x, one half of which is fitted.
        jumps: where the derivative jumps. Borders can then be exactly there.

    Raises:
        TypeError, ValueError: an argument is of a wrong type or value, or the derivative does not have this parity.

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

    `slopes` maps ascending numbers to the derivatives between neighbours. Time and memory grow with the square of the
    number of coarse cells.
    """
    low, high = checked_domain(domain)
    weight, segments, total = checked_density(density), [1 << count for count in bits], 0.0
    if parity is not None:
        check_choice("parity", parity, _PARITIES)
        total = _checked_parity(slopes, low, high, parity)
        weight, low = _folded(weight), 0.0
        segments = [count // 2 for count in segments] if parity == "odd" else segments
    points = _points(slopes, weight, (low, high), jumps, cells)
    return [_unfolded(*_best_segments(points, splits), parity, total) for splits in _coarse_splits(points, segments)]


@dataclass(frozen=True)
class _Points:
    """The points of a fine grid, and the coarse grid among them."""

    lower: Array  # edges of the points' cells, ascending
    values: Array  # the derivative in each cell
    weights: Array  # the integral of the density over each cell
    cells: NDArray[np.intp]  # the first points of the coarse cells

    def means(self, splits: NDArray[np.intp]) -> Array:
        """The weighted mean of each segment. Weights are above 0 here, so that tails without weight have a mean."""
        weights = np.maximum(self.weights, np.finfo(np.float64).tiny)
        return _codebook_fit.segment_means(self.values, weights, splits)


def _points(
    slopes: Function, density: Function, domain: tuple[float, float], jumps: Sequence[float], cells: int
) -> _Points:
    """Points in the domain: dense where the density is high, and where the derivative varies."""
    low, high = domain

    def variation(x: Array) -> Array:
        slope = slopes(np.append(x, 2 * x[-1] - x[-2]))
        return np.abs(np.diff(slope, append=slope[-1:]))

    coarse = _codebook_fit.density_edges(low, high, [density, variation], cells)
    inner = [jump for jump in checked_numbers("jumps", jumps) if low < jump < high]
    coarse = np.unique(np.concatenate([coarse, inner]))
    inside = np.diff(coarse)[:, None] * np.arange(_FINE_CELLS) / _FINE_CELLS
    edges = np.append((coarse[:-1, None] + inside).reshape(-1), coarse[-1])
    weights = _codebook_fit.cell_weights(density, edges)
    return _Points(edges[:-1], slopes(edges), weights, np.arange(coarse.size - 1) * _FINE_CELLS)


def _coarse_splits(points: _Points, segments: Sequence[int]) -> list[NDArray[np.intp]]:
    """The best splits between coarse cells, as indices of points."""
    totals = np.add.reduceat(points.weights, points.cells)
    means = points.means(points.cells[1:])
    return [points.cells[splits] for splits in _codebook_fit.splits_for_each(means, totals, segments)]


def _best_segments(points: _Points, splits: NDArray[np.intp]) -> tuple[Array, Array]:
    """Borders and levels, refined from the splits of the coarse grid."""
    splits = _codebook_fit.refined_splits(points.values, points.weights, splits, _FINE_CELLS)
    return points.lower[splits], points.means(splits)


def _unfolded(borders: Array, levels: Array, parity: Parity | None, total: float) -> StepFunction:
    """The steps for all x, from those for x > 0 if there is a parity."""
    if parity == "odd":
        borders = np.concatenate([-borders[::-1], [0.0], borders])
        levels = np.concatenate([total - levels[::-1], levels])
    return StepFunction(borders.tolist(), levels.tolist(), "even" if parity == "even" else "ascending")


def squared_error(
    steps: StepFunction, derivative: Real, *, density: Density = "normal", domain: tuple[float, float] = DOMAIN
) -> float:
    """The integral over the domain of density(x) (derivative(x) - steps(x))^2, which `fit` minimizes.

    Raises:
        TypeError, ValueError: an argument is of a wrong type or value.
    """
    low, high = checked_domain(domain)
    weight, slope = checked_density(density), _codebook_fit.sampled("derivative", derivative)
    borders = np.array(steps.borders, np.float64)
    even = np.linspace(low, high, 1 << 19)
    edges = np.unique(np.concatenate([even, np.clip(np.concatenate([borders, -borders]), low, high)]))
    middles = (edges[1:] + edges[:-1]) / 2
    error = slope(middles) - steps(middles)
    return float((weight(middles) * error * error * np.diff(edges)).sum())


def checked_density(density: Density) -> Function:
    """The density as a function of arrays."""
    if callable(density):
        return _codebook_fit.sampled("density", density)
    check_choice("density", density, DENSITIES)
    return _codebook_fit.normal_density if density == "normal" else np.ones_like


def midpoint_slopes(derivative: Real) -> Function:
    """The argument `slopes` of `fits`: the derivative at midpoints."""
    checked = _codebook_fit.sampled("derivative", derivative)
    return lambda edges: checked((edges[1:] + edges[:-1]) / 2)


def _slopes(function: Real, derivative: Real | None) -> Function:
    if derivative is not None:
        return midpoint_slopes(derivative)
    checked = _codebook_fit.sampled("function", function)
    return lambda edges: np.diff(checked(edges)) / np.diff(edges)


def _checked_parity(slopes: Function, low: float, high: float, parity: Parity) -> float:
    """The mean of f'(x) + f'(-x), once the derivative's parity is checked."""
    if low != -high:
        raise wrong_value("domain", f"one from -x to x with parity={parity!r}", (low, high))
    edges = np.linspace(0, high, 1001)
    right, left = slopes(edges), slopes(-edges[::-1])[::-1]
    rest = right - left if parity == "even" else right + left - (right + left).mean()
    if np.abs(rest).max() > _PARITY_TOLERANCE * np.abs(right).max():
        at = edges[np.abs(rest).argmax()]
        raise wrong_value("parity", f"None for a derivative that is not {parity} (near x={at:.3g})", parity)
    return float((right + left).mean())


def _folded(density: Function) -> Function:
    return lambda x: density(x) + density(-x)
