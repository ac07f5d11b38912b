"""The page and the pictures of bench/fields.py."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness import conditions
from harness.page import markdown_of
from harness.tables import table

_SOURCES = Path(__file__).parent.parent / "fields_sources.csv"
_GROUPS = {
    "made": "Fields that are made",
    "real": "Real fields",
    "aside": "Fields kept aside",
}
_BOUNDS = ("1e-02", "1e-03", "1e-04")
_LOSSLESS = "lossless"
_METHODS = ("arrcomp", "arrcomp auto", "arrcomp interpolation", "arrcomp lorenzo", "SZ3", "zfp", "fpzip", "pcodec")
_METHOD_HEADS = ("no predictor", "auto", "interpolation", "lorenzo", "SZ3", "zfp", "fpzip", "pcodec")
_AUTO, _SZ3 = "arrcomp auto", "SZ3"
_PEERS = {**dict.fromkeys(_BOUNDS, ("SZ3", "zfp")), _LOSSLESS: ("fpzip", "zfp", "pcodec")}
_HEADS = {"1e-02": "1e-2", "1e-03": "1e-3", "1e-04": "1e-4", _LOSSLESS: "lossless"}
_SAME = 0.95  # of a peer's ratio: what is above is not told apart
_RATIOS = (2, 3, 5, 7, 10, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000)
_QUOTIENTS = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3)
_COLOURS = {"1e-02": "#56B4E9", "1e-03": "#0072B2", "1e-04": "#D55E00"}
_STYLES = {
    "arrcomp auto": ("#0072B2", "o"),
    "arrcomp": ("#56B4E9", "o"),
    "SZ3": ("#D55E00", "s"),
    "zfp": ("#009E73", "^"),
}

_HOW = """\
Bounds are shares of the range of a field's finite values. A ratio is the bytes of the array by those of the whole
stream. SZ3 is pysz, with the one of its algorithms INTERP_LORENZO, LORENZO_REG and INTERP that takes the fewest bytes.
zfp is zfpy with a tolerance, or reversible. fpzip and pcodec keep every bit; pcodec sees a line of values. arrcomp
reads missing values (NaN) as they are. The others take none: for them a gap has the value before it on its line, and a
mask of the gaps, compressed by zlib, counts as theirs. They take four axes at most; of five, the first two are merged.
Speeds are of one thread, in GB/s of the array, the fastest of five calls, of arrays of 4 MiB and more. The machine is
small and shared: speeds vary from run to run by tens of percent, and ratios do not. V marks a broken bound."""

Results = Mapping[str, Any]  # by setting and compressor
Found = Mapping[str, Results]  # by field


def markdown(document: Mapping[str, Any]) -> str:
    """FIELDS.md."""
    return markdown_of("fields", "Fields, measured", _sections(document))


def _sections(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    groups = {name: document[name]["found"] for name in _GROUPS if name in document}
    yield "Ratios", _means(groups)
    yield "Ratio against the bound", "![Ratio against the bound](fields.png)"
    yield "Beside SZ3", f"{_beside(groups)}\n\n![Ratio by SZ3's ratio, of every field](fields_sz3.png)"
    yield "Speed", _speeds({name: of for found in groups.values() for name, of in found.items()})
    for name, found in groups.items():
        yield _GROUPS[name], _every_field(found)
    yield "Where the real fields come from", _sources({name for found in groups.values() for name in found})
    yield "How it is measured", f"{_HOW}\n\n{conditions.said_of(document, _GROUPS)}"


def _ratio(results: Results, setting: str, method: str) -> float:
    return float(results.get(setting, {}).get(method, {}).get("ratio", np.nan))


def _mean(found: Found, setting: str, method: str) -> float:
    """The geometric mean of a compressor's ratios."""
    return float(np.exp(np.nanmean([np.log(_ratio(results, setting, method)) for results in found.values()])))


def _by_sz3(results: Results, setting: str) -> float:
    return _ratio(results, setting, _AUTO) / _ratio(results, setting, _SZ3)


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:#.3g}".rstrip(".") if value < 1000 else f"{value:.0f}"


def _means(groups: Mapping[str, Found]) -> str:
    heads = ["<fields", "<bound", *_METHOD_HEADS]
    rows = []
    for group, found in groups.items():
        for setting, head in _HEADS.items():
            means = [_mean(found, setting, method) if _has(found, setting, method) else np.nan for method in _METHODS]
            rows.append([f"{_GROUPS[group]} ({len(found)})", head, *map(_number, means)])
    return f"Geometric means of the ratios:\n\n{table(heads, rows)}"


def _has(found: Found, setting: str, method: str) -> bool:
    return any(method in results.get(setting, {}) for results in found.values())


def _beside(groups: Mapping[str, Found]) -> str:
    rows = []
    for group, found in groups.items():
        for setting in _BOUNDS:
            quotients = {name: _by_sz3(results, setting) for name, results in found.items()}
            ahead = sorted((name for name in quotients if quotients[name] < _SAME), key=lambda name: quotients[name])
            shown = ", ".join(f"{name} {quotients[name]:.2f}" for name in ahead)
            mean = np.exp(np.mean(np.log(list(quotients.values()))))
            rows.append([_GROUPS[group], _HEADS[setting], f"{mean:.2f}", f"{len(ahead)} of {len(found)}", shown])
    heads = ["<fields", "<bound", "auto by SZ3, geometric mean", "fields below 0.95", "<these"]
    return f'The ratio of `predictor="auto"`, divided by that of SZ3:\n\n{table(heads, rows)}'


