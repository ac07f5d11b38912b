"""Plots of runs: accuracy against bits, and what the structures' values look like."""

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from arrcomp._files.replacing import replacing

_BINS, _SIGMAS = 101, 5.0
_BLUE, _RED = "#1f5fa8", "#d1495b"


def draw_rates(path: Path, title: str, metric: str, settings: Mapping[str, tuple[float, Sequence[float]]]) -> None:
    """Write a PNG file of a metric against bits: of each setting the mean of its seeds between their extremes.

    Args:
        path: of the file.
        title: of the picture.
        metric: its name.
        settings: bits and the metric of each seed, by the setting's name.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    figure = _figure(7.5, 5)
    panel = figure.subplots()
    ordered = sorted(settings.items(), key=lambda setting: setting[1][0])
    for number, (name, (bits, values)) in enumerate(ordered):
        mean = statistics.fmean(values)
        span = [[mean - min(values)], [max(values) - mean]]
        panel.errorbar(bits, mean, span, fmt="o", capsize=4, color=f"C{number % 10}", label=name)
    panel.set_xscale("log", base=2)
    powers = range(1, 6)
    panel.set_xticks([2**power for power in powers], [str(2**power) for power in powers])
    panel.set_xlim(2, 40)
    panel.set_xlabel("bits that 32 bits of the structures take")
    panel.set_ylabel(f"{metric}, mean and range of the seeds")
    panel.set_title(title)
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    _save(figure, path)


def draw_histograms(path: Path, title: str, samples: Mapping[str, Tensor]) -> None:
    """Write a PNG file of the values of each structure's largest tensor, with the normal curve of their moments.

    Args:
        path: of the file.
        title: of the picture.
        samples: values by structure.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file cannot be written.
        ValueError: there are no finite values.
    """
    arrays = {name: x.double().numpy() for name, x in samples.items()}
    arrays = {name: x[np.isfinite(x)] for name, x in arrays.items() if np.isfinite(x).any()}
    if not arrays:
        raise ValueError("samples: one structure at least with finite values is needed")
    columns = min(len(arrays), 3)
    figure = _figure(4.6 * columns, 3.6 * math.ceil(len(arrays) / columns))
    panels = figure.subplots(math.ceil(len(arrays) / columns), columns, squeeze=False).ravel()
    for panel, (name, x) in zip(panels, arrays.items(), strict=False):
        _draw_histogram(panel, name, x)
    for panel in panels[len(arrays) :]:
        panel.set_axis_off()
    figure.suptitle(f"{title}; the line is normal, of the same mean and deviation")
    _save(figure, path)


def _draw_histogram(panel: Any, name: str, x: Any) -> None:
    mean, std = float(x.mean()), float(x.std())
    width = _SIGMAS * std or 1.0
    edges = np.linspace(mean - width, mean + width, _BINS + 1)
    counts, _ = np.histogram(x, edges)
    share = counts / x.size
    panel.stairs(share, edges, fill=True, color=_BLUE, alpha=0.5)
    if std > 0:
        centres = (edges[1:] + edges[:-1]) / 2
        density = np.exp(-0.5 * ((centres - mean) / std) ** 2) / (std * math.sqrt(2 * math.pi))
        panel.plot(centres, density * (edges[1] - edges[0]), color=_RED, linewidth=1.3)
    outside, zeros = 1 - share.sum(), float((x == 0).mean())
    panel.set_title(f"{name}\nzeros {zeros:.1%}, beyond {_SIGMAS:.0f} sigma {outside:.2%}", fontsize=9)
    panel.set_yscale("log")
    panel.set_ylim(bottom=0.5 / x.size, top=1.5)
    panel.tick_params(labelsize=8)
    panel.ticklabel_format(axis="x", style="sci", scilimits=(-2, 3))


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError(f"plots need matplotlib ({missing}): pip install arrcomp[plot]") from None
    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, path: Path) -> None:
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
