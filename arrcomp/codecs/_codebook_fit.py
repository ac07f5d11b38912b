"""The best codebook for samples or for a function, by dynamic programming over a sorted list of support points.

Both are the same problem: split points 0 to n - 1, each with a value and a weight, into k segments with the least
weighted sum of squared differences between values and the means of their segments. That sum is least where the sum of
the segments' gains, (sum of weight * value)^2 / (sum of weight), is largest.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import checked_numbers, checked_reals, wrong_type, wrong_value

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

_MOST_MOVES = 100  # far more than splits need that are nearly the best


class _Sums:
    """The gains of segments of points, by prefix sums."""

    def __init__(self, values: Array, weights: Array) -> None:
        # Sums near 0 have the least cancellation.
        centred = values - np.average(values, weights=weights)
        self.weights = np.concatenate([[0.0], np.cumsum(weights)])
        self.moments = np.concatenate([[0.0], np.cumsum(weights * centred)])

    def gain(self, begin: NDArray[np.intp], end: NDArray[np.intp]) -> Array:
        """The gains of segments [begin, end); 0 where rounding of the prefix sums loses a segment's weight."""
        moment, weight = self.moments[end] - self.moments[begin], self.weights[end] - self.weights[begin]
        found: Array = np.divide(moment * moment, weight, out=np.zeros(moment.shape), where=weight > 0)
        return found


def sorted_splits(values: Array, weights: Array, segments: int) -> NDArray[np.intp]:
    """The first points of all segments but the first, for ascending values and weights above 0.

    Exact, in O(segments * n log n): the last split before a point never moves left where the point moves right (A.
    Grønlund et al., arXiv:1701.07204; X. Wu, "Optimal quantization by matrix searching", J. Algorithms 12, 1991). So
    each layer of the dynamic programme is found by bisection: first for the middle point, then for the middle points of
    both halves...
    """
    n, sums = values.size, _Sums(values, weights)
    best = sums.gain(np.zeros(n, np.intp), np.arange(1, n + 1))
    layers = []
    for layer in range(1, segments):
        best, split = _next_layer(best, sums, layer)
        layers.append(split)
    return _trace(layers, n)


def _next_layer(before: Array, sums: _Sums, layer: int) -> tuple[Array, NDArray[np.intp]]:
    """For each number of points j + 1 above `layer`: the best gain of layer + 1 segments, and the last one's start."""
    n = before.size
    best, split = np.full(n, -np.inf), np.full(n + 2, layer, np.intp)  # split[j + 1] is that of j
    split[n + 1] = n - 1
    step = 1 << n.bit_length()
    while step > 1:
        half = step // 2
        # Points j = half - 1, half - 1 + step...: their neighbours at distance `half` are known.
        ends = np.arange(half, n + 1, step)
        ends = ends[ends > layer]
        step = half
        if ends.size == 0:
            continue
        low = np.maximum(split[ends - half], layer)
        high = np.minimum(split[np.minimum(ends + half, n + 1)], ends - 1)
        best[ends - 1], split[ends] = _best_splits(before, sums, ends, low, high)
    return best, split[1 : n + 1]


def _best_splits(
    before: Array, sums: _Sums, ends: NDArray[np.intp], low: NDArray[np.intp], high: NDArray[np.intp]
) -> tuple[Array, NDArray[np.intp]]:
    """For each end the best gain, and the split from low to high that gives it."""
    counts = high - low + 1
    starts = np.cumsum(counts) - counts
    splits = np.arange(counts.sum()) + np.repeat(low - starts, counts)
    gains = before[splits - 1] + sums.gain(splits, np.repeat(ends, counts))
    largest = np.maximum.reduceat(gains, starts)
    is_best = np.flatnonzero(gains == np.repeat(largest, counts))
    first = is_best[np.searchsorted(is_best, starts)]
    return largest, splits[first]


def ordered_splits(values: Array, weights: Array, segments: int) -> NDArray[np.intp]:
    """`sorted_splits` for values in any order: exact, in O(segments * n^2), with memory for n^2 numbers."""
    return splits_for_each(values, weights, [segments])[0]


def splits_for_each(values: Array, weights: Array, segments: Sequence[int]) -> list[NDArray[np.intp]]:
    """`ordered_splits` for several numbers of segments, in the time of the largest."""
    n, sums = values.size, _Sums(values, weights)
    begin, end = np.arange(n), np.arange(1, n + 1)
    gains = sums.gain(begin[None, :], end[:, None])
    gains[begin[None, :] >= end[:, None]] = -np.inf
    best, layers = gains[:, 0], []
    for _ in range(1, max(segments)):
        candidates = gains[:, 1:] + best[:-1]
        split = candidates.argmax(axis=1)
        best = candidates[begin, split]
        layers.append(split + 1)
    return [_trace(layers[: count - 1], n) for count in segments]


