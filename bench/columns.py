"""Compares arrays by columns with other orders and compressors; writes columns.csv and COLUMNS.md.

pip install -r bench/requirements.txt scikit-image
python bench/columns.py            every array: two minutes
python bench/columns.py --redraw   measures nothing: the page again, from columns.csv
python bench/columns.py --check    whether the page is what columns.csv gives
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from arrcomp._cli.demo_data import demo_arrays
from fields import Ours, speeds
from harness.page import Page, page_of_sections
from harness.section import Section
from peers import Array, Compressor, Kind, Payload

_RANGE = 1e-3  # the bound, as a share of an array's range
_ROWS = 1 << 17
_DEMO = ("pre_activations", "activations", "relu_mask", "token_counts")

Found = dict[str, Any]
Arrays = Iterator[tuple[str, str, Array]]


# The arrays


def tables(quick: bool = False) -> Arrays:
    """Names, descriptions and values of tables, which are made here: a column for each property."""
    rows = _ROWS // 32 if quick else _ROWS
    rng = np.random.default_rng(1)
    about = "time, temperature, pressure, price, count, share, flag, walk"
    yield "a table", about, _readings(rng, rows)
    yield "a table in float32", "the same", _readings(rng, rows).astype(np.float32)
    yield "integers", "class, number below 1000, row, count, flag, word", _integers(rng, rows)
    yield "points", "x, y, z in m of a turning laser scanner, and intensity", _points(rng, rows)
    yield "movement", "three accelerations and three turns, at each time", _movement(rng, rows)


def _readings(rng: np.random.Generator, rows: int) -> Array:
    time = 1e9 + np.arange(rows) * 60.0
    temperature, pressure = rng.normal(20, 5, rows).round(1), rng.normal(1013, 8, rows).round(1)
    price, count = rng.lognormal(3, 1, rows).round(2), rng.integers(0, 100, rows)
    share, flag = rng.random(rows), rng.random(rows) < 0.1
    walk = np.cumsum(rng.normal(0, 1, rows)).round(3)
    return np.stack([time, temperature, pressure, price, count, share, flag, walk], axis=1)


def _integers(rng: np.random.Generator, rows: int) -> Array:
    numbers = [rng.integers(0, 10, rows), rng.integers(0, 1000, rows), np.arange(rows), rng.poisson(3, rows)]
    return np.stack([*numbers, rng.random(rows) < 0.5, rng.zipf(1.5, rows) % 100_000], axis=1).astype(np.int32)


def _points(rng: np.random.Generator, rows: int) -> Array:
    angle, noise = np.linspace(0, 100, rows), rng.normal(0, 0.02, (3, rows))
    axes = 50 * np.cos(angle) + noise[0], 50 * np.sin(angle) + noise[1], 1.7 + noise[2]
    return np.stack([*axes, rng.integers(0, 256, rows)], axis=1).astype(np.float32)


def _movement(rng: np.random.Generator, rows: int) -> Array:
    slow, fast = np.cumsum(rng.normal(0, 0.01, (rows, 3)), axis=0), rng.normal(0, 0.05, (rows, 3))
    return np.concatenate([slow, fast], axis=1).astype(np.float32)


def channels(quick: bool = False) -> Arrays:
    """The same of what has channels last: pictures, keys of attention; and activations of `arrcomp demo`."""
    from skimage import data

    rng = np.random.default_rng(2)
    picture = data.astronaut()[: 64 if quick else None].astype(np.float32) / 255
    mean, deviation = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
    yield "a picture", "less ImageNet's mean, by its deviation, of each channel", (picture - mean) / deviation
    heads, tokens = (2, 256) if quick else (8, 2048)
    scales, means = rng.lognormal(0, 1, (heads, 1, 128)), rng.normal(0, 2, (heads, 1, 128))
    keys = rng.normal(0, 1, (heads, tokens, 128)) * scales + means
    yield "keys", "head, token, channel; each channel another mean and range", keys.astype(np.float32)
    yield "keys in bfloat16", "the same", keys.astype(ml_dtypes.bfloat16)
    found = demo_arrays(steps=2) if quick else demo_arrays()
    for name in _DEMO:
        yield name.replace("_", " "), "of `arrcomp demo`", found[name]


# The compressors


class ByHand:
    """Another compressor, of the transposed array: all rows but the last axis."""

    def __init__(self, other: Compressor) -> None:
        self.name, self.kind, self._other = f"{other.name}, transposed", other.kind, other

    def supports(self, array: Array) -> bool:
        return self._other.supports(array)

    def compress(self, array: Array, bound: float) -> Payload:
        return self._other.compress(self._columns(array), bound)

    def decompress(self, payload: Payload, out: Array) -> Array:
        columns = self._other.decompress(payload, self._columns(out))
        out.reshape(-1, out.shape[-1])[...] = columns.reshape(out.shape[-1], -1).T
        return out

    @staticmethod
    def _columns(array: Array) -> Array:
        return np.ascontiguousarray(array.reshape(-1, array.shape[-1]).T)


def compressors(kind: Kind) -> list[Compressor]:
    """All of one kind."""
    from pysz import szAlgorithm

    from peers.blosc import Blosc
    from peers.pco import Pcodec, QuantizedPcodec
    from peers.sz3 import Sz3

    ours: list[Compressor] = [Ours(kind, predictor) for predictor in (None, "columns", "auto")]
    if kind == "lossless":
        return [*ours, Pcodec(), ByHand(Pcodec()), Blosc("zstd")]
    return [*ours, Sz3("SZ3", szAlgorithm.INTERP_LORENZO), QuantizedPcodec(), ByHand(QuantizedPcodec())]


# What is measured


def measured(kind: Kind, arrays: Callable[[bool], Arrays], quick: bool) -> Found:
    """By array its description, and by compressor what was measured."""
    found: Found = {}
    for name, about, x in arrays(quick):
        if kind == "bounded" and x.dtype not in (np.float32, np.float64):
            continue
        found[name] = {"description": f"{about}; {x.dtype}, {' x '.join(map(str, x.shape))}"}
        bound = _RANGE * float(np.ptp(x)) if kind == "bounded" else 0.0
        found[name] |= {each.name: _measured(each, x, bound) for each in compressors(kind) if each.supports(x)}
    return found


def _measured(compressor: Compressor, x: Array, bound: float) -> Found:
    payload = compressor.compress(x, bound)
    out = np.zeros_like(x)
    result: Found = {"ratio": x.nbytes / payload.nbytes}
    found = np.asarray(compressor.decompress(payload, out))
    kept = np.array_equal(found, x)
    if bound > 0:
        kept = bool(np.abs(found.astype(np.float64) - x.astype(np.float64)).max() <= bound)
    if not kept:
        result["broken"] = 1
    return result | speeds(compressor, x, bound, payload, out)


def _section(title: str, kind: Kind, arrays: Callable[[bool], Arrays]) -> Section:
    return Section(
        title,
        lambda quick: measured(kind, arrays, quick),
        lambda found: "",  # the page is written of all groups: report/columns.py
        levels=("subject", "method", "metric"),
        units={"encode": "GB/s", "decode": "GB/s"},
        versions=("arrcomp", "numpy", "pcodec", "blosc2", "pysz", "scikit-image"),
    )


def page() -> Page:
    """What is measured and written."""
    from report import columns as report

    made: dict[str, tuple[Kind, Callable[[bool], Arrays]]] = {
        "tables": ("lossless", tables),
        "channels": ("lossless", channels),
        "tables_bounded": ("bounded", tables),
        "channels_bounded": ("bounded", channels),
    }
    sections = {name: _section(report.TITLES[name], kind, arrays) for name, (kind, arrays) in made.items()}
    return page_of_sections(
        "columns", __doc__, sections, lambda document, folder: {folder / "COLUMNS.md": report.markdown(document)}
    )


if __name__ == "__main__":
    page().main()
