"""The command `arrcomp info`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import files
from ..measure import Measurement
from ..progress import progress
from .common import Json, one_line_errors, show


def info(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A .arrcomp or .safetensors file.")],
    check: Annotated[bool, typer.Option(help="Check the checksums too, which reads all of the file.")] = True,
    as_json: Json = False,
) -> None:
    """List the arrays of a compressed file."""
    with one_line_errors(), files.open_file(source) as file:
        rows = []
        with progress("reading", len(file), True) as done:
            for name in file:
                spec = file.compressed(name).spec if check else file.spec(name)
                rows.append(Measurement(name, spec, file.nbytes(name)))
                done(spec.nbytes)
        show(rows, as_json, short=False)