def refined_splits(values: Array, weights: Array, splits: NDArray[np.intp], reach: int) -> NDArray[np.intp]:
    """The best splits within `reach` points of given ones, repeated until none moves; for values in any order.

    An iteration takes O(segments * reach^2). This refines the splits of a coarse list, each point of which stands for
    `reach` points, where the fine list is too long for `ordered_splits`.
    """
    n, sums, steps = values.size, _Sums(values, weights), np.arange(-reach, reach + 1)
    for _ in range(_MOST_MOVES if splits.size > 0 else 0):
        before, candidates, layers = splits, [np.clip(split + steps, 1, n - 1) for split in splits], []
        best = sums.gain(np.zeros(steps.size, np.intp), candidates[0])
        for left, right in itertools.pairwise(candidates):
            gains = np.where(left < right[:, None], sums.gain(left[None, :], right[:, None]) + best, -np.inf)
            layers.append(gains.argmax(axis=1))
            best = gains.max(axis=1)
        chosen = [int((best + sums.gain(candidates[-1], np.full(steps.size, n))).argmax())]
        for layer in reversed(layers):
            chosen.append(int(layer[chosen[-1]]))
        splits = np.array([each[at] for each, at in zip(candidates, reversed(chosen), strict=True)], np.intp)
        if (splits == before).all():
            break
    return splits


def _trace(layers: list[NDArray[np.intp]], n: int) -> NDArray[np.intp]:
    """The splits of all n points, traced from the last to the first."""
    splits, end = [], n
    for split in reversed(layers):
        end = int(split[end - 1])
        splits.append(end)
    return np.array(splits[::-1], np.intp)


def segment_means(values: Array, weights: Array, splits: NDArray[np.intp]) -> Array:
    """The weighted mean of each run."""
    starts = np.concatenate([[0], splits])
    offset = values.mean()  # the mean of equal values is then exact, but for one rounding
    moments, totals = np.add.reduceat((values - offset) * weights, starts), np.add.reduceat(weights, starts)
    means: Array = offset + moments / totals
    return means


def merged_points(values: Array, weights: Array, limit: int) -> tuple[Array, Array]:
    """Distinct ascending values with the sums of their weights; at most `limit`, as neighbours are merged.

    Values in one cell become their mean. Half of the cells have equal weight, half have equal width.
    """
    order = np.argsort(values, kind="stable")
    values, weights = _merged(values[order], weights[order], np.diff(values[order]) > 0)
    if values.size <= limit:
        return values, weights
    share = np.cumsum(weights) / weights.sum()
    position = (values - values[0]) / (values[-1] - values[0])
    cell = np.minimum((share + position) * 0.5 * limit, limit - 1).astype(np.intp)
    return _merged(values, weights, np.diff(cell) > 0)


def _merged(values: Array, weights: Array, is_border: NDArray[np.bool_]) -> tuple[Array, Array]:
    splits = np.flatnonzero(is_border) + 1
    return segment_means(values, weights, splits), np.add.reduceat(weights, np.concatenate([[0], splits]))


def density_grid(low: float, high: float, density: Function, cells: int) -> tuple[Array, Array, Array]:
    """A grid of `density_edges`: the lower edges of its cells, their midpoints, and `cell_weights`."""
    edges = density_edges(low, high, [density], cells)
    middles: Array = (edges[1:] + edges[:-1]) / 2
    return edges[:-1], middles, cell_weights(density, edges)


def cell_weights(density: Function, edges: Array) -> Array:
    """The density at the midpoints of cells times their widths; raises ValueError where all are 0."""
    weights: Array = density((edges[1:] + edges[:-1]) / 2) * np.diff(edges)
    if not weights.sum() > 0:
        raise ValueError(f"density: expected numbers above 0 in ({edges[0]:g}, {edges[-1]:g}), got 0 everywhere")
    return weights


def density_edges(low: float, high: float, densities: Sequence[Function], cells: int) -> Array:
    """The edges of a grid, one more than cells. Each cell's share is an equal mix of its width and of each density."""
    fine = np.linspace(low, high, 64 * cells + 1)
    share = (fine - low) / (high - low)
    for density in densities:
        part = np.concatenate([[0.0], np.cumsum(density((fine[1:] + fine[:-1]) / 2))])
        share += part / part[-1] if part[-1] > 0 else 0
    edges: Array = np.interp(np.linspace(0, share[-1], cells + 1), share, fine)
    return edges


def sampled(name: str, function: Any) -> Function:
    """The function `name`, with its results checked."""
    if not callable(function):
        raise wrong_type(name, "a function of arrays", function)

    def checked(x: Array) -> Array:
        y = checked_reals(f"{name}(x)", function(x))
        if y.shape != x.shape:
            raise ValueError(f"{name}(x): expected shape {x.shape}, got {y.shape}")
        if name == "density" and (y < 0).any():
            raise ValueError(f"density(x): expected numbers of at least 0, got {y.min()}")
        return y

    return checked


def checked_domain(domain: Any) -> tuple[float, float]:
    """The ends of a domain as floats."""
    ends = checked_numbers("domain", domain) if np.size(domain) == 2 else (0.0, 0.0)
    if not ends[0] < ends[1]:
        raise wrong_value("domain", "two numbers, the lower one first", domain)
    return ends[0], ends[1]


def normal_density(x: Array) -> Array:
    """The density of the standard normal distribution."""
    density: Array = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    return density
