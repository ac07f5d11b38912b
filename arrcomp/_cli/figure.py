"""The plot of `arrcomp plot`: distributions of values, and bits a value against errors."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._api.compress import compress
from .._api.compressed import decompress
from ..codecs import Codec, ErrorBounded, Lossless, available_codecs
from .difference import Tolerance, difference
from .measure import Array
from .slices import Slice
from .words import codec_text

_SAMPLE, _RANGES = 1 << 20, 32
_BOUNDS = 2.0 ** np.arange(-20, 2.5, 0.5)  # relative to the root mean square of the values
_BINS = 200
_HEIGHT, _SLICE_HEIGHT = 7.8, 4.8  # of the figure's parts, in inches
_LONGEST = 4  # times as long as wide: a slice that is longer is squeezed
_BEYOND = 1e-4  # share of the values at each end that may be outside the histogram
_BLUE, _LIGHT_BLUE, _GREY = "#1f5fa8", "#7fb2e5", "#888888"
_COLOURS = ("#d1495b", "#2a9d57", "#e08e1b", "#7b4bb3", "#3a9fb0", "#8c5a3c", "#c25b9e")
_MARKERS = "osD^vPX*"


class Point(NamedTuple):
    """The result of a codec on an array."""

    codec: Codec
    bits: float  # a value, of the whole stream
    largest: float  # error
    typical: float  # root mean square error


def sample(x: Array) -> Array:
    """About a million finite values of an array at most, in evenly spaced ranges of it."""
    flat = x.reshape(-1)
    if flat.size > _SAMPLE:
        length = _SAMPLE // _RANGES
        starts = np.linspace(0, flat.size - length, _RANGES).astype(np.int64)
        flat = np.concatenate([flat[start : start + length] for start in starts])
    return flat[np.isfinite(flat)]


def bounded_points(x: Array, speed: str, threads: int | None) -> list[Point]:
    """Results of error-bounded compression at many bounds."""
    largest = float(np.abs(x).max()) or 1.0
    scale = largest * float(np.sqrt(np.mean(np.square(x.astype(np.float64) / largest)))) or 1.0
    bounds = [float(bound) * scale for bound in _BOUNDS]
    usable = [bound for bound in bounds if 0 < bound < math.inf]
    return [_point(x, ErrorBounded(abs=bound, speed=speed), threads) for bound in usable]  # type: ignore[arg-type]


def other_points(x: Array, threads: int | None) -> list[Point]:
    """Results of the examples of all codecs that quantize buckets."""
    families = {number: family for number, _, family, _ in _core.codec_table()}
    kinds = [kind for kind in available_codecs().values() if families[kind.id] == "bucketed"]
    return [_point(x, codec, threads) for kind in kinds for codec in kind.examples() if codec.takes_numpy(x.dtype)]


def draw(
    path: Path, title: str, arrays: Mapping[str, Array], x: Array, threads: int | None, shown: Slice | None = None
) -> None:
    """Write a PNG file with the distributions of these arrays of finite values, the rates of `x`, and a slice."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError(f"a plot needs matplotlib ({missing}): pip install arrcomp[plot]") from None
    figure = Figure(figsize=(15, _HEIGHT if shown is None else _HEIGHT + _SLICE_HEIGHT), layout="constrained")
    upper: Any = figure
    if shown is not None:
        parts: Any = figure.subfigures(2, 1, height_ratios=(_HEIGHT, _SLICE_HEIGHT))
        upper = parts[0]
        _draw_slice(parts[1], shown)
    left, middle, right = upper.subplots(1, 3)
    figure.suptitle(_plain(title))
    _draw_histograms(left, arrays)
    curves = {speed: bounded_points(x, speed, threads) for speed in ("default", "fast")}
    others, lossless = other_points(x, threads), _point(x, Lossless(), threads)
    for panel, error, label in ((middle, "largest", "largest error"), (right, "typical", "root mean square error")):
        _draw_rates(panel, error, curves, others, lossless.bits)
        panel.set_xlabel(label)
        panel.set_title(f"rate against {label}")
    handles, labels = middle.get_legend_handles_labels()
    upper.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the font may lack characters of a name
        figure.savefig(path, format="png", dpi=110)


def _point(x: Array, codec: Codec, threads: int | None) -> Point:
    compressed = compress(x, codec, threads=threads, seed=0)
    found = difference(x, decompress(compressed, threads=threads), Tolerance())
    typical = math.sqrt(found.squared_error / x.size)
    return Point(codec, 8 * compressed.nbytes / x.size, found.largest_error, typical)


