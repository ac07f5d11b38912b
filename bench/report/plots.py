"""The pictures of the results: ratio against speed, and time against size, threads and number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import Bbox

from measure import Result
from scaling import COPY, WAYS

# Okabe and Ito's colours, which people with any colour vision tell apart.
_OURS, _PEERS, _COPY = "#0072B2", "#D55E00", "#555555"
# Offsets in points and alignments of a label, the best first.
_PLACES = [
    (dx, dy, "left" if dx > 0 else "right" if dx < 0 else "center")
    for step in (7, 13, 20, 28, 38, 50)
    for dx, dy in (
        (step, 0),
        (-step, 0),
        (0, step),
        (0, -step),
        (step, step),
        (step, -step),
        (-step, step),
        (-step, -step),
    )
]
_SPEEDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_RATIOS = (1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 10, 15, 20, 30, 50, 100)

Row = tuple[str, Sequence[Result]]


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw a row of panels, encoding and decoding, for each heading and its results, and save it as PNG."""
    figure, axes = plt.subplots(len(rows), 2, figsize=(13, 5.2 * len(rows)), squeeze=False, layout="constrained")
    for (heading, results), pair in zip(rows, axes, strict=True):
        for panel, direction in zip(pair, ("encode", "decode"), strict=True):
            shown = [result for result in results if result.failure is None]
            _draw(panel, shown, direction)
            panel.set_title(f"{heading}: {direction}", loc="left", fontsize=11)
    figure.suptitle(
        "Ratio against speed, one thread: above and to the right is better; V, hollow: breaks the bound",
        x=0.01,
        ha="left",
        fontsize=13,
    )
    figure.draw_without_rendering()  # places the panels; labels are fitted into them
    figure.set_layout_engine("none")
    for panel in axes.flat:
        _label(panel)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_one(row: Row, path: Path) -> None:
    """Draw one panel, encoding, of a heading and its results, and save it as PNG."""
    heading, results = row
    figure, panel = plt.subplots(figsize=(8.2, 4.4), layout="constrained")
    _draw(panel, [result for result in results if result.failure is None], "encode")
    panel.set_title(f"{heading}: above and to the right is better", loc="left", fontsize=11)
    panel.set(xlabel="encoding on one thread, GB/s (hollow, V: the bound is broken)", ylabel="times smaller")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    _label(panel)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_scaling(found: Mapping[str, Any], path: Path) -> None:
    """Draw what scaling.py measured, encoding above and decoding below, and save it as PNG."""
    figure, axes = plt.subplots(2, 3, figsize=(15, 8.5), layout="constrained")
    panels = (("sizes", "bytes of the array"), ("threads", "threads"), ("number", "arrays of 64 KiB"))
    for line, way in zip(axes, WAYS, strict=True):
        for panel, (key, label) in zip(line, panels, strict=True):
            for name, seconds in found[key].items():
                x = [1 << int(size) if key == "sizes" else int(size) for size in seconds[way]]
                style = {"color": _COPY, "linestyle": ":"} if name == COPY else {"marker": "o", "markersize": 4}
                panel.plot(x, list(seconds[way].values()), label=name, **style)
            panel.set(xscale="log", yscale="log", xlabel=label, ylabel=f"seconds to {way}")
            _plain_axes(panel)
        counts = [int(count) for count in next(iter(found["threads"].values()))[way]]
        line[1].xaxis.set_major_locator(FixedLocator(counts))
        line[1].xaxis.set_minor_locator(NullLocator())
        line[1].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes[0, 0].legend(frameon=False)
    figure.suptitle("One thread, but for the middle; straight lines: time grows as the work does", x=0.01, ha="left")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _plain_axes(panel: Axes) -> None:
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _draw(panel: Axes, results: Sequence[Result], direction: str) -> None:
    panel.set(xscale="log", yscale="log", xlabel="GB/s of the uncompressed array", ylabel="ratio")
    for result in results:
        ours = result.compressor.startswith("arrcomp")
        colour = _OURS if ours else _PEERS
        face = "white" if result.broken else colour
        marker, size = ("o", 9) if ours else ("s", 6)
        panel.plot(
            getattr(result, direction), result.ratio, marker, color=colour, markerfacecolor=face, markersize=size,
            label=result.compressor + (" (V)" if result.broken else ""),
        )  # fmt: skip
    copy = sorted(result.copy for result in results)[len(results) // 2]
    panel.axvline(copy, color=_COPY, linestyle=":", linewidth=1)
    panel.text(copy, 0.02, "memory copy ", color=_COPY, ha="right", transform=panel.get_xaxis_transform(), fontsize=9)
    panel.set_xlim(min(getattr(result, direction) for result in results) / 1.6, copy * 1.25)
    low, high = min(result.ratio for result in results), max(result.ratio for result in results)
    margin = (high / low) ** 0.12
    panel.set_ylim(low / margin, high * margin)
    for axis, ticks in ((panel.xaxis, _SPEEDS), (panel.yaxis, _RATIOS)):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _plain_axes(panel)


def _label(panel: Axes) -> None:
    """Write each point's name beside it, where it covers neither a point nor another label."""
    renderer = panel.figure.canvas.get_renderer()
    points = [line for line in panel.get_lines() if not line.get_label().startswith("_")]
    taken = [_around(panel, line) for line in points]
    taken += [line.get_window_extent(renderer).padded(1) for line in panel.get_lines() if line not in points]
    taken += [text.get_window_extent(renderer) for text in panel.texts]
    for line in points:
        x, y = line.get_xdata()[0], line.get_ydata()[0]
        weight = "bold" if line.get_label().startswith("arrcomp") else "normal"
        text = panel.annotate(
            line.get_label(), (x, y), (0, 0), textcoords="offset points", va="center", fontsize=9.5, weight=weight,
            color=line.get_color(), arrowprops={"arrowstyle": "-", "color": line.get_color(), "lw": 0.5, "alpha": 0.6},
        )  # fmt: skip
        for dx, dy, alignment in _PLACES:
            text.set_position((dx, dy))
            text.set_horizontalalignment(alignment)
            text.update_positions(renderer)
            text.update_positions(renderer)
            box = mpl.text.Text.get_window_extent(text, renderer).padded(3)
            if panel.bbox.containsx(box.x0) and panel.bbox.containsx(box.x1) and not box.count_overlaps(taken):
                break
        taken.append(box)


def _around(panel: Axes, line: mpl.lines.Line2D) -> Bbox:
    x, y = panel.transData.transform((line.get_xdata()[0], line.get_ydata()[0]))
    half = line.get_markersize() * panel.figure.dpi / 72 / 2 + 1
    return Bbox.from_extents(x - half, y - half, x + half, y + half)
