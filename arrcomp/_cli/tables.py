"""The command line's tables."""

import io
import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..codecs import Codec, available_codecs
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
        titled = zip(table.columns[1:], texts[1:], strict=True)
        lines = [Text(f"  {column.header}: ") + text for column, text in titled if text]
        paragraphs.append(Text("\n", style=row.style or "").join([texts[0], *lines]))
    paragraphs += [Text(str(table.caption))] if table.caption else []
    return Text("\n\n").join(paragraphs)


def measurements_table(rows: Sequence[Measurement], *, summary: bool = True, short: bool = True) -> Table:
    """Ratio, largest error and speed of each array, with `summary` also the total. `short` shows few arrays."""
    figures, framed = _figures(rows), any(row.framed for row in rows)
    titles = ["array", "dtype", "shape", "codec", *(["frame"] if framed else [])]
    table = new_table(titles, list(figures))
    hidden = max(len(rows) - MAX_ROWS, 0) if summary and short else 0
    order = sorted(range(len(rows)), key=lambda number: -rows[number].spec.nbytes)
    for row in (rows[number] for number in sorted(order[: len(rows) - hidden])):
        broken = row.comparison is not None and not row.comparison.holds
        table.add_row(*_describe(row, framed), *_figures([row]).values(), style="red" if broken else None)
    if summary and len(rows) > 1:
        note = f" ({hidden} smaller ones not shown)" if hidden else ""
        table.add_section()
        table.add_row(f"{len(rows)} arrays{note}", *[""] * (len(titles) - 1), *figures.values())
    return table


def measurements_document(rows: Sequence[Measurement]) -> dict[str, Any]:
    """The same for JSON, with all arrays, and with seconds in place of speeds."""
    arrays = []
    for row in rows:
        spec, frame = row.spec, _FRAME if row.framed else None
        described = {"name": row.name, "dtype": spec.dtype.name, "shape": list(spec.shape)}
        arrays.append(described | {"codec": spec.codec.config(), "frame": frame} | _numbers([row]))
    return {"arrays": arrays, "total": _numbers(rows)}


def codecs_table() -> Table:
    """All codecs, with their guarantees and dtypes."""
    table = new_table(["codec", "guarantee", "dtypes", "example"], [])
    for codec in available_codecs().values():
        dtypes, example = ", ".join(codec.dtypes or ("all",)), Text(repr(codec.examples()[0]))
        table.add_row(codec.name, _guarantee(codec), dtypes, example)
    return table


def codecs_document() -> dict[str, Any]:
    """The same for JSON."""
    rows = []
    for codec in available_codecs().values():
        dtypes, example = list(codec.dtypes) if codec.dtypes else None, codec.examples()[0].config()
        rows.append({"name": codec.name, "guarantee": _guarantee(codec), "dtypes": dtypes, "example": example})
    return {"codecs": rows}


def _guarantee(codec: type[Codec]) -> str:
    return (codec.__doc__ or "").partition("\n")[0]


def new_table(texts: Sequence[str], numbers: Sequence[str]) -> Table:
    """A table with these columns of text, and of numbers."""
    table = Table()
    for title in texts:
        table.add_column(title, overflow="fold")
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _describe(row: Measurement, framed: bool) -> list[Text]:
    """Cells that describe an array; with `framed` also one for its frame. Names may look like Rich's markup."""
    config = row.spec.codec.config()
    parameters = [f"{key}={value}" for key, value in config.items() if key != "codec" and value != "default"]
    texts = [row.name, row.spec.dtype.name, shown_shape(row.spec.shape), " ".join([config["codec"], *parameters])]
    return [Text(text) for text in (*texts, *([_FRAME if row.framed else ""] if framed else []))]


def shown_shape(shape: Sequence[int]) -> str:
    """A shape for people."""
    return " x ".join(map(str, shape)) or "scalar"


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