def _draw_histograms(panel: Any, arrays: Mapping[str, Array]) -> None:
    edges = _edges(arrays)
    outside = 0
    for number, (name, x) in enumerate(arrays.items()):
        counts, _ = np.histogram(x.astype(np.float64), edges)
        outside += x.size - int(counts.sum())
        share = np.where(counts, counts / x.size, np.nan)
        colour = (_BLUE, *_COLOURS)[number % (1 + len(_COLOURS))]
        width, order = 1 if number else 2, 3 - number / 100
        panel.stairs(share, edges, label=_short(name), color=colour, linewidth=width, zorder=order)
    panel.set_yscale("log")
    panel.set_xlabel("value" + (f" ({outside:,} outliers are not shown)" if outside else ""))
    panel.set_ylabel(f"share of an array's values in each of {_BINS} bins")
    panel.set_title("distribution of the values")
    low, high = panel.get_ylim()
    panel.set_ylim(low, high * (high / low) ** (0.045 * len(arrays)))  # space for the legend above the curves
    panel.legend(fontsize=8, loc="upper center", frameon=False)
    _tidy(panel)


def _edges(arrays: Mapping[str, Array]) -> Array:
    """The bins' edges, from the least to the largest value, without a few outliers."""
    ends = [np.quantile(x.astype(np.float64), [_BEYOND, 1 - _BEYOND]) for x in arrays.values()]
    low, high = min(float(end[0]) for end in ends), max(float(end[1]) for end in ends)
    margin = (high - low) / 10 or abs(low) / 2 or 0.5
    return np.linspace(low - margin, high + margin, _BINS + 1)


def _draw_slice(figure: Any, shown: Slice) -> None:
    original, decoded, error = figure.subplots(1, 3)
    pictures = (
        (original, shown.original, "original", {"cmap": "viridis", "vmin": shown.low, "vmax": shown.high}),
        (decoded, shown.decoded, "decompressed", {"cmap": "viridis", "vmin": shown.low, "vmax": shown.high}),
        (error, shown.error, "error, in units of the bound", {"cmap": "RdBu_r", "vmin": -1, "vmax": 1}),
    )
    for panel, values, label, style in pictures:
        aspect = "equal" if max(values.shape) <= _LONGEST * min(values.shape) else "auto"
        image = panel.imshow(values, interpolation="nearest", aspect=aspect, **style)
        figure.colorbar(image, ax=panel, shrink=0.9)
        panel.set_title(label)
        panel.set_facecolor(_GREY)  # behind values that are missing
    figure.suptitle(_plain(shown.title), fontsize=11)


def _draw_rates(
    panel: Any, error: str, curves: Mapping[str, Sequence[Point]], others: Sequence[Point], lossless: float
) -> None:
    drawn = 0
    for (speed, points), colour in zip(curves.items(), (_BLUE, _LIGHT_BLUE), strict=True):
        label = "error-bounded abs=..." + ("" if speed == "default" else f" speed={speed}")
        shown = [(getattr(point, error), point.bits) for point in points if 0 < getattr(point, error) < math.inf]
        panel.plot(*np.reshape(shown, (-1, 2)).T, "-", color=colour, label=label, linewidth=2)
        drawn += len(shown)
    for point, (colour, marker) in zip(others, _styles(others), strict=True):
        value = getattr(point, error)
        if 0 < value < math.inf:
            label = f"{codec_text(point.codec)}, {point.bits:.1f} bits"
            panel.plot(value, point.bits, marker, color=colour, label=label, markersize=7)
            drawn += 1
    panel.axhline(lossless, color=_GREY, linestyle=":", linewidth=1.2, label=f"lossless, {lossless:.1f} bits")
    if drawn:
        panel.set_xscale("log")
    panel.set_ylim(0, lossless * 1.08)
    panel.set_ylabel("bits for each value")
    _tidy(panel)


def _styles(points: Sequence[Point]) -> Iterator[tuple[str, str]]:
    """A colour for each codec class, and a marker for each codec of a class."""
    seen: dict[str, int] = {}
    for point in points:
        name = point.codec.name
        seen[name] = seen.get(name, -1) + 1
        yield _COLOURS[list(seen).index(name) % len(_COLOURS)], _MARKERS[seen[name] % len(_MARKERS)]


def _short(name: str) -> str:
    # Matplotlib omits names that begin with an underscore from legends.
    return " " + _plain(name if len(name) <= 40 else f"{name[:18]}...{name[-19:]}")


def _plain(text: str) -> str:
    """The text without formulas for Matplotlib."""
    return text.replace("$", r"\$")


def _tidy(panel: Any) -> None:
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
