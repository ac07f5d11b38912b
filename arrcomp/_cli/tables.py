"""Tables on terminals of any width. No word is broken, and names are always whole.

What does not fit is tried in turn: titles in several lines and prose wrapped at spaces; fewer columns, the least
important ones left out; a paragraph for each row.
"""

import io
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

_GAP = 2  # columns between two cells
_ALWAYS = 0


class Column(NamedTuple):
    """A column of a table."""

    title: str
    is_number: bool = False
    is_prose: bool = False  # may be wrapped at spaces
    rank: int = _ALWAYS  # of the columns that may be left out, those with the lowest rank stay longest


class Row(NamedTuple):
    """A row of a table."""

    cells: Sequence[str]
    style: str = ""


class Table(NamedTuple):
    """A table, whose first column has names."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    total: Row | None = None


def rendered(table: Table) -> str:
    """A table for standard output: with colours on a terminal, and in lines of any length in pipes and files."""
    screen = Console()
    pages = io.BytesIO()  # the caller writes to standard output, and handles its errors
    table, room = _without_empty_columns(table), _room(screen)
    chosen, widths, left_out = _layout(table, room)
    console = Console(
        file=io.TextIOWrapper(pages, screen.encoding, errors="backslashreplace", newline="\n", write_through=True),
        width=sum(widths) + _GAP * len(widths) if widths else room or 80,
        force_terminal=screen.is_terminal,
    )
    if widths:
        console.print(_drawn(table, chosen, widths))
    else:
        console.print(_paragraphs(table, room), soft_wrap=True)
    if left_out:
        console.print(f"Not shown at this width: {', '.join(left_out)}.", style="dim", soft_wrap=True)
    lines = pages.getvalue().decode(screen.encoding).split("\n")
    return "\n".join(line.rstrip(" ") for line in lines)


def _room(screen: Console) -> int | None:
    """The most columns of a line; None for any number."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return screen.width if screen.is_terminal else None


def _without_empty_columns(table: Table) -> Table:
    kept = [i for i in range(len(table.columns)) if i == 0 or any(row.cells[i] for row in _all_rows(table))]

    def shortened(row: Row) -> Row:
        return Row([row.cells[i] for i in kept], row.style)

    total = None if table.total is None else shortened(table.total)
    return Table([table.columns[i] for i in kept], [shortened(row) for row in table.rows], total)


def _all_rows(table: Table) -> list[Row]:
    return [*table.rows, *([] if table.total is None else [table.total])]


def _layout(table: Table, room: int | None) -> tuple[list[int], list[int], list[str]]:
    """Numbers and widths of the columns that fit, and the titles of others. No widths if only paragraphs fit."""
    count = len(table.columns)
    full = [_widest(table, i, whole=True) for i in range(count)]
    if room is None or _sum(full) <= room:
        return list(range(count)), full, []
    least = [_widest(table, i, whole=False) for i in range(count)]
    chosen = [i for i in range(count) if table.columns[i].rank == _ALWAYS]
    for i in sorted(range(count), key=lambda i: table.columns[i].rank):
        if i not in chosen and _sum([least[j] for j in (*chosen, i)]) <= room:
            chosen.append(i)
    chosen.sort()
    few = len(table.rows) <= 1  # a paragraph shows all of them
    if _sum([least[i] for i in chosen]) > room or (few and len(chosen) < count):
        return [], [], []
    widths = [least[i] for i in chosen]
    for _ in range(room - _sum(widths)):  # the rest goes to whichever column lacks most
        wanted = [full[i] - width for i, width in zip(chosen, widths, strict=True)]
        if max(wanted) <= 0:
            break
        widths[wanted.index(max(wanted))] += 1
    return chosen, widths, [column.title for i, column in enumerate(table.columns) if i not in chosen]


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _widest(table: Table, i: int, *, whole: bool) -> int:
    """The width that a column needs; without `whole` if titles and prose are wrapped."""
    title, cells = table.columns[i].title, [row.cells[i] for row in _all_rows(table)]
    titles = [title] if whole else title.split()
    texts = [word for cell in cells for word in cell.split()] if table.columns[i].is_prose and not whole else cells
    return max(map(cell_len, [*titles, *texts]), default=1)


def _drawn(table: Table, chosen: Sequence[int], widths: Sequence[int]) -> RichTable:
    drawn = RichTable(box=box.HORIZONTALS, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for i, width in zip(chosen, widths, strict=True):
        justify = "right" if table.columns[i].is_number else "left"
        drawn.add_column(table.columns[i].title, justify=justify, width=width, vertical="top")  # type: ignore[arg-type]
    for row in table.rows:
        drawn.add_row(*[Text(row.cells[i]) for i in chosen], style=row.style)
    if table.total is not None:
        drawn.add_section()
        drawn.add_row(*[Text(table.total.cells[i]) for i in chosen], style=table.total.style)
    return drawn


def _paragraphs(table: Table, room: int | None) -> Text:
    """A table's rows as paragraphs, with a line for each cell that is not empty; long ones are wrapped at spaces."""
    paragraphs = []
    for row in _all_rows(table):
        lines = [Text(row.cells[0])]
        for column, cell in zip(table.columns[1:], row.cells[1:], strict=True):
            lines += _lines(f"{column.title}: {cell}", room) if cell else []
        paragraphs.append(Text("\n", style=row.style).join(lines))
    return Text("\n\n").join(paragraphs)


def _lines(text: str, room: int | None) -> Iterator[Text]:
    """Lines of text, indented; a word that is too long has its own."""
    line = " "
    for word in text.split(" "):
        if room is not None and line.strip() and cell_len(line) + 1 + cell_len(word) > room:
            yield Text(line)
            line = "   "
        line += f" {word}"
    yield Text(line)
