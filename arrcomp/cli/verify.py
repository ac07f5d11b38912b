"""The command `arrcomp verify`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import files, measure
from ..progress import progress
from .common import Json, MaxSize, Threads, VerificationError, one_line_errors, require, show, stored


def verify(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file that was compressed.")],
    compressed: Annotated[Path, typer.Argument(metavar="OUT", help="The compressed file that was made of it.")],
    threads: Threads = None,
    max_size: MaxSize = None,
    as_json: Json = False,
) -> None:
    """Decompress OUT and compare it with IN: exit code 1 if a bound is broken or, of lossless codecs, a bit differs."""
    with one_line_errors(), files.open_file(compressed, max_size=max_size) as file:
        original = files.read_arrays(source, max_size).arrays
        if set(original) != set(file):
            odd = sorted(set(original) ^ set(file))
            raise VerificationError(f"only one of {source} and {compressed} has the arrays {', '.join(odd)}")
        rows = []
        with progress("verifying", len(file), True) as done:
            for name in file:
                compressed_array, row = stored(file, name)
                rows.append(measure.check(original[name], compressed_array, row, threads=threads))
                done(row.spec.nbytes)
        show(rows, as_json)
        require(rows)
