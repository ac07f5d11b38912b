"""The command `arrcomp diff`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from .._arguments import checked_number, wrong_value
from .._files.content import naming
from .._files.progress import progress
from .common import Json, MaxNbytes, Quiet, Threads, one_line_errors, print_json, print_line, print_table
from .difference import Difference, Tolerance, difference, together
from .files import read_any
from .page import FAILED, Example, described
from .reports import finite
from .tables import Column, Row, Table
from .words import count_text, name_text, names_text

_MOST_ROWS = 40  # for the arrays that differ most
_FIGURES = {"largest_error": "largest error", "relative_to_range": "by range", "relative_error": "relative L2"}
_FIGURES |= {"psnr": "PSNR, dB"}
_COLUMNS = (
    Column("array"),
    Column("note", is_prose=True, rank=1),
    Column("values", is_number=True, rank=4),
    Column("not the same", is_number=True),
    Column("largest error", is_number=True, rank=2),
    Column("by range", is_number=True, rank=6),
    Column("relative L2", is_number=True, rank=3),
    Column("PSNR, dB", is_number=True, rank=5),
)
_ABS, _REL = "Values a and b are equal if |a - b| <= E.", "... or if |a - b| <= R times the range of A's array."


@described(
    Example("Whether two files hold the same bits", "arrcomp diff x.npy back.npy"),
    Example("Whether they are the same within 0.001", "arrcomp diff model.safetensors small.safetensors --abs 1e-3"),
    Example("For a script", "arrcomp diff --quiet x.npy x.arrcomp && echo same"),
    failed="the files differ",
)
def diff(
    first: Annotated[Path, Argument(metavar="A", help="A file of arrays, compressed or not.")],
    second: Annotated[Path, Argument(metavar="B", help="Another file, of any kind.")],
    absolute: Annotated[float | None, Option("--abs", metavar="E", help=_ABS)] = None,
    relative: Annotated[float | None, Option("--rel", metavar="R", help=_REL)] = None,
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare the arrays of two files.

    Without --abs and --rel all bits and dtypes must be equal. With them values are compared in float64, and NaNs are
    equal. Byte order does not matter. Names that only one file has, and different shapes, are always differences.
    """
    with one_line_errors():
        tolerance = Tolerance(_checked("--abs", absolute), _checked("--rel", relative))
        a, b = (read_any(path, max_nbytes, threads).arrays for path in (first, second))
        alone = {str(first): [name for name in a if name not in b], str(second): [name for name in b if name not in a]}
        common = [name for name in a if name in b]
        pairs = {}
        with progress("comparing", len(common), not quiet) as done:
            for name in common:
                x, y = a[name], b[name]
                with naming(None, name):
                    pairs[name] = difference(x, y, tolerance)
                done(x.nbytes)
        same = not any(alone.values()) and all(pair.same for pair in pairs.values())
        if as_json:
            arrays = [{"name": name} | _numbers(pair) for name, pair in pairs.items()]
            total = _numbers(together(pairs.values()))
            print_json({"same": same, "arrays": arrays, "only_in": alone, "total": total})
        elif not quiet:
            _show(pairs, alone, same=same)
    if not same:
        raise typer.Exit(FAILED)


def _checked(option: str, value: float | None) -> float | None:
    expected = "a finite number of at least 0"
    if value is not None and checked_number(option, value, expected) < 0:
        raise wrong_value(option, expected, value)
    return value


def _show(pairs: Mapping[str, Difference], alone: Mapping[str, list[str]], *, same: bool) -> None:
    """The arrays that differ (the worst ones if there are many), the total, and a verdict in words."""
    changed = [name for name, pair in pairs.items() if not pair.same or pair.squared_error > 0 or pair.obstacle]
    worst = sorted(changed, key=lambda name: (pairs[name].same, -pairs[name].relative_error))[:_MOST_ROWS]
    rows = []
    for name in (name for name in changed if name in set(worst)):
        pair = pairs[name]
        rows.append(Row([name_text(name), pair.obstacle, *_cells(pair)], "" if pair.same else "red"))
    if pairs:
        shown = len(pairs) == 1 == len(rows)  # a total would say the same again
        total = None if shown else Row([f"in both: {len(pairs)}", "", *_cells(together(pairs.values()))])
        print_table(Table(_COLUMNS, rows, total))
    lines = [f"{len(changed) - len(worst)} arrays with smaller differences are not shown"]
    lines = lines if len(changed) > len(worst) else []
    lines += [f"only in {path}: {names_text(names, _MOST_ROWS)}" for path, names in alone.items() if names]
    print_line("\n".join([*([""] if pairs else []), *lines, _verdict(pairs, alone, same=same)]))


def _verdict(pairs: Mapping[str, Difference], alone: Mapping[str, list[str]], *, same: bool) -> str:
    if not pairs and any(alone.values()):
        return f"different: {' and '.join(alone)} have no array in common"
    if same:
        exact = not any(pair.squared_error > 0 or pair.obstacle for pair in pairs.values())
        return f"equal: {count_text(len(pairs))}{'' if exact else ', within the tolerance'}"
    differing = sum(not pair.same for pair in pairs.values())
    counts = [f"{differing} of {count_text(len(pairs))} differ{'s' if differing == 1 else ''}"]
    counts += [f"{len(names)} only in {path}" for path, names in alone.items() if names]
    return f"different: {', '.join(counts)}"


def _cells(pair: Difference) -> list[str]:
    figures = [finite(getattr(pair, name)) for name in _FIGURES]
    return [f"{pair.values:,}", f"{pair.differing:,}", *("" if value is None else f"{value:.4g}" for value in figures)]


def _numbers(pair: Difference) -> dict[str, Any]:
    numbers: dict[str, Any] = {"values": pair.values, "differing": pair.differing}
    note = {"note": pair.obstacle} if pair.obstacle else {}
    return numbers | note | {name: finite(getattr(pair, name)) for name in _FIGURES}