def _speeds(found: Found) -> str:
    heads = ["<field", "<bound", *_METHOD_HEADS]
    rows = []
    for name, results in found.items():
        for setting in ("1e-03", _LOSSLESS):
            cells = [_speed(results.get(setting, {}).get(method, {})) for method in _METHODS]
            if any(cells):
                rows.append([name, _HEADS[setting], *cells])
    return f"Encoding / decoding, GB/s on one thread:\n\n{table(heads, rows)}"


def _speed(result: Mapping[str, float]) -> str:
    return f"{result['encode']:#.2g} / {result['decode']:#.2g}" if "encode" in result else ""


def _every_field(found: Found) -> str:
    heads = ["<field", "<dtype, shape, size"]
    for setting, head in _HEADS.items():
        heads += [f"{head}: auto", *_PEERS[setting]]
    rows = [[name, results["description"], *_cells(results)] for name, results in found.items()]
    return f"Ratios; the largest of each bound is bold.\n\n{table(heads, rows)}"


def _cells(results: Results) -> Iterator[str]:
    for setting in _HEADS:
        methods = (_AUTO, *_PEERS[setting])
        best = np.nanmax([_ratio(results, setting, method) for method in methods])
        for method in methods:
            result = results.get(setting, {}).get(method, {})
            text = _number(_ratio(results, setting, method)) + (" V" if result.get("broken") else "")
            yield f"**{text}**" if text and _ratio(results, setting, method) == best else text


def _sources(names: set[str]) -> str:
    with _SOURCES.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["field"] in names]
    about = (
        "The real fields are example data of Python packages. Each was read with the package's own reader and stored "
        "as it is in memory, missing values as NaN. The table names the version, the file and the variable."
    )
    heads = ["<field", "<what", "<package", "<file", "<variable"]
    lines = [
        [row["field"], row["what"], f"{row['package']} {row['version']}", f"`{row['file']}`", row["variable"]]
        for row in rows
    ]
    return f"{textwrap.fill(about, 120)}\n\n{table(heads, lines)}"


def draw(document: Mapping[str, Any], folder: Path) -> None:
    """Write both pictures."""
    import matplotlib as mpl

    mpl.use("Agg")
    groups = {name: document[name]["found"] for name in _GROUPS if name in document}
    _draw_bounds(groups, folder / "fields.png")
    _draw_beside(groups, folder / "fields_sz3.png")


def _draw_bounds(groups: Mapping[str, Found], path: Path) -> None:
    import matplotlib.pyplot as plt

    panels: list[tuple[str, Found]] = [(name, {name: results}) for name, results in groups.get("made", {}).items()]
    real = groups.get("real")
    panels += [(f"geometric mean of {len(real)} real fields", real)] if real else []
    figure, axes = plt.subplots(1, len(panels), figsize=(3.4 * len(panels), 3.6), layout="constrained", squeeze=False)
    for panel, (title, found) in zip(axes.flat, panels, strict=True):
        for method, (colour, marker) in _STYLES.items():
            means = [_mean(found, setting, method) for setting in _BOUNDS]
            weight = 2.4 if method == _AUTO else 1.3
            panel.plot([float(b) for b in _BOUNDS], means, color=colour, marker=marker, linewidth=weight, label=method)
        panel.set(xscale="log", yscale="log", xlabel="bound, share of the range")
        panel.set_title(title, loc="left", fontsize=10)
        panel.invert_xaxis()
        _plain_numbers(panel.yaxis, _RATIOS)
        _tidy(panel)
    axes.flat[0].set_ylabel("times smaller")
    axes.flat[0].legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_beside(groups: Mapping[str, Found], path: Path) -> None:
    import matplotlib.pyplot as plt

    lines = [
        (f"{name}{' (aside)' if group == 'aside' else ''}", [_by_sz3(results, setting) for setting in _BOUNDS])
        for group, found in groups.items()
        for name, results in found.items()
    ]
    lines.sort(key=lambda line: float(np.mean(np.log(line[1]))))
    figure, panel = plt.subplots(figsize=(8.2, 1.2 + 0.2 * len(lines)), layout="constrained")
    for number, setting in enumerate(_BOUNDS):
        label = f"bound {_HEADS[setting]} of the range"
        quotients: Sequence[float] = [line[1][number] for line in lines]
        panel.plot(quotients, range(len(lines)), "o", color=_COLOURS[setting], label=label, markersize=5, alpha=0.85)
    panel.axvline(1, color="#555555", linewidth=1)
    panel.set_xscale("log")
    _plain_numbers(panel.xaxis, _QUOTIENTS)
    panel.set_yticks(range(len(lines)), [name for name, _ in lines], fontsize=8)
    panel.set_ylim(-0.7, len(lines) - 0.3)
    panel.set_xlabel("ratio of arrcomp, predictor auto, by the ratio of SZ3; right of 1, arrcomp takes fewer bytes")
    panel.legend(frameon=False, loc="lower right")
    _tidy(panel)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _plain_numbers(axis: Any, ticks: Sequence[float]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _tidy(panel: Any) -> None:
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
