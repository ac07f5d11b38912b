"""The page of bench/columns.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness import conditions
from harness.page import markdown_of
from harness.tables import table

TITLES = {
    "tables": "Tables, without loss",
    "channels": "Channels, without loss",
    "tables_bounded": "Tables, within 1e-3 of the range",
    "channels_bounded": "Channels, within 1e-3 of the range",
}
_OURS = ("arrcomp", "arrcomp columns", "arrcomp auto")
_LOSSLESS = (*_OURS, "pcodec", "pcodec, transposed", "blosc2 zstd")
_BOUNDED = (*_OURS, "SZ3", "quantize + pcodec", "quantize + pcodec, transposed")

_HOW = """\
The heads name the `predictor`: none, "columns" and "auto". All compressors get an array in C order, as it is, on one
thread. "Transposed" is pcodec after NumPy has put the columns of the last axis one after the other, as a user would by
hand; the time of it counts. pcodec is at its default level, blosc2 has its bit shuffle and Zstandard at level 1, and
SZ3 gets the shape. Ratios are those of bytes, of all that is needed to read an array but its shape and dtype; the best
of a row is bold. V marks a broken bound. Speeds are in GB/s of the uncompressed array, the fastest of 5 calls. Tables
are made with NumPy, the picture is scikit-image's, and the other channels are of `arrcomp demo` or made with NumPy."""

Found = Mapping[str, Any]


def markdown(document: Mapping[str, Any]) -> str:
    """COLUMNS.md."""
    return markdown_of("columns", "Arrays by columns, measured", _sections(document))


def _sections(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, title in TITLES.items():
        if name in document:
            found, methods = document[name]["found"], methods_of(name)
            rows = [[array, of["description"], *_ratios(of, methods)] for array, of in found.items()]
            speeds = [[array, *(_speed(of, method) for method in methods)] for array, of in found.items()]
            heads = [f"<{head}" for head in ("array", "what")]
            yield title, f"{table([*heads, *methods], rows)}\n\n{table(['<encode / decode', *methods], speeds)}"
    yield "How it is measured", f"{_HOW}\n\n{conditions.said_of(document, TITLES)}"


def methods_of(name: str) -> tuple[str, ...]:
    """The compressors of a section."""
    return _BOUNDED if name.endswith("bounded") else _LOSSLESS


def _ratios(of: Found, methods: tuple[str, ...]) -> list[str]:
    best = max(of[method]["ratio"] for method in methods if method in of and "broken" not in of[method])
    return [_ratio(of[method], best) if method in of else "" for method in methods]


def _ratio(of: Found, best: float) -> str:
    text = f"{of['ratio']:.4g}" + " V" * ("broken" in of)
    return f"**{text}**" if of["ratio"] == best else text


def _speed(of: Found, method: str) -> str:
    return f"{of[method]['encode']:.2g} / {of[method]['decode']:.2g}" if method in of else ""
