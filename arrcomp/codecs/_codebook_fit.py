"""The best codebook for samples or for a function, by dynamic programming over a sorted list of support points.

Both are the same problem: cut points 0 to n - 1, each with a value and a weight, into k runs, so that the weighted sum
of squared differences of the values from the means of their runs is least; that is, the sum over the runs of
(sum of weight * value)^2 / (sum of weight) is largest.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import checked_reals

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

_MOST_MOVES = 100  # far more than are needed where the given cuts are near


class _Sums:
    """The gain of runs of points, from sums over all points before."""

    def __init__(self, values: Array, weights: Array) -> None:
        # Means near 0 cancel least.
        centred = values - np.average(values, weights=weights)
        self.weights = np.concatenate([[0.0], np.cumsum(weights)])
        self.moments = np.concatenate([[0.0], np.cumsum(weights * centred)])

    def gain(self, begin: NDArray[np.intp], end: NDArray[np.intp]) -> Array:
        """Of runs [begin, end); 0 of those whose weight is lost beside that of the points before."""
        moment, weight = self.moments[end] - self.moments[begin], self.weights[end] - self.weights[begin]
        found: Array = np.divide(moment * moment, weight, out=np.zeros(moment.shape), where=weight > 0)
        return found


def cuts_of_sorted(values: Array, weights: Array, runs: int) -> NDArray[np.intp]:
    """Where the runs begin, but the first, if the values ascend: exact, in O(runs * n log n).

    Then the last cut before a point never moves left where the point moves right (A. Grønlund et al., arXiv:1701.07204;
    X. Wu, "Optimal quantization by matrix searching", J. Algorithms 12, 1991), so that each layer of the dynamic
    programme is found by halving: first for the middle point, then for those of both halves...

    Args:
        values: n numbers, ascending.
        weights: n numbers above 0.
        runs: 1 to n.
    """
    n, sums = values.size, _Sums(values, weights)
    best = sums.gain(np.zeros(n, np.intp), np.arange(1, n + 1))
    layers = []
    for layer in range(1, runs):
        best, cut = _next_layer(best, sums, layer)
        layers.append(cut)
    return _trace(layers, n)


def _next_layer(before: Array, sums: _Sums, layer: int) -> tuple[Array, NDArray[np.intp]]:
    """For each number of points j + 1 above `layer`: the best gain of layer + 1 runs, and where the last one begins."""
    n = before.size
    best, cut = np.full(n, -np.inf), np.full(n + 2, layer, np.intp)  # cut[j + 1] is that of j
    cut[n + 1] = n - 1
    step = 1 << n.bit_length()
    while step > 1:
        half = step // 2
        # Points j = half - 1, half - 1 + step...: their neighbours at distance `half` have been found.
        ends = np.arange(half, n + 1, step)
        ends = ends[ends > layer]
        step = half
        if ends.size == 0:
            continue
        low = np.maximum(cut[ends - half], layer)
        high = np.minimum(cut[np.minimum(ends + half, n + 1)], ends - 1)
        best[ends - 1], cut[ends] = _best_cuts(before, sums, ends, low, high)
    return best, cut[1 : n + 1]


def _best_cuts(
    before: Array, sums: _Sums, ends: NDArray[np.intp], low: NDArray[np.intp], high: NDArray[np.intp]
) -> tuple[Array, NDArray[np.intp]]:
    """For each end the best gain, and the cut from low to high that gives it."""
    counts = high - low + 1
    starts = np.cumsum(counts) - counts
    cuts = np.arange(counts.sum()) + np.repeat(low - starts, counts)
    gains = before[cuts - 1] + sums.gain(cuts, np.repeat(ends, counts))
    largest = np.maximum.reduceat(gains, starts)
    is_best = np.flatnonzero(gains == np.repeat(largest, counts))
    first = is_best[np.searchsorted(is_best, starts)]
    return largest, cuts[first]


def cuts_in_order(values: Array, weights: Array, runs: int) -> NDArray[np.intp]:
    """As `cuts_of_sorted` for values in any order: exact, in O(runs * n^2), with memory for n^2 numbers."""
    return cuts_for_each(values, weights, [runs])[0]


def cuts_for_each(values: Array, weights: Array, runs: Sequence[int]) -> list[NDArray[np.intp]]:
    """`cuts_in_order` for several numbers of runs, in the time of the largest."""
    n, sums = values.size, _Sums(values, weights)
    begin, end = np.arange(n), np.arange(1, n + 1)
    gains = sums.gain(begin[None, :], end[:, None])
    gains[begin[None, :] >= end[:, None]] = -np.inf
    best, layers = gains[:, 0], []
    for _ in range(1, max(runs)):
        candidates = gains[:, 1:] + best[:-1]
        cut = candidates.argmax(axis=1)
        best = candidates[begin, cut]
        layers.append(cut + 1)
    return [_trace(layers[: count - 1], n) for count in runs]


def moved_cuts(values: Array, weights: Array, cuts: NDArray[np.intp], reach: int) -> NDArray[np.intp]:
    """The best cuts of all that are at most `reach` points from given ones, again and again until none moves.

    For values in any order, in O(runs * reach^2) for each time: so a list too long for `cuts_in_order` is cut, from
    the cuts of a list whose points are `reach` of its own.
    """
    n, sums, steps = values.size, _Sums(values, weights), np.arange(-reach, reach + 1)
    for _ in range(_MOST_MOVES if cuts.size > 0 else 0):
        before, places, layers = cuts, [np.clip(cut + steps, 1, n - 1) for cut in cuts], []
        best = sums.gain(np.zeros(steps.size, np.intp), places[0])
        for left, right in itertools.pairwise(places):
            gains = np.where(left < right[:, None], sums.gain(left[None, :], right[:, None]) + best, -np.inf)
            layers.append(gains.argmax(axis=1))
            best = gains.max(axis=1)
        chosen = [int((best + sums.gain(places[-1], np.full(steps.size, n))).argmax())]
        for layer in reversed(layers):
            chosen.append(int(layer[chosen[-1]]))
        cuts = np.array([place[at] for place, at in zip(places, reversed(chosen), strict=True)], np.intp)
        if (cuts == before).all():
            break
    return cuts


def _trace(layers: list[NDArray[np.intp]], n: int) -> NDArray[np.intp]:
    """The cuts, from the last to the first, of all n points."""
    cuts, end = [], n
    for cut in reversed(layers):
        end = int(cut[end - 1])
        cuts.append(end)
    return np.array(cuts[::-1], np.intp)


def means_of_runs(values: Array, weights: Array, cuts: NDArray[np.intp]) -> Array:
    """The weighted mean of each run."""
    starts = np.concatenate([[0], cuts])
    offset = values.mean()  # so that runs of equal values come back as they are, but for one rounding
    moments, totals = np.add.reduceat((values - offset) * weights, starts), np.add.reduceat(weights, starts)
    means: Array = offset + moments / totals
    return means


def support_of(values: Array, weights: Array, most: int) -> tuple[Array, Array]:
    """Distinct ascending values with the sums of their weights; at most `most`: neighbours are put together.

    They are put together in cells, as means. Half of the cells have equal weight, half equal width.
    """
    order = np.argsort(values, kind="stable")
    values, weights = _together(values[order], weights[order], np.diff(values[order]) > 0)
    if values.size <= most:
        return values, weights
    share = np.cumsum(weights) / weights.sum()
    place = (values - values[0]) / (values[-1] - values[0])
    cell = np.minimum((share + place) * 0.5 * most, most - 1).astype(np.intp)
    return _together(values, weights, np.diff(cell) > 0)


def _together(values: Array, weights: Array, is_border: NDArray[np.bool_]) -> tuple[Array, Array]:
    cuts = np.flatnonzero(is_border) + 1
    return means_of_runs(values, weights, cuts), np.add.reduceat(weights, np.concatenate([[0], cuts]))


def grid_of(low: float, high: float, density: Function, cells: int) -> tuple[Array, Array, Array]:
    """A grid between two numbers: the lower edges of its cells, their middles, and the density times their widths.

    Half of the cells' share is their width, half their part of the density.
    """
    edges = edges_of(low, high, [density], cells)
    middles: Array = (edges[1:] + edges[:-1]) / 2
    return edges[:-1], middles, density(middles) * np.diff(edges)


def edges_of(low: float, high: float, densities: Sequence[Function], cells: int) -> Array:
    """The edges, one more than cells, of a grid: equal parts of its cells' share are their widths and each density."""
    fine = np.linspace(low, high, 64 * cells + 1)
    share = (fine - low) / (high - low)
    for density in densities:
        part = np.concatenate([[0.0], np.cumsum(density((fine[1:] + fine[:-1]) / 2))])
        share += part / part[-1] if part[-1] > 0 else 0
    edges: Array = np.interp(np.linspace(0, share[-1], cells + 1), share, fine)
    return edges


def sampled(name: str, function: Any) -> Function:
    """The function, with its results checked."""
    if not callable(function):
        raise TypeError(f"{name} is a {type(function).__name__}; a function of arrays is allowed")

    def checked(x: Array) -> Array:
        y = checked_reals(f"what {name} gives", function(x))
        if y.shape != x.shape:
            raise ValueError(f"{name} gives shape {y.shape} for {x.shape}; the same shape is allowed")
        if name == "density" and (y < 0).any():
            raise ValueError(f"density is {y.min()} somewhere; numbers from 0 on are allowed")
        return y

    return checked


def normal_density(x: Array) -> Array:
    """The density of the standard normal distribution."""
    density: Array = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    return density
