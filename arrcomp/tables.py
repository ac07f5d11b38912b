"""The command line's tables."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .codecs import Codec, codecs
from .compressed import Compressed
from .measure import Measurement

_MAX_ROWS = 40  # of the largest arrays; the others are counted in the last row alone
_DESCRIPTION = ["array", "dtype", "shape", "codec"]
_PLAIN_WIDTH = 180  # of output that is no terminal


def print_table(table: Table) -> None:
    """Write a table to standard output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH)
    console.print(table)


def measurements_table(rows: Sequence[Measurement], *, summary: bool = True) -> Table:
    """Ratio, largest error and speed of each array; with `summary` of the largest ones, and of all together."""
    figures = _figures(rows)
    table = _table(_DESCRIPTION, list(figures))
    hidden = max(len(rows) - _MAX_ROWS, 0) if summary else 0
    order = sorted(range(len(rows)), key=lambda number: -rows[number].source_nbytes)
    for row in (rows[number] for number in sorted(order[: len(rows) - hidden])):
        table.add_row(*_describe(row.name, row.compressed), *_figures([row]).values(), style=_style(row))
    if summary and len(rows) > 1:
        note = f" ({hidden} smaller ones not shown)" if hidden else ""
        table.add_section()
        table.add_row(f"{len(rows)} arrays{note}", "", "", "", *figures.values())
    return table


def compressed_table(items: Sequence[tuple[str, Compressed]]) -> Table:
    """What a file of compressed arrays holds."""
    table = _table(_DESCRIPTION, ["bytes", "compressed", "ratio"])
    before = [math.prod(c.shape) * c.dtype.itemsize for _, c in items]
    for (name, c), nbytes in zip(items, before, strict=True):
        table.add_row(*_describe(name, c), f"{nbytes:,}", f"{c.nbytes:,}", f"{c.ratio:.3f}")
    if len(items) > 1:
        after = sum(c.nbytes for _, c in items)
        figures = (f"{sum(before):,}", f"{after:,}", f"{sum(before) / after:.3f}")
        table.add_section()
        table.add_row(f"{len(items)} arrays", "", "", "", *figures)
    return table


def codecs_table() -> Table:
    """All codecs, with what they promise and take."""
    table = _table(["codec", "promise", "dtypes", "example"], [])
    for name, codec in codecs().items():
        promise = (codec.__doc__ or "").partition("\n")[0]
        table.add_row(name, promise, ", ".join(codec.dtypes or ("all",)), Text(repr(codec.examples()[0])))
    return table


def _table(texts: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table()
    for title in texts:
        table.add_column(title, overflow="fold")
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _describe(name: str, c: Compressed) -> tuple[Text, ...]:
    # Text, as names may hold what Rich takes for markup.
    return Text(name), Text(c.dtype.name), Text(" x ".join(map(str, c.shape)) or "scalar"), Text(_codec(c.codec))


def _codec(codec: Codec) -> str:
    parameters = [f"{key}={value}" for key, value in codec.config().items() if key != "codec" and value != "default"]
    return " ".join([codec.name, *parameters])


def _figures(rows: Sequence[Measurement]) -> dict[str, str]:
    """Title and text of each column of numbers, of those that were measured."""
    before = sum(row.source_nbytes for row in rows)
    after = sum(row.compressed.nbytes for row in rows)
    figures = {"bytes": f"{before:,}", "compressed": f"{after:,}", "ratio": f"{before / after:.3f}"}
    errors = [row.comparison.largest_error for row in rows if row.comparison is not None]
    if errors:
        figures["largest error"] = f"{max(errors):.3g}"
    encode = [row.encode_seconds for row in rows if row.encode_seconds is not None]
    decode = [row.decode_seconds for row in rows if row.decode_seconds is not None]
    for title, seconds in (("encode", encode), ("decode", decode)):
        if seconds:
            figures[title] = f"{before / max(sum(seconds), 1e-9) / 1e9:.3g} GB/s"
    return figures


def _style(row: Measurement) -> str | None:
    return "red" if row.comparison is not None and not row.comparison.holds else None
