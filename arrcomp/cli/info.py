"""The command `arrcomp info`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import files
from ..progress import progress
from .common import Json, one_line_errors, show, stored


def info(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A .arrcomp or .safetensors file.")],
    check: Annotated[bool, typer.Option(help="Check the checksums too, which reads all of the file.")] = True,
    as_json: Json = False,
) -> None:
    """List the arrays of a compressed file: what each is, how it is coded, and what it takes in the file."""
    with one_line_errors(), files.open_file(source) as file:
        rows = []
        with progress("reading", len(file), True) as done:
            for name in file:
                _, row = stored(file, name, check=check)
                rows.append(row)
                done(row.spec.nbytes)
        show(rows, as_json, short=False)
