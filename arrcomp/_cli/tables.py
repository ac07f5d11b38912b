"""The command line's tables."""

import io
import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..codecs import Codec, available_codecs
from .choice import guarantee_of
from .measure import Measurement

MAX_ROWS = 40  # for the largest arrays; others are in the total alone
_FRAME = "zstd"  # the only kind
_LEAST_WIDTH = 80  # of a terminal with tables
_PLAIN_WIDTH = 180  # of output that is no terminal


def rendered(table: Table) -> str:
    """A table for standard output: with colours on a terminal, and as paragraphs on a narrow one."""
    screen = Console()
    pages = io.BytesIO()  # the caller writes to standard output, and handles its errors
    console = Console(
        file=io.TextIOWrapper(pages, screen.encoding, errors="backslashreplace", newline="\n", write_through=True),
        width=screen.width if screen.is_terminal else _PLAIN_WIDTH,
        force_terminal=screen.is_terminal,
    )
    narrow = console.width < _LEAST_WIDTH or table.__rich_measure__(console, console.options).minimum > console.width
    console.print(_paragraphs(table) if narrow else table, soft_wrap=narrow)
    return pages.getvalue().decode(screen.encoding)


def _paragraphs(table: Table) -> Text:
    """A table's rows as paragraphs, with a line for each cell that is not empty."""
    paragraphs = []
    for row, cells in zip(table.rows, zip(*(column.cells for column in table.columns), strict=True), strict=True):
        texts = [cell if isinstance(cell, Text) else Text(str(cell)) for cell in cells]
        lines = [
            Text(f"  {column.header}: ") + text
            for column, text in zip(table.columns[1:], texts[1:], strict=True)
            if text
        ]
        paragraphs.append(Text("\n", style=row.style or "").join([texts[0], *lines]))
    paragraphs += [Text(str(table.caption))] if table.caption else []
    return Text("\n\n").join(paragraphs)


def measurements_table(rows: Sequence[Measurement], *, summary: bool = True, short: bool = True) -> Table:
    """Ratio, largest error and speed of each array, with `summary` also the total. `short` shows few arrays.

    If an array is in a frame, there is a column for frames.
    """
    figures = _figures(rows)
    framed = any(row.framed for row in rows)
    titles = ["array", "dtype", "shape", "codec", *(["frame"] if framed else [])]
    table = new_table(titles, list(figures))
    hidden = max(len(rows) - MAX_ROWS, 0) if summary and short else 0
    order = sorted(range(len(rows)), key=lambda number: -rows[number].spec.nbytes)
    for row in (rows[number] for number in sorted(order[: len(rows) - hidden])):
        table.add_row(*_describe(row, framed), *_figures([row]).values(), style=_style(row))
    if summary and len(rows) > 1:
        note = f" ({hidden} smaller ones not shown)" if hidden else ""
        table.add_section()
        table.add_row(f"{len(rows)} arrays{note}", *[""] * (len(titles) - 1), *figures.values())
    return table


def measurements_document(rows: Sequence[Measurement]) -> dict[str, Any]:
    """The same for JSON, with all arrays, and with seconds in place of speeds."""
    arrays = [
        {
            "name": row.name,
            "dtype": row.spec.dtype.name,
            "shape": list(row.spec.shape),
            "codec": row.spec.codec.config(),
            "frame": _FRAME if row.framed else None,
        }
        | _numbers([row])
        for row in rows
    ]
    return {"arrays": arrays, "total": _numbers(rows)}


def codecs_table() -> Table:
    """All codecs, with their guarantees and dtypes."""
    table = new_table(["codec", "guarantee", "dtypes", "example"], [])
    for name, codec in available_codecs().items():
        table.add_row(name, guarantee_of(codec), ", ".join(codec.dtypes or ("all",)), Text(repr(codec.examples()[0])))
    return table


def codecs_document() -> dict[str, Any]:
    """The same for JSON."""
    return {
        "codecs": [
            {
                "name": name,
                "guarantee": guarantee_of(codec),
                "dtypes": list(codec.dtypes) if codec.dtypes else None,
                "example": codec.examples()[0].config(),
            }
            for name, codec in available_codecs().items()
        ]
    }


def new_table(texts: Sequence[str], numbers: Sequence[str]) -> Table:
    """A table with these columns of text, and of numbers."""
    table = Table()
    for title in texts:
        table.add_column(title, overflow="fold")
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _describe(row: Measurement, framed: bool) -> list[Text]:
    """Cells that describe an array; with `framed` also one for its frame."""
    # Text, as names may look like Rich's markup.
    shape = " x ".join(map(str, row.spec.shape)) or "scalar"
    texts = [row.name, row.spec.dtype.name, shape, _codec(row.spec.codec)]
    frame = [_FRAME if row.framed else ""] if framed else []
    return [Text(text) for text in texts + frame]


def _codec(codec: Codec) -> str:
    parameters = [f"{key}={value}" for key, value in codec.config().items() if key != "codec" and value != "default"]
    return " ".join([codec.name, *parameters])


def _numbers(rows: Sequence[Measurement]) -> dict[str, Any]:
    """The totals of measurements, by name."""
    before, after = sum(row.spec.nbytes for row in rows), sum(row.nbytes for row in rows)
    numbers: dict[str, Any] = {"bytes": before, "compressed": after, "ratio": before / after if after else None}
    comparisons = [row.comparison for row in rows if row.comparison is not None]
    if comparisons:
        numbers["largest_error"] = finite(max(comparison.largest_error for comparison in comparisons))
        numbers["violations"] = sum(comparison.violations for comparison in comparisons)
    for name in ("encode_seconds", "decode_seconds"):
        seconds = [getattr(row, name) for row in rows if getattr(row, name) is not None]
        if seconds:
            numbers[name] = sum(seconds)
    return numbers


def finite(number: float) -> float | None:
    """The number, or None if it is not finite, for JSON."""
    return number if math.isfinite(number) else None


def _figures(rows: Sequence[Measurement]) -> dict[str, str]:
    """Title and text of each column of numbers that were measured."""
    numbers = _numbers(rows)
    before, after, ratio = numbers["bytes"], numbers["compressed"], numbers["ratio"]
    figures = {"bytes": f"{before:,}", "compressed": f"{after:,}", "ratio": "" if ratio is None else f"{ratio:.3f}"}
    if "largest_error" in numbers:
        error = numbers["largest_error"]
        figures["largest error"] = "inf" if error is None else f"{error:.3g}"
    for title in ("encode", "decode"):
        if f"{title}_seconds" in numbers:
            figures[title] = f"{before / max(numbers[f'{title}_seconds'], 1e-9) / 1e9:.3g} GB/s"
    return figures


def _style(row: Measurement) -> str | None:
    return "red" if row.comparison is not None and not row.comparison.holds else None
