"""The page of bench/integers.py."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from harness import conditions
from harness.page import markdown_of
from harness.tables import table

TITLES = {
    "columns": "Columns",
    "bytes": "Bytes",
    "words": "Words of a vocabulary",
    "labels": "Labels and masks",
    "volumes": "Volumes and grids",
    "pictures": "Pictures",
}
_METHODS = ("arrcomp", "arrcomp auto", "pcodec", "blosc2 zstd", "PNG")

_HOW = """\
"arrcomp" is `Lossless()`, "arrcomp auto" `Lossless(predictor="auto")`, both on one thread like the others. pcodec is at
its default level; blosc2 has its bit shuffle and Zstandard at level 1; PNG is as Pillow writes it, for pictures of 8
bits alone. Ratios are those of bytes, of all that is needed to read an array but its shape and dtype; the best of a row
is bold. All arrays came back bit for bit. Speeds are in GB/s of the uncompressed array, the fastest of 5 calls, of
arrays of 1 MiB and more. All but the pictures are made with NumPy. The pictures are those that come with
scikit-image."""

Found = Mapping[str, Any]


def markdown(document: Mapping[str, Any]) -> str:
    """INTEGERS.md."""
    return markdown_of("integers", "Integers without loss, measured", _sections(document))


def _sections(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, title in TITLES.items():
        if name in document:
            yield title, _table(document[name]["found"])
    speeds = [row for name in TITLES if name in document for row in _speeds(document[name]["found"])]
    if speeds:
        yield "Speed", table(["<encode / decode", *_METHODS], speeds)
    yield "How it is measured", f"{_HOW}\n\n{conditions.said_of(document, TITLES)}"


def _table(found: Found) -> str:
    rows = []
    for name, of in found.items():
        best = max(of[method]["ratio"] for method in _METHODS if method in of)
        ratios = [_ratio(of, method, best) for method in _METHODS]
        rows.append([name, of["description"], *ratios])
    means = [_mean([of[method]["ratio"] for of in found.values() if method in of], len(found)) for method in _METHODS]
    return table(["<array", "<what", *_METHODS], [*rows, ["geometric mean", "", *means]])


def _ratio(of: Found, method: str, best: float) -> str:
    if method not in of:
        return ""
    ratio = of[method]["ratio"]
    text = f"{ratio:.2f}" + " V" * ("broken" in of[method])
    return f"**{text}**" if ratio == best else text


def _mean(ratios: list[float], wanted: int) -> str:
    if len(ratios) < wanted:
        return ""
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}"


def _speeds(found: Found) -> Iterator[list[str]]:
    for name, of in found.items():
        if "encode" in of["arrcomp"]:
            yield [name, *(_speed(of[method]) if method in of else "" for method in _METHODS)]


def _speed(of: Found) -> str:
    return f"{of['encode']:.2g} / {of['decode']:.2g}"
