"""Compares `Lossless` with and without a predictor on arrays of integers; writes integers.csv and INTEGERS.md.

pip install -r bench/requirements.txt scikit-image
python bench/integers.py            every array: a minute
python bench/integers.py --redraw   measures nothing: the page again, from integers.csv
python bench/integers.py --check    whether the page is what integers.csv gives
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fields import Ours, speeds
from harness.page import Page, page_of_sections
from harness.section import Section
from peers import Array, Compressor

PICTURES = (
    *("brick", "camera", "cell", "chelsea", "clock", "coffee", "coins", "colorwheel", "grass", "gravel"),
    *("hubble_deep_field", "immunohistochemistry", "moon", "page", "retina", "rocket", "astronaut"),
)
_TIMED_NBYTES = 1 << 20  # speeds of smaller arrays mean little
_SIZE = 1 << 20
# Of each in 1000 letters of English (R. Lewand, Cryptological Mathematics, 2000, appendix), with their spaces.
_LETTERS = " etaoinshrdlcumwfgypbvkjxqz"
_SHARES = (220, 127, 91, 82, 75, 70, 67, 63, 61, 60, 43, 40, 28, 28, 24, 24, 22, 20, 20, 19, 15, 10, 8, 2, 2, 1, 1)

Found = dict[str, Any]


# The arrays


def columns(quick: bool = False) -> Iterator[tuple[str, str, Array]]:
    """Names, descriptions and values of columns of tables, which are made here."""
    size = _SIZE // 64 if quick else _SIZE
    rng = np.random.default_rng(1)
    regular = np.arange(size) * 10_000_000
    yield "time stamps", "every 10 ms in ns, each up to 0.5 us late or early", regular + rng.integers(-500, 501, size)
    gaps = np.where(rng.random(size) < 1e-3, rng.integers(10**9, 10**12, size), 0)
    late = np.cumsum(10**6 + rng.integers(-100, 101, size) + gaps)
    yield "time stamps with gaps", "about every ms in ns, with one gap of minutes in a thousand", late
    yield "events", "in ms, the next one after 0 to 200 of them", np.cumsum(rng.integers(0, 201, size))
    yield "sorted numbers", "a fiftieth of those below 50 for each", np.sort(rng.choice(50 * size, size, replace=False))
    yield "offsets", "of rows of a sparse matrix, with 8 entries in the mean", np.cumsum(rng.poisson(8, size))
    walk = np.cumsum(rng.integers(-50, 51, size)).astype(np.int32)
    yield "a walk", "steps of up to 50 either way", walk


def single_bytes(quick: bool = False) -> Iterator[tuple[str, str, Array]]:
    """The same of elements that are a byte."""
    size = _SIZE // 64 if quick else _SIZE
    rng = np.random.default_rng(3)
    codes = rng.permutation(256).astype(np.uint8)
    shares = 1 / np.arange(1, 101) ** 1.3
    yield "categories", "100 codes, the r-th as frequent as r^-1.3", codes[_drawn(rng, shares, size)]
    letters = np.frombuffer(_LETTERS.encode(), np.uint8)
    yield "letters", "as frequent as in English, in any order", letters[_drawn(rng, np.array(_SHARES), size)]
    yield "bases", "A, C, G and T as letters", np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, size)]
    yield "a mask", "0 or 255, of which a third, anywhere", np.where(rng.random(size) < 1 / 3, 255, 0).astype(np.uint8)
    weights = rng.normal(size=(2, size))
    halves = np.clip(np.rint(2.5 * weights), -8, 7).astype(np.int8)
    yield "weights of 4 bits", "two in a byte", ((halves[0] + 8) << 4 | (halves[1] + 8)).astype(np.uint8)
    yield "weights of 8 bits", "a normal distribution", np.clip(np.rint(32 * weights[0]), -127, 127).astype(np.int8)


def _drawn(rng: np.random.Generator, shares: Array, size: int) -> Array:
    return rng.choice(len(shares), size, p=shares / shares.sum())


def words(quick: bool = False) -> Iterator[tuple[str, str, Array]]:
    """The same of indices of a vocabulary, as texts for language models are."""
    size = _SIZE // 64 if quick else _SIZE
    rng = np.random.default_rng(4)
    shares = 1 / np.arange(1, 50_001)
    tokens = _drawn(rng, shares, size)
    yield "tokens", "50,000 words, the r-th as frequent as 1 / r, in this order", tokens.astype(np.uint16)
    yield "tokens of 32 bits", "the same", tokens.astype(np.int32)
    yield "tokens in any order", "the same words", rng.permutation(len(shares)).astype(np.uint16)[tokens]


def labels(quick: bool = False) -> Iterator[tuple[str, str, Array]]:
    """The same of maps that name regions, and of masks."""
    side = 64 if quick else 512
    rng = np.random.default_rng(5)
    yield "regions", "the nearest of 60 points", _nearest(rng, (side, side), 60).astype(np.uint8)
    names = rng.integers(1, 2**40, 300, dtype=np.uint64)
    yield (
        "cells",
        "the nearest of 300 points, by names of 40 bits",
        names[_nearest(rng, (side // 8, *[side // 4] * 2), 300)],
    )
    heights = rng.normal(size=(side, side))
    for axis in (0, 1) * 3:
        heights = sum(np.roll(heights, i, axis) for i in range(-4, 5))
    levels = np.quantile(heights, np.linspace(0, 1, 7)[1:-1])
    yield "classes", "six ranges of smooth heights", np.digitize(heights, levels).astype(np.uint8)
    yield "a region", "the heights above their mean", heights > heights.mean()
    lengths = rng.integers(1, 200, side * side // 50)
    yield "runs", "one of 20 classes for 1 to 199 places", np.repeat(rng.integers(0, 20, lengths.size), lengths)


def _nearest(rng: np.random.Generator, shape: tuple[int, ...], points: int) -> Array:
    """By place, which of some points is the nearest."""
    nearest, least = np.zeros(shape, np.int32), np.full(shape, np.inf)
    axes = np.ogrid[tuple(slice(size) for size in shape)]
    for number, point in enumerate(rng.uniform(0, shape, (points, len(shape)))):
        distance = sum((axis - at) ** 2 for axis, at in zip(axes, point, strict=True))
        nearest[distance < least] = number
        least = np.minimum(least, distance)
    return nearest


def volumes(quick: bool = False) -> Iterator[tuple[str, str, Array]]:
    """The same of grids in two and three dimensions."""
    side = 24 if quick else 128
    rng = np.random.default_rng(2)
    z, y, x = np.meshgrid(*[np.linspace(0, 1, side)] * 3, indexing="ij")
    body = 1000 * np.exp(-9 * ((x - 0.5) ** 2 + (y - 0.45) ** 2)) + 40 * np.sin(25 * z)
    yield (
        "a scan",
        "a body and noise of 12, as of computed tomography",
        np.int16(body - 1000 + rng.normal(0, 12, x.shape)),
    )
    cells = 1500 * np.exp(-200 * (((6 * x) % 1 - 0.5) ** 2 + ((6 * y) % 1 - 0.5) ** 2) / 9)
    yield (
        "a microscope",
        "photons that were counted, 200 to 1700 in the mean",
        rng.poisson(200 + cells).astype(np.uint16),
    )
    heights = np.cumsum(np.cumsum(rng.normal(0, 1, (8 * side, 8 * side)), axis=0), axis=1)
    yield "heights", "sums along both axes", heights.astype(np.int16)


def pictures(quick: bool = False) -> Iterator[tuple[str, str, Array]]:
    """Pictures of scikit-image."""
    from skimage import data

    for name in PICTURES[:2] if quick else PICTURES:
        yield name, "", np.ascontiguousarray(getattr(data, name)())


# The compressors


def compressors() -> list[Compressor]:
    """All of them."""
    from peers.blosc import Blosc
    from peers.pco import Pcodec
    from peers.png import Png

    return [Ours("lossless", None), Ours("lossless", "auto"), Pcodec(), Blosc("zstd"), Png()]


# What is measured


def measured(arrays: Callable[[bool], Iterator[tuple[str, str, Array]]], quick: bool) -> Found:
    """By array its description, and by compressor what was measured."""
    found: Found = {}
    for name, about, x in arrays(quick):
        parts = [about] * bool(about) + [f"{x.dtype}, {' x '.join(map(str, x.shape))}"]
        found[name] = {"description": "; ".join(parts)}
        found[name] |= {each.name: _measured(each, x) for each in compressors() if each.supports(x)}
    return found


def _measured(compressor: Compressor, x: Array) -> Found:
    payload = compressor.compress(x, 0.0)
    out = np.zeros_like(x)
    result: Found = {"ratio": x.nbytes / payload.nbytes}
    if not np.array_equal(compressor.decompress(payload, out), x):
        result["broken"] = 1
    if x.nbytes >= _TIMED_NBYTES:
        result |= speeds(compressor, x, 0.0, payload, out)
    return result


def _section(title: str, arrays: Callable[[bool], Iterator[tuple[str, str, Array]]]) -> Section:
    return Section(
        title,
        lambda quick: measured(arrays, quick),
        lambda found: "",  # the page is written of all groups: report/integers.py
        levels=("subject", "method", "metric"),
        units={"encode": "GB/s", "decode": "GB/s"},
        versions=("arrcomp", "numpy", "pcodec", "blosc2", "pillow", "scikit-image"),
    )


def page() -> Page:
    """What is measured and written."""
    from report import integers as report

    made = {
        "columns": columns,
        "bytes": single_bytes,
        "words": words,
        "labels": labels,
        "volumes": volumes,
        "pictures": pictures,
    }
    sections = {name: _section(report.TITLES[name], arrays) for name, arrays in made.items()}
    return page_of_sections(
        "integers", __doc__, sections, lambda document, folder: {folder / "INTEGERS.md": report.markdown(document)}
    )


if __name__ == "__main__":
    page().main()
